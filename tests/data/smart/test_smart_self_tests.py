"""Self-tests in smartctl's JSON: results, kinds, progress and bad blocks of each protocol, as one set of values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from predrain.data.reading import Protocol
from predrain.data.self_test import RunningSelfTest, SelfTest, SelfTestKind, SelfTestResult
from predrain.data.smart import decode_smartctl_output
from predrain.data.smart.self_test_log import parse_self_tests

SAMPLES = Path(__file__).parent / "samples"
FARM_ONLY = "ata-033.json"
R, K = SelfTestResult, SelfTestKind


def ata_row(kind: int, status: int, hours: int = 100, **more: Any) -> dict[str, Any]:
    return {"type": {"value": kind}, "status": {"value": status << 4}, "lifetime_hours": hours, **more}


def ata(*rows: dict[str, Any], status: dict[str, Any] | None = None) -> Any:
    found: dict[str, Any] = {"ata_smart_self_test_log": {"standard": {"table": list(rows)}}}
    if status is not None:
        found["ata_smart_data"] = {
            "self_test": {"status": status, "polling_minutes": {"short": 2, "extended": 85}}
        }
    return parse_self_tests(found, Protocol.ATA)


@pytest.mark.parametrize(
    ("status", "result"),
    [
        (0, R.PASSED), (1, R.ABORTED), (2, R.INTERRUPTED), (3, R.NOT_COMPLETED), (4, R.FAILED),
        (5, R.FAILED_ELECTRICAL), (6, R.FAILED_SERVO), (7, R.FAILED_READ), (8, R.FAILED_HANDLING), (11, R.UNKNOWN),
    ],
)  # fmt: skip
def test_each_result_of_a_sata_drive_has_its_word(status: int, result: SelfTestResult) -> None:
    assert [one.result for one in ata(ata_row(1, status)).log] == [result]


def test_a_block_that_could_not_be_read_is_named_and_no_block_is_none() -> None:
    log = ata(ata_row(2, 7, lba=12_593_408), ata_row(1, 0, lba=0xFFFFFFFF)).log
    assert log == (
        SelfTest(K.LONG, R.FAILED_READ, 100, 12_593_408),
        SelfTest(K.SHORT, R.PASSED, 100, None),
    )


@pytest.mark.parametrize(
    ("status", "done"),
    [({"value": 249, "remaining_percent": 90}, 10), ({"value": 0xF3}, 70), ({"value": 0xF0}, 100)],
)
def test_a_running_test_of_a_sata_drive_tells_how_far_it_is(status: dict[str, Any], done: int) -> None:
    found = ata(ata_row(2, 15), ata_row(1, 0), status=status)
    assert found.running == RunningSelfTest(K.LONG, done)
    assert [one.kind for one in found.log] == [K.SHORT]
    assert (found.short_minutes, found.long_minutes) == (2, 85)


@pytest.mark.parametrize(
    ("result", "word"),
    [(0, R.PASSED), (1, R.ABORTED), (2, R.INTERRUPTED), (3, R.NOT_COMPLETED), (5, R.FAILED), (7, R.FAILED)],
)
def test_each_result_of_a_sas_drive_has_its_word(result: int, word: SelfTestResult) -> None:
    row = {
        "code": {"value": 2}, "result": {"value": result}, "power_on_time": {"hours": 90},
        "lba_first_failure": {"value": 77},
    }  # fmt: skip
    found = parse_self_tests(
        {"scsi_self_test_0": row, "scsi_extended_self_test_seconds": 3601}, Protocol.SCSI
    )
    assert found is not None
    assert found.log == (SelfTest(K.LONG, word, 90, 77),)
    assert found.long_minutes == 61


def test_a_sas_drive_tells_that_a_test_runs_and_not_how_far_it_is() -> None:
    row = {"code": {"value": 1}, "result": {"value": 15}, "self_test_in_progress": True}
    found = parse_self_tests({"scsi_self_test_0": row}, Protocol.SCSI)
    assert found is not None
    assert (found.running, found.log) == (RunningSelfTest(K.SHORT, None), ())


def test_an_nvme_drive_tells_its_running_test_and_leaves_unused_entries_out() -> None:
    rows = [
        {"self_test_code": {"value": 2}, "self_test_result": {"value": 7}, "power_on_hours": 800, "lba": 5},
        {"self_test_code": {"value": 1}, "self_test_result": {"value": 15}, "power_on_hours": 1},
    ]
    log = {
        "current_self_test_operation": {"value": 2},
        "current_self_test_completion_percent": 30,
        "table": rows,
    }
    found = parse_self_tests({"nvme_self_test_log": log}, Protocol.NVME)
    assert found is not None
    assert found.running == RunningSelfTest(K.LONG, 30)
    assert found.log == (SelfTest(K.LONG, R.FAILED, 800, 5),)


@pytest.mark.parametrize("protocol", Protocol)
def test_a_drive_that_keeps_no_log_reports_nothing(protocol: Protocol) -> None:
    assert parse_self_tests({}, protocol) is None


@pytest.mark.parametrize(
    "sample", sorted(path.name for path in SAMPLES.glob("[ans]*.json") if path.name != FARM_ONLY)
)
def test_the_failures_of_a_real_drives_log_are_those_that_its_counter_counts(sample: str) -> None:
    """The counter ends at the newest long test that passed; so does the sum here."""
    raw = (SAMPLES / sample).read_bytes()
    document = decode_smartctl_output(raw)
    if document.self_tests is None:
        assert document.smart.logs is None or document.smart.logs.failed_self_tests is None
        return
    failed = 0
    for one in document.self_tests.log:
        if one.kind is K.LONG and one.result is R.PASSED:
            break
        failed += one.result.is_failure
    counted = document.smart.logs.failed_self_tests if document.smart.logs else None
    # Fatal errors (3) count as failed in the counter: the forecast learned so. They are no verdict of the drive.
    unended = sum(one.result is R.NOT_COMPLETED for one in document.self_tests.log)
    assert counted is None or failed <= counted <= failed + unended


def test_an_nvme_controller_error_is_no_failed_test() -> None:
    rows = [{"self_test_code": {"value": 1}, "self_test_result": {"value": 5}}]
    found = parse_self_tests({"nvme_self_test_log": {"table": rows}}, Protocol.NVME)
    assert found is not None
    assert [(one.result, one.result.is_failure) for one in found.log] == [(R.NOT_COMPLETED, False)]
