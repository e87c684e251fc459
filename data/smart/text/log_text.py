"""The logs in text: failed commands, self-tests, events of the link, under smartctl's own keys."""

from __future__ import annotations

import re
from collections.abc import Sequence

_ERRORS = re.compile(r"(ATA|Device) Error Count: *(\d{1,18})\b.*")
_NO_ERRORS = "No Errors Logged"
_TEST = re.compile(
    r"(?:# ?)?(\d{1,2}) +((?:Short|Extended|Conveyance|Selective|Vendor|Reserved|Background|Foreground"
    r"|Default|Abort|Offline)\b.*)"
)
_NO_TESTS = re.compile(r"No self-tests (?:have been )?logged.*", re.IGNORECASE)
_FAILED = re.compile(r"\bCompleted[:,]|\bFailed in\b|\bFatal\b|\bUnknown error\b")
_PASSED = re.compile(r"\bCompleted\b")
_FRAMES = re.compile(r"0x(00[0-9a-f]{2}) +\d +(\d{1,18})\+? +[A-Z].*")
_PHY = re.compile(
    r"(Invalid DWORD|Running disparity error|Loss of DWORD synchronization)(?: count)? = *(\d{1,18})",
    re.IGNORECASE,
)
_MISTRUSTED = 15
"""Status of a test that was aborted or is running: smartctl's number for the latter."""


def parse_ata_text_logs(lines: Sequence[str]) -> dict[str, object]:
    """Parse the error log, self-test log and PHY events of an ATA drive."""
    found: dict[str, object] = {}
    for line in lines:
        if match := _ERRORS.fullmatch(line):
            log = "extended" if match[1] == "Device" else "summary"
            found.setdefault("ata_smart_error_log", {log: {"count": int(match[2])}})
        elif line == _NO_ERRORS:
            found.setdefault("ata_smart_error_log", {"summary": {"count": 0}})
    frames = [
        {"id": int(match[1], 16), "value": int(match[2])}
        for line in lines
        if (match := _FRAMES.fullmatch(line))
    ]
    if frames:
        found["sata_phy_event_counters"] = {"table": frames}
    tests = _list_self_tests(lines)
    if tests is not None:
        rows = [
            {"type": {"string": what}, "status": {"value": _to_self_test_status(what, failure=4) << 4}}
            for what in tests
        ]
        found["ata_smart_self_test_log"] = {"standard": {"count": len(rows), "table": rows}}
    return found


def parse_nvme_text_logs(lines: Sequence[str]) -> dict[str, object]:
    """Parse the self-test log of an NVMe drive."""
    tests = _list_self_tests(lines)
    if tests is None:
        return {}
    rows = [
        {
            "self_test_code": {"value": 2 if what.startswith("Extended") else 1},
            "self_test_result": {"value": _to_self_test_status(what, failure=6)},
        }
        for what in tests
    ]
    return {"nvme_self_test_log": {"current_self_test_operation": {}, "table": rows}}


def parse_scsi_text_logs(lines: Sequence[str]) -> dict[str, object]:
    """Parse the self-tests of a SCSI drive and the errors of its phys, all as if of one port.

    Lines with `:` repeat these errors and are not read.
    """
    found: dict[str, object] = {
        f"scsi_self_test_{number}": {
            "code": {"value": 2 if " long" in what else 1},
            "result": {"value": _to_self_test_status(what, failure=4)},
        }
        for number, what in enumerate(_list_self_tests(lines) or ())
    }
    phys: list[dict[str, object]] = []
    for line in lines:
        if match := _PHY.fullmatch(line):
            key = f"{match[1].lower().replace(' ', '_')}_count"
            if not phys or key in phys[-1]:
                phys.append({})
            phys[-1][key] = int(match[2])
    if phys:
        found["scsi_sas_port_0"] = {f"phy_{number}": phy for number, phy in enumerate(phys)}
    return found


def _list_self_tests(lines: Sequence[str]) -> list[str] | None:
    """Return description and status of each test, newest first; None if no log was printed."""
    found: dict[int, str] = {}
    shown = False
    for line in lines:
        if match := _TEST.fullmatch(line):
            found.setdefault(int(match[1]), match[2])  # the log may have been printed twice
        elif _NO_TESTS.fullmatch(line):
            shown = True
    return [found[number] for number in sorted(found)] if found or shown else None


def _to_self_test_status(what: str, *, failure: int) -> int:
    """Return 0 for a pass and `failure` for any failure: the kind of failure makes no difference here."""
    if _FAILED.search(what):
        return failure
    return 0 if _PASSED.search(what) else _MISTRUSTED
