"""Which forecasts in a row say that a drain pays, and whether they are enough for one that nobody asked for.

One reading is never enough. What a reading says is borne out by an earlier one of the same disk, taken by the same host
at least five minutes before, and the weaker the evidence, the longer it must have lasted (`actions.core.drain_cost`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from predrain.actions.core.drain_cost import (
    CONFIRMATION_HOURS_MIN,
    ChanceCurve,
    DiskAtRisk,
    DrainCost,
    weigh_drain,
)
from predrain.data.error_counts import ERROR_ATTRIBUTES, count_errors
from predrain.data.ids import HostName
from predrain.data.reading import Reading, Smart

READINGS_MIN: Final = 2
LIMITS: Final = frozenset({2**bits - 1 for bits in (16, 24, 32, 48, 56, 64)} | {2**32 - 2})
"""Values at which a counter of so many bits stops; 2^32 - 2 is the largest that is taken for a count."""


@dataclass(frozen=True, slots=True)
class ForecastPoint:
    """What one reading's forecast said."""

    at: datetime
    host: HostName | None
    """Who took the reading; None: it is not known any more."""
    chances: ChanceCurve | None
    """None: the forecast gave no chance."""
    sound: bool
    """Whether the reading may bear out another one."""


@dataclass(frozen=True, slots=True)
class WeighedDisk:
    """Whether the drain of a disk pays by its newest reading, and how well that is borne out."""

    cost: DrainCost
    readings: int
    """Sound readings in a row, of one host, by which a drain pays; 0 where it does not."""
    span_hours: float
    """From the first of them to the last."""
    wanted_hours: float
    """How long they must have lasted; infinite where a drain does not pay."""
    confirmed: bool
    paying_since: datetime | None = None
    """When a reading first said that a drain pays, in a row up to the newest; None: the newest does not say so."""
    last_paid_at: datetime | None = None
    """When the last reading said that it pays; None: none that is remembered did."""


def weigh_disk(disk: DiskAtRisk, points: Sequence[ForecastPoint], hours_max: float) -> WeighedDisk:
    """Weigh a disk and count what bears it out.

    disk: with the newest chances. points: its forecasts, oldest first, the newest last. hours_max: no evidence must
    last longer than this.
    """
    cost = weigh_drain(disk)
    if not cost.pays:
        last = next((point.at for point in reversed(points) if _pays(disk, point)), None)
        return WeighedDisk(cost, 0, 0.0, cost.confirmation_hours, False, None, last)
    run = _paying(disk, points)
    wanted = _limit(cost.confirmation_hours, hours_max)
    if not run or not points[-1].sound or points[-1].host is None:
        return WeighedDisk(
            cost, 0, 0.0, wanted, False, run[-1][0].at if run else None, points[-1].at if points else None
        )
    apart = next((n for n, (point, _) in enumerate(run) if point.host != points[-1].host), len(run))
    sound = [(point, told) for point, told in run[:apart] if point.sound]
    span = _hours(sound[-1][0], sound[0][0])
    weakest, confirmed = 0.0, False
    for number, (point, told) in enumerate(sound, start=1):
        weakest = max(weakest, _limit(told.confirmation_hours, hours_max))
        confirmed |= number >= READINGS_MIN and _hours(point, sound[0][0]) >= weakest
    return WeighedDisk(cost, len(sound), span, wanted, confirmed, run[-1][0].at, run[0][0].at)


def _paying(disk: DiskAtRisk, points: Sequence[ForecastPoint]) -> list[tuple[ForecastPoint, DrainCost]]:
    """The forecasts in a row, newest first, by which a drain pays."""
    run: list[tuple[ForecastPoint, DrainCost]] = []
    for point in reversed(points):
        if point.chances is None:
            break
        told = weigh_drain(replace(disk, chances=point.chances))
        if not told.pays:
            break
        run.append((point, told))
    return run


def _pays(disk: DiskAtRisk, point: ForecastPoint) -> bool:
    return point.chances is not None and weigh_drain(replace(disk, chances=point.chances)).pays


def _limit(hours: float, hours_max: float) -> float:
    return max(CONFIRMATION_HOURS_MIN, min(hours, hours_max))


def _hours(first: ForecastPoint, last: ForecastPoint) -> float:
    return (last.at - first.at).total_seconds() / 3600


def is_sound(reading: Reading, before: Reading | None) -> bool:
    """Whether a reading may bear out another one.

    It may not where it could not be read, where a count fell, or changed its packing, or the firmware was changed since
    the reading before (then it is not known what the count says), or where every count that speaks against the disk
    stands at its type's limit.
    """
    if not isinstance(reading.seen, Smart):
        return False
    now = count_errors(reading.seen)
    if before is not None and isinstance(before.seen, Smart):
        then = count_errors(before.seen)
        if any(count < then.get(name, 0) for name, count in now.items()):
            return False
        if _packed(reading.seen) != _packed(before.seen):
            return False
        if before.seen.identity.firmware not in (None, reading.seen.identity.firmware):
            return False
    told = [count for count in now.values() if count]
    return not told or any(count not in LIMITS for count in told)


def _packed(seen: Smart) -> frozenset[int]:
    """Attributes whose count is packed with others."""
    return frozenset(
        number
        for number in ERROR_ATTRIBUTES
        if number in seen.attributes and seen.attributes[number].raw_packed is not None
    )
