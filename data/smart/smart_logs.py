"""A drive's own logs: commands that failed, self-tests, broken frames on its link.

A log that the drive does not keep, or that smartctl was not asked for, is None and not 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from predrain.data.reading import Logs
from predrain.data.smart.json_values import (
    JsonObject,
    iterate_json_objects,
    read_json_count,
    read_json_object,
    read_json_text,
)

_SELF_TESTS = 20  # entries of the SCSI log (SPC-5, 7.3.17)
_EXTENDED, _BACKGROUND_LONG, _FOREGROUND_LONG = 2, 2, 6
_PHY = re.compile(r"(?:scsi_sas_)?(?:port|phy)_\d{1,3}")

_Tests = Iterable[tuple[bool, bool | None]]
"""Self-tests, newest first: (the test was a long one, the drive passed); the second is None if the test did not end."""


def parse_ata_logs(document: JsonObject) -> Logs | None:
    """Parse the logs of an ATA drive. The numbers of PHY events are from Serial ATA 3.x, 13.7.2."""
    errors = read_json_object(document, "ata_smart_error_log")
    frames = {
        read_json_count(row, "id"): read_json_count(row, "value")
        for row in iterate_json_objects(read_json_object(document, "sata_phy_event_counters"), "table")
    }
    return _build_logs_or_none(
        _find_first_known(
            read_json_count(read_json_object(errors, log), "count") for log in ("extended", "summary")
        ),
        _count_failed_self_tests(_ata_tests(document)),
        _sum_known_values(frames.get(number) for number in (2, 5)),  # R_ERR for data and for other frames
        frames.get(9),
    )


def parse_nvme_logs(document: JsonObject) -> Logs | None:
    """Parse the logs of an NVMe drive (Base 2.0, 5.16.1.3 and 5.16.1.7)."""
    log = read_json_object(document, "nvme_self_test_log")
    tests = [
        (
            read_json_count(read_json_object(row, "self_test_code"), "value") == _EXTENDED,
            _judge_self_test(
                read_json_count(read_json_object(row, "self_test_result"), "value"), failures=(5, 7)
            ),
        )
        for row in iterate_json_objects(log, "table")
    ]
    health = read_json_object(document, "nvme_smart_health_information_log")
    return _build_logs_or_none(
        read_json_count(health, "num_err_log_entries"),
        _count_failed_self_tests(tests if log else None),
        None,
        None,
    )


def parse_scsi_logs(document: JsonObject) -> Logs | None:
    """Parse the logs of a SCSI drive: self-tests (SPC-5, 7.3.17), and for SAS the phys (SPL-4, 9.2.9).

    Errors are not included: a SCSI drive has counters for them.
    """
    tests = [row for n in range(_SELF_TESTS) if (row := read_json_object(document, f"scsi_self_test_{n}"))]
    ended = [
        (
            read_json_count(read_json_object(row, "code"), "value") in (_BACKGROUND_LONG, _FOREGROUND_LONG),
            _judge_self_test(read_json_count(read_json_object(row, "result"), "value"), failures=(3, 7)),
        )
        for row in tests
    ]
    phys = list(_find_sas_phys(document))
    return _build_logs_or_none(
        None,
        _count_failed_self_tests(ended or None),
        _sum_known_values(
            read_json_count(phy, key)
            for phy in phys
            for key in ("invalid_dword_count", "running_disparity_error_count")
        ),
        _sum_known_values(read_json_count(phy, "loss_of_dword_synchronization_count") for phy in phys),
    )


def _build_logs_or_none(
    errors: int | None, failed: int | None, link_errors: int | None, link_losses: int | None
) -> Logs | None:
    logs = Logs(errors, failed, link_errors, link_losses)
    return None if logs == Logs() else logs


def _ata_tests(document: JsonObject) -> _Tests | None:
    """Return the self-tests of the log that smartctl printed; a status is in the upper half of its byte
    (ACS-4, A.14.4).
    """
    both = read_json_object(document, "ata_smart_self_test_log")
    log = read_json_object(both, "extended") or read_json_object(both, "standard")
    if not log:
        return None
    return [
        (
            (read_json_text(read_json_object(row, "type"), "string") or "").startswith("Extended"),
            None if (status := read_json_count(read_json_object(row, "status"), "value")) is None
            else _judge_self_test(status >> 4, failures=(3, 8)),
        )
        for row in iterate_json_objects(log, "table")
    ]  # fmt: skip


def _judge_self_test(status: int | None, *, failures: tuple[int, int]) -> bool | None:
    """Return whether a test passed (status 0) or failed; None for aborted, interrupted and running tests."""
    if status == 0:
        return True
    first, last = failures
    return False if status is not None and first <= status <= last else None


def _count_failed_self_tests(tests: _Tests | None) -> int | None:
    """Count the failures since the newest long test that the drive passed: earlier ones are outdated."""
    if tests is None:
        return None
    failed = 0
    for long, passed in tests:
        if long and passed:
            break
        failed += passed is False
    return failed


def _find_sas_phys(node: JsonObject, depth: int = 2) -> Iterator[JsonObject]:
    """Yield the phys: `scsi_sas_port_N` holds `phy_N`."""
    for key in node:
        if _PHY.fullmatch(key) and (inner := read_json_object(node, key)):
            yield inner
            if depth > 1:
                yield from _find_sas_phys(inner, depth - 1)


def _find_first_known(values: Iterable[int | None]) -> int | None:
    return next((value for value in values if value is not None), None)


def _sum_known_values(values: Iterable[int | None]) -> int | None:
    told = [value for value in values if value is not None]
    return sum(told) if told else None
