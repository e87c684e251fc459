"""Disks that move, vanish, come back or change their names: none is lost, and none is taken for another."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta

import pytest

from predrain.data.ids import OsdId
from predrain.data.reading import OsdDevice, Role
from tests.collector.disks.conftest import ALPHA, BETA, A, B, Host, by_device, smart_of, unreadable_of
from tests.collector.fake_smartctl import Disk, plant_wwid

Made = Callable[[Iterable[Disk]], Host]


@pytest.mark.slow
def test_a_disk_that_is_listed_no_more_is_unreadable_for_a_day_and_then_forgotten(host: Made) -> None:
    made = host([ALPHA, BETA])
    watch = made.watch()
    by_device(watch)
    made.smartctl.unplug("/dev/sda")
    assert watch.rescan().gone == (f"/dev/sda, where {A} was, is listed no more",)
    assert "listed no more" in unreadable_of(by_device(watch)[A]).why
    made.clock.ahead += timedelta(hours=25)
    assert set(by_device(watch)) == {B}
    assert watch.rescan().gone == ()


@pytest.mark.slow
def test_a_missing_disk_is_told_of_in_every_other_round_for_another_host_may_have_it(host: Made) -> None:
    made = host([ALPHA, BETA])
    watch = made.watch()
    by_device(watch)
    made.smartctl.unplug("/dev/sda")
    watch.rescan()
    assert [A in by_device(watch) for _ in range(4)] == [True, False, True, False]
    made.smartctl.plug(ALPHA)
    watch.rescan()
    assert smart_of(by_device(watch)[A]).passed is True
    made.smartctl.unplug("/dev/sda")
    watch.rescan()
    assert A in by_device(watch)


@pytest.mark.slow
def test_a_disk_that_was_plugged_in_elsewhere_is_gone_from_its_old_place_without_a_word(host: Made) -> None:
    made = host([ALPHA])
    watch = made.watch()
    by_device(watch)
    made.smartctl.unplug("/dev/sda")
    made.smartctl.plug(replace(ALPHA, path="/dev/sdc"))
    watch.rescan()
    assert smart_of(by_device(watch)[A]).passed is True
    assert watch.rescan().gone == ()


def test_a_disk_that_moved_to_another_place_is_not_called_unreadable(host: Made) -> None:
    made = host([ALPHA, BETA])
    by_device(made.watch())
    made.smartctl.unplug("/dev/sdb")
    made.smartctl.plug(replace(ALPHA, how="gone"), replace(ALPHA, path="/dev/sdc"))
    watch = made.watch()
    readings = by_device(watch)
    assert smart_of(readings[A]).passed is True
    assert any("/dev/sda is silent" in remark for remark in watch.nameless)


@pytest.mark.slow
def test_after_a_swap_of_letters_a_hung_disk_keeps_its_own_name(host: Made) -> None:
    made = host([ALPHA, BETA])
    plant_wwid(made.root, "sda", "naa.a")
    plant_wwid(made.root, "sdb", "naa.b")
    by_device(made.watch())
    plant_wwid(made.root, "sda", "naa.b")
    plant_wwid(made.root, "sdb", "naa.a")
    made.smartctl.plug(replace(BETA, path="/dev/sda", how="vanish"), replace(ALPHA, path="/dev/sdb"))
    for _ in range(2):
        readings = by_device(made.watch())
        assert smart_of(readings[A]).passed is True
        assert unreadable_of(readings[B]).why == "smartctl was ended by signal 9"


@pytest.mark.slow
def test_a_disk_that_died_while_letters_moved_up_is_missing_and_not_forgotten(host: Made) -> None:
    made = host([ALPHA, BETA])
    plant_wwid(made.root, "sda", "naa.a")
    plant_wwid(made.root, "sdb", "naa.b")
    made.osd_devices["/dev/sda"] = (OsdDevice(OsdId(2), Role.DATA),)
    by_device(made.watch())
    made.smartctl.unplug("/dev/sda")
    made.smartctl.unplug("/dev/sdb")
    made.smartctl.plug(replace(BETA, path="/dev/sda"))
    plant_wwid(made.root, "sda", "naa.b")
    for _ in range(2):  # also after one more restart
        readings = by_device(made.watch())
        assert smart_of(readings[B]).passed is True
        assert unreadable_of(readings[A]).why == (
            f"it was at /dev/sda, where {B} is now, and is at no other place: pulled, or off the bus"
        )
        assert readings[A].osd_devices == ()
        assert readings[A].kernel_errors is None
    made.clock.ahead += timedelta(hours=25)
    watch = made.watch()
    assert set(by_device(watch)) == {B}
    assert set(by_device(watch)) == {B}


@pytest.mark.slow
def test_a_missing_disk_that_comes_back_hung_has_its_name(host: Made) -> None:
    made = host([ALPHA])
    plant_wwid(made.root, "sda", "naa.a")
    by_device(made.watch())
    made.smartctl.plug(replace(BETA, path="/dev/sda"))
    plant_wwid(made.root, "sda", "naa.b")
    since = unreadable_of(by_device(made.watch())[A]).since
    made.smartctl.plug(replace(ALPHA, path="/dev/sdc", how="vanish"))
    plant_wwid(made.root, "sdc", "naa.a")
    back = unreadable_of(by_device(made.watch())[A])
    assert back.why == "smartctl was ended by signal 9"
    assert back.since == since


def test_a_disk_that_changes_its_serial_is_known_by_its_wwn_and_its_old_name_is_not_missing(
    host: Made,
) -> None:
    made = host([ALPHA])
    watch = made.watch()
    by_device(watch)
    made.smartctl.plug(replace(ALPHA, serial="OMEGA"))
    renamed = A.replace("ALPHA", "OMEGA")
    assert set(by_device(watch)) == {renamed}
    (told,) = watch.nameless
    assert told.startswith(f"/dev/sda, which was {A}, calls itself {renamed} now")
    assert set(by_device(watch)) == {renamed}
    assert watch.nameless == ()
