"""Much goes wrong at once in a real service: people hear of each cause once, and nothing begins by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path

import pytest

from predrain.data.reading import Reading
from tests.system.storm.town import ALIKE, BARRACUDA, DESKSTAR, MINUTE, Disk, Town, town

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(1200)]
HOURS = (30, 20, 10, 0)
"""Ago: so many readings over so long that the forecast may be believed of a single disk."""


def sick(town: Town, disks: Iterable[Disk]) -> list[Reading]:
    """Readings by which each of `disks` is bad, and of the others one by which they are well."""
    ill = {disk.number for disk in disks}
    bad = [disk for disk in town.disks if disk.number in ill]
    readings = [disk.reading(town.now - timedelta(hours=ago), pending=400) for ago in HOURS for disk in bad]
    return readings + [disk.reading(town.now) for disk in town.disks if disk.number not in ill]


def nothing_else(town: Town, told: int, read: Callable[[Disk], Reading | None]) -> None:
    """Check that no message is sent in two hours in which hosts go on reading.

    A halt after the two hours must be the next message of each channel.
    """
    for _ in range(2):
        town.pass_time(60 * MINUTE)
        town.read(reading for disk in town.disks if (reading := read(disk)) is not None)
    town.post_to("/api/v1/halt", {"reason": "somebody looks"})
    town.until_told(lambda: "Everything is halted" in town.titles(), "the halt")
    town.until_told(lambda: "[ceph] notice: Everything is halted" in town.subjects(), "the halt")
    assert town.titles()[told:] == ["Everything is halted"]
    assert town.subjects()[told:] == ["[ceph] notice: Everything is halted"]


def test_three_hundred_disks_of_one_model_are_one_message_and_no_drain(tmp_path: Path) -> None:
    with town(tmp_path) as here:
        here.hook.answer = 503
        here.start()
        here.well()
        alike = [disk for disk in here.disks if disk.model == BARRACUDA]
        assert len(alike) == ALIKE
        here.read(sick(here, alike))
        assert here.figure('predrain_devices{status="bad"}') == ALIKE
        suspicion = 'predrain_guard_refusals{guard="mass-suspicion"}'
        here.until(lambda: here.figure(suspicion) == ALIKE, "the refusal")
        here.until_kept("mail", 1)
        here.until(
            lambda: here.figure('predrain_notifications_failed_total{channel="webhook"}') > 0, "a failure"
        )
        here.kill()
        here.hook.answer = 204
        here.start()
        here.until_kept("webhook", 1)
        (mail,), (posted,) = here.mails, here.hook.kept
        title = f"300 of 300 disks of model {BARRACUDA} on 45 hosts are bad"
        assert (here.subjects(), here.titles()) == ([f"[ceph] urgent: {title}"], [title])
        assert len(posted["points"]) == ALIKE
        assert len(mail.get_content()) < 8_000
        assert here.get("drains")["items"] == []
        nothing_else(here, 1, lambda disk: disk.reading(here.now, pending=400 * (disk.model == BARRACUDA)))
        assert here.get("drains")["items"] == []


def test_a_single_bad_disk_in_the_same_place_is_drained_by_itself(tmp_path: Path) -> None:
    with town(tmp_path) as here:
        here.start()
        here.well()
        (disk, *_) = here.disks
        here.read(sick(here, [disk]))
        here.until_told(lambda: here.get("drains")["items"], "a drain")
        (drain,) = here.get("drains")["items"]
        assert drain["device"] == disk.device


def test_a_bad_firmware_is_named(tmp_path: Path) -> None:
    old = dict.fromkeys(range(ALIKE, ALIKE + 60), "A3W0")
    with town(tmp_path, firmware=old) as here:
        here.start()
        here.well()
        here.read(sick(here, [disk for disk in here.disks if disk.firmware == "A3W0"]))
        here.until_kept("mail", 1)
        here.until_kept("webhook", 1)
        title = f"60 of 150 disks of model {DESKSTAR} on 18 hosts are bad, 60 of 60 with firmware A3W0"
        assert here.titles() == [title]
        nothing_else(here, 1, lambda disk: disk.reading(here.now, pending=400 * (disk.firmware == "A3W0")))


def test_a_rack_that_is_too_hot_is_one_message(tmp_path: Path) -> None:
    with town(tmp_path) as here:
        here.start()

        def read(disk: Disk) -> Reading:
            return disk.reading(here.now, celsius=63 if disk.rack == "rack-2" else 33)

        here.read(map(read, here.disks))
        here.until_kept("mail", 1)
        here.until_kept("webhook", 1)
        assert here.titles() == ["150 disks on 15 hosts of rack rack-2 are too hot"]
        nothing_else(here, 1, read)


def test_hosts_that_nobody_hears_of_any_more_are_one_message(tmp_path: Path) -> None:
    with town(tmp_path) as here:
        here.start()
        here.read(disk.reading(here.now) for disk in here.disks)

        def read(disk: Disk) -> Reading | None:
            return None if disk.rack == "rack-3" else disk.reading(here.now)

        for _ in range(3):
            here.pass_time(60 * MINUTE)
            here.read(reading for disk in here.disks if (reading := read(disk)) is not None)
        here.until_kept("mail", 1)
        here.until_kept("webhook", 1)
        assert here.titles() == ["15 of 45 hosts are silent, all of them of rack rack-3"]
        nothing_else(here, 1, read)
