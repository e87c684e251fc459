"""Decodes ATA raw values into which the vendor packs several counts, to get the count that is meant.

smartctl prints a raw value by a format from its drive database (`raw.string`) and gives the bare 48- or 56-bit
integer beside it (`raw.value`). The value is undecoded for a drive that the database does not know, and in every
history that kept only the integer.

Sources: smartmontools, `ata_format_attr_raw_value` (the printed forms), `drivedb.h` (which form for which drive).
"""

from __future__ import annotations

import re

from predrain.data.reading import Identity

LARGEST_REPORTED_UNCORRECTABLE = 2**32
"""Fujitsu packs attribute 187; a value above this is no count."""

_WORD = 0xFFFF
_TEMPERATURES = (190, 194)
_HOURS = (9, 240)
_RATES = (1, 7, 195)
_REALLOCATIONS = (5, 196)
_COMMAND_TIMEOUT = 188

_WITH_EXTRAS = re.compile(r"(-?\d{1,19}) ?\(.*")  # raw16(raw16), raw24(raw8), tempminmax: `0 (2000 0)`
_DURATION = re.compile(r"(\d{1,19}) ?h ?\+.*")  # msec24hour32: `7963h+07m+54.620s`; 5.0: `301 h + 29 m`
_RATIO = re.compile(r"(\d{1,19})/\d+")  # raw24/raw32: errors/operations
_WORDS = re.compile(r"\d+ \d+ (\d{1,19})")  # raw16: words 2, 1, 0
_TENTHS = re.compile(r"(\d{1,19})[.,]\d")  # temp10x
_BELOW_ZERO = re.compile(r"-\d{1,3}")  # tempminmax without its extremes
_SEAGATE_WWN = "5000c50"
_SEAGATE_MODEL = re.compile(r"(SEAGATE )?ST\d{3,}")


def decode_raw_value(
    attribute: int, value: int, printed: str | None, *, errors_above_operations: bool = False
) -> int:
    """Return the count of an attribute, from its integer and the text that smartctl printed for it (if known)."""
    printed = printed.strip() if printed else None
    if printed is None or printed.isdecimal():
        return unpack_raw_value(
            attribute, value, formatted=printed is not None, errors_above_operations=errors_above_operations
        )
    meant = parse_printed_raw_value(attribute, printed)
    if meant is not None:
        return meant
    return unpack_raw_value(attribute, value, errors_above_operations=errors_above_operations)


def parse_printed_raw_value(attribute: int, printed: str) -> int | None:
    """Return the count in a raw value that smartctl unpacked when it printed it; None if it did not."""
    if attribute in _TEMPERATURES and _BELOW_ZERO.fullmatch(printed):
        return int(printed)
    for form in (_WITH_EXTRAS, _DURATION, _RATIO, _WORDS, _TENTHS):
        if match := form.fullmatch(printed):
            return int(match[1])
    return None


def unpack_raw_value(
    attribute: int, value: int, *, formatted: bool = False, errors_above_operations: bool = False
) -> int:
    """Return the count in a bare integer.

    `formatted`: smartctl printed the integer as it is, so its drive database calls it plain.
    `errors_above_operations`: the drive is a Seagate hard disk (`packs_rates`).
    """
    if attribute == _COMMAND_TIMEOUT:
        # The low word counts all timeouts; the two above it count the slower ones among them, not further
        # ones.
        return value & _WORD
    if attribute in _REALLOCATIONS:
        return value & _WORD if value > (0xFFFFFFFF if formatted else _WORD) else value
    if attribute in _HOURS:
        return value & 0xFFFFFF if value > 0xFFFFFF else value
    if attribute in _TEMPERATURES and value > 0xFF:
        low = value & 0xFF
        return low - 256 if low > 127 else low
    if attribute in _RATES and errors_above_operations:
        return value >> 32
    return value


def packs_rates(identity: Identity) -> bool:
    """Return whether attributes 1, 7 and 195 hold errors above 32 bits of operations, as on Seagate hard disks.

    Seagate sells Samsung's SpinPoint under ST numbers (`ST1000LM024 HN-M101MBB`); those count plainly. Other vendors
    sell Seagate's disks under numbers of their own (`MB4000GCWDC`, `OOS12000G`); the WWN identifies the maker.
    """
    family, model = identity.family or "", identity.model or ""
    if identity.rotation_rpm == 0 or "SpinPoint" in family or " HN-" in model:
        return False
    built = (identity.wwn or "").startswith(_SEAGATE_WWN)
    return built or family.startswith("Seagate") or _SEAGATE_MODEL.match(model) is not None
