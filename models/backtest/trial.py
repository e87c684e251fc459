"""What is asked of a backtest, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Final

from predrain.models.backtest.fleets import BacktestFleet
from predrain.models.backtest.left_out import LeaveOut, LeftOutSet
from predrain.models.backtest.splits import Origin
from predrain.models.evaluate import Curves, Report, Truncation
from predrain.models.peers import DEFAULT

QUARTER: Final = 91
"""Days of own experience after which base rates of left-out drives are judged again."""


@dataclass(frozen=True, slots=True)
class BacktestPlan:
    """What is asked."""

    splits: tuple[date, ...] = ()
    origins: int = 1
    """How many splits to choose, where none are given."""
    judge_days: int = 60
    embargo: int = 0
    """Days between a split and the first landmark."""
    every: int = 7
    also_every: tuple[int, ...] = ()
    """Other distances in days between landmarks, judged over the same days with the same bundle."""
    peers: tuple[str, ...] = DEFAULT
    challengers: tuple[str, ...] = ()
    leave_out: tuple[LeaveOut, ...] = ()
    """Sets of drives that are judged by forecasters which have not learned from them."""
    resume: bool = False
    """Take up bundles that an earlier run with the same files and splits kept, instead of training them again."""
    resamples: int = 1000
    seed: int = 0
    """Of the resamples and of the peers that learn."""
    threads: int = 2


@dataclass(frozen=True, slots=True)
class LeftOutTrial:
    """One left-out set, or all of a kind together, judged on its own drives."""

    left_out: LeftOutSet
    learned_from: Mapping[str, int]
    """As of an origin; empty for all sets of a kind, which have a training each."""
    report: Report
    """Ours first; then the same recipe trained on all drives (not for an era, which nobody can have learned from)."""
    experienced: Report | None = None
    """Ours alone, on the days after QUARTER days, with base rates that learned from the set's drives in these days;
    None where the judged days are fewer."""


@dataclass(frozen=True, slots=True)
class OriginTrial:
    """One split: what was learned from, whether the forecast looked ahead, and how it was judged."""

    origin: Origin
    learned_from: Mapping[str, int]
    """Drives, deaths, landmarks and models that the bundle was made of."""
    thresholds: Mapping[str, float]
    """The bundle's `warning` and `bad`: chances to fail within 30 days."""
    looked_ahead: Truncation
    """The first landmark scored again from a history that ends on that day."""
    scores: Path
    """Ours."""
    report: Report | None
    """None where the only origin is the whole fleet's report, or nothing can be judged."""
    left_out: Sequence[LeftOutTrial] = ()
    """By kind: each set that the plan leaves out, then all of them together."""


@dataclass(frozen=True, slots=True)
class FleetTrial:
    """One fleet over all its origins."""

    fleet: BacktestFleet
    origins: Sequence[OriginTrial]
    report: Report
    """All landmarks of all origins together."""
    curves: Mapping[str, Curves]
    """Forecaster -> its curves over the same landmarks."""
    notes: Mapping[str, str]
    """Peer -> why it could not be computed, or what it had to do without."""
    also_every: Mapping[int, Report] = field(default_factory=dict)
    """Days between landmarks -> the same days judged at these, without life expectancies."""


@dataclass(frozen=True, slots=True)
class Backtest:
    """The outcome."""

    plan: BacktestPlan
    fleets: Sequence[FleetTrial]
    left_out: Sequence[str]
    """A sentence for each origin that could not be tried."""

    @property
    def looked_ahead(self) -> list[str]:
        """What changed when the future was cut off; empty when nothing did."""
        return [
            line
            for fleet in self.fleets
            for trial in fleet.origins
            for line in trial.looked_ahead.differences
        ]
