"""Converts one text output to the object that `--json` would have printed.

A printed time (`Wed Sep 18 10:00:00 2024 CEST`) becomes an instant if the name of its zone has one meaning.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from predrain.data.smart.json_values import JsonObject
from predrain.data.smart.text import ata_text, log_text, nvme_text, scsi_text
from predrain.data.smart.text.clean_lines import parse_smartctl_version, split_output_lines

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_PRINTED = re.compile(
    r"[A-Za-z]{3}\s+([A-Za-z]{3})\s+(\d{1,2})\s+(\d{1,2}):(\d{2}):(\d{2})\s+(\d{4})(?:\s+(\S+))?"
)
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{2}):?(\d{2})?")
_HOURS = {
    "UTC": 0, "GMT": 0, "Z": 0, "WET": 0, "WEST": 1, "CET": 1, "CEST": 2, "MET": 1, "MEST": 2, "EET": 2, "EEST": 3,
    "EST": -5, "EDT": -4, "CDT": -5, "MDT": -6, "MST": -7, "PST": -8, "PDT": -7, "AKST": -9, "AKDT": -8, "HST": -10,
    "NZST": 12, "NZDT": 13, "AEST": 10, "AEDT": 11, "ACST": 9.5, "ACDT": 10.5, "AWST": 8, "JST": 9, "KST": 9,
    "HKT": 8, "SAST": 2, "ChST": 10,
}  # fmt: skip
"""Hours east of UTC. CST (Chicago, Shanghai), IST (India, Israel, Ireland) and BST are missing: they have several."""


def local_time(written: str) -> tuple[datetime, str | None] | None:
    """Return the naive time and the zone as printed; None if the time is masked or no time."""
    match = _PRINTED.match(written.strip())
    if match is None or match[1].lower() not in _MONTHS:
        return None
    try:
        month = _MONTHS.index(match[1].lower()) + 1
        naive = datetime(int(match[6]), month, int(match[2]), int(match[3]), int(match[4]), int(match[5]))  # noqa: DTZ001
    except ValueError:
        return None
    return naive, match[7]


def to_utc_instant(naive: datetime, zone: str | None) -> datetime | None:
    """Return the time in UTC; None if the zone is not printed or its name has several meanings."""
    hours = _find_utc_offset_hours(naive, zone or "")
    return None if hours is None else (naive - timedelta(hours=hours)).replace(tzinfo=UTC)


def _find_utc_offset_hours(naive: datetime, zone: str) -> float | None:
    if zone == "MSK":  # Moscow kept summer time from 2011-03-27 to 2014-10-26
        return 4 if datetime(2011, 3, 27, 2) <= naive < datetime(2014, 10, 26, 2) else 3  # noqa: DTZ001
    if match := _OFFSET.fullmatch(zone):
        hours = int(match[2]) + int(match[3] or 0) / 60
        return (-hours if match[1] == "-" else hours) if hours <= 14 else None
    return _HOURS.get(zone)


_LABEL = re.compile(r"([A-Za-z][A-Za-z0-9 /._()-]{1,60}?) ?: *(.*)")
_VERDICT = re.compile(r"SMART overall-health self-assessment test result: *(\w+)")
_SCT_VERDICT = re.compile(r"SMART Status: +0x[0-9a-f]{4} \((PASSED|FAILED)\)")
_STATUS = re.compile(r"SMART (?:Health Status|Sense): *(\S.*)")
_SAID = re.compile(
    r"(?:Warning|WARNING|Error|ERROR|NOTE)[:!].*|Error SMART .*|.*\bchecksum\b.*|.*\bfailed: .*"
    r"|.*: Unable to detect .*|.*: Unknown .*"
    r"|(?:Log|Request) Sense failed.*|SMART Status not supported.*"
    r"|.* in (?:STANDBY|SLEEP).*|.*mandatory SMART command failed.*"
    r"|.*(?:Permission denied|No such (?:file|device)|Operation not permitted|Input/output error).*"
    r"|NO MEDIUM present.*|SMART (?:support is: +Unavailable|Disabled).*|Device does not support SMART.*"
)
_NOTHING_READ = re.compile(
    r"Smartctl open device: .* failed|.*: Unable to detect device type|.*: Unknown USB bridge|Device is in \w+ mode"
    r"|A mandatory SMART command failed: exiting|Read Device Identity failed|.*: Unknown device type|NO MEDIUM present"
    r"|(?:>> )?Terminate command early|=======> (?:INVALID ARGUMENT|UNRECOGNIZED OPTION)|ERROR: smartctl requires"
    r"|Short INQUIRY response, skip|Standard Inquiry \(64 bytes\) failed|device is NOT READY|device becoming ready"
    r"|device Test Unit Ready|Probable ATA device behind a SAT layer"
)
_IDENTIFIED = "A mandatory SMART command failed"
"""The line comes after the identity. Other lines say whether the drive failed to report its state or keeps none."""
_FARM = "Seagate Field Access Reliability Metrics log"
_ATA_SIGNS = (
    "SMART overall-health",
    "ID# ",
    "Device Statistics (GP Log 0x04)",
    "Device Statistics (SMART Log 0x04)",
)
_TOLD_ONCE = frozenset({
    "device model", "model number", "product", "serial number", "local time is",
    "smart overall-health self-assessment test result", "smart health status", "critical warning", "power on hours",
    "data units read", "data units written", "elements in grown defect list", "non-medium error count",
})  # fmt: skip
"""Labels that one output has once. If a label has two values, two outputs are in the file."""
_SEVERAL = "holds the outputs of several runs of smartctl, pass them one by one"
_MOST_SAID = 32


class NotTextError(Exception):
    """The text is not that of one run on one disk; the error's text is the reason and the cure."""


def is_nothing_read_message(line: str) -> bool:
    """Return whether this line is smartctl's reason for reading nothing more of the disk."""
    return _NOTHING_READ.match(line) is not None


def parse_text_output(document: bytes) -> tuple[JsonObject, bool]:
    """Return the object of one run, and whether smartctl says that it stopped before it had read the disk.

    Raises NotTextError if runs of several disks, or of several times, are in the text.
    """
    written = split_output_lines(document)
    # The FARM log repeats the drive's identity, under labels of its own and at the end of an output.
    farm = next((place for place, line in enumerate(written) if line.startswith(_FARM)), len(written))
    told = _parse_labels(written[:farm])
    protocol = _detect_text_protocol(told, written)
    said = [line for line in written if _SAID.fullmatch(line) or _NOTHING_READ.match(line)][:_MOST_SAID]
    # The message that stopped smartctl comes first: it is the reason that a person is given.
    nothing = [line for line in said if _NOTHING_READ.match(line)]
    if (nothing and _stopped_beside_others(written)) or ata_text.contradicts_itself(written):
        raise NotTextError(_SEVERAL)
    messages = [{"string": line, "severity": "error"} for line in nothing]
    messages += [{"string": line, "severity": "warning"} for line in said if line not in nothing]
    program: dict[str, object] = {"messages": messages}
    headers = [parse_smartctl_version(line) for line in written]
    program["version"] = next((list(header) for header in headers if header), [])
    found: dict[str, object] = {"smartctl": program, **_parse_local_time(told)}
    if farm < len(written):
        found["seagate_farm_log"] = {}
    if protocol is not None:
        found |= {"device": {"protocol": protocol}, **_parse_text_verdict(written)}
    match protocol:
        case "ATA":
            found |= (
                ata_text.parse_ata_text_identity(told)
                | ata_text.parse_ata_text_tables(written)
                | log_text.parse_ata_text_logs(written)
            )
        case "SCSI":
            found |= (
                scsi_text.parse_scsi_text_identity(told, written)
                | scsi_text.parse_scsi_text_counters(told, written)
                | log_text.parse_scsi_text_logs(written)
            )
        case "NVMe":
            found |= (
                nvme_text.parse_nvme_text_identity(told)
                | nvme_text.parse_nvme_text_health(told)
                | log_text.parse_nvme_text_logs(written)
            )
    return found, any(not line.startswith(_IDENTIFIED) for line in nothing)


def _parse_labels(written: Sequence[str]) -> dict[str, str]:
    """Return the `Label: value` lines, the first of each label, with labels in lower case.

    Raises NotTextError if a label of _TOLD_ONCE has two values.
    """
    told: dict[str, str] = {}
    for line in written:
        if match := _LABEL.fullmatch(line):
            label, value = " ".join(match[1].lower().split()), match[2].strip()
            if label in _TOLD_ONCE and value and told.get(label, value) != value:
                raise NotTextError(_SEVERAL)
            told.setdefault(label, value)
    return told


def _stopped_beside_others(written: Sequence[str]) -> bool:
    """Return whether one command was stopped and another was not: they asked two disks, or one at two times."""
    starts = [0, *(place for place, line in enumerate(written) if parse_smartctl_version(line)), len(written)]
    commands = [written[start:end] for start, end in pairwise(starts)]
    going = [command for command in commands if not any(map(is_nothing_read_message, command))]
    return any(_detect_text_protocol(_parse_labels(command), command) for command in going)


def _detect_text_protocol(told: dict[str, str], written: Sequence[str]) -> str | None:
    if told.get("model number") or "critical warning" in told or "nvme version" in told:
        return "NVMe"
    if "device model" in told or "ata version is" in told or "ata standard is" in told:
        return "ATA"
    scsi_signs = ("product", "smart health status", "smart sense", "elements in grown defect list", "error counter log",
                  "non-medium error count", "transport protocol", "current drive temperature")  # fmt: skip
    if any(sign in told for sign in scsi_signs) or (
        "device" in told and "version" in told.get("device", "").lower()
    ):
        return "SCSI"
    if any(line.startswith(_ATA_SIGNS) for line in written):
        return "ATA"
    return "SCSI" if any(line.startswith("Background scan results log") for line in written) else None


def _parse_text_verdict(written: Sequence[str]) -> dict[str, object]:
    """Return the verdict: PASSED and OK are good, UNKNOWN is none, any other word of a SCSI drive is a failure.

    SCT repeats the verdict of an ATA drive, which a bridge may have lost; smartctl then guesses by the attributes.
    """
    told: list[bool | None] = []
    for line in written:
        if match := _VERDICT.match(line) or _SCT_VERDICT.match(line):
            told.append({"PASSED": True, "FAILED": False}.get(match[1].upper()))
        elif match := _STATUS.match(line):
            silent = match[1].lower().startswith(("unavail", "not avail", "not supp", "unknown", "n/a"))
            told.append(None if silent else match[1].split()[0].rstrip("!").upper() == "OK")
    known = [passed for passed in told if passed is not None]
    return {"smart_status": {"passed": all(known) if known else None}} if told else {}


def _parse_local_time(told: dict[str, str]) -> dict[str, object]:
    printed = local_time(told.get("local time is", ""))
    if printed is None:
        return {}
    at = to_utc_instant(*printed)
    return {
        "local_time": {"asctime": printed[0].isoformat()} | ({"time_t": int(at.timestamp())} if at else {})
    }
