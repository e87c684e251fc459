"""The measures that are taken at each size, their goals, and the size at which the line of a measure bends."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

from tests.endure.flatness import MEMORY_BOUND

KEPT_READINGS = 90 * 24 + 275
"""Readings of a disk's first year that the store keeps: hourly for 90 days, and one of each of the other 275 days."""
LEAST_BEND = 0.1
"""Slopes that differ by less are one slope: 0 is a figure that does not grow, 1 one that grows with the disks."""


class GrowthSeries(StrEnum):
    """The ways in which predrain runs while it is measured."""

    ONE_PROCESS = "one process"
    TWO_WORKERS = "two workers"


class MeasureName(StrEnum):
    """Keys of the figures of a size."""

    PEAK = "memory_peak_mb"
    STEADY = "memory_steady_mb"
    SHARED_OUT = "memory_pss_mb"
    GROWTH = "memory_growth_mb_per_minute"
    PAGE_MEMORY = "page_memory_mb"
    READING = "reading_us"
    SERVERS = "servers_us"
    READY = "ready_cpu_s"
    READY_WALL = "ready_wall_s"
    SCORE = "first_score_cpu_s"
    SCORE_WALL = "first_score_wall_s"
    YEAR = "store_year_bytes"
    DEVICES_MEDIAN = "devices_p50_ms"
    DEVICES_SLOWEST = "devices_p99_ms"
    PAGE_CPU = "page_cpu_s"
    PAGE_WALL = "page_wall_s"
    PAGE_BYTES = "page_packed_bytes"


@dataclass(frozen=True)
class GrowthMeasure:
    """One row of the table, and one line of the picture.

    goals: the most that a goal allows, by number of disks; they hold for one process. every: the most at any size.
    """

    name: MeasureName
    label: str
    unit: str
    digits: int = 0
    goals: Mapping[int, float] = field(default_factory=dict[int, float])
    every: float | None = None

    def find_goal(self, series: GrowthSeries, disks: int) -> float | None:
        """Return the most that is allowed, or None if nothing is said about this size."""
        return self.goals.get(disks, self.every) if series is GrowthSeries.ONE_PROCESS else None


MEASURES = (
    GrowthMeasure(MeasureName.PEAK, "memory, peak", "MB"),
    GrowthMeasure(
        MeasureName.STEADY, "memory, steady", "MB", goals={12: 150, 500: 200, 6_000: 300, 50_000: 900}
    ),
    GrowthMeasure(MeasureName.SHARED_OUT, "memory, steady, PSS", "MB"),
    GrowthMeasure(MeasureName.GROWTH, "memory, growth", "MB/min", 2, every=MEMORY_BOUND),
    GrowthMeasure(MeasureName.PAGE_MEMORY, "memory of the page's process", "MB"),
    GrowthMeasure(MeasureName.READING, "processor, a reading", "us"),
    GrowthMeasure(MeasureName.SERVERS, "processor of the servers, a reading", "us"),
    GrowthMeasure(MeasureName.READY, "restart to readyz, processor", "s", 2),
    GrowthMeasure(MeasureName.READY_WALL, "restart to readyz, wall", "s", 2),
    GrowthMeasure(
        MeasureName.SCORE, "restart to the first score, processor", "s", 2, goals={6_000: 2.5, 50_000: 6.0}
    ),
    GrowthMeasure(MeasureName.SCORE_WALL, "restart to the first score, wall", "s", 2),
    GrowthMeasure(
        MeasureName.YEAR,
        "store, a disk's first year",
        "B",
        every=2_000_000 * KEPT_READINGS / (KEPT_READINGS + 35),
    ),
    GrowthMeasure(MeasureName.DEVICES_MEDIAN, "GET devices, p50", "ms", 1),
    GrowthMeasure(MeasureName.DEVICES_SLOWEST, "GET devices, p99", "ms", 1, goals={6_000: 100}),
    GrowthMeasure(MeasureName.PAGE_CPU, "page's first data, processor", "s", 2),
    GrowthMeasure(MeasureName.PAGE_WALL, "page's first data, wall", "s", 2, goals={50_000: 1.5}),
    GrowthMeasure(MeasureName.PAGE_BYTES, "page's first data, packed", "B"),
)


@dataclass(frozen=True)
class SizeFigures:
    """The figures of one size. A figure that this series does not have is missing."""

    series: GrowthSeries
    disks: int
    values: Mapping[MeasureName, float]


@dataclass(frozen=True)
class GrowthBend:
    """The size at which a line changes its slope most; a slope is the power of the number of disks."""

    disks: int
    before: float
    after: float


def find_bend(points: Sequence[tuple[int, float]]) -> GrowthBend | None:
    """Return the bend of a line on logarithmic axes; None with fewer than three positive points, or if it is straight.

    points: (disks, value), in any order. A value of 0 or less has no place on a logarithmic axis.
    """
    shown = sorted((disks, value) for disks, value in points if disks > 0 and value > 0)
    slopes = [
        math.log(later / earlier) / math.log(more / fewer)
        for (fewer, earlier), (more, later) in pairwise(shown)
    ]
    bends = [
        GrowthBend(disks, before, after)
        for (disks, _), (before, after) in zip(shown[1:-1], pairwise(slopes), strict=True)
    ]
    sharpest = max(bends, key=lambda bend: abs(bend.after - bend.before), default=None)
    if sharpest is None or abs(sharpest.after - sharpest.before) < LEAST_BEND:
        return None
    return sharpest


def list_points(
    found: Sequence[SizeFigures], series: GrowthSeries, name: MeasureName
) -> list[tuple[int, float]]:
    """Return (disks, value) of one line, the smallest size first."""
    return sorted(
        (one.disks, one.values[name]) for one in found if one.series is series and name in one.values
    )
