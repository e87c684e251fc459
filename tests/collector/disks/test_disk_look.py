"""One run of smartctl, as a document, sleep or failure."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from predrain.collector.disks.process import ProcessResult
from predrain.collector.disks.smartctl_result import (
    DiskAsleep,
    DiskReadFailure,
    interpret_smartctl_run,
    taken_at,
)
from predrain.data.smart import SmartDocument
from predrain.data.unreadable import UnreadableCause
from tests.collector.fake_smartctl import SAMPLES

NOW = datetime(2026, 3, 1, 12, 0, 0, 500_000, tzinfo=UTC)


def _document(name: str, status: int = 0) -> SmartDocument:
    seen = interpret_smartctl_run(ProcessResult(status, (SAMPLES / f"{name}.json").read_bytes()))
    assert isinstance(seen, SmartDocument)
    return seen


@pytest.mark.parametrize("out", [b"", b"{}", b"Device is in a mode of a later release"])
def test_the_status_that_was_asked_for_means_sleep_whatever_is_printed(out: bytes) -> None:
    assert interpret_smartctl_run(ProcessResult(3, out)) == DiskAsleep()


def test_a_smartctl_that_ignores_the_status_is_believed_by_its_words() -> None:
    said = {"exit_status": 2, "messages": [{"string": "Device is in SLEEP mode, exit(2)"}]}
    assert interpret_smartctl_run(ProcessResult(2, json.dumps({"smartctl": said}).encode())) == DiskAsleep()


def test_the_exit_status_of_the_process_stands_in_where_the_answer_has_none() -> None:
    assert _document("scsi-002", status=4 + 64).exit_bits == (2, 6)
    assert _document("ata-052", status=0).exit_bits == (3, 4, 6, 7)


def test_a_disk_that_tells_its_name_and_no_more_has_failed_under_that_name() -> None:
    answer = {
        "smartctl": {"exit_status": 2, "messages": [{"string": "Read SMART Data failed: I/O error"}]},
        "device": {"name": "/dev/sda", "type": "sat", "protocol": "ATA"},
        "model_name": "ST4000DM000",
        "serial_number": "Z1",
    }
    seen = interpret_smartctl_run(ProcessResult(2, json.dumps(answer).encode()))
    assert isinstance(seen, DiskReadFailure)
    assert seen.document is not None
    assert seen.document.device_id == "ST4000DM000_Z1"
    assert "Read SMART Data failed: I/O error" in seen.why


@pytest.mark.parametrize(
    ("ago", "kept"),
    [
        (timedelta(seconds=0.5), True),
        (timedelta(seconds=61), True),
        (timedelta(seconds=70), False),
        (timedelta(seconds=-1), False),
        (timedelta(days=-400), False),
    ],
)
def test_smartctls_time_is_kept_as_far_as_the_run_can_have_been_then(ago: timedelta, kept: bool) -> None:
    document = replace(_document("ata-040"), taken_at=NOW - ago)
    assert taken_at(document, NOW, 60) == (NOW - ago if kept else NOW)


@pytest.mark.parametrize("words", ["Permission denied", "Operation not permitted"])
def test_want_of_rights_is_the_hosts_fault_and_not_the_disks(words: str) -> None:
    said = {"string": f"Smartctl open device: /dev/sda failed: {words}", "severity": "error"}
    document = {"smartctl": {"version": [7, 3], "exit_status": 2, "messages": [said]}}
    seen = interpret_smartctl_run(ProcessResult(2, json.dumps(document).encode()))
    assert isinstance(seen, DiskReadFailure)
    assert seen.cause is UnreadableCause.PERMISSION
    assert seen.why.startswith("smartctl could not be run")
    assert "sudo" in seen.why


def test_a_smartctl_that_is_too_old_says_nothing_against_the_disks() -> None:
    out = b"smartctl 6.6 2017-11-05 r4594\n\n=======> UNRECOGNIZED OPTION: json=co\n\nUse smartctl -h\n"
    why = "smartctl could not be run with --json: smartmontools 7 or later is needed"
    assert interpret_smartctl_run(ProcessResult(1, out)) == DiskReadFailure(why, UnreadableCause.TOOL_UNFIT)


def _named_only(*lines: str, protocol: str = "ATA", status: int = 4, **told: object) -> dict[str, object]:
    """The answer of a drive that tells who it is, and what smartctl says as it ends."""
    return {
        "smartctl": {"exit_status": status, "output": ["Serial Number:    Z1", *lines]},
        "device": {"name": "/dev/sda", "type": "sat", "protocol": protocol},
        "model_name": "ST4000DM000",
        "serial_number": "Z1",
        **told,
    }


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        ("ATA", "A mandatory SMART command failed: exiting. To continue, add one or more '-T permissive' options."),
        ("ATA", "Read SMART Data failed: scsi error medium or hardware error (serious)"),
        ("NVMe", "Read NVMe SMART/Health Information failed: NVME_IOCTL_ADMIN_CMD: Input/output error"),
        ("NVMe", "Read NVMe SMART/Health Information failed: NVMe Status 0x4006"),
        ("NVMe", "Read NVMe SMART/Health Information failed: Internal Error (0x006)"),
        ("SCSI", "Log Sense failed, IE page [medium or hardware error (serious)]"),
        ("SCSI", "Log Sense failed, IE page [Input/output error]"),
    ],
)  # fmt: skip
def test_a_drive_that_fails_to_tell_its_state_has_failed_though_it_has_a_name(
    protocol: str, said: str
) -> None:
    seen = interpret_smartctl_run(ProcessResult(4, json.dumps(_named_only(said, protocol=protocol)).encode()))
    assert isinstance(seen, DiskReadFailure)
    assert seen.document is not None
    assert said.partition(": ")[0] in seen.why


def test_a_sas_drive_that_fails_to_tell_its_state_has_failed_though_it_is_said_to_lack_smart() -> None:
    """Check a drive whose MODE SENSE failed: scsiprint.cpp then prints that SMART is lacking, for any cause."""
    said = (
        "SMART support is:     Unavailable - device lacks SMART capability.",
        "Request Sense failed, [medium or hardware error (serious)]",
    )
    seen = interpret_smartctl_run(ProcessResult(4, json.dumps(_named_only(*said, protocol="SCSI")).encode()))
    assert isinstance(seen, DiskReadFailure)
    assert "Request Sense failed" in seen.why


@pytest.mark.parametrize(
    "answer",
    [
        _named_only("A mandatory SMART command failed: exiting.", smart_status={"passed": False}),
        _named_only(
            "SMART support is: Unavailable - device lacks SMART capability.",
            "A mandatory SMART command failed: exiting.",
        ),
        _named_only("Read NVMe SMART/Health Information failed: NVMe Status 0x4002", protocol="NVMe"),
        _named_only("Read NVMe SMART/Health Information failed: NVMe Status 0x02", protocol="NVMe"),
        _named_only("Read NVMe SMART/Health Information failed: Invalid Log Page (0x109)", protocol="NVMe"),
        _named_only("SMART support is:     Unavailable - device lacks SMART capability.", protocol="SCSI"),
        _named_only("Log Sense failed, IE page [unsupported scsi opcode]", protocol="SCSI"),
    ],
)  # fmt: skip
def test_a_drive_that_has_no_state_to_tell_or_tells_some_has_not_failed(answer: dict[str, object]) -> None:
    assert isinstance(interpret_smartctl_run(ProcessResult(4, json.dumps(answer).encode())), SmartDocument)


@pytest.mark.parametrize("told", [{}, {"smart_status": {"passed": True}, "temperature": {"current": 31}}])
def test_a_sata_drive_that_only_the_scsi_layer_answers_for_has_failed(told: dict[str, object]) -> None:
    """Keys as in netdata/netdata#18249: smartctl leaves out a vendor `ATA`, and the product with it."""
    answer = {
        "smartctl": {"version": [7, 4], "exit_status": 0},
        "device": {"name": "/dev/sda", "type": "scsi", "protocol": "SCSI"},
        "logical_unit_id": "0x5000cca267e3c39c",
        "serial_number": "JEJJNYMN",
        "smart_support": {"available": False},
        **told,
    }
    seen = interpret_smartctl_run(ProcessResult(0, json.dumps(answer).encode()))
    assert isinstance(seen, DiskReadFailure)
    assert "the SCSI layer" in seen.why
    assert seen.document is None or seen.document.device_id is None
