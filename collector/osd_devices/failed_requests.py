"""Counts how many requests a disk failed, although the kernel logs several lines for each request.

The rule: a line of the block layer is one error. The lines ahead of it (sense data, an NVMe status, a timeout) belong
to the same error. Of such lines, the kind with the most lines gives the number of errors, and a line of the block
layer removes one line of each kind. ATA exceptions (one for each retry) and failed pages (one for each 4 KiB) count
as one error only if no other line came for the disk for a minute.

The kernel limits the rate of some of these lines, so the count is a lower bound. The count never falls, so the time
of the query does not matter.
"""

from __future__ import annotations

from collections import Counter

from predrain.collector.osd_devices.kernel_log_lines import LogLineKind

QUIET_SECONDS = 60
"""Seconds. A retry of an ATA command comes 3 s (a bad sector) to 30 s (a timeout) after the one before."""
MEMORY_SECONDS = 300
"""Seconds. An NVMe command that took too long is aborted after 30 s, and given up after 60 s and a reset of up to 2
min."""


class ErrorTally:
    """The errors of one disk."""

    def __init__(self) -> None:
        self.errors = 0
        self._ahead: Counter[LogLineKind] = Counter()
        """Lines whose request was not given up yet."""
        self._heard: float | None = None

    def count_line(self, kind: LogLineKind, at: float) -> None:
        """Count a line that was logged at `at` seconds of the kernel's own clock."""
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
