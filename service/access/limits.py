"""How much one caller, or one address, may ask: token buckets, as many as there are callers, but never too many."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

MOST = 10_000
"""Buckets that are remembered; the one used longest ago is forgotten first, and begins full again."""


class Buckets:
    """`rate` requests a second for each key, and `burst` of them at once."""

    def __init__(self, rate: float, burst: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._monotonic = rate, burst, monotonic
        self._lock = threading.Lock()
        self._filled: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        """Requests that were left, and when that was."""

    def take(self, key: Hashable) -> float:
        """0.0 when `key` may ask now; else the seconds until it may."""
        with self._lock:
            now = self._monotonic()
            left, when = self._filled.pop(key, (self._burst, now))
            left = min(self._burst, left + (now - when) * self._rate)
            wait = 0.0 if left >= 1.0 else (1.0 - left) / self._rate
            self._filled[key] = (left - 1.0 if not wait else left, now)
            if len(self._filled) > MOST:
                self._filled.popitem(last=False)
            return wait
