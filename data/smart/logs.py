"""A drive's own logs: commands that failed, self-tests, broken frames on its link.

A log that the drive does not keep, or that smartctl was not asked for, is None and not 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from predrain.data.reading import Logs
from predrain.data.smart.values import JsonObject, count, member, members, text

_SELF_TESTS = 20  # entries of the SCSI log (SPC-5, 7.3.17)
_EXTENDED, _BACKGROUND_LONG, _FOREGROUND_LONG = 2, 2, 6
_PHY = re.compile(r"(?:scsi_sas_)?(?:port|phy)_\d{1,3}")

_Tests = Iterable[tuple[bool, bool | None]]
"""Newest first: whether the test was a long one; whether the drive passed, None where it did not come to an end."""


def ata(document: JsonObject) -> Logs | None:
    """Of an ATA drive. PHY events by number: Serial ATA 3.x, 13.7.2."""
    errors = member(document, "ata_smart_error_log")
    frames = {
        count(row, "id"): count(row, "value")
        for row in members(member(document, "sata_phy_event_counters"), "table")
    }
    return _told(
        _first(count(member(errors, log), "count") for log in ("extended", "summary")),
        _failed(_ata_tests(document)),
        _sum(frames.get(number) for number in (2, 5)),  # R_ERR for data and for other frames
        frames.get(9),
    )


def nvme(document: JsonObject) -> Logs | None:
    """Of an NVMe drive (Base 2.0, 5.16.1.3 and 5.16.1.7)."""
    log = member(document, "nvme_self_test_log")
    tests = [
        (
            count(member(row, "self_test_code"), "value") == _EXTENDED,
            _verdict(count(member(row, "self_test_result"), "value"), failures=(5, 7)),
        )
        for row in members(log, "table")
    ]
    health = member(document, "nvme_smart_health_information_log")
    return _told(count(health, "num_err_log_entries"), _failed(tests if log else None), None, None)


def scsi(document: JsonObject) -> Logs | None:
    """Of a SCSI drive: self-tests (SPC-5, 7.3.17), and of SAS the phys (SPL-4, 9.2.9). It counts its errors itself."""
    tests = [row for n in range(_SELF_TESTS) if (row := member(document, f"scsi_self_test_{n}"))]
    ended = [
        (
            count(member(row, "code"), "value") in (_BACKGROUND_LONG, _FOREGROUND_LONG),
            _verdict(count(member(row, "result"), "value"), failures=(3, 7)),
        )
        for row in tests
    ]
    phys = list(_phys(document))
    return _told(
        None,
        _failed(ended or None),
        _sum(
            count(phy, key)
            for phy in phys
            for key in ("invalid_dword_count", "running_disparity_error_count")
        ),
        _sum(count(phy, "loss_of_dword_synchronization_count") for phy in phys),
    )


def _told(
    errors: int | None, failed: int | None, link_errors: int | None, link_losses: int | None
) -> Logs | None:
    logs = Logs(errors, failed, link_errors, link_losses)
    return None if logs == Logs() else logs


def _ata_tests(document: JsonObject) -> _Tests | None:
    """Of the log that smartctl showed; a status is in the upper half of its byte (ACS-4, A.14.4)."""
    both = member(document, "ata_smart_self_test_log")
    log = member(both, "extended") or member(both, "standard")
    if not log:
        return None
    return [
        (
            (text(member(row, "type"), "string") or "").startswith("Extended"),
            None if (status := count(member(row, "status"), "value")) is None
            else _verdict(status >> 4, failures=(3, 8)),
        )
        for row in members(log, "table")
    ]  # fmt: skip


def _verdict(status: int | None, *, failures: tuple[int, int]) -> bool | None:
    """Of a status of which 0 is a pass; aborted, interrupted and running tests say nothing."""
    if status == 0:
        return True
    first, last = failures
    return False if status is not None and first <= status <= last else None


def _failed(tests: _Tests | None) -> int | None:
    """Failures since the newest long test that the drive passed: those before it are outdated."""
    if tests is None:
        return None
    failed = 0
    for long, passed in tests:
        if long and passed:
            break
        failed += passed is False
    return failed


def _phys(node: JsonObject, depth: int = 2) -> Iterator[JsonObject]:
    """`scsi_sas_port_N` holds `phy_N`."""
    for key in node:
        if _PHY.fullmatch(key) and (inner := member(node, key)):
            yield inner
            if depth > 1:
                yield from _phys(inner, depth - 1)


def _first(values: Iterable[int | None]) -> int | None:
    return next((value for value in values if value is not None), None)


def _sum(values: Iterable[int | None]) -> int | None:
    told = [value for value in values if value is not None]
    return sum(told) if told else None
