"""Rules, for drives that no model was trained on: each trap of the evidence is a case."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from predrain.data.ids import DeviceId, HostName
from predrain.data.outlook import Status
from predrain.data.reading import Counters, Identity, Protocol, Reading, Smart, Unreadable
from predrain.data.unreadable import UnreadableCause
from predrain.features import DriveState, replay_readings
from predrain.models.forecast.rules import CODES, RuleVerdict, judge_by_rules, judge_drive, judge_symptoms

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
DEVICE = DeviceId("DRIVE_1")


def smart(protocol: Protocol, **say: object) -> Smart:
    """Build a drive's Smart. `say` has fields of Smart and of its identity by name; all others are counters."""
    own = {name: say.pop(name) for name in ("passed", "temperature_c", "spare_threshold_pct") if name in say}
    rotation = say.pop("rotation_rpm", 0)
    identity = Identity(model=str(say.pop("model", "DRIVE")), serial="1", rotation_rpm=rotation)  # type: ignore[arg-type]
    passed = own.pop("passed", True)
    return Smart(protocol, identity, passed, Counters(**say), **own)  # type: ignore[arg-type]


def lived(*seen: Smart | Unreadable) -> DriveState:
    """One reading a day."""
    readings = [
        Reading(DEVICE, HostName("h"), NOON + timedelta(days=n), NOON, what) for n, what in enumerate(seen)
    ]
    state = replay_readings(readings)
    assert state is not None
    return state


def verdict(*seen: Smart | Unreadable) -> RuleVerdict:
    said = judge_by_rules(lived(*seen))
    assert said is not None
    assert all(reason.code in CODES for reason in said.reasons)
    return said


def nvme(**say: object) -> Smart:
    return smart(Protocol.NVME, **say)


@pytest.mark.parametrize(
    ("counters", "status", "rule", "hard"),
    [
        ({"critical_warning": 0}, Status.GOOD, "no-sign", False),
        ({"critical_warning": 0x02, "temperature_c": 84}, Status.WARNING, "nvme-hot", False),
        ({"critical_warning": 0x04, "percentage_used": 104}, Status.WARNING, "nvme-worn", False),
        ({"critical_warning": 0x04, "percentage_used": 7}, Status.BAD, "nvme-critical", True),
        ({"critical_warning": 0x09, "percentage_used": 120}, Status.BAD, "nvme-critical", True),
        ({"percentage_used": 100}, Status.WARNING, "wear", False),
        ({"percentage_used": 99}, Status.GOOD, "wear", False),
        ({"available_spare_pct": 4, "spare_threshold_pct": 10}, Status.BAD, "spare", True),
        ({"available_spare_pct": 100, "spare_threshold_pct": 100}, Status.GOOD, "no-sign", False),
        ({"media_errors": 2**32 - 1, "critical_warning": 0}, Status.GOOD, "no-sign", False),
        ({"media_errors": 12}, Status.WARNING, "media-errors", False),
        ({"media_errors": 1}, Status.WARNING, "media-errors", False),
        ({"passed": None}, Status.UNKNOWN, "nothing-reported", False),
        ({"passed": False}, Status.BAD, "verdict", True),
    ],
)
def test_an_nvme_drive_is_judged_by_what_its_log_means(
    counters: dict[str, object], status: Status, rule: str, hard: bool
) -> None:
    said = verdict(nvme(**counters))
    assert (said.status, said.rule, said.hard) == (status, rule, hard)


def test_media_errors_that_rise_are_hard_evidence_told_with_numbers_and_date() -> None:
    said = verdict(nvme(media_errors=0), nvme(media_errors=0), nvme(media_errors=12))
    assert (said.status, said.hard) == (Status.BAD, True)
    assert said.reasons[0].sentence == "Media errors 0 to 12 since 03 Nov."
    assert said.clears == "Falls to a warning when nothing rises for 7 days."


def test_a_verdict_on_a_rise_improves_after_the_quiet_days_that_the_verdict_names() -> None:
    said = verdict(nvme(media_errors=0), nvme(media_errors=3))
    assert (said.status, said.clears) == (Status.BAD, "Falls to a warning when nothing rises for 7 days.")
    assert verdict(nvme(media_errors=0), *[nvme(media_errors=3)] * 8).status is Status.WARNING
    few, more = smart(Protocol.ATA, reallocated=0), smart(Protocol.ATA, reallocated=6)
    assert verdict(few, more).clears == "Clears when nothing rises for 7 days."
    assert verdict(few, *[more] * 8).status is Status.GOOD


def test_all_that_is_wrong_is_told_with_the_worst_first() -> None:
    said = verdict(nvme(available_spare_pct=3, spare_threshold_pct=10, percentage_used=130))
    assert [reason.code for reason in said.reasons] == ["spare-low", "worn-out"]


def test_a_failed_verdict_of_a_hard_disk_is_hard_evidence() -> None:
    said = verdict(smart(Protocol.ATA, model="ST4000DM000", rotation_rpm=5900, passed=False))
    assert (said.status, said.rule, said.hard) == (Status.BAD, "verdict", True)


def test_a_readable_sata_hard_disk_is_left_to_the_model() -> None:
    assert judge_by_rules(lived(smart(Protocol.ATA, model="ST4000DM000", rotation_rpm=5900))) is None
    assert judge_by_rules(lived(smart(Protocol.ATA, model="WDC WD40EFRX", rotation_rpm=None))) is None


def test_an_ssds_old_reallocations_are_no_alarm_but_new_ones_are_a_warning() -> None:
    old = smart(Protocol.ATA, reallocated=26)
    assert verdict(old, old).status is Status.GOOD
    said = verdict(smart(Protocol.ATA, reallocated=0), smart(Protocol.ATA, reallocated=6))
    assert (said.status, said.hard) == (Status.WARNING, False)
    assert "0 to 6 since 02 Nov" in said.reasons[0].sentence


def test_an_ssds_new_uncorrectable_errors_are_hard_evidence() -> None:
    said = verdict(
        smart(Protocol.ATA, reported_uncorrectable=0, crc_errors=900),
        smart(Protocol.ATA, reported_uncorrectable=2, crc_errors=990),
    )
    assert (said.status, said.hard) == (Status.BAD, True)


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        (
            {"grown_defects": 260, "uncorrected_errors": 536},
            {"grown_defects": 260, "uncorrected_errors": 536},
            "warning",
        ),
        ({"grown_defects": 3}, {"grown_defects": 5}, "warning"),
        ({"grown_defects": 3}, {"grown_defects": 41}, "bad"),
        ({"uncorrected_errors": 0}, {"uncorrected_errors": 2}, "bad"),
        (
            {"non_medium_errors": 10, "grown_defects": 0},
            {"non_medium_errors": 84893, "grown_defects": 0},
            "good",
        ),
    ],
)
def test_a_sas_drive_is_judged_by_what_grew(
    before: dict[str, int], after: dict[str, int], status: str
) -> None:
    assert verdict(smart(Protocol.SCSI, **before), smart(Protocol.SCSI, **after)).status == status


def test_one_failed_probe_is_a_hiccup_and_two_make_the_drive_unreadable() -> None:
    since = NOON + timedelta(days=1, hours=-1)
    fails = Unreadable(since, "the device could not be opened.")
    fine = smart(Protocol.ATA, model="ST4000DM000", rotation_rpm=5900)
    assert judge_by_rules(lived(fine, fails)) is None
    said = verdict(fine, fails, fails)
    assert (said.status, said.hard) == (Status.BAD, True)
    assert (
        said.reasons[0].sentence
        == "No reading since 02 Nov 11:00, 2 probes failed: the device could not be opened."
    )


def test_a_host_without_smartctl_says_nothing_against_its_disks() -> None:
    fails = Unreadable(NOON, "smartctl cannot be run (No such file)", UnreadableCause.TOOL_MISSING)
    fine = smart(Protocol.ATA, model="ST4000DM000", rotation_rpm=5900)
    said = verdict(fine, fails, fails, fails)
    assert (said.status, said.hard) == (Status.UNKNOWN, False)
    assert "Its host has read no disk since 01 Nov 12:00" in said.reasons[0].sentence


def test_a_probe_that_fails_by_the_hosts_fault_neither_adds_evidence_nor_takes_it_away() -> None:
    fine = smart(Protocol.ATA, model="ST4000DM000", rotation_rpm=5900)
    hangs = Unreadable(NOON, "smartctl did not answer within 60 s", UnreadableCause.TIMEOUT)
    denied = Unreadable(NOON, "smartctl may not be run", UnreadableCause.PERMISSION)
    assert verdict(fine, denied, denied, hangs).status is Status.UNKNOWN
    said = verdict(fine, hangs, hangs, denied)
    assert (said.status, said.hard) == (Status.BAD, True)
    assert "2 probes failed: smartctl did not answer within 60 s" in said.reasons[0].sentence


def test_a_drive_that_was_never_read_is_unknown_not_good() -> None:
    assert verdict(Unreadable(NOON, "asleep")).status is Status.UNKNOWN


def test_a_disk_that_is_left_to_the_forecast_keeps_its_symptoms_beside_it() -> None:
    disk = {"model": "ST4000DM000", "rotation_rpm": 5900}
    quiet = lived(smart(Protocol.ATA, pending=0, **disk))
    sick = lived(smart(Protocol.ATA, pending=0, **disk), smart(Protocol.ATA, pending=80, **disk))
    assert judge_drive(quiet).verdict is None
    assert judge_drive(quiet).symptoms is None
    assert judge_drive(sick).verdict is None
    assert judge_drive(sick).symptoms == judge_symptoms(sick) is not None


def test_a_disk_that_the_rules_judge_has_no_symptoms_beside_its_verdict() -> None:
    failed = lived(smart(Protocol.ATA, model="ST4000DM000", rotation_rpm=5900, passed=False, pending=80))
    assert judge_drive(failed).verdict == judge_by_rules(failed) is not None
    assert judge_drive(failed).symptoms is None
