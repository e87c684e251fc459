"""What the kernel counts of each block device: /proc/diskstats, from one sample to the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_LONGEST = 1 << 20
_TICKS_WRAP = 1 << 32
"""Counts are 64 bits wide and do not wrap; milliseconds are printed in 32 and do, after 50 days of waiting in sum."""

_FIELDS = 14


@dataclass(frozen=True, slots=True)
class DiskUse:
    """One device: since it appeared, or between two samples."""

    operations: int
    """Reads and writes that were completed."""
    waited_ms: int
    """What they took together, in the queue and on the disk."""
    in_flight_ms: int
    """Time multiplied by requests under way: over a time, its mean queue."""

    def since(self, before: DiskUse) -> DiskUse | None:
        """What was used since `before`; None when it is another device of that name, which began anew."""
        operations = self.operations - before.operations
        if operations < 0:
            return None
        waited, in_flight = self.waited_ms - before.waited_ms, self.in_flight_ms - before.in_flight_ms
        return DiskUse(operations, waited % _TICKS_WRAP, in_flight % _TICKS_WRAP)

    def plus(self, other: DiskUse) -> DiskUse:
        """Both together."""
        return DiskUse(
            self.operations + other.operations,
            self.waited_ms + other.waited_ms,
            self.in_flight_ms + other.in_flight_ms,
        )


def disk_use(diskstats: Path) -> Mapping[str, DiskUse]:
    """By kernel name: `sda`, `nvme0n1`, `dm-3`. Empty where the file cannot be read; lines that are not understood are
    left out.
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
