"""The kernel's counts for each block device: /proc/diskstats, and the growth from one sample to the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_LONGEST = 1 << 20
_TICKS_WRAP = 1 << 32
"""Counts are 64 bits wide and do not wrap. Milliseconds are printed in 32 bits and wrap after a total wait of 50
days."""

_FIELDS = 14


@dataclass(frozen=True, slots=True)
class DiskUse:
    """The use of one device since it appeared, or between two samples."""

    operations: int
    """Reads and writes that were completed."""
    waited_ms: int
    """Total milliseconds of these operations, in the queue and on the disk."""
    in_flight_ms: int
    """Milliseconds multiplied by requests in flight: divided by a duration it is the mean queue."""

    def since(self, before: DiskUse) -> DiskUse | None:
        """Return the use since `before`, or None if it is another device of that name, which counts from 0."""
        operations = self.operations - before.operations
        if operations < 0:
            return None
        waited, in_flight = self.waited_ms - before.waited_ms, self.in_flight_ms - before.in_flight_ms
        return DiskUse(operations, waited % _TICKS_WRAP, in_flight % _TICKS_WRAP)

    def plus(self, other: DiskUse) -> DiskUse:
        """Return the sum of both."""
        return DiskUse(
            self.operations + other.operations,
            self.waited_ms + other.waited_ms,
            self.in_flight_ms + other.in_flight_ms,
        )


def disk_use(diskstats: Path) -> Mapping[str, DiskUse]:
    """Return the use by kernel name: `sda`, `nvme0n1`, `dm-3`.

    Return an empty mapping if the file cannot be read. Lines that are not understood are left out.
    """
    try:
        with diskstats.open("rb") as file:
            lines = file.read(_LONGEST).decode("ascii", "replace").splitlines()
    except OSError:
        return {}
    found: dict[str, DiskUse] = {}
    for line in lines:
        fields = line.split()
        if len(fields) < _FIELDS or not all(field.isdecimal() for field in fields[3:_FIELDS]):
            continue
        reads, _, _, read_ms, writes, _, _, write_ms, _, _, in_flight_ms = map(int, fields[3:_FIELDS])
        found[fields[2]] = DiskUse(reads + writes, read_ms + write_ms, in_flight_ms)
    return found
