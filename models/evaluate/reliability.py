"""Calibration of probabilities: reliability table, ECE, expected over observed, Brier skill."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from predrain.models.evaluate.arrays import Floats, Ints

EDGES = (0.0, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Fixed bins of the reliability table, about half a decade each. The last one is closed at 1."""


@dataclass(frozen=True, slots=True)
class Bin:
    """One line of the reliability table."""

    low: float
    high: float
    rows: int
    mean_p: float
    observed: float


@dataclass(frozen=True, slots=True)
class Figures:
    """Calibration at one horizon. NaN if nothing failed or no row is known."""

    expected_over_observed: float
    brier_skill: float
    """1 - Brier / (base (1 - base)). Above 0 the forecast is better than the base rate for every drive."""
    ece: float
    """Sum over bins of n/N |mean p - observed|."""


class Reliability:
    """Sums for each bin and drive, so that a resample is one product with the drives' weights."""

    def __init__(self, p: Floats, label: Ints, drive: Ints, drives: int) -> None:
        """Sum up the rows. p, label (0 or 1), drive: (rows,)."""
        which = np.clip(np.searchsorted(EDGES, p, side="right") - 1, 0, len(EDGES) - 2)
        self._drives = drives
        cells, cell = np.unique(which * drives + drive, return_inverse=True)
        self._bin, self._drive = np.divmod(cells, max(drives, 1))
        self._sums = tuple(
            np.bincount(cell, values, minlength=len(cells)) for values in (np.ones(len(p)), p, label)
        )
        self._squares = np.bincount(drive, (p - label) ** 2, minlength=drives)

    def _sum_bins(self, weight: Ints | Floats) -> tuple[Floats, Floats, Floats]:
        """Compute the weighted rows, probabilities and failures of each bin. weight: (drives,)."""
        bins, of_cell = len(EDGES) - 1, weight[self._drive]
        rows, p, label = (
            np.bincount(self._bin, sums * of_cell, minlength=bins).astype(np.float64) for sums in self._sums
        )
        return rows, p, label

    def figures(self, weight: Ints) -> Figures:
        """Compute the figures. weight: (drives,) how often each drive counts."""
        rows, p, label = self._sum_bins(weight)
        total, failed = float(rows.sum()), float(label.sum())
        if total == 0 or failed == 0:
            return Figures(float("nan"), float("nan"), float("nan"))
        base = failed / total
        brier = float(self._squares @ weight) / total
        return Figures(
            float(p.sum()) / failed,
            1.0 - brier / (base * (1.0 - base)) if base < 1 else float("nan"),
            float(np.abs(p - label).sum()) / total,
        )

    def table(self) -> list[Bin]:
        """Return the bins that hold rows."""
        rows, p, label = self._sum_bins(np.ones(self._drives))
        return [
            Bin(EDGES[i], EDGES[i + 1], int(rows[i]), float(p[i] / rows[i]), float(label[i] / rows[i]))
            for i in np.flatnonzero(rows)
        ]
