"""Parses figures as smartctl prints them in the host's locale.

Thousands may be separated by a comma (the Arabic one, too), a full stop, any blank, an apostrophe, a hyphen or the
remains of an unknown code page (U+FFFD, a question mark): in a whole number all of these are removed. Only sizes and
gigabytes have a fraction.
"""

from __future__ import annotations

import re
from decimal import Decimal

_PARTED = r"[\s.,'\u066c\u2019\u00b4`\u2009\u202f\u00a0\ufffd?-]"
_WHOLE = re.compile(rf"(\d+(?:{_PARTED}{{1,2}}\d{{3}})+|\d+)(.*)", re.DOTALL)
_SIZE = re.compile(r"\[\s*(\d+)(?:[.,\u066b](\d+))?\s*([kKMGTPEZY]?)i?B\s*\]")
_FRACTION = re.compile(rf"(\d+(?:{_PARTED}\d{{3}})*?)(?:[.,\u066b](\d+))?")
_POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6, "Z": 7, "Y": 8}
_LONGEST = 60
# smartctl cuts a size to three figures and does not round it: `1.99` may be just below 2.00.
_SIZE_WITHIN = Decimal("0.02")


def parse_whole_number(written: str) -> int | None:
    """Parse a whole number, with any text after it (a unit, a size in brackets); return None if there is none.

    If more digits follow in a way that no locale separates them (`300,$00,000`), the number is damaged: return None.
    """
    match = _WHOLE.match(written.strip()[:_LONGEST])
    if match is None:
        return None
    after = match[2].split("[")[0].split("(")[0]
    if re.match(r"\S*\d", after):
        return None
    return int(re.sub(r"\D", "", match[1]))


def parse_checked_size(written: str, unit: int = 1) -> int | None:
    """Parse a count of `unit` bytes that smartctl repeats in brackets (`500,107 [500 GB]`).

    Return None if the two differ. Some C libraries lose the digits after the first separator and print `120 bytes
    [120 GB]`.
    """
    number = parse_whole_number(written)
    size = _SIZE.search(written)
    if number is None or size is None:
        return number
    told = Decimal(f"{size[1]}.{size[2] or 0}") * 1000 ** _POWERS[size[3]]
    counted = Decimal(number) * unit
    # The last printed figure stands for any value up to the next.
    step = Decimal(1000 ** _POWERS[size[3]]) / 10 ** len(size[2] or "")
    return number if abs(counted - told) <= max(step, told * _SIZE_WITHIN) else None


def parse_signed_number(written: str) -> int | None:
    """Parse a temperature: `38 Celsius`, `-5 C`."""
    match = re.match(r"(-?\d{1,4})\b", written.strip())
    return int(match[1]) if match else None


def parse_fraction_text(written: str) -> str | None:
    """Return a number with a fraction with a full stop: `87202,134` and `87.202,134` become `87202.134`."""
    match = _FRACTION.fullmatch(written.strip()[:_LONGEST])
    if match is None:
        return None
    digits = re.sub(r"\D", "", match[1])
    return f"{digits}.{match[2]}" if match[2] else digits
