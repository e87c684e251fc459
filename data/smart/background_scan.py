"""The background scan of a SCSI drive: the unreadable blocks that it found (SBC-4, 6.4.2).

Most SAS drives keep no list of pending defects, but they log the results of the scan of their medium. smartctl 7.4
and later write the log in JSON. Every version prints it, and `--json=o` includes the printed text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from predrain.data.smart.json_values import JsonObject, read_json_count, read_json_integer, read_json_object

KEY: Final = "scsi_background_scan"
_UNRECOVERED: Final = (3, 4)
"""Sense keys MEDIUM ERROR and HARDWARE ERROR. With RECOVERED ERROR (1) the data was read."""
_UNRESOLVED: Final = {
    "require write or reassign blocks command": 1,
    "reassignment by disk failed": 4,
    "unsuccessfully reassigned by app": 8,
}
"""Values of REASSIGN STATUS after which the block cannot be read, by smartctl's words. All others mean a block that
was rewritten in place or reassigned."""
_RESULT: Final = re.compile(
    r"\s*(\d{1,4})\s+\d+:\d\d\s+([0-9a-f]{16})\s+\[([0-9a-f]{1,2}),[0-9a-f]{1,2},[0-9a-f]{1,2}\]\s+(\S.*?)\s*",
    re.IGNORECASE,
)
_SCANS: Final = re.compile(r"\s*Number of background medium scans performed: *(\d{1,9})\s*")


def read_background_scan(lines: Iterable[str]) -> dict[str, object]:
    """Parse the log that smartctl printed, into the shape of its JSON; return {} if the lines hold none."""
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
    """Count the physical blocks that the scan could not read and that are neither rewritten nor reassigned since.

    Return None if there is no such log, or if it is empty because the drive has never scanned its medium. A physical
    block of 4,096 bytes has eight entries in the log if the drive's logical blocks have 512 bytes.
    """
    log = read_json_object(document, KEY) or read_background_scan(_list_printed_lines(document))
    results = [read_json_object(log, key) for key in log if key.startswith("result_")]
    if not results and not read_json_count(read_json_object(log, "status"), "number_medium_scans_performed"):
        return None
    per_block = _count_logical_blocks(document)
    unreadable = [result for result in results if _is_unreadable(result)]
    return len({(read_json_integer(result, "lba") or 0) // per_block for result in unreadable})


def _is_unreadable(result: Mapping[str, object]) -> bool:
    return (
        read_json_count(read_json_object(result, "sense_key"), "value") in _UNRECOVERED
        and read_json_count(read_json_object(result, "reassign_status"), "value") in _UNRESOLVED.values()
    )


def _count_logical_blocks(document: JsonObject) -> int:
    """Return the number of logical blocks in a physical one; 1 if the drive does not report it."""
    logical, physical = (
        read_json_count(document, "logical_block_size"),
        read_json_count(document, "physical_block_size"),
    )
    return max(physical // logical, 1) if logical and physical else 1


def _list_printed_lines(document: JsonObject) -> list[str]:
    lines = read_json_object(document, "smartctl").get("output")
    return [line for line in lines if isinstance(line, str)] if isinstance(lines, list) else []
