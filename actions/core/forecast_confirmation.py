"""Counts the forecasts in a row by which a drain pays, and decides whether they justify an automatic drain.

One reading is never enough. A reading is confirmed by an earlier one of the same disk, taken by the same host
at least 5 min before. The weaker the evidence is, the longer it must have lasted (`actions.core.drain_cost`).
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
"""Values at which a counter of 16 to 64 bits stops; 2^32 - 2 is the largest value that is taken for a count.
"""


@dataclass(frozen=True, slots=True)
class ForecastPoint:
    """The forecast of one reading."""

    at: datetime
    host: HostName | None
    """The host that took the reading; None: the host is not known any more."""
    chances: ChanceCurve | None
    """The chances to fail; None: the forecast gave no chance."""
    sound: bool
    """True if the reading may confirm another one."""


@dataclass(frozen=True, slots=True)
class WeighedDisk:
    """The cost of a disk's drain by the disk's newest reading, and the evidence for it."""

    cost: DrainCost
    readings: int
    """Number of sound readings in a row from one host by which a drain pays; 0 if a drain does not pay."""
    span_hours: float
    """Hours from the first of these readings to the last."""
    wanted_hours: float
    """Hours that the readings must span; infinite if a drain does not pay."""
    confirmed: bool
    paying_since: datetime | None = None
    """Time of the first reading of the unbroken row up to the newest that says a drain pays; None: the newest
    does not.
    """
    last_paid_at: datetime | None = None
    """Time of the last reading that says a drain pays; None: no remembered reading does."""


def weigh_disk(disk: DiskAtRisk, points: Sequence[ForecastPoint], hours_max: float) -> WeighedDisk:
    """Weigh a disk and count the readings that confirm the result.

    disk: has the newest chances. points: its forecasts, oldest first. hours_max: no evidence must last longer
    than this.
    """
    cost = weigh_drain(disk)
    if not cost.pays:
        last = next((point.at for point in reversed(points) if _is_drain_paying(disk, point)), None)
        return WeighedDisk(cost, 0, 0.0, cost.confirmation_hours, False, None, last)
    run = _list_paying_forecasts(disk, points)
    wanted = _clamp_confirmation_hours(cost.confirmation_hours, hours_max)
    if not run or not points[-1].sound or points[-1].host is None:
        return WeighedDisk(
            cost, 0, 0.0, wanted, False, run[-1][0].at if run else None, points[-1].at if points else None
        )
    apart = next((n for n, (point, _) in enumerate(run) if point.host != points[-1].host), len(run))
    sound = [(point, told) for point, told in run[:apart] if point.sound]
    span = _compute_hours_between(sound[-1][0], sound[0][0])
    weakest, confirmed = 0.0, False
    for number, (point, told) in enumerate(sound, start=1):
        weakest = max(weakest, _clamp_confirmation_hours(told.confirmation_hours, hours_max))
        confirmed |= number >= READINGS_MIN and _compute_hours_between(point, sound[0][0]) >= weakest
    return WeighedDisk(cost, len(sound), span, wanted, confirmed, run[-1][0].at, run[0][0].at)


def _list_paying_forecasts(
    disk: DiskAtRisk, points: Sequence[ForecastPoint]
) -> list[tuple[ForecastPoint, DrainCost]]:
    """Return the forecasts in a row, newest first, by which a drain pays."""
    run: list[tuple[ForecastPoint, DrainCost]] = []
    for point in reversed(points):
        if point.chances is None:
            break
        told = weigh_drain(replace(disk, chances=point.chances))
        if not told.pays:
            break
        run.append((point, told))
    return run


def _is_drain_paying(disk: DiskAtRisk, point: ForecastPoint) -> bool:
    return point.chances is not None and weigh_drain(replace(disk, chances=point.chances)).pays


def _clamp_confirmation_hours(hours: float, hours_max: float) -> float:
    return max(CONFIRMATION_HOURS_MIN, min(hours, hours_max))


def _compute_hours_between(first: ForecastPoint, last: ForecastPoint) -> float:
    return (last.at - first.at).total_seconds() / 3600


def is_sound(reading: Reading, before: Reading | None) -> bool:
    """Return whether a reading may confirm another one.

    A reading is not sound in these cases:
    - The disk could not be read.
    - A count fell or changed its packing, or the firmware changed since the reading before. The meaning of
      the count is then unknown.
    - Every count that speaks against the disk is at the limit of its type.
    """
    if not isinstance(reading.seen, Smart):
        return False
    now = count_errors(reading.seen)
    if before is not None and isinstance(before.seen, Smart):
        then = count_errors(before.seen)
        if any(count < then.get(name, 0) for name, count in now.items()):
            return False
        if _list_packed_attributes(reading.seen) != _list_packed_attributes(before.seen):
            return False
        if before.seen.identity.firmware not in (None, reading.seen.identity.firmware):
            return False
    told = [count for count in now.values() if count]
    return not told or any(count not in LIMITS for count in told)


def _list_packed_attributes(seen: Smart) -> frozenset[int]:
    """Return the attributes whose count is packed with others."""
    return frozenset(
        number
        for number in ERROR_ATTRIBUTES
        if number in seen.attributes and seen.attributes[number].raw_packed is not None
    )
