"""How many requests a disk failed, out of the several lines that the kernel prints for each.

The rule: a line of the block layer is one error. What comes ahead of it (sense data, an NVMe status, a timeout) is the
same error: of such lines as many stand for an error each as the commonest kind has, and a line of the block layer
takes one of each kind away. ATA exceptions (one for each retry) and failed pages (one for each 4 KiB) are an error only
when nothing else was heard of the disk for a minute. The kernel limits the rate of some of these lines, so that the
count is what happened at least. It never falls, so that it does not matter when it is asked for.
"""

from __future__ import annotations

from collections import Counter

from predrain.collector.osd_devices.loglines import LogLineKind

QUIET_SECONDS = 60
"""A retry of an ATA command comes 3 s (a bad sector) to 30 s (a timeout) after the one before."""
MEMORY_SECONDS = 300
"""An NVMe command that took too long is aborted after 30 s, and given up after 60 s and a reset of up to 2 minutes."""


class ErrorTally:
    """One disk's errors."""

    def __init__(self) -> None:
        self.errors = 0
        self._ahead: Counter[LogLineKind] = Counter()
        """Lines whose request was not given up yet."""
        self._heard: float | None = None

    def hear(self, kind: LogLineKind, at: float) -> None:
        """A line, at so many seconds of the kernel's own clock."""
        silence = float("inf") if self._heard is None else at - self._heard
        self._heard = at
        if silence > MEMORY_SECONDS:
            self._ahead.clear()
        known = max(self._ahead.values(), default=0)
        if kind is LogLineKind.REQUEST:
            self._ahead = +Counter({of: count - 1 for of, count in self._ahead.items()})
            self.errors += known == 0
        elif kind is not LogLineKind.AROUND or silence > QUIET_SECONDS:
            self._ahead[kind] += 1
            self.errors += max(self._ahead.values()) - known
