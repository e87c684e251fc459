"""The exact limits of a mean number of failures, by Garwood (1936)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

_TAIL: Final = 0.025


def compute_poisson_limits(count: int) -> tuple[float, float]:
    """Compute the 95 % limits of the mean of a Poisson distribution of which `count`, 0 or more, was observed.

    The results are `scipy.special.gammaincinv(count, 0.025)`, or 0 for a count of 0, and `gammaincinv(count + 1,
    0.975)`, to nine digits. SciPy is 40 MB of a package and only training needs it.
    """
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, count + 1)))])
    least = 0.0
    if count:
        least = _find_root(lambda mean: 1 - _TAIL - _sum_up_to(log_factorials[:-1], mean), 0.0, float(count))
    most = _find_root(lambda mean: _TAIL - _sum_up_to(log_factorials, mean), float(count), 2.0 * count + 10.0)
    return least, most


def _sum_up_to(log_factorials: NDArray[np.float64], mean: float) -> float:
    """Return the probability of fewer events than there are logarithms of factorials: 0!, 1! and so on."""
    return float(np.exp(np.arange(len(log_factorials)) * math.log(mean) - mean - log_factorials).sum())


def _find_root(rising: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of a rising function between `low` and `high`, by bisection to 60 binary digits."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return (low + high) / 2
