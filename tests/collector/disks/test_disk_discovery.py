"""Which disks there are, where any of the lists may hang, lie or be missing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from predrain.collector.disks import DiskPath, DiskWatch, DiskWatchLimits, Smartctl, SmartctlMisnamed
from predrain.collector.disks.kernel_disks import list_raid_slots
from predrain.data.clock import SystemClock
from predrain.data.ids import HostName
from tests.collector.disks.conftest import ALPHA, BETA, Host, by_device
from tests.collector.fake_smartctl import Disk, plant_controllers, plant_vendor

Made = Callable[[Iterable[Disk]], Host]

BEHIND = Disk("/dev/bus/0", "megaraid,8", "ata-017", "GAMMA", 3)


@pytest.mark.slow
def test_a_disk_that_hangs_the_opened_list_hides_no_other(host: Made) -> None:
    made = host([ALPHA, BETA, BEHIND])
    made.smartctl.hang_scan(opened=True)
    watch = made.watch(seconds=1)
    scan = watch.rescan()
    assert set(scan.found) == {
        DiskPath("/dev/sda"),
        DiskPath("/dev/sdb"),
        DiskPath("/dev/bus/0", "megaraid,8"),
    }
    assert scan.trouble == ("smartctl --scan-open did not answer within 1 s",)
    assert len(by_device(watch)) == 3


@pytest.mark.slow
def test_when_no_list_comes_what_was_known_is_still_asked_and_nothing_is_gone(host: Made) -> None:
    made = host([ALPHA, BEHIND])
    watch = made.watch(seconds=1)
    before = by_device(watch)
    made.smartctl.hang_scan(opened=True, unopened=True)
    for again in (watch, made.watch(seconds=1)):
        scan = again.rescan()
        assert scan.gone == ()
        assert {spot.place for spot in scan.found} == {"/dev/sda", "/dev/bus/0 megaraid,8"}
        assert set(by_device(again)) == set(before)


def test_a_disk_that_cannot_be_opened_is_found_all_the_same(host: Made) -> None:
    made = host([replace(ALPHA, how="gone")])
    assert made.watch().rescan().found == (DiskPath("/dev/sda", "sat"),)


@pytest.mark.slow
@pytest.mark.parametrize("hangs", [False, True])
def test_a_sata_drive_that_does_not_identify_itself_is_asked_as_a_sata_drive(host: Made, hangs: bool) -> None:
    """`--scan-open` and `--scan` list it as they list a SAS drive."""
    made = host([replace(ALPHA, type="scsi"), replace(BETA, type="scsi")])
    for block, vendor in (("sda", "ATA     "), ("sdb", "SEAGATE ")):
        plant_vendor(made.root, block, vendor)
    made.smartctl.hang_scan(opened=hangs)
    found = made.watch(seconds=1).rescan().found
    assert found == (DiskPath("/dev/sda", "sat"), DiskPath("/dev/sdb", "auto" if hangs else "scsi"))


def test_a_disk_that_came_later_is_found_by_the_next_scan(host: Made) -> None:
    made = host([ALPHA])
    watch = made.watch()
    by_device(watch)
    made.smartctl.plug(BETA)
    watch.rescan()
    assert len(by_device(watch)) == 2


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("--version", "sat"),
        ("/etc/shadow", "sat"),
        ("/dev/../etc/shadow", "sat"),
        ("/dev/sda; reboot", "sat"),
        ("/dev/sda", "-h"),
        ("", "sat"),
        ("/dev/sda\n/dev/sdb", "sat"),
    ],
)
def test_a_scan_entry_that_names_no_device_is_refused_and_never_read(
    host: Made, name: str, kind: str
) -> None:
    made = host([BETA])
    made.smartctl.list_also({"name": name, "type": kind})
    watch = made.watch()
    scan = watch.rescan()
    by_device(watch)
    assert scan.found == (DiskPath("/dev/sdb", "sat"),)
    assert len(scan.refused) == 1
    assert "is not asked" in scan.refused[0]
    assert all(asked.endswith("/dev/sdb") for asked in made.smartctl.asked() if "-x" in asked)


def test_a_host_without_disks_is_told_so(host: Made) -> None:
    watch = host([]).watch()
    assert any("lists no disk on this host" in said for said in watch.rescan().trouble)
    assert by_device(watch) == {}


def test_pysmart_finds_what_an_old_smartctl_lists_only_as_text(host: Made, tmp_path: Path) -> None:
    made = host([ALPHA])
    old = tmp_path / "old-smartctl"
    old.write_text(
        f"#!/bin/sh\ncase \"$*\" in *--scan*--json*) echo 'UNRECOGNIZED OPTION: json'; exit 1;; esac\n"
        f'exec {made.smartctl.program} "$@"\n'
    )
    old.chmod(0o755)
    scan = made.watch(program=str(old)).rescan()
    assert scan.found == (DiskPath("/dev/sda", "sat"),)
    assert all("smartmontools 7 or later" in said for said in scan.trouble)


def test_without_pysmart_the_lists_of_smartctl_are_used_and_it_is_told(
    host: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nshift\nexec {os.path.realpath(sys.executable)} -I -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setattr("predrain.collector.disks.discovery.sys.executable", str(bare))
    scan = host([ALPHA]).watch().rescan()
    assert scan.found == (DiskPath("/dev/sda", "sat"),)
    assert scan.trouble == (
        "pySMART's list of disks could not be had (pySMART is not installed): smartctl's own is used",
    )


def test_pysmart_is_never_loaded_into_the_collector(host: Made) -> None:
    host([ALPHA]).watch().rescan()
    assert "pySMART" not in sys.modules


def test_a_sata_drive_behind_a_raid_controller_is_asked_once_a_round(host: Made) -> None:
    """`--scan` calls it megaraid,8, and `--scan-open`, which has looked, sat+megaraid,8."""
    listed = Disk("/dev/bus/0", "megaraid,8", "ata-017", "BEHIND")
    made = host([listed, replace(listed, type="sat+megaraid,8", listed=False)])
    made.smartctl.list_also({"name": "/dev/bus/0", "type": "sat+megaraid,8"})
    watch = made.watch()
    assert len(by_device(watch)) == 1
    assert len([asked for asked in made.smartctl.asked() if "-x" in asked]) == 1
    assert watch.nameless == ()


def test_slots_of_controllers_are_reached_by_the_controllers_own_device(tmp_path: Path) -> None:
    plant_controllers(tmp_path)
    asked = list_raid_slots(tmp_path)
    assert {spot.path for spot in asked if spot.type.startswith("cciss,")} == {"/dev/sg3"}
    assert {spot.path for spot in asked if spot.type.startswith("areca,")} == {"/dev/sg7"}
    assert DiskPath("/dev/sg7", "areca,24/4") in asked
    assert all(spot.is_behind_controller and spot.is_safe for spot in asked)


@pytest.mark.slow
def test_a_controller_that_takes_too_long_makes_no_disk_of_its_gone(
    host: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = host([Disk("/dev/sg7", "areca,2", "ata-059", "SLOT", listed=False)])
    plant_controllers(made.root)
    watch = made.watch()
    assert len(by_device(watch)) == 1
    monkeypatch.setattr("predrain.collector.disks.discovery._SLOTS_SECONDS", 0)
    scan = watch.rescan()
    assert scan.gone == ()
    assert any("were not all asked" in said for said in scan.trouble)
    assert len(by_device(watch)) == 1


def test_more_disks_than_a_host_can_have_are_cut_and_told(
    host: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("predrain.collector.disks.discovery._MOST_DISKS", 1)
    scan = host([ALPHA, BETA]).watch().rescan()
    assert len(scan.found) == 1
    assert scan.trouble[0].startswith("2 disks are listed and 1 are read")


def test_a_program_without_its_absolute_path_is_refused() -> None:
    for made in (lambda: Smartctl("smartctl"), lambda: Smartctl(sudo="sudo")):
        with pytest.raises(SmartctlMisnamed, match="absolute path"):
            made()


@pytest.mark.system
def test_the_real_smartctl_of_this_machine_gives_a_clear_answer(tmp_path: Path) -> None:
    program = "/usr/sbin/smartctl"
    if not Path(program).exists():
        if os.environ.get("CI") == "true":
            pytest.fail("smartctl is not installed: apt-get install smartmontools")
        pytest.skip("smartctl is not installed")
    watch = DiskWatch(
        Smartctl(program),
        SystemClock(),
        HostName("here"),
        find_osds_on=lambda _: (),
        kernel_errors=lambda _: None,
        random=Random(1),
        limits=DiskWatchLimits(seconds=60, spread_seconds=0),
        state=tmp_path / "disks.json",
    )
    scan = watch.rescan()
    readings = list(watch.read_disks())
    assert len(readings) + len(watch.nameless) + len(watch.asleep) >= len(scan.found)
    if not scan.found:
        assert scan.trouble == (
            "smartctl lists no disk on this host: run the collector where the disks are, with sudo",
        )
