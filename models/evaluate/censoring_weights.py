"""Measures of life expectancies: inverse-probability-of-censoring weights (IPCW) and Uno's concordance.

Remaining life T is censored by removal or by the end of the follow-up. G(t-) is the Kaplan-Meier curve of removal
in days since the landmark, failures first among ties (Robins and Rotnitzky 1992). A share P(a <= T <= b) is the
mean of 1{failed, a <= T <= b} / G(T-) over certain rows: those whose b lies inside the follow-up and where G(b-) >=
0.05. The end of the data cannot censor these rows, so G describes removal alone. Concordance: Uno et al. 2011,
weights G^-2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np

from predrain.models.evaluate.arrays import Bools, Floats, Ints

LEAST_G = 0.05
EVIDENCE = 30
"""Number of failing drives below which a figure is no evidence."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """The outcome of each row (n): days from its landmark to its drive's end, and how the drive ended."""

    drive: Ints
    days: Ints
    failed: Bools
    removed: Bools
    limit: Ints
    """(n,) days from the landmark to the end of the data, which is how far this row could be followed."""


def kaplan_meier(events: Floats, leaving: Floats, first: Floats) -> Floats:
    """Compute survival just before each day: element t is the product over s < t of (1 - events(s) / at risk(s)).

    events, leaving, first: (days,) weights on day 0, 1, and so on. leaving: all that end on the day. first: those
    that leave before the events of their day are counted (failures, when removal is the event). Return (days + 1,).
    """
    at_risk = np.cumsum(leaving[::-1])[::-1] - first
    steps = np.where(at_risk > 0, 1.0 - events / np.maximum(at_risk, 1e-300), 1.0)
    return np.concatenate([[1.0], np.cumprod(steps)])


@dataclass(frozen=True, slots=True)
class CensoredShare:
    """An IPCW estimate of P(low <= T <= high) and the numbers on which it is based."""

    estimate: float
    rows: int
    drives: int
    events: int
    """Number of distinct drives seen to fail by `high`."""

    @property
    def is_evidence(self) -> bool:
        """True if at least 30 drives failed within the time that is judged."""
        return self.events >= EVIDENCE


class IpcwShare:
    """Estimates P(low <= T <= high) over the rows whose `high` can be judged."""

    def __init__(self, follow: FollowUp, low: Floats, high: Floats, last_day: float) -> None:
        """Select the rows. low, high: (n,) days, NaN where not given. last_day: the last t with G(t-) >= 0.05."""
        judged = ~np.isnan(high) & ~np.isnan(low) & (high <= np.minimum(follow.limit, last_day))
        hit = judged & follow.failed & (follow.days >= low) & (follow.days <= high)
        seen = judged & follow.failed & (follow.days <= high)
        self._size = int(follow.drive.max(initial=-1)) + 1
        self._judged = np.bincount(follow.drive[judged], minlength=self._size)
        self._hit_drive, self._hit_days = follow.drive[hit], follow.days[hit]
        self.rows = int(judged.sum())
        self.drives = int(np.count_nonzero(self._judged))
        self.events = len(np.unique(follow.drive[seen]))

    def estimate(self, g: Floats, weight: Ints) -> float:
        """Estimate the share; NaN when nothing can be judged. g: G(t-) by day. weight: (drives,) how often each
        drive counts."""
        total = float(self._judged @ weight[: self._size])
        if total == 0:
            return float("nan")
        at = np.minimum(self._hit_days, len(g) - 1)
        return float((weight[self._hit_drive] / np.maximum(g[at], LEAST_G)).sum() / total)

    def share(self, estimate: float) -> CensoredShare:
        """Return an estimate with the numbers on which it is based."""
        return CensoredShare(estimate, self.rows, self.drives, self.events)


class RemovalCurve:
    """Computes G(t-) under the weights of each resample from one histogram."""

    def __init__(self, follow: FollowUp) -> None:
        self._drive = follow.drive
        self._code = follow.days * 3 + np.where(follow.failed, 0, np.where(follow.removed, 1, 2))
        self._size = (int(follow.days.max(initial=0)) + 1) * 3

    def compute_removal_curve(self, weight: Ints) -> Floats:
        """Compute G(t-) at t = 0, 1, and so on. weight: (drives,)."""
        drawn = weight[self._drive].astype(np.float64)
        counted: Floats = np.bincount(self._code, drawn, minlength=self._size).astype(np.float64)
        counts = counted.reshape(-1, 3)
        return kaplan_meier(counts[:, 1], counts.sum(axis=1), counts[:, 0])


def last_judged_day(g: Floats) -> float:
    """Return the last t with G(t-) >= 0.05 (G never rises)."""
    return float(np.flatnonzero(g >= LEAST_G)[-1])


def estimate_concordance(
    follow: FollowUp, risk: Floats, weights: Iterable[Ints], g: Floats, batch: int = 250
) -> list[float]:
    """Estimate Uno's C under each of `weights`, with one row for each drive. Ties in risk count half.

    follow: one row for each drive judged. risk: (n,) a higher risk fails sooner, no NaN. G is that of the sample
    itself under all weights. Return one figure for each weight, NaN if no pair can be compared.
    """
    event = np.flatnonzero(follow.failed & (follow.days <= last_judged_day(g)))
    ipcw = g[np.minimum(follow.days, len(g) - 1)] ** -2.0
    alive_then = np.where(follow.failed, follow.days, follow.days + 0.5)
    source, found = iter(weights), list[float]()
    while drawn := list(islice(source, batch)):
        row_weight = np.stack([weight[follow.drive] for weight in drawn], axis=1).astype(np.float32)
        better, compared = np.zeros(len(drawn)), np.zeros(len(drawn))
        for part in np.array_split(event, len(event) // 64 + 1):
            later = alive_then[None, :] > follow.days[part][:, None]
            own = row_weight[part] * ipcw[part][:, None]
            ordered = later * (np.sign(risk[part][:, None] - risk[None, :]) + 1.0) / 2.0
            better += (own * (ordered.astype(np.float32) @ row_weight)).sum(axis=0)
            compared += (own * (later.astype(np.float32) @ row_weight)).sum(axis=0)
        found += [float(b / c) if c else float("nan") for b, c in zip(better, compared, strict=True)]
    return found
