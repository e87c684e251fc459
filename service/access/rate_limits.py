"""Rate limits per caller or address: token buckets, one per key, with a bound on their number."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

MOST = 10_000
"""The most buckets in memory. The least recently used one is dropped first; its key begins with a full bucket again."""


class TokenBuckets:
    """Token buckets: `rate` requests per second for each key, and `burst` of them at once."""

    def __init__(self, rate: float, burst: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._monotonic = rate, burst, monotonic
        self._lock = threading.Lock()
        self._filled: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        """The requests that were left to each key, and the time of that count."""

    def take_token(self, key: Hashable) -> float:
        """Return 0.0 if `key` may send a request now, else the seconds until it may."""
        with self._lock:
            now = self._monotonic()
            left, when = self._filled.pop(key, (self._burst, now))
            left = min(self._burst, left + (now - when) * self._rate)
            wait = 0.0 if left >= 1.0 else (1.0 - left) / self._rate
            self._filled[key] = (left - 1.0 if not wait else left, now)
            if len(self._filled) > MOST:
                self._filled.popitem(last=False)
            return wait
