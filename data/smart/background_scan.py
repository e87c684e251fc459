"""The background scan of a SCSI drive: which blocks it found that nobody can read (SBC-4, 6.4.2).

A drive that keeps no list of pending defects, as most SAS drives do not, still logs what its scan of the medium met.
smartctl 7.4 and later write the log in JSON; every version prints it, and `--json=o` carries what it printed along.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from predrain.data.smart.values import JsonObject, count, integer, member

KEY: Final = "scsi_background_scan"
_UNRECOVERED: Final = (3, 4)
"""Sense keys MEDIUM ERROR and HARDWARE ERROR. With RECOVERED ERROR (1) the data was read."""
_UNRESOLVED: Final = {
    "require write or reassign blocks command": 1,
    "reassignment by disk failed": 4,
    "unsuccessfully reassigned by app": 8,
}
"""Values of REASSIGN STATUS after which the block cannot be read, by the words of smartctl. All others tell of a block
that was rewritten in place or reassigned."""
_RESULT: Final = re.compile(
    r"\s*(\d{1,4})\s+\d+:\d\d\s+([0-9a-f]{16})\s+\[([0-9a-f]{1,2}),[0-9a-f]{1,2},[0-9a-f]{1,2}\]\s+(\S.*?)\s*",
    re.IGNORECASE,
)
_SCANS: Final = re.compile(r"\s*Number of background medium scans performed: *(\d{1,9})\s*")


def read_background_scan(lines: Iterable[str]) -> dict[str, object]:
    """The log that smartctl printed, in the shape that its JSON has; empty where the lines hold none."""
    found: dict[str, object] = {}
    for line in lines:
        if match := _RESULT.fullmatch(line):
            found[f"result_{match[1]}"] = {
                "lba": int(match[2], 16),
                "sense_key": {"value": int(match[3], 16)},
                "reassign_status": {"value": _UNRESOLVED.get(match[4].lower())},
            }
        elif match := _SCANS.fullmatch(line):
            found["status"] = {"number_medium_scans_performed": int(match[1])}
    return found


def count_unreadable_blocks(document: JsonObject) -> int | None:
    """Physical blocks that the scan could not read and that are neither rewritten nor reassigned since.

    None where there is no such log, and where it is empty because the drive has never scanned its medium. A physical
    block of 4,096 bytes stands in the log eight times where the drive's logical blocks have 512 bytes.
    """
    log = member(document, KEY) or read_background_scan(_list_printed_lines(document))
    results = [member(log, key) for key in log if key.startswith("result_")]
    if not results and not count(member(log, "status"), "number_medium_scans_performed"):
        return None
    per_block = _count_logical_blocks(document)
    unreadable = [result for result in results if _is_unreadable(result)]
    return len({(integer(result, "lba") or 0) // per_block for result in unreadable})


def _is_unreadable(result: Mapping[str, object]) -> bool:
    return (
        count(member(result, "sense_key"), "value") in _UNRECOVERED
        and count(member(result, "reassign_status"), "value") in _UNRESOLVED.values()
    )


def _count_logical_blocks(document: JsonObject) -> int:
    """Logical blocks in a physical one; 1 where the drive does not tell."""
    logical, physical = count(document, "logical_block_size"), count(document, "physical_block_size")
    return max(physical // logical, 1) if logical and physical else 1


def _list_printed_lines(document: JsonObject) -> list[str]:
    lines = member(document, "smartctl").get("output")
    return [line for line in lines if isinstance(line, str)] if isinstance(lines, list) else []
