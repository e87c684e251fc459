"""ATA in text: the attribute table in both formats, device statistics, SCT temperature, pending defects."""

from __future__ import annotations

import re
from collections.abc import Sequence

from predrain.data.smart.text.number_text import parse_checked_size, parse_signed_number, parse_whole_number

_BYTE = r"\d{1,3}|0x[0-9a-f]{2}"  # in hexadecimal with `-f hex`
_ROW = re.compile(
    rf"({_BYTE}) +(\S(?:.*?\S)?) +(?:0x[0-9a-fA-F]{{4}}|[POSRCK-]{{6}}\+?) +"
    rf"({_BYTE}|-{{3,4}}) +({_BYTE}|-{{3,4}}) +({_BYTE}|-{{3,4}}) +"
    r"(?:(?:Pre-fail|Old_age) +(?:(?:Always|Offline) +)?)?(?:-|NOW|Past|FAILING_NOW|In_the_past) +(\S.*)"
)
_ROW_BEGINS = re.compile(rf"(?:{_BYTE}) +\S+ +(?:0x[0-9a-fA-F]{{4}}|[POSRCK-]{{6}}\+?) .*")
_STATISTIC = re.compile(
    r"(0x[0-9a-f]{2}|\d{1,3}) +0x([0-9a-f]{3}) +\d +(-?\d+)(~?) +(?:[NDC-]{3}[+~]? +)?([A-Z].*)"
)
_LIMIT = re.compile(r"Min/Max (recommended Temperature|Temperature Limit): +-?\d+/ *(-?\d+) Celsius")
_LIMITS = {"recommended Temperature": "op_limit_max", "Temperature Limit": "limit_max"}
_WWN = re.compile(r"([0-9a-f]) ([0-9a-f]{6}) ([0-9a-f]{9})", re.IGNORECASE)
_STILL = frozenset({4, 5, 12, 187, 192, 197, 198})
"""Counts that do not change from one command to the next; rates, hours and temperatures do."""
_BYTES = re.compile(r"\d{1,3}( \d{1,3}){5}")
_HEX = re.compile(r"0x[0-9a-f]{1,16}", re.IGNORECASE)


def parse_ata_text_identity(told: dict[str, str]) -> dict[str, object]:
    """Parse the identity from the labels of the information section."""
    found: dict[str, object] = {
        "model_name": told.get("device model"),
        "model_family": told.get("model family"),
        "serial_number": told.get("serial number"),
        "firmware_version": told.get("firmware version"),
        "user_capacity": {"bytes": parse_checked_size(told.get("user capacity", ""))},
        "rotation_rate": parse_rotation_rate(told),
        "logical_block_size": parse_whole_number(told.get("sector sizes", told.get("sector size", ""))),
    }
    if match := _WWN.fullmatch(told.get("lu wwn device id", "")):
        found["wwn"] = {"naa": int(match[1], 16), "oui": int(match[2], 16), "id": int(match[3], 16)}
    return found


def parse_rotation_rate(told: dict[str, str]) -> int | None:
    """Return the rotation rate; 0 for an SSD, None if it is not given."""
    turns = told.get("rotation rate", "")
    return 0 if "solid state" in turns.lower() else parse_whole_number(turns)


def parse_ata_text_tables(lines: Sequence[str]) -> dict[str, object]:
    """Parse attributes, statistics and the rest from all lines."""
    rows, pages, limits = [], dict[int, list[dict[str, object]]](), dict[str, int]()
    found: dict[str, object] = {}
    for place, line in enumerate(lines):
        if match := _ROW.fullmatch(line) or _wrapped_row(line, lines[place + 1 : place + 2]):
            rows.append(_parse_attribute_row(match))
        elif match := _STATISTIC.fullmatch(line):
            statistic = {"name": match[5].strip(), "value": int(match[3])}
            pages.setdefault(int(match[1], 0), []).append(statistic)
        elif line.startswith("Current Temperature:"):
            found.setdefault(
                "ata_sct_status", {"temperature": {"current": parse_signed_number(line.partition(":")[2])}}
            )
        elif match := _LIMIT.fullmatch(line):
            limits[_LIMITS[match[1]]] = int(match[2])
        elif line.startswith("Pending Defects log (GP Log 0x0c)") and not line.endswith("supported"):
            found["ata_pending_defects_log"] = {"count": _count_pending_defects(lines[place + 1 :])}
    if rows:
        found["ata_smart_attributes"] = {"table": rows}
    if limits:
        found["ata_sct_temperature_history"] = {"temperature": limits}
    if pages:
        found["ata_device_statistics"] = {
            "pages": [{"number": number, "table": table} for number, table in pages.items()]
        }
    return found


def contradicts_itself(lines: Sequence[str]) -> bool:
    """Return whether the attribute tables of two disks, or of two times, follow each other."""
    starts = [place for place, line in enumerate(lines) if line.startswith("ID#")]
    told: dict[str, str] = {}
    for line in lines[starts[0] :] if len(starts) > 1 else ():
        match = _ROW.fullmatch(line)
        if (
            match
            and _parse_attribute_byte(match[1]) in _STILL
            and told.setdefault(match[1], match[6]) != match[6]
        ):
            return True
    return False


def _wrapped_row(line: str, following: Sequence[str]) -> re.Match[str] | None:
    """Match a row that a mail program broke into two lines, because it has over 80 columns."""
    if not following or not _ROW_BEGINS.fullmatch(line) or _ROW_BEGINS.fullmatch(following[0]):
        return None
    return _ROW.fullmatch(f"{line} {following[0]}")


def _parse_attribute_row(match: re.Match[str]) -> dict[str, object]:
    printed = match[6].strip()
    raw: dict[str, object] = {"string": printed}
    if printed.isdecimal() and len(printed) < 20:
        raw["value"] = int(printed)
    elif _HEX.fullmatch(printed):
        raw = {"value": int(printed, 16)}
    elif _BYTES.fullmatch(printed):  # raw8: six bytes, the highest first
        raw = {"value": int.from_bytes(min(int(byte), 255) for byte in printed.split())}
    levels = (("value", match[3]), ("worst", match[4]), ("thresh", match[5]))
    normalised = {name: _parse_attribute_byte(level) for name, level in levels if not level.startswith("-")}
    return {
        "id": _parse_attribute_byte(match[1]),
        "name": match[2].strip("()").replace(" ", "_"),
        "raw": raw,
        **normalised,
    }


def _parse_attribute_byte(written: str) -> int:
    return int(written, 16 if written.startswith("0x") else 10)


def _count_pending_defects(after: Sequence[str]) -> int | None:
    """Count the entries of the log; return None if it was cut off before the first line."""
    count = None
    for line in after:
        if line.startswith("No Defects Logged"):
            return 0
        if more := re.match(r".*?(\d+) entries not (?:shown|read)", line):
            return (count or 0) + int(more[1])
        if re.match(r"\d+ +(?:0x)?[0-9a-f]+ +(?:\d+|-)$", line):
            count = (count or 0) + 1
        elif not line.startswith("Index") and (line or count is not None):
            break
    return count
