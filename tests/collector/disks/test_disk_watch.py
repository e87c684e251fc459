"""One look at every disk of a host: a reading of each, also of the hung, the dying and the hidden."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from predrain.data.ids import OsdId
from predrain.data.reading import OsdDevice, Protocol, Role
from predrain.data.unreadable import UnreadableCause
from tests.collector.disks.conftest import ALPHA, BETA, A, B, Host, by_device, smart_of, unreadable_of
from tests.collector.fake_smartctl import Disk, How, every_kind, plant_controllers, plant_wwid

Made = Callable[[Iterable[Disk]], Host]


@pytest.mark.slow
def test_every_way_in_is_found_and_read(host: Made) -> None:
    disks = every_kind()
    made = host(disks)
    plant_controllers(made.root)
    watch = made.watch()
    scan = watch.rescan()
    assert {spot.path + spot.type for spot in scan.found} == {disk.path + disk.type for disk in disks}
    readings = by_device(watch)
    assert len(readings) == 24
    assert {smart_of(reading).protocol for reading in readings.values()} == set(Protocol)
    assert watch.nameless == ()
    assert all(reading.host == "node1" for reading in readings.values())


def test_exit_bits_are_signals_and_leave_the_reading_good(host: Made) -> None:
    made = host([Disk("/dev/sdy", "usbjmicron", "ata-052")])
    (reading,) = by_device(made.watch()).values()
    assert smart_of(reading).exit_bits == (3, 4, 6, 7)
    assert smart_of(reading).passed is False
    assert smart_of(reading).counters.reallocated == 1975


def test_a_disk_is_read_again_alone_where_it_was_read_last(host: Made) -> None:
    one, other = Disk("/dev/sda", "scsi", "scsi-001", "SICK"), Disk("/dev/sdb", "scsi", "scsi-001", "WELL")
    made = host([one, other])
    watch = made.watch()
    sick = next(name for name in by_device(watch) if name.endswith("SICK"))
    (again,) = watch.reread_disks([sick])
    assert again.device == sick
    assert smart_of(again).counters.grown_defects == 260


def test_a_disk_that_was_swapped_or_fell_silent_since_gives_no_second_reading(host: Made) -> None:
    one = Disk("/dev/sda", "scsi", "scsi-001", "SICK")
    made = host([one])
    watch = made.watch()
    (sick,) = by_device(watch)
    made.smartctl.plug(replace(one, serial="NEW"))
    assert list(watch.reread_disks([sick])) == []
    assert list(watch.reread_disks(["nobody"])) == []


def test_a_sas_drives_non_medium_errors_come_along_with_its_defects(host: Made) -> None:
    lines = ("Non-medium error count:    84893",)
    made = host([Disk("/dev/sda", "scsi", "scsi-001", "SICK", text=lines)])
    (reading,) = by_device(made.watch()).values()
    counters = smart_of(reading).counters
    assert (counters.grown_defects, counters.uncorrected_errors, counters.non_medium_errors) == (
        260,
        536,
        84893,
    )


NO_SMART = (
    "SMART support is:     Unavailable - device lacks SMART capability.",
    "Error Counter logging not supported",
)
STATE = ("smart_status", "power_on_time", "scsi_grown_defect_list", "scsi_error_counter_log")


def test_a_sas_drive_that_told_its_state_and_is_said_to_lack_smart_is_unreadable(host: Made) -> None:
    """smartctl says so whenever MODE SENSE fails: openstreetmap/operations#49, a dying drive behind MegaRAID."""
    disk = Disk("/dev/bus/0", "megaraid,28", "scsi-001", "SICK")
    made = host([disk])
    assert smart_of(*by_device(made.watch()).values()).counters.grown_defects == 260
    made.smartctl.plug(replace(disk, lacks=STATE, text=NO_SMART))
    watch = made.watch()
    (reading,) = by_device(watch).values()
    assert "as if it lacked SMART, and used to tell it" in unreadable_of(reading).why
    (again,) = by_device(watch).values()
    assert unreadable_of(again).since == unreadable_of(reading).since
    made.smartctl.plug(disk)
    assert smart_of(*by_device(watch).values()).passed


def test_a_scsi_disk_that_never_told_a_state_is_no_failure(host: Made) -> None:
    made = host([Disk("/dev/sda", "scsi", "scsi-001", "VOLUME", lacks=STATE, text=NO_SMART)])
    watch = made.watch()
    for _ in range(2):
        (reading,) = by_device(watch).values()
        assert smart_of(reading).passed is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("hang", "smartctl did not answer within 1 s"),
        ("stubborn", "smartctl did not answer within 1 s"),
        ("garbage", "not JSON|cut off"),
        ("mute", "is empty"),
        ("endless", "printed more than 16 MiB"),
        ("vanish", "was ended by signal 9"),
        ("gone", "No such device"),
    ],
)
def test_a_disk_that_cannot_be_read_is_a_reading_that_says_why_and_the_others_go_on(
    host: Made, how: How, why: str
) -> None:
    made = host([ALPHA, BETA])
    watch = made.watch(seconds=20 if how == "endless" else 1)
    assert set(by_device(watch)) == {A, B}
    made.smartctl.plug(replace(ALPHA, how=how))
    readings = by_device(watch)
    assert re.search(why, unreadable_of(readings[A]).why)
    assert smart_of(readings[B]).passed is True


@pytest.mark.parametrize("how", ["slow", "orphan"])
def test_a_slow_answer_and_one_that_leaves_a_child_behind_are_answers(host: Made, how: How) -> None:
    made = host([replace(ALPHA, how=how)])
    assert smart_of(by_device(made.watch())[A]).passed is True


def test_since_is_the_first_failure_and_ends_with_an_answer(host: Made) -> None:
    made = host([ALPHA])
    watch = made.watch()
    by_device(watch)
    made.smartctl.plug(replace(ALPHA, how="vanish"))
    first = unreadable_of(by_device(watch)[A]).since
    made.clock.ahead += timedelta(hours=1)
    later = by_device(watch)[A]
    assert unreadable_of(later).since == first
    assert later.taken_at >= first + timedelta(hours=1)
    made.smartctl.plug(ALPHA)
    by_device(watch)
    made.smartctl.plug(replace(ALPHA, how="vanish"))
    assert unreadable_of(by_device(watch)[A]).since > first


def test_a_disk_that_hangs_has_its_name_and_its_since_after_a_restart(host: Made) -> None:
    made = host([ALPHA])
    watch = made.watch()
    by_device(watch)
    made.smartctl.plug(replace(ALPHA, how="vanish"))
    since = unreadable_of(by_device(watch)[A]).since
    assert unreadable_of(by_device(made.watch())[A]).since == since


def test_a_disk_that_never_told_its_name_is_told_apart(host: Made) -> None:
    made = host([replace(ALPHA, how="gone"), replace(BETA, serial="REDACTED")])
    watch = made.watch()
    assert by_device(watch) == {}
    silent, masked = sorted(watch.nameless)
    assert "/dev/sda has not reported its name yet" in silent
    assert "No such device" in silent
    assert "/dev/sdb answers, but with no serial number of its own" in masked


def test_a_sleeping_disk_is_neither_woken_nor_a_failure(host: Made) -> None:
    made = host([ALPHA])
    watch = made.watch()
    by_device(watch)
    made.smartctl.plug(replace(ALPHA, how="asleep"))
    assert by_device(watch) == {}
    assert [spot.path for spot in watch.asleep] == ["/dev/sda"]
    assert watch.nameless == ()
    assert all("-n standby,3" in asked for asked in made.smartctl.asked() if "-x" in asked)


def test_one_drive_on_two_paths_is_one_device_with_the_seats_of_the_path_that_has_them(host: Made) -> None:
    made = host([ALPHA, replace(ALPHA, path="/dev/bus/0", type="megaraid,8")])
    made.osd_devices["/dev/sda"] = (OsdDevice(OsdId(3), Role.DATA),)
    made.errors["sda"] = 2
    watch = made.watch()
    by_device(watch)
    (reading,) = by_device(watch).values()
    assert reading.device == A
    assert reading.osd_devices == (OsdDevice(OsdId(3), Role.DATA),)
    assert reading.kernel_errors == 2


def test_a_disk_is_read_as_long_as_one_of_its_paths_answers(host: Made) -> None:
    second = replace(ALPHA, path="/dev/sdb")
    made = host([ALPHA, second])
    for block in ("sda", "sdb"):
        plant_wwid(made.root, block, "naa.5000c50000000001")
    watch = made.watch()
    by_device(watch)
    looks = len(made.smartctl.asked())
    by_device(watch)
    assert len(made.smartctl.asked()) == looks + 1, "the second path is asked only when the first is silent"
    made.smartctl.plug(replace(ALPHA, how="vanish"))
    assert smart_of(by_device(watch)[A]).passed is True
    assert watch.nameless[0].startswith("/dev/sda is silent")
    made.smartctl.plug(replace(second, how="vanish"))
    unreadable_of(by_device(watch)[A])


def test_two_drives_of_one_name_and_two_wwns_are_both_read_and_told(host: Made) -> None:
    made = host([ALPHA, replace(ALPHA, path="/dev/sdb", wwn=99)])
    watch = made.watch()
    assert [reading.device for reading in watch.read_disks()] == [A, A]
    assert "two disks share one name" in watch.nameless[0]


def test_a_volume_of_a_raid_controller_gives_its_seats_to_no_drive_behind_it(host: Made) -> None:
    made = host([Disk("/dev/sda", "cciss,0", "scsi-003", "HIDDEN", listed=False)])
    made.smartctl.list_also({"name": "/dev/sda", "type": "cciss,0"})
    made.osd_devices["/dev/sda"] = (OsdDevice(OsdId(3), Role.DATA),)
    (reading,) = by_device(made.watch()).values()
    assert reading.osd_devices == ()
    assert reading.kernel_errors is None


def test_an_nvme_controller_is_known_by_its_namespaces(host: Made) -> None:
    made = host([Disk("/dev/nvme0", "nvme", "nvme-004", "N1")])
    for block in ("nvme0n1", "nvme0n2", "nvme0n1p1"):
        (made.root / "sys/block" / block).mkdir(parents=True)
    made.osd_devices |= {
        "/dev/nvme0n1": (OsdDevice(OsdId(1), Role.DB),),
        "/dev/nvme0n2": (OsdDevice(OsdId(2), Role.DB),),
    }
    made.errors |= {"nvme0n1": 1, "nvme0n2": 4}
    (reading,) = by_device(made.watch()).values()
    assert reading.osd_devices == (OsdDevice(OsdId(1), Role.DB), OsdDevice(OsdId(2), Role.DB))
    assert reading.kernel_errors == 5


def test_an_nvme_that_dropped_off_and_came_back_as_another_controller_keeps_its_seats(host: Made) -> None:
    """The kernel keeps the number of the namespace as long as an OSD holds it, and gives the controller a new one."""
    made = host([Disk("/dev/nvme4", "nvme", "nvme-004", "N1")])
    (made.root / "sys/class/nvme/nvme4/nvme3c4n1").mkdir(parents=True)
    for block in ("nvme3n1", "nvme3c4n1"):
        (made.root / "sys/block" / block).mkdir(parents=True)
    made.osd_devices |= {"/dev/nvme3n1": (OsdDevice(OsdId(1), Role.DATA),)}
    made.errors |= {"nvme3n1": 7}
    (reading,) = by_device(made.watch()).values()
    assert reading.osd_devices == (OsdDevice(OsdId(1), Role.DATA),)
    assert reading.kernel_errors == 7


def _plant_udev(root: Path, *said: str) -> None:
    """Write the lines that udev noted of the disk sda below the root folder of a host."""
    (root / "sys/block/sda").mkdir(parents=True)
    (root / "sys/block/sda/dev").write_text("8:0\n")
    (root / "run/udev/data").mkdir(parents=True)
    (root / "run/udev/data/b8:0").write_text("".join(f"{line}\n" for line in ("S:disk/by-id/x", *said)))


def test_a_sata_drive_has_the_name_that_ceph_takes_from_udevs_rules_for_scsi(host: Made) -> None:
    """With the rules of sg3_utils, as on RHEL, Ceph knows a SATA drive by what the SAS adapter says of it."""
    made = host([ALPHA, replace(ALPHA, path="/dev/bus/0", type="megaraid,8")])
    _plant_udev(made.root, "E:ID_VENDOR=ATA", "E:ID_MODEL=WDC_WD1003FBYZ-0", "E:ID_SCSI_SERIAL=ALPHA")
    watch = made.watch()
    assert set(by_device(watch)) == {"ATA_WDC_WD1003FBYZ-0_ALPHA"}
    assert watch.nameless == ()


@pytest.mark.parametrize(
    "said",
    [
        ("E:ID_MODEL=WDC_WD1003FBYZ-010FB0", "E:ID_SERIAL_SHORT=ALPHA"),
        ("E:ID_VENDOR=ATA", "E:ID_MODEL=ST3500418AS", "E:ID_SCSI_SERIAL=ANOTHER"),
    ],
)
def test_a_udev_record_without_a_scsi_serial_or_of_another_drive_changes_no_name(
    host: Made, said: tuple[str, ...]
) -> None:
    made = host([ALPHA])
    _plant_udev(made.root, *said)
    assert set(by_device(made.watch())) == {A}


@pytest.mark.slow
def test_a_reading_is_never_from_the_future_and_keeps_smartctls_time_where_that_can_be(host: Made) -> None:
    tomorrow = int(datetime.now(UTC).timestamp()) + 86400
    made = host([ALPHA, replace(BETA, local_time=tomorrow)])
    readings = by_device(made.watch())
    for reading in readings.values():
        assert reading.taken_at <= reading.received_at <= made.clock.now()
    assert readings[A].taken_at.microsecond == 0, "smartctl counts whole seconds"
    made.clock.ahead -= timedelta(days=2)
    for reading in by_device(made.watch()).values():
        assert reading.taken_at <= reading.received_at <= made.clock.now()


@pytest.mark.slow
def test_a_process_that_cannot_be_killed_holds_up_no_round_and_is_not_doubled(
    host: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = host([ALPHA, BETA])
    watch = made.watch(seconds=1)
    by_device(watch)
    made.smartctl.plug(replace(ALPHA, how="hang"))

    def refused(group: int, number: int) -> None:
        stuck.append(group)
        raise PermissionError

    stuck: list[int] = []
    kill = os.killpg
    with monkeypatch.context() as unkillable:
        unkillable.setattr("predrain.collector.disks.process.os.killpg", refused)
        first = unreadable_of(by_device(watch)[A])
        looks = _looks_at(made, "/dev/sda")
        again = unreadable_of(by_device(watch)[A])
        assert again.why == "smartctl still hangs from an earlier look"
        assert again.since == first.since
        assert _looks_at(made, "/dev/sda") == looks
    (hung,) = {group for group in stuck if Path(f"/proc/{group}").exists()}
    kill(hung, signal.SIGKILL)
    made.smartctl.plug(ALPHA)
    os.waitid(os.P_PID, hung, os.WEXITED | os.WNOWAIT)
    assert smart_of(by_device(watch)[A]).passed is True


@pytest.mark.slow
def test_a_late_smartctl_under_sudo_is_ended_by_sudo(host: Made, tmp_path: Path) -> None:
    """smartctl is root's then: only sudo can end it, and a sudo that is killed cannot."""
    made = host([ALPHA])
    sudo = tmp_path / "sudo"
    sudo.write_text('#!/bin/sh\nshift\nsetsid "$@" &\ntrap "kill $!" TERM\nwait $!\n')
    sudo.chmod(0o755)
    made.sudo = str(sudo)
    watch = made.watch(seconds=1)
    by_device(watch)
    made.smartctl.plug(replace(ALPHA, how="hang"))
    assert unreadable_of(by_device(watch)[A]).why == "smartctl did not answer within 1 s"
    made.smartctl.plug(ALPHA)
    assert smart_of(by_device(watch)[A]).passed is True
    assert made.smartctl.hanging() == 0


def test_a_round_that_is_broken_off_leaves_no_process_behind(host: Made) -> None:
    made = host([replace(ALPHA, how="stubborn"), BETA])
    watch = made.watch()
    going = watch.read_disks()
    assert next(going).device == B
    going.close()
    assert made.smartctl.hanging() == 0


def test_an_absent_smartctl_says_how_to_get_it(host: Made, tmp_path: Path) -> None:
    made = host([ALPHA])
    by_device(made.watch())
    program = tmp_path / "nowhere" / "smartctl"
    watch = made.watch(program=str(program))
    assert watch.rescan().trouble == (
        f"smartctl could not be run ({program}: No such file or directory): install it (apt install smartmontools), or"
        " give its path as `smartctl` in [collector]",
    )
    assert unreadable_of(by_device(watch)[A]).cause is UnreadableCause.TOOL_MISSING
    made.sudo = str(tmp_path / "sudo")
    (told,) = made.watch().rescan().trouble
    assert "apt install sudo" in told


def test_sudo_stands_before_smartctl_and_its_refusal_is_told(host: Made, tmp_path: Path) -> None:
    made = host([ALPHA])
    sudo = tmp_path / "sudo"
    sudo.write_text('#!/bin/sh\n[ "$1" = -n ] || exit 9\nshift\nexec "$@"\n')
    sudo.chmod(0o755)
    made.sudo = str(sudo)
    watch = made.watch()
    assert set(by_device(watch)) == {A}
    sudo.write_text("#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n")
    assert "sudo: a password is required" in unreadable_of(by_device(watch)[A]).why


def _looks_at(made: Host, path: str) -> int:
    return sum(asked.endswith(path) for asked in made.smartctl.asked())
