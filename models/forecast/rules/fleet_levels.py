"""The rank of a drive's level among drives of its kind in service, which is all that one reading can tell.

models/tables/fleets.json holds, for each kind and counter, the count that 5, 1 and 0.1 % of the drives in service
reach. There is no public data of a fleet of SAS drives, so their blocks are counted as those of SATA hard disks.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from predrain.models.forecast.rules.membership_functions import DegreeRamp

TABLE: Final = Path(__file__).parents[2] / "tables" / "fleets.json"
SHARES: Final = (0.05, 0.01, 0.001)
"""Shares of drives in service whose limits the table holds."""
WORST: Final = 0.01
"""Share of the drives in service that get a warning for a level alone."""
EXTREME: Final = 0.001
DEGREES: Final = {0.05: 0.1, WORST: 0.4, EXTREME: 0.6}
"""Share of the drives in service that reach a level -> its degree: from WORST a warning, and never more than that."""
WEIGHTS: Final = {"command_timeouts": 0.5}
"""Weight of counters that are evidence of the link, the power supply or the host as much as of the drive."""


class DriveKind(StrEnum):
    """Kinds of drives for which data of a fleet in service are public."""

    HARD_DISK = "hard-disk"
    SATA_SSD = "sata-ssd"
    NVME = "nvme"


class CounterDistribution(msgspec.Struct, frozen=True):
    """The distribution of one counter over the drives of one kind in service."""

    drives: int
    """Number of drives that report the counter."""
    above_zero: int
    limits: Mapping[str, int]
    """Share of the drives -> the lowest count, at least 1, that no more than this share of them reach."""


class _Table(msgspec.Struct, frozen=True):
    source: str
    kinds: Mapping[DriveKind, Mapping[str, CounterDistribution]]


@cache
def load_standings() -> Mapping[DriveKind, Mapping[str, CounterDistribution]]:
    """Load the table as committed."""
    return msgspec.json.decode(TABLE.read_bytes(), type=_Table).kinds


def make_level_ramp(kind: DriveKind, counter: str, measures: str) -> DegreeRamp:
    """Make the membership function of a level that was read once, by its rank among drives of its kind."""
    standing = load_standings()[kind][counter]
    limits = {share: standing.limits[f"{share:g}"] for share in SHARES}
    points: dict[int, float] = {}
    for share in SHARES:
        points[limits[share]] = DEGREES[share] * WEIGHTS.get(
            counter, 1.0
        )  # if shares have the same limit, the smallest counts
    told = ", ".join(f"{100 * share:g} % reach {limits[share]:,}" for share in SHARES)
    source = f"of {standing.drives:,} in service in servers at most {told}"
    return DegreeRamp(measures, tuple(sorted(points.items())), source, logarithmic=True)


def get_worst_limit(kind: DriveKind, counter: str) -> int:
    """Return the count that no more than 1 % of the drives of this kind in service reach."""
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
KIND_TEXTS: Final = {
    DriveKind.HARD_DISK: "SATA hard disk",
    DriveKind.SATA_SSD: "SATA SSD",
    DriveKind.NVME: "NVMe",
}
LEVELS: Final[Mapping[tuple[DriveKind, str], DegreeRamp]] = {
    (kind, counter): make_level_ramp(
        kind, counter, f"{KIND_TEXTS[kind]}: {_MEASURES[counter]}, none of them new"
    )
    for kind, counters in load_standings().items()
    for counter in counters
    if counter in _MEASURES and (kind, counter) != (DriveKind.SATA_SSD, "command_timeouts")
}
"""Membership functions of levels. CRC errors are errors of the link, and attribute 188 of SSDs has several meanings."""
