"""Judge the life expectancies of one forecast: coverage of p10, p50 and p10-p90, and concordance.

Each figure is computed twice: inside the period that is judged, and with the drives' known ends years later
(`read_ends`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from predrain.data.refusal import Refusal
from predrain.models.evaluate.arrays import Bools, Ints
from predrain.models.evaluate.censoring_weights import (
    CensoredShare,
    FollowUp,
    IpcwShare,
    RemovalCurve,
    estimate_concordance,
    last_judged_day,
)
from predrain.models.evaluate.cohort import AlignedScores, Cohort
from predrain.models.evaluate.drive_outcomes import NEVER, FailureTruth, to_epoch_days

AIMS = {"life_below_p10": 0.10, "life_below_p50": 0.50, "life_p10_to_p90": 0.80}
EVENTS = ("failed", "removed", "in service")


class UnreadableEnds(Refusal):
    """The file of known ends is missing, is no parquet, lacks a column or holds an unknown event."""


@dataclass(frozen=True, slots=True)
class FollowedEnds:
    """The last day of drives followed for years, and how each drive ended."""

    day: dict[str, int]
    event: dict[str, str]
    limit: int
    """Last day of the follow-up."""


def read_ends(path: Path) -> FollowedEnds:
    """Read a parquet of `serial_number, end_date, event` (failed, removed, in service). Raises UnreadableEnds."""
    try:
        table = pq.read_table(path, columns=["serial_number", "end_date", "event"])
        serials = table["serial_number"].cast(pa.string()).to_pylist()
        event = table["event"].cast(pa.string()).to_pylist()
        end = to_epoch_days(table["end_date"])
    except (OSError, pa.ArrowException) as error:
        raise UnreadableEnds(f"{path} cannot be read ({str(error).splitlines()[0]}); it needs the columns "
                             "serial_number, end_date and event.") from None  # fmt: skip
    unknown = set(event) - set(EVENTS)
    if unknown:
        raise UnreadableEnds(
            f"{path} has the event {sorted(map(str, unknown))[0]!r}; known are {', '.join(EVENTS)}."
        )
    last = dict(zip(serials, end.tolist(), strict=True))
    return FollowedEnds(last, dict(zip(serials, event, strict=True)), int(end.max(initial=0)))


def follow_to_data_end(cohort: Cohort) -> tuple[FollowUp, Ints]:
    """Follow each row to the end of the data. Return the outcomes, and the numbers of these rows in the cohort (all
    of them)."""
    last, failed = cohort.last[cohort.drive], (cohort.death != NEVER)[cohort.drive]
    removed = ~failed & (last < cohort.end)
    follow = FollowUp(cohort.drive, last - cohort.landmark, failed, removed, cohort.end - cohort.landmark)
    return follow, np.arange(len(cohort.drive))


def for_years(cohort: Cohort, truth: FailureTruth, ends: FollowedEnds) -> tuple[FollowUp, Ints]:
    """Follow each row whose drive has a known end after the landmark. Return the outcomes and the numbers of these
    rows."""
    serial = truth.serials[cohort.truth_drive]
    last = np.array([ends.day.get(str(name), -1) for name in serial], dtype=np.int64)
    event = np.array([ends.event.get(str(name), "") for name in serial], dtype=object)
    rows = np.flatnonzero(last[cohort.drive] > cohort.landmark)
    drive, landmark = cohort.drive[rows], cohort.landmark[rows]
    failed: Bools = (event == "failed")[drive]
    removed: Bools = (event == "removed")[drive]
    return FollowUp(drive, last[drive] - landmark, failed, removed, ends.limit - landmark), rows


class LifeJudge:
    """Coverage and concordance of one forecast over one follow-up."""

    def __init__(self, follow: FollowUp, rows: Ints, aligned: AlignedScores, suffix: str) -> None:
        """Prepare the figures. rows: the rows of the cohort that `follow` describes. suffix: the end of each
        figure's name."""
        self._suffix = suffix
        self._curve = RemovalCurve(follow)
        first = np.flatnonzero(np.diff(follow.drive, prepend=-1))
        self._first = FollowUp(
            follow.drive[first],
            follow.days[first],
            follow.failed[first],
            follow.removed[first],
            follow.limit[first],
        )
        self.shares: dict[str, IpcwShare] = {}
        self._risk = {
            "concordance_p_fail_30d": np.nan_to_num(aligned.columns["p_fail_30d"][rows][first], nan=-1.0)
        }
        if {"life_p10_days", "life_p50_days", "life_p90_days"} <= set(aligned.columns):
            p10, p50, p90 = (aligned.columns[f"life_p{share}_days"][rows] for share in (10, 50, 90))
            day = last_judged_day(
                self._curve.compute_removal_curve(
                    np.ones(int(follow.drive.max(initial=0)) + 1, dtype=np.int64)
                )
            )
            from_now = np.zeros(len(rows))
            self.shares = {
                "life_below_p10": IpcwShare(follow, from_now, p10, day),
                "life_below_p50": IpcwShare(follow, from_now, p50, day),
                "life_p10_to_p90": IpcwShare(follow, p10, p90, day),
            }
            self._risk["concordance_life_p50"] = -np.nan_to_num(p50[first], nan=1e6)

    def measure(self, weight: Ints) -> dict[str, float]:
        """Estimate the coverage under these weights. weight: (drives,)."""
        if not self.shares:
            return {}
        g = self._curve.compute_removal_curve(weight)
        return {f"{name}_{self._suffix}": share.estimate(g, weight) for name, share in self.shares.items()}

    def concordances(self, weights: Iterable[Ints]) -> dict[str, list[float]]:
        """Estimate Uno's C under each of the weights, at each drive's first landmark."""
        g = RemovalCurve(self._first).compute_removal_curve(
            np.ones(int(self._first.drive.max(initial=0)) + 1, dtype=np.int64)
        )
        drawn = list(weights)
        return {
            f"{name}_{self._suffix}": estimate_concordance(self._first, risk, drawn, g)
            for name, risk in self._risk.items()
        }

    def rests_on(self, figures: dict[str, float]) -> dict[str, CensoredShare]:
        """Return each coverage with the numbers of its rows, drives and events."""
        return {
            f"{name}_{self._suffix}": share.share(figures[f"{name}_{self._suffix}"])
            for name, share in self.shares.items()
        }
