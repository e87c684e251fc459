"""Reads values from smartctl's JSON, where any key may be missing, null, of another type or nonsense.

Every function returns None (or nothing) for a value that is missing or implausible: absence is never 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal

from predrain.data.device_id import names_one_drive
from predrain.data.outside_text import MODEL, clean_identifier, clean_text

JsonObject = Mapping[str, object]

LARGEST = 2**63 - 1
"""The largest count that stores and wire formats hold; a larger number is no count."""

LIMIT_C = (30, 120)
"""Smallest and largest upper temperature limit of a drive in °C. A drive without a limit answers 0, 127 or -128."""

_NOTHING: JsonObject = {}
_LONGEST_TEXT = MODEL.limit
_DECIMAL = re.compile(r"[+-]?\d+(?:[.,\u066b]\d+)?")
_ONE_LETTER = re.compile(r"(\w)\1{3,}")  # publishers overwrite serial numbers with one letter
_MASKED = re.compile(r"[-*.?#]+|<.*>|\[.*\]|x{3,}|.*\.{3}|.*redacted.*|n/?a|none|null|unknown", re.I)


def read_json_object(node: JsonObject, key: str) -> JsonObject:
    """Return the object under `key`, or an empty one."""
    value = node.get(key)
    return value if isinstance(value, dict) else _NOTHING


def iterate_json_objects(node: JsonObject, key: str) -> Iterator[JsonObject]:
    """Yield the objects of the list under `key`."""
    value = node.get(key)
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield item


def read_json_integer(node: JsonObject, key: str) -> int | None:
    """Return a whole number of any sign under `key`: a number, a string of digits, or smartctl's exact twin `KEY_s`.

    smartctl adds `KEY_s` if a count may exceed the precision of a double (NVMe counts have 128 bits).
    """
    value = node.get(key)
    if type(value) is int:  # nearly always; a bool is none
        return value
    if isinstance(value, bool) or value is None:
        return None
    exact = node.get(f"{key}_s", value)
    if isinstance(exact, str):
        digits = exact.strip()
        return int(digits) if len(digits) < 50 and re.fullmatch(r"[+-]?[0-9]+", digits) else None
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    return None


def read_json_count(node: JsonObject, key: str) -> int | None:
    """Return a count under `key`: a whole number in [0, LARGEST]."""
    value = node.get(key)
    if type(value) is not int:
        value = read_json_integer(node, key)
    return value if value is not None and 0 <= value <= LARGEST else None


def read_json_percent(node: JsonObject, key: str) -> int | None:
    """Return a percentage in one byte under `key`; wear may exceed 100 and stops at 255."""
    value = read_json_count(node, key)
    return value if value is not None and value <= 255 else None


def read_json_decimal(node: JsonObject, key: str) -> Decimal | None:
    """Return a number with a fraction under `key`; smartctl prints it in the host's locale (`"11523,849"`)."""
    value = node.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    written = str(value).strip()
    if len(written) > 50 or not _DECIMAL.fullmatch(written):
        return None
    return Decimal(written.replace(",", ".").replace("\u066b", "."))


def read_json_text(node: JsonObject, key: str, longest: int = _LONGEST_TEXT) -> str | None:
    """Return the text under `key`, cleaned and cut at `longest` characters; None if nothing is left of it."""
    value = node.get(key)
    return (clean_text(value, longest) or None) if isinstance(value, str) else None


def read_first_name(node: JsonObject, *keys: str) -> str | None:
    """Return the first usable value of `keys`; a masked value (`--`, `REDACTED`) is not usable.

    Two names that differ only in characters that are cleaned away stay different.
    """
    for key in keys:
        value = _read_json_identifier(node, key)
        if value is not None and not _MASKED.fullmatch(value):
            return value
    return None


def read_serial_number(document: JsonObject) -> str | None:
    """Return the serial number if it identifies this drive: `REDACTED` and `9RK1XXXX` do not."""
    value = _read_json_identifier(document, "serial_number")
    if value is None or _ONE_LETTER.fullmatch(value) or not names_one_drive(value):
        return None
    return value


def _read_json_identifier(node: JsonObject, key: str) -> str | None:
    value = node.get(key)
    return (clean_identifier(value, _LONGEST_TEXT) or None) if isinstance(value, str) else None


def read_json_temperature(node: JsonObject, key: str) -> int | None:
    """Return the degrees Celsius under `key`, or None.

    A drive without a sensor answers 0, 127, 128 or a value from a template. No drive is specified to run below -40
    °C.
    """
    value = read_json_integer(node, key)
    return value if value is not None and value != 0 and -40 <= value <= 120 else None


def read_temperature_limit(node: JsonObject, key: str) -> int | None:
    """Return the upper limit in °C under `key`, or None."""
    value = read_json_integer(node, key)
    return value if value is not None and LIMIT_C[0] <= value <= LIMIT_C[1] else None
