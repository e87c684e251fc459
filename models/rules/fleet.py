"""Where a drive's level stands among drives of its kind in service, which is all that one reading can tell.

models/tables/fleets.json holds, for each kind and counter, the count that 5, 1 and 0.1 % of the drives in service
reach. No fleet of SAS drives is public: their blocks are counted as those of SATA hard disks are.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from predrain.models.rules.ramps import Ramp

TABLE: Final = Path(__file__).parents[1] / "tables" / "fleets.json"
SHARES: Final = (0.05, 0.01, 0.001)
"""Shares of drives in service whose limits the table holds."""
WORST: Final = 0.01
"""Share of the drives in service that are warned of for a level alone."""
EXTREME: Final = 0.001
DEGREES: Final = {0.05: 0.1, WORST: 0.4, EXTREME: 0.6}
"""What a level says that so many drives in service reach: from WORST a warning, and never more than that."""
WEIGHTS: Final = {"command_timeouts": 0.5}
"""Of counters that speak of the way to the drive, its power or its host as much as of the drive."""


class DriveKind(StrEnum):
    """Kinds of drives of which a fleet in service is public."""

    HARD_DISK = "hard-disk"
    SATA_SSD = "sata-ssd"
    NVME = "nvme"


class CounterDistribution(msgspec.Struct, frozen=True):
    """How one counter is spread over the drives of one kind in service."""

    drives: int
    """Drives that report it."""
    above_zero: int
    limits: Mapping[str, int]
    """Share of the drives -> the lowest count, at least 1, that no more than this share of them reach."""


class _Table(msgspec.Struct, frozen=True):
    source: str
    kinds: Mapping[DriveKind, Mapping[str, CounterDistribution]]


@cache
def load_standings() -> Mapping[DriveKind, Mapping[str, CounterDistribution]]:
    """The table as committed."""
    return msgspec.json.decode(TABLE.read_bytes(), type=_Table).kinds


def make_level_ramp(kind: DriveKind, counter: str, measures: str) -> Ramp:
    """The membership function of a level that was read once, by where it stands among drives of its kind."""
    standing = load_standings()[kind][counter]
    limits = {share: standing.limits[f"{share:g}"] for share in SHARES}
    points: dict[int, float] = {}
    for share in SHARES:
        points[limits[share]] = DEGREES[share] * WEIGHTS.get(
            counter, 1.0
        )  # of shares with one limit the smallest speaks
    told = ", ".join(f"{100 * share:g} % reach {limits[share]:,}" for share in SHARES)
    source = f"of {standing.drives:,} in service in servers at most {told}"
    return Ramp(measures, tuple(sorted(points.items())), source, logarithmic=True)


def get_worst_limit(kind: DriveKind, counter: str) -> int:
    """The count that no more than 1 % of the drives of this kind in service reach."""
    return load_standings()[kind][counter].limits[f"{WORST:g}"]


_MEASURES: Final = {
    "reallocated": "reallocated sectors",
    "pending": "pending sectors",
    "offline_uncorrectable": "offline uncorrectable sectors",
    "reported_uncorrectable": "reported uncorrectable errors",
    "end_to_end_errors": "end-to-end errors",
    "command_timeouts": "command timeouts",
    "media_errors": "media errors",
}
_KINDS: Final = {
    DriveKind.HARD_DISK: "SATA hard disk",
    DriveKind.SATA_SSD: "SATA SSD",
    DriveKind.NVME: "NVMe",
}
LEVELS: Final[Mapping[tuple[DriveKind, str], Ramp]] = {
    (kind, counter): make_level_ramp(kind, counter, f"{_KINDS[kind]}: {_MEASURES[counter]}, none of them new")
    for kind, counters in load_standings().items()
    for counter in counters
    if counter in _MEASURES and (kind, counter) != (DriveKind.SATA_SSD, "command_timeouts")
}
"""CRC errors are of the way to the drive; what SSDs number as 188 is not one count."""
