"""What a drain costs and what waiting costs, for one disk: a pure function of what is known of it.

The unit is a byte moved gently. A byte that must be rebuilt after a death costs `failure_cost` of them; a byte of a PG
that would then stop serving costs `loss_cost` more.

A drain is put off from day to day. Where it is put off for `HORIZON_DAYS`, it ends its own duration later, so the disk
has to live for both: `waiting` is the chance that it does not, times what its death costs. A large or slow disk
therefore starts earlier than a small one with the same forecast. `moving` is the bytes on it. What a death within the
drain still finds on the disk is rebuilt either way, and counts on neither side.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from predrain.data.refusal import Refusal

HORIZON_DAYS: Final = 30.0
"""How long a drain is thought to be put off: the longest chance that a forecast gives without its curve."""
DRAIN_DAYS_MAX: Final = 30.0
"""A drain that takes longer counts as this long: nobody has forecast what becomes of the disk after that."""
CONFIRMATION_SHARE: Final = 1 / 30
"""Evidence must last until waiting for it has cost this share of the move. At equal costs of moving and waiting that is
about a day, and less the stronger the evidence."""
CONFIRMATION_HOURS_MIN: Final = 5 / 60
"""However strong the evidence: a second reading is at least this much later than the first."""
COST_MAX: Final = 300.0
"""At this cost a drain pays from a chance of 0.33 % within 30 days on, three times that of an average disk. Above it
drains of healthy disks would pay."""
DEFAULT_FAILURE_COST: Final = 10.0
DEFAULT_LOSS_COST: Final = 100.0
"""Ten times a rebuilt byte: a PG below `min_size` blocks its clients until it is recovered, which is no matter of
bandwidth. With it a disk that alone keeps its PGs at `min_size` is worth a drain from 1 % within 30 days on: what a
forecast warns of."""


class BadCost(Refusal):
    """A cost that cannot be weighed."""


class BadChance(ValueError):
    """Chances that are no chances, or that fall with time."""


@dataclass(frozen=True, slots=True)
class DeathCosts:
    """What a death costs, in bytes moved gently for each byte. Raises BadCost."""

    failure_cost: float = DEFAULT_FAILURE_COST
    """A byte that is rebuilt."""
    loss_cost: float = DEFAULT_LOSS_COST
    """Beside it, a byte of a PG that would fall below `min_size`, or to it while another of its disks is failing."""

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
    """Chances to fail within 7, 14 and 30 days, each in [0, 1], none below the one before. Raises BadChance."""

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
        """A steady risk that comes to `within_30d`."""
        if not 0.0 <= within_30d <= 1.0:
            raise BadChance(f"a chance of {within_30d} within 30 days")
        alive = 1.0 - within_30d
        return cls(
            min(1.0 - alive ** (7 / 30), within_30d), min(1.0 - alive ** (14 / 30), within_30d), within_30d
        )

    def by(self, days: float) -> float:
        """The chance to fail within `days`: risk is steady between two given days, and after 30 the average before."""
        if days >= 30.0:
            return 1.0 - math.exp(-_risk(self.within_30d) * days / 30.0)
        return 1.0 - math.exp(-self._risk_by(days))

    def days_to(self, chance: float) -> float:
        """Days until the chance to fail has reached `chance` in [0, 1); infinite where it never does."""
        wanted, passed, risk = _risk(chance), 0.0, 0.0
        for day, upto in self._knots():
            if upto >= wanted:
                return passed + (day - passed) * ((wanted - risk) / (upto - risk) if upto > risk else 0.0)
            passed, risk = day, upto
        return 30.0 * wanted / risk if risk else math.inf

    def _knots(self) -> tuple[tuple[float, float], ...]:
        return (7.0, _risk(self.within_7d)), (14.0, _risk(self.within_14d)), (30.0, _risk(self.within_30d))

    def _risk_by(self, days: float) -> float:
        before, risk = 0.0, 0.0
        for day, upto in self._knots():
            if days <= day:
                return risk + (upto - risk) * (days - before) / (day - before)
            before, risk = day, upto
        return risk


def _risk(chance: float) -> float:
    """Cumulative risk of a chance; certainty is kept a billionth away, so that it can be counted with."""
    return -math.log1p(-min(chance, 1 - 1e-9))


@dataclass(frozen=True, slots=True)
class ShardGroup:
    """PGs with a member on the disk that the disk's death would leave with equally many members."""

    bytes: int
    """What the disk holds of them."""
    spare: int
    """Members above `min_size` that would be left; 0: exactly `min_size`, negative: they stop serving."""
    others_chance: float = 0.0
    """Chance in [0, 1] that another of their members fails before they are whole again."""

    @property
    def expected_lost_bytes(self) -> float:
        """Bytes of PGs that stop serving when the disk dies, times the chance that they do."""
        if self.spare < 0:
            return float(self.bytes)
        return self.bytes * self.others_chance if self.spare == 0 else 0.0


@dataclass(frozen=True, slots=True)
class DiskAtRisk:
    """One disk whose drain is weighed."""

    chances: ChanceCurve
    bytes: int
    """What is on it, and would be moved."""
    bytes_per_second: float
    """How fast a drain goes here: measured, and with closed hours counted."""
    costs: DeathCosts = DeathCosts()
    groups: tuple[ShardGroup, ...] = ()
    """What its death would leave of its PGs; empty where nothing is known of them."""
    bytes_ahead: int = 0
    """What drains before it in the budget have still to move: disks that fail in the same host, rack or cluster."""

    def __post_init__(self) -> None:
        if not self.bytes_per_second > 0 or not math.isfinite(self.bytes_per_second):
            raise ValueError(f"a pace of {self.bytes_per_second} bytes/s")
        if self.bytes < 0 or self.bytes_ahead < 0:
            raise ValueError("bytes below 0")

    @property
    def drain_days(self) -> float:
        """Days until a drain that is proposed now has ended: those before it in the budget, then its own bytes."""
        return (self.bytes_ahead + self.bytes) / self.bytes_per_second / 86_400


@dataclass(frozen=True, slots=True)
class DrainCost:
    """Whether a drain pays. Costs are in bytes moved gently."""

    bytes: int
    moving: float
    waiting: float
    """What it costs on average to put the drain off."""
    waiting_a_day: float
    """What the next day of waiting costs on average."""
    drain_days: float
    confirmation_hours: float
    """How long the evidence must last before a drain may start by itself; infinite where a drain does not pay."""

    @property
    def pays(self) -> bool:
        """Whether waiting costs more than moving."""
        return self.bytes > 0 and self.waiting > self.moving

    @property
    def sentence(self) -> str:
        """`Moving 14 TB now costs 14; waiting costs 31.`"""
        unit, name = _unit(self.bytes)
        waiting = self.waiting / unit
        told = f"{waiting:.0f}" if waiting >= 9.95 else f"{waiting:.1f}" if waiting >= 0.05 else "under 0.1"
        return f"Moving {_amount(self.bytes, unit)} {name} now costs {_amount(self.bytes, unit)}; waiting costs {told}."


def weigh_drain(disk: DiskAtRisk) -> DrainCost:
    """What moving the disk's bytes now costs, against putting it off. A function of its argument alone."""
    death = death_cost(disk.bytes, disk.costs, disk.groups)
    waiting = death * disk.chances.by(HORIZON_DAYS + min(disk.drain_days, DRAIN_DAYS_MAX))
    moving = float(disk.bytes)
    hours = math.inf
    if disk.bytes > 0 and waiting > moving:
        hours = 24 * disk.chances.days_to(CONFIRMATION_SHARE * moving / death)
    return DrainCost(
        disk.bytes,
        moving,
        waiting,
        death * disk.chances.by(1.0),
        disk.drain_days,
        max(CONFIRMATION_HOURS_MIN, hours),
    )


def death_cost(size: int, costs: DeathCosts, groups: Iterable[ShardGroup] = ()) -> float:
    """What the death of a disk with `size` bytes on it costs, in bytes moved gently."""
    lost = sum(group.expected_lost_bytes for group in groups)
    return costs.failure_cost * size + costs.loss_cost * min(lost, float(size))


def _unit(size: int) -> tuple[float, str]:
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if size >= 0.95 * unit:
            return unit, name
    return 1.0, "bytes"


def _amount(size: int, unit: float) -> str:
    amount = size / unit
    return f"{amount:.0f}" if amount >= 9.95 or unit == 1.0 else f"{amount:.1f}"
