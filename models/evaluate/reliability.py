"""Calibration of probabilities: reliability table, ECE, expected over observed, Brier skill."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

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
        shape = (len(EDGES) - 1, drives)
        self._rows = sparse.csr_array((np.ones(len(p)), (which, drive)), shape=shape)
        self._p = sparse.csr_array((p, (which, drive)), shape=shape)
        self._label = sparse.csr_array((label.astype(float), (which, drive)), shape=shape)
        self._squares = np.bincount(drive, (p - label) ** 2, minlength=drives)
        for matrix in (self._rows, self._p, self._label):
            matrix.sum_duplicates()

    def figures(self, weight: Ints) -> Figures:
        """Compute the figures. weight: (drives,) how often each drive counts."""
        rows, p, label = self._rows @ weight, self._p @ weight, self._label @ weight
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
        weight = np.ones(self._drives)
        rows, p, label = self._rows @ weight, self._p @ weight, self._label @ weight
        return [
            Bin(EDGES[i], EDGES[i + 1], int(rows[i]), float(p[i] / rows[i]), float(label[i] / rows[i]))
            for i in np.flatnonzero(rows)
        ]
