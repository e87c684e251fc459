"""Values out of smartctl's JSON, where any key may be missing, null, of another type or nonsense.

Every function answers None (or nothing) for what is not there or cannot be meant: absence is never 0.
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
"""The largest count that stores and wire formats hold; what claims more is no count."""

_NOTHING: JsonObject = {}
_LONGEST_TEXT = MODEL.limit
_DECIMAL = re.compile(r"[+-]?\d+(?:[.,\u066b]\d+)?")
_ONE_LETTER = re.compile(r"(\w)\1{3,}")  # publishers overwrite serial numbers with one letter
_MASKED = re.compile(r"[-*.?#]+|<.*>|\[.*\]|x{3,}|.*\.{3}|.*redacted.*|n/?a|none|null|unknown", re.I)


def member(node: JsonObject, key: str) -> JsonObject:
    """The object under `key`, or an empty one."""
    value = node.get(key)
    return value if isinstance(value, dict) else _NOTHING


def members(node: JsonObject, key: str) -> Iterator[JsonObject]:
    """The objects of the list under `key`."""
    value = node.get(key)
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield item


def integer(node: JsonObject, key: str) -> int | None:
    """A whole number of any sign under `key`: a number, a string of digits, or smartctl's exact twin `KEY_s`.

    smartctl adds `KEY_s` where a count may exceed what a double holds (NVMe counts have 128 bits).
    """
    value = node.get(key)
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return value
    exact = node.get(f"{key}_s", value)
    if isinstance(exact, str):
        digits = exact.strip()
        return int(digits) if len(digits) < 50 and re.fullmatch(r"[+-]?[0-9]+", digits) else None
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    return None


def count(node: JsonObject, key: str) -> int | None:
    """A count under `key`: a whole number in [0, LARGEST]."""
    value = integer(node, key)
    return value if value is not None and 0 <= value <= LARGEST else None


def percent(node: JsonObject, key: str) -> int | None:
    """A percentage in one byte under `key`; wear may pass 100 and stops at 255."""
    value = count(node, key)
    return value if value is not None and value <= 255 else None


def decimal(node: JsonObject, key: str) -> Decimal | None:
    """A number with a fraction under `key`; smartctl prints it in the host's locale (`"11523,849"`)."""
    value = node.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    written = str(value).strip()
    if len(written) > 50 or not _DECIMAL.fullmatch(written):
        return None
    return Decimal(written.replace(",", ".").replace("\u066b", "."))


def text(node: JsonObject, key: str, longest: int = _LONGEST_TEXT) -> str | None:
    """Text under `key`, cleaned and cut at `longest` characters; None when nothing is left of it."""
    value = node.get(key)
    return (clean_text(value, longest) or None) if isinstance(value, str) else None


def named(node: JsonObject, *keys: str) -> str | None:
    """The first of `keys` that says something; a masked value (`--`, `REDACTED`) does not. Two names that differ only
    in what is cleaned away stay apart."""
    for key in keys:
        value = _identifier(node, key)
        if value is not None and not _MASKED.fullmatch(value):
            return value
    return None


def serial(document: JsonObject) -> str | None:
    """The serial number, if it tells this drive from all others: `REDACTED` and `9RK1XXXX` do not."""
    value = _identifier(document, "serial_number")
    if value is None or _ONE_LETTER.fullmatch(value) or not names_one_drive(value):
        return None
    return value


def _identifier(node: JsonObject, key: str) -> str | None:
    value = node.get(key)
    return (clean_identifier(value, _LONGEST_TEXT) or None) if isinstance(value, str) else None


def temperature(node: JsonObject, key: str) -> int | None:
    """Degrees Celsius under `key`. A drive without a sensor answers 0, 127, 128 or what a template left there; no drive
    is specified to run below -40."""
    value = integer(node, key)
    return value if value is not None and value != 0 and -40 <= value <= 120 else None
