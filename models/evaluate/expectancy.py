"""Life expectancies of one forecast before the judge: coverage of p10, p50 and p10-p90, and concordance.

Twice: inside the period that is judged, and with the drives' known ends years later (`read_ends`).
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
from predrain.models.evaluate.cohort import Aligned, Cohort
from predrain.models.evaluate.life import (
    FollowUp,
    IpcwShare,
    RemovalCurve,
    Share,
    concordance,
    last_judged_day,
)
from predrain.models.evaluate.truth import NEVER, FailureTruth, days

AIMS = {"life_below_p10": 0.10, "life_below_p50": 0.50, "life_p10_to_p90": 0.80}
EVENTS = ("failed", "removed", "in service")


class UnreadableEnds(Refusal):
    """The file of known ends is missing, is no parquet, lacks a column or holds an unknown event."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Last day of drives followed for years and how it came."""

    day: dict[str, int]
    event: dict[str, str]
    limit: int
    """Last day of the follow-up."""


def read_ends(path: Path) -> Ends:
    """Parquet of `serial_number, end_date, event` (failed, removed, in service). Raises UnreadableEnds."""
    try:
        table = pq.read_table(path, columns=["serial_number", "end_date", "event"])
        serials = table["serial_number"].cast(pa.string()).to_pylist()
        event = table["event"].cast(pa.string()).to_pylist()
        end = days(table["end_date"])
    except (OSError, pa.ArrowException) as error:
        raise UnreadableEnds(f"{path} cannot be read ({str(error).splitlines()[0]}); it needs the columns "
                             "serial_number, end_date and event.") from None  # fmt: skip
    unknown = set(event) - set(EVENTS)
    if unknown:
        raise UnreadableEnds(
            f"{path} has the event {sorted(map(str, unknown))[0]!r}; known are {', '.join(EVENTS)}."
        )
    last = dict(zip(serials, end.tolist(), strict=True))
    return Ends(last, dict(zip(serials, event, strict=True)), int(end.max(initial=0)))


def within(cohort: Cohort) -> tuple[FollowUp, Ints]:
    """What became of each row by the end of the data; and which rows of the cohort these are (all)."""
    last, failed = cohort.last[cohort.drive], (cohort.death != NEVER)[cohort.drive]
    removed = ~failed & (last < cohort.end)
    follow = FollowUp(cohort.drive, last - cohort.landmark, failed, removed, cohort.end - cohort.landmark)
    return follow, np.arange(len(cohort.drive))


def for_years(cohort: Cohort, truth: FailureTruth, ends: Ends) -> tuple[FollowUp, Ints]:
    """What became of each row whose drive has a known end after the landmark; and which rows these are."""
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

    def __init__(self, follow: FollowUp, rows: Ints, aligned: Aligned, suffix: str) -> None:
        """rows: which rows of the cohort `follow` speaks of. suffix: ends the name of each figure."""
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
                self._curve.g(np.ones(int(follow.drive.max(initial=0)) + 1, dtype=np.int64))
            )
            from_now = np.zeros(len(rows))
            self.shares = {
                "life_below_p10": IpcwShare(follow, from_now, p10, day),
                "life_below_p50": IpcwShare(follow, from_now, p50, day),
                "life_p10_to_p90": IpcwShare(follow, p10, p90, day),
            }
            self._risk["concordance_life_p50"] = -np.nan_to_num(p50[first], nan=1e6)

    def measure(self, weight: Ints) -> dict[str, float]:
        """Coverage under these weights. weight: (drives,)."""
        if not self.shares:
            return {}
        g = self._curve.g(weight)
        return {f"{name}_{self._suffix}": share.estimate(g, weight) for name, share in self.shares.items()}

    def concordances(self, weights: Iterable[Ints]) -> dict[str, list[float]]:
        """Uno's C under each of the weights, at each drive's first landmark."""
        g = RemovalCurve(self._first).g(np.ones(int(self._first.drive.max(initial=0)) + 1, dtype=np.int64))
        drawn = list(weights)
        return {
            f"{name}_{self._suffix}": concordance(self._first, risk, drawn, g)
            for name, risk in self._risk.items()
        }

    def rests_on(self, figures: dict[str, float]) -> dict[str, Share]:
        """Each coverage with its rows, drives and events."""
        return {
            f"{name}_{self._suffix}": share.share(figures[f"{name}_{self._suffix}"])
            for name, share in self.shares.items()
        }
