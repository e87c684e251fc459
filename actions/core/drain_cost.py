"""The cost of a drain and the cost of waiting, for one disk, as a pure function of the known data.

The unit is a byte moved gently. A byte that must be rebuilt after a death costs `failure_cost` units. A byte
of a PG that would then stop serving costs `loss_cost` more.

A drain is put off from day to day. If it is put off for `HORIZON_DAYS`, it ends its own duration later, so
the disk has to live for both. `waiting` is the chance that it does not, times the cost of its death. A large
or slow disk therefore starts earlier than a small one with the same forecast. `moving` is the number of bytes
on the disk. The data still on the disk when it dies during the drain is rebuilt in both cases and counts on
neither side.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from predrain.data.refusal import Refusal

HORIZON_DAYS: Final = 30.0
"""The time for which a drain is assumed to be put off: the longest period for which every forecast gives a
chance.
"""
DRAIN_DAYS_MAX: Final = 30.0
"""The duration of a longer drain is counted as this long, because no forecast covers the time after it."""
CONFIRMATION_SHARE: Final = 1 / 30
"""Evidence must last until waiting for it has cost this share of the move. If moving and waiting cost the
same, that takes about a day; stronger evidence takes less time.
"""
CONFIRMATION_HOURS_MIN: Final = 5 / 60
"""A second reading is at least this much later than the first, however strong the evidence is."""
COST_MAX: Final = 300.0
"""The highest failure cost that may be set. With it a drain pays from a chance of 0.33 % within 30 days on,
three times that of an average disk. A higher cost would make drains of healthy disks pay.
"""
DEFAULT_FAILURE_COST: Final = 10.0
DEFAULT_LOSS_COST: Final = 100.0
"""Ten times the cost of a rebuilt byte: a PG below `min_size` blocks its clients until it is recovered, and
bandwidth does not help. With it, a disk that alone keeps its PGs at `min_size` is worth a drain from 1 %
within 30 days on, the chance at which a forecast warns.
"""


class BadCost(Refusal):
    """A cost outside the allowed range."""


class BadChance(ValueError):
    """Chances outside [0, 1], or chances that fall with time."""


@dataclass(frozen=True, slots=True)
class DeathCosts:
    """The costs of a death, in bytes moved gently for each byte. Raises BadCost."""

    failure_cost: float = DEFAULT_FAILURE_COST
    """Cost of a byte that is rebuilt."""
    loss_cost: float = DEFAULT_LOSS_COST
    """Added cost of a byte of a PG that would fall below `min_size`, or to it while another of its disks is
    failing.
    """

    def __post_init__(self) -> None:
        check_cost("failure_cost", self.failure_cost)
        check_cost("loss_cost", self.loss_cost)


def check_cost(name: str, cost: float) -> None:
    """Raise BadCost unless a cost is a number from 1 to `COST_MAX`."""
    if not math.isfinite(cost):
        raise BadCost(f"{name} is {cost}; set a number from 1 to {COST_MAX:g}, such as 10.")
    if cost < 1:
        raise BadCost(
            f"{name} is {cost:g}: a rebuilt byte would cost less than one that is moved gently, so that no drain pays. "
            f'Set 1 to {COST_MAX:g}; for forecasts without drains, set mode = "observe".'
        )
    if cost > COST_MAX:
        raise BadCost(
            f"{name} is {cost:g}: drains of disks with an ordinary chance to fail would pay. Set 1 to {COST_MAX:g}."
        )


@dataclass(frozen=True, slots=True)
class ChanceCurve:
    """Chances to fail within 7, 14 and 30 days, in [0, 1], never falling with time. Raises BadChance."""

    within_7d: float
    within_14d: float
    within_30d: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.within_7d <= self.within_14d <= self.within_30d <= 1.0:
            raise BadChance(
                f"chances of {self.within_7d}, {self.within_14d} and {self.within_30d} within 7, 14 and 30 days"
            )

    @classmethod
    def of_month(cls, within_30d: float) -> ChanceCurve:
        """Return the curve of a steady risk that reaches `within_30d`. Raises BadChance."""
        if not 0.0 <= within_30d <= 1.0:
            raise BadChance(f"a chance of {within_30d} within 30 days")
        alive = 1.0 - within_30d
        return cls(
            min(1.0 - alive ** (7 / 30), within_30d), min(1.0 - alive ** (14 / 30), within_30d), within_30d
        )

    def chance_within(self, days: float) -> float:
        """Return the chance to fail within `days`.

        The risk is steady between two given days. After day 30 it is the average of the 30 days.
        """
        if days >= 30.0:
            return 1.0 - math.exp(-_compute_cumulative_risk(self.within_30d) * days / 30.0)
        return 1.0 - math.exp(-self._risk_by(days))

    def days_to(self, chance: float) -> float:
        """Return the days until the chance to fail reaches `chance` in [0, 1); infinite if it never does."""
        wanted, passed, risk = _compute_cumulative_risk(chance), 0.0, 0.0
        for day, upto in self._knots():
            if upto >= wanted:
                return passed + (day - passed) * ((wanted - risk) / (upto - risk) if upto > risk else 0.0)
            passed, risk = day, upto
        return 30.0 * wanted / risk if risk else math.inf

    def _knots(self) -> tuple[tuple[float, float], ...]:
        return (
            (7.0, _compute_cumulative_risk(self.within_7d)),
            (14.0, _compute_cumulative_risk(self.within_14d)),
            (30.0, _compute_cumulative_risk(self.within_30d)),
        )

    def _risk_by(self, days: float) -> float:
        before, risk = 0.0, 0.0
        for day, upto in self._knots():
            if days <= day:
                return risk + (upto - risk) * (days - before) / (day - before)
            before, risk = day, upto
        return risk


def _compute_cumulative_risk(chance: float) -> float:
    """Return the cumulative risk of a chance. Certainty is lowered by 1e-9, so that the result is finite."""
    return -math.log1p(-min(chance, 1 - 1e-9))


@dataclass(frozen=True, slots=True)
class ShardGroup:
    """PGs with a member on the disk that would have equally many members after the disk's death."""

    bytes: int
    """Bytes of these PGs on the disk."""
    spare: int
    """Members above `min_size` that would be left. 0: exactly `min_size`; negative: the PGs stop serving."""
    others_chance: float = 0.0
    """Chance in [0, 1] that another of their members fails before they are whole again."""

    @property
    def expected_lost_bytes(self) -> float:
        """Return the bytes of PGs that stop serving when the disk dies, times the chance that they do."""
        if self.spare < 0:
            return float(self.bytes)
        return self.bytes * self.others_chance if self.spare == 0 else 0.0


@dataclass(frozen=True, slots=True)
class DiskAtRisk:
    """The input for weighing the drain of one disk."""

    chances: ChanceCurve
    bytes: int
    """Bytes on the disk, which a drain would move."""
    bytes_per_second: float
    """Measured rate of a drain on this cluster, averaged over the whole day including the hours without
    moves.
    """
    costs: DeathCosts = DeathCosts()
    groups: tuple[ShardGroup, ...] = ()
    """The PGs that its death would leave with few members; empty if no PG is known."""
    bytes_ahead: int = 0
    """Bytes that drains before it in the budget must still move (disks failing in the same host, rack or
    cluster).
    """

    def __post_init__(self) -> None:
        if not self.bytes_per_second > 0 or not math.isfinite(self.bytes_per_second):
            raise ValueError(f"a pace of {self.bytes_per_second} bytes/s")
        if self.bytes < 0 or self.bytes_ahead < 0:
            raise ValueError("bytes below 0")

    @property
    def drain_days(self) -> float:
        """Return the days until a drain proposed now has ended: first the drains before it, then its own
        bytes.
        """
        return (self.bytes_ahead + self.bytes) / self.bytes_per_second / 86_400


@dataclass(frozen=True, slots=True)
class DrainCost:
    """The cost of moving and the cost of waiting, in bytes moved gently."""

    bytes: int
    moving: float
    waiting: float
    """Mean cost of putting the drain off."""
    drain_days: float
    confirmation_hours: float
    """Hours that the evidence must last before a drain may start by itself; infinite if a drain does not pay.
    """

    @property
    def pays(self) -> bool:
        """Return whether waiting costs more than moving."""
        return self.bytes > 0 and self.waiting > self.moving

    @property
    def sentence(self) -> str:
        """Return the comparison as a sentence: `Moving 14 TiB now costs 14; waiting costs 32.`"""
        unit, name = _choose_byte_unit(self.bytes)
        waiting = self.waiting / unit
        told = f"{waiting:.0f}" if waiting >= 9.95 else f"{waiting:.1f}" if waiting >= 0.05 else "under 0.1"
        return (
            f"Moving {_format_amount(self.bytes, unit)} {name} now costs "
            f"{_format_amount(self.bytes, unit)}; waiting costs {told}."
        )


@lru_cache(maxsize=1 << 14)  # each poll weighs the same disks again
def weigh_drain(disk: DiskAtRisk) -> DrainCost:
    """Compare the cost of moving the disk's bytes now with the cost of putting it off. The function is pure."""
    death = death_cost(disk.bytes, disk.costs, disk.groups)
    waiting = death * disk.chances.chance_within(HORIZON_DAYS + min(disk.drain_days, DRAIN_DAYS_MAX))
    moving = float(disk.bytes)
    hours = math.inf
    if disk.bytes > 0 and waiting > moving:
        hours = 24 * disk.chances.days_to(CONFIRMATION_SHARE * moving / death)
    return DrainCost(
        disk.bytes,
        moving,
        waiting,
        disk.drain_days,
        max(CONFIRMATION_HOURS_MIN, hours),
    )


def death_cost(size: int, costs: DeathCosts, groups: Iterable[ShardGroup] = ()) -> float:
    """Return the cost of the death of a disk with `size` bytes on it, in bytes moved gently."""
    lost = sum(group.expected_lost_bytes for group in groups)
    return costs.failure_cost * size + costs.loss_cost * min(lost, float(size))


def _choose_byte_unit(size: int) -> tuple[float, str]:
    for unit, name in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB")):  # as the plan and Ceph print sizes
        if size >= 0.95 * unit:
            return unit, name
    return 1.0, "bytes"


def _format_amount(size: int, unit: float) -> str:
    amount = size / unit
    return f"{amount:.0f}" if amount >= 9.95 or unit == 1.0 else f"{amount:.1f}"
