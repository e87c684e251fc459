"""Reads the self-tests of a drive from smartctl's JSON: the one that runs, and those of the drive's log.

Sources: ATA ACS-4, A.14.4; SPC-5, 7.3.17; NVMe Base 2.0, 5.16.1.7.
"""

from __future__ import annotations

from collections.abc import Mapping

from predrain.data.reading import Protocol
from predrain.data.self_test import RunningSelfTest, SelfTest, SelfTestKind, SelfTestResult, SelfTestState
from predrain.data.smart.json_values import (
    JsonObject,
    iterate_json_objects,
    read_json_count,
    read_json_object,
    read_json_text,
)

_SCSI_ENTRIES = 20
_RUNNING = 15
"""The result of a test in progress, in ATA and in SCSI. In NVMe it is an unused entry."""
_R = SelfTestResult
_ATA_RESULTS: Mapping[int, SelfTestResult] = {
    0: _R.PASSED, 1: _R.ABORTED, 2: _R.INTERRUPTED, 3: _R.NOT_COMPLETED, 4: _R.FAILED, 5: _R.FAILED_ELECTRICAL,
    6: _R.FAILED_SERVO, 7: _R.FAILED_READ, 8: _R.FAILED_HANDLING, _RUNNING: _R.RUNNING,
}  # fmt: skip
_SCSI_RESULTS: Mapping[int, SelfTestResult] = {
    0: _R.PASSED, 1: _R.ABORTED, 2: _R.INTERRUPTED, 3: _R.NOT_COMPLETED, 4: _R.FAILED, 5: _R.FAILED, 6: _R.FAILED,
    7: _R.FAILED, _RUNNING: _R.RUNNING,
}  # fmt: skip
_NVME_RESULTS: Mapping[int, SelfTestResult] = {
    0: _R.PASSED, 1: _R.ABORTED, 2: _R.INTERRUPTED, 3: _R.INTERRUPTED, 4: _R.INTERRUPTED, 5: _R.NOT_COMPLETED,
    6: _R.FAILED, 7: _R.FAILED, 8: _R.ABORTED, 9: _R.INTERRUPTED,
}  # fmt: skip
_ATA_KINDS = {1: SelfTestKind.SHORT, 2: SelfTestKind.LONG, 129: SelfTestKind.SHORT, 130: SelfTestKind.LONG}
_SCSI_KINDS = {1: SelfTestKind.SHORT, 2: SelfTestKind.LONG, 5: SelfTestKind.SHORT, 6: SelfTestKind.LONG}
_NVME_KINDS = {1: SelfTestKind.SHORT, 2: SelfTestKind.LONG}
_NO_LBA = frozenset({0xFFFF_FFFF, 0xFFFF_FFFF_FFFF, 2**63 - 1, 2**64 - 1})
"""Numbers that stand for "no block" in logs of 32, 48 and 64 bits."""


def parse_self_tests(document: JsonObject, protocol: Protocol) -> SelfTestState | None:
    """Return the self-tests that `document` reports, or None if it reports nothing of self-tests."""
    parse = {Protocol.ATA: _parse_ata, Protocol.SCSI: _parse_scsi, Protocol.NVME: _parse_nvme}[protocol]
    return parse(document)


def _parse_ata(document: JsonObject) -> SelfTestState | None:
    both = read_json_object(document, "ata_smart_self_test_log")
    log = read_json_object(both, "extended") or read_json_object(both, "standard")
    own = read_json_object(read_json_object(document, "ata_smart_data"), "self_test")
    if not log and not own:
        return None
    entries = [_read_ata_entry(row) for row in iterate_json_objects(log, "table")]
    status, minutes = read_json_object(own, "status"), read_json_object(own, "polling_minutes")
    value, running = read_json_count(status, "value"), None
    if value is not None and value >> 4 == _RUNNING:
        left = read_json_count(status, "remaining_percent")
        # The lower half of the byte counts the tenths that remain.
        left = (value & 15) * 10 if left is None else left
        kind = next((one.kind for one in entries if one.result is SelfTestResult.RUNNING), None)
        running = RunningSelfTest(kind, 100 - left if left <= 100 else None)
    return SelfTestState(
        running,
        _list_ended(entries),
        read_json_count(minutes, "short"),
        read_json_count(minutes, "extended"),
    )


def _read_ata_entry(row: JsonObject) -> SelfTest:
    kind, status = read_json_object(row, "type"), read_json_count(read_json_object(row, "status"), "value")
    number = read_json_count(kind, "value")
    if number is None:  # a text names the kind only
        words = read_json_text(kind, "string") or ""
        number = 2 if words.startswith("Extended") else 1 if words.startswith("Short") else 0
    return SelfTest(
        _ATA_KINDS.get(number, SelfTestKind.OTHER),
        _ATA_RESULTS.get(-1 if status is None else status >> 4, SelfTestResult.UNKNOWN),
        read_json_count(row, "lifetime_hours"),
        _read_lba(row, "lba"),
    )


def _parse_scsi(document: JsonObject) -> SelfTestState | None:
    rows = [row for n in range(_SCSI_ENTRIES) if (row := read_json_object(document, f"scsi_self_test_{n}"))]
    seconds = read_json_count(document, "scsi_extended_self_test_seconds")
    if not rows and seconds is None:
        return None
    entries = [
        SelfTest(
            _SCSI_KINDS.get(_read_value(row, "code"), SelfTestKind.OTHER),
            _SCSI_RESULTS.get(_read_value(row, "result"), SelfTestResult.UNKNOWN),
            read_json_count(read_json_object(row, "power_on_time"), "hours"),
            _read_lba(read_json_object(row, "lba_first_failure"), "value"),
        )
        for row in rows
    ]
    running = next((one for one in entries if one.result is SelfTestResult.RUNNING), None)
    return SelfTestState(
        RunningSelfTest(running.kind, None) if running else None,
        _list_ended(entries),
        None,
        None if seconds is None else -(-seconds // 60),
    )


def _parse_nvme(document: JsonObject) -> SelfTestState | None:
    log = read_json_object(document, "nvme_self_test_log")
    if not log:
        return None
    entries = [
        SelfTest(
            _NVME_KINDS.get(_read_value(row, "self_test_code"), SelfTestKind.OTHER),
            _NVME_RESULTS.get(_read_value(row, "self_test_result"), SelfTestResult.UNKNOWN),
            read_json_count(row, "power_on_hours"),
            _read_lba(row, "lba"),
        )
        for row in iterate_json_objects(log, "table")
        if _read_value(row, "self_test_result") != _RUNNING
    ]
    now = read_json_count(read_json_object(log, "current_self_test_operation"), "value")
    running = None
    if now:
        done = read_json_count(log, "current_self_test_completion_percent")
        running = RunningSelfTest(_NVME_KINDS.get(now, SelfTestKind.OTHER), done)
    return SelfTestState(running, tuple(entries))


def _read_value(row: JsonObject, key: str) -> int:
    """Return the number under `key`, or -1, which no table has."""
    value = read_json_count(read_json_object(row, key), "value")
    return -1 if value is None else value


def _read_lba(row: JsonObject, key: str) -> int | None:
    lba = read_json_count(row, key)
    return None if lba in _NO_LBA else lba


def _list_ended(entries: list[SelfTest]) -> tuple[SelfTest, ...]:
    return tuple(one for one in entries if one.result is not SelfTestResult.RUNNING)
