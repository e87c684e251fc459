"""The plan of a backtest and its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Final

from predrain.models.evaluate import Curves, Report, Truncation
from predrain.models.lab.backtest.file_groups import BacktestFleet
from predrain.models.lab.backtest.left_out_drives import LeaveOut, LeftOutSet
from predrain.models.lab.backtest.rolling_origins import Origin
from predrain.models.lab.peers import DEFAULT

QUARTER: Final = 91
"""Days after which left-out drives are judged again, with base rates that learned from these days."""


@dataclass(frozen=True, slots=True)
class BacktestPlan:
    """The plan of a backtest."""

    splits: tuple[date, ...] = ()
    origins: int = 1
    """Number of splits to choose if none are given."""
    judge_days: int = 60
    embargo: int = 0
    """Days between a split and the first landmark."""
    every: int = 7
    also_every: tuple[int, ...] = ()
    """Other distances between landmarks, in days. They are judged over the same days with the same bundle."""
    peers: tuple[str, ...] = DEFAULT
    challengers: tuple[str, ...] = ()
    leave_out: tuple[LeaveOut, ...] = ()
    """Sets of drives that are judged by forecasters which have not learned from them."""
    resume: bool = False
    """Load bundles that an earlier run with the same files and splits kept, instead of training them again."""
    resamples: int = 1000
    seed: int = 0
    """Seed of the resamples and of the peers that learn."""
    threads: int = 2


@dataclass(frozen=True, slots=True)
class LeftOutTrial:
    """One left-out set, or all sets of a kind together, judged on its own drives."""

    left_out: LeftOutSet
    learned_from: Mapping[str, int]
    """The counts of an `OriginTrial`. Empty for all sets of a kind, because each set has its own training."""
    report: Report
    """The report of predrain first, then of the same recipe trained on all drives.

    The second is left out for an era, because no forecaster can have learned from it.
    """
    experienced: Report | None = None
    """The report of predrain alone on the days after the first QUARTER days, with base rates that learned
    from these days.

    None if fewer days are judged.
    """


@dataclass(frozen=True, slots=True)
class OriginTrial:
    """One split: the training data, whether the forecast looked ahead, and its report."""

    origin: Origin
    learned_from: Mapping[str, int]
    """Number of drives, deaths, landmarks and models that the bundle was trained on."""
    thresholds: Mapping[str, float]
    """The bundle's `warning` and `bad`: probabilities of failure within 30 days."""
    looked_ahead: Truncation
    """A comparison with the first landmark scored again from a history that ends on that day."""
    scores: Path
    """The file of predrain's scores."""
    report: Report | None
    """None if the report of the only origin is that of the whole fleet, or if nothing can be judged."""
    left_out: Sequence[LeftOutTrial] = ()
    """For each kind, the sets that the plan leaves out, then all of them together."""


@dataclass(frozen=True, slots=True)
class FleetTrial:
    """One fleet over all its origins."""

    fleet: BacktestFleet
    origins: Sequence[OriginTrial]
    report: Report
    """The report of all landmarks of all origins together."""
    curves: Mapping[str, Curves]
    """Forecaster -> its curves over the same landmarks."""
    notes: Mapping[str, str]
    """Peer -> why it could not be computed, or which inputs it lacked."""
    also_every: Mapping[int, Report] = field(default_factory=dict)
    """Days between landmarks -> the report of the same days at these landmarks, without life expectancies."""


@dataclass(frozen=True, slots=True)
class Backtest:
    """The outcome of a backtest."""

    plan: BacktestPlan
    fleets: Sequence[FleetTrial]
    left_out: Sequence[str]
    """A sentence for each origin that could not be tried."""

    @property
    def looked_ahead(self) -> list[str]:
        """List the scores that changed when the future was cut off; empty if none did."""
        return [
            line
            for fleet in self.fleets
            for trial in fleet.origins
            for line in trial.looked_ahead.differences
        ]
