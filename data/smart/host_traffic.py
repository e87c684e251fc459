"""Bytes that the host wrote to and read from an ATA drive, from attributes and device statistics.

An attribute's name gives its unit (`Host_Writes_32MiB`), and on some drives it is wrong: `Total_LBAs_Written` may
count 32 MiB, GiB or GB. Device statistics page 1 (ACS-4, 9.5.4) counts logical sectors, but wraps at 2^32 on some
drives. Both together give the right value. A value that comes alone is taken as it is, except for an SSD whose `LBAs`
come to less than a drive in service can have. They are no sectors, their unit is unknown, and the answer is None. The
answer is also None for a count above the amount that the drive can have moved since it was new, as some Seagate disks
report for reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from predrain.data.reading import Attribute
from predrain.data.smart.json_values import LARGEST

_WRAP_SECTORS = 2**32
# GB and GiB differ by 7 %; attribute and statistics are read at slightly different times.
_AGREES_WITHIN = 0.02
# Micron's 246, Intel's 225, Apple's 174 and 175, Indilinx' 198 and 199; under another name they are something else.
_WRITES, _READS = (241, 246, 225, 175, 199), (242, 174, 198)
_WRITTEN = re.compile(r"writ|wts", re.I)
_READ = re.compile(r"read|rds", re.I)
_FROM_HOST = re.compile(r"lba|host|hst|lifetime|total", re.I)
_NOT_FROM_HOST = re.compile(r"nand|flsh|flash|erase|error|fail|ampf|perc|workld|ratio|rate|retry", re.I)
_UNITS: tuple[tuple[str, int], ...] = (
    ("32mib", 2**25), ("1gib", 2**30), ("gib", 2**30), ("gb", 10**9), ("mib", 2**20), ("mb", 10**6),
)  # fmt: skip
# Counting 32 MiB or more as 512 B makes 65,536 times too little: below this, 18 MB/s all the time would count
# as idle.
_LEAST_AN_HOUR = 2**20
_JUDGED_FROM_HOURS = 24
# Bytes a second: what SATA carries at 6 Gbit/s, and what no disk's platters deliver.
_MOST_OF_LINK, _MOST_OF_PLATTERS = 600_000_000, 300_000_000
_POSSIBLE_UNITS = (2**25, 2**30, 10**9, 2**20, 10**6, 64 * 2**20, 2**16)


def bytes_written(
    attributes: Mapping[int, Attribute],
    statistics_sectors: int | None,
    sector_bytes: int,
    *,
    ssd_hours: int | None = None,
    disk_hours: int | None = None,
) -> int | None:
    """Return the bytes written by the host, or None if the drive does not report them.

    `ssd_hours` and `disk_hours` are the power-on hours of an SSD or of a hard disk; None if unknown.
    """
    named = _from_attributes(attributes, _WRITES, _WRITTEN, sector_bytes)
    told = _choose_byte_count(named, statistics_sectors, sector_bytes, ssd_hours)
    return told if told is None or told <= _estimate_byte_limit(ssd_hours, disk_hours) else None


def bytes_read(
    attributes: Mapping[int, Attribute],
    statistics_sectors: int | None,
    sector_bytes: int,
    *,
    ssd_hours: int | None = None,
    disk_hours: int | None = None,
) -> int | None:
    """Return the bytes read by the host, or None if the drive does not report them; hours as for `bytes_written`."""
    named = _from_attributes(attributes, _READS, _READ, sector_bytes)
    told = _choose_byte_count(named, statistics_sectors, sector_bytes, ssd_hours)
    return told if told is None or told <= _estimate_byte_limit(ssd_hours, disk_hours) else None


def _from_attributes(
    attributes: Mapping[int, Attribute],
    numbers: tuple[int, ...],
    direction: re.Pattern[str],
    sector_bytes: int,
) -> tuple[int, int] | None:
    """Return (raw count, bytes per unit) of the first attribute whose name says that it counts the host's traffic."""
    for number in numbers:
        attribute = attributes.get(number)
        if attribute is None or not direction.search(attribute.name):
            continue
        if _NOT_FROM_HOST.search(attribute.name) or not _FROM_HOST.search(attribute.name):
            continue
        name = attribute.name.lower()
        for ending, unit in _UNITS:
            if name.endswith(f"_{ending}"):
                return attribute.raw, unit
        if "lba" in name or "sector" in name:
            return attribute.raw, sector_bytes
    return None


def _choose_byte_count(
    named: tuple[int, int] | None, sectors: int | None, sector_bytes: int, ssd_hours: int | None
) -> int | None:
    told = None if named is None else named[0] * named[1]
    if sectors is None:
        if named is None or told is None or told > LARGEST:
            return None
        idle = (ssd_hours or 0) >= _JUDGED_FROM_HOURS and told < (ssd_hours or 0) * _LEAST_AN_HOUR
        return None if idle and named[1] == sector_bytes else told
    counted = sectors * sector_bytes
    if named is None or told is None or _is_same_byte_count(told, counted, slack=named[1]):
        return counted if told is None else told
    wrap = _WRAP_SECTORS * sector_bytes if sectors < _WRAP_SECTORS else None
    if wrap and _is_same_byte_count(told % wrap, counted, slack=named[1]):
        return told
    if any(_is_same_byte_count(named[0] * unit, counted, slack=unit) for unit in _POSSIBLE_UNITS):
        return counted
    for unit in _POSSIBLE_UNITS:
        if wrap and _is_same_byte_count(named[0] * unit % wrap, counted, slack=unit):
            return named[0] * unit
    return counted


def _estimate_byte_limit(ssd_hours: int | None, disk_hours: int | None) -> int:
    """Return the most bytes that the drive can have moved. One hour is added, because hours are whole numbers."""
    if disk_hours is not None:
        return (disk_hours + 1) * 3600 * _MOST_OF_PLATTERS
    return LARGEST if ssd_hours is None else (ssd_hours + 1) * 3600 * _MOST_OF_LINK


def _is_same_byte_count(one: int, other: int, slack: int) -> bool:
    """Return whether two counts are equal but for two units and for the traffic between the two readings."""
    return abs(one - other) <= max(2 * slack, _AGREES_WITHIN * max(one, other))
