"""One text output as the object that `--json` would have printed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from predrain.data.smart.text import ata, logs, nvme, scsi
from predrain.data.smart.text.lines import lines, version
from predrain.data.smart.text.zones import instant, local_time
from predrain.data.smart.values import JsonObject

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
"""What comes after the identity: whether the drive failed to tell its state or keeps none, its other lines say."""
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
"""One output tells each of these once; where it is told in two ways, two outputs are in the file."""
_SEVERAL = "holds the outputs of several runs of smartctl, pass them one by one"
_MOST_SAID = 32


class NotTextError(Exception):
    """The text is not one run's of one disk; the text of this is the reason and the cure."""


def stops(line: str) -> bool:
    """Whether smartctl says here why it read nothing more of the disk."""
    return _NOTHING_READ.match(line) is not None


def transcript(document: bytes) -> tuple[JsonObject, bool]:
    """The object of one run, and whether smartctl says that it was stopped before it had read the disk.

    Raises NotTextError when runs of several disks, or of several times, are in it.
    """
    written = lines(document)
    # It says again, in labels of its own and at the end of an output, who the drive is.
    farm = next((place for place, line in enumerate(written) if line.startswith(_FARM)), len(written))
    told = _labels(written[:farm])
    protocol = _protocol(told, written)
    said = [line for line in written if _SAID.fullmatch(line) or _NOTHING_READ.match(line)][:_MOST_SAID]
    # What stopped smartctl comes first: it is the reason that a person is given.
    nothing = [line for line in said if _NOTHING_READ.match(line)]
    if (nothing and _stopped_beside_others(written)) or ata.contradicts_itself(written):
        raise NotTextError(_SEVERAL)
    messages = [{"string": line, "severity": "error"} for line in nothing]
    messages += [{"string": line, "severity": "warning"} for line in said if line not in nothing]
    program: dict[str, object] = {"messages": messages}
    headers = [version(line) for line in written]
    program["version"] = next((list(header) for header in headers if header), [])
    found: dict[str, object] = {"smartctl": program, **_time(told)}
    if farm < len(written):
        found["seagate_farm_log"] = {}
    if protocol is not None:
        found |= {"device": {"protocol": protocol}, **_verdict(written)}
    match protocol:
        case "ATA":
            found |= ata.identity(told) | ata.logs(written) | logs.ata(written)
        case "SCSI":
            found |= scsi.identity(told, written) | scsi.logs(told, written) | logs.scsi(written)
        case "NVMe":
            found |= nvme.identity(told) | nvme.logs(told) | logs.nvme(written)
    return found, any(not line.startswith(_IDENTIFIED) for line in nothing)


def _labels(written: Sequence[str]) -> dict[str, str]:
    """`Label: value` lines, the first of each label, labels in lower case."""
    told: dict[str, str] = {}
    for line in written:
        if match := _LABEL.fullmatch(line):
            label, value = " ".join(match[1].lower().split()), match[2].strip()
            if label in _TOLD_ONCE and value and told.get(label, value) != value:
                raise NotTextError(_SEVERAL)
            told.setdefault(label, value)
    return told


def _stopped_beside_others(written: Sequence[str]) -> bool:
    """Whether one command was stopped and another was not: they asked two disks, or one at two times."""
    starts = [0, *(place for place, line in enumerate(written) if version(line)), len(written)]
    commands = [written[start:end] for start, end in pairwise(starts)]
    going = [command for command in commands if not any(map(stops, command))]
    return any(_protocol(_labels(command), command) for command in going)


def _protocol(told: dict[str, str], written: Sequence[str]) -> str | None:
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


def _verdict(written: Sequence[str]) -> dict[str, object]:
    """PASSED and OK are good, UNKNOWN is none, anything else of SCSI is a failure.

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


def _time(told: dict[str, str]) -> dict[str, object]:
    printed = local_time(told.get("local time is", ""))
    if printed is None:
        return {}
    at = instant(*printed)
    return {
        "local_time": {"asctime": printed[0].isoformat()} | ({"time_t": int(at.timestamp())} if at else {})
    }
