"""/dev/kmsg: the kernel's log as it is written, from now on.

A record is `PRIORITY,SEQUENCE,MICROSECONDS,FLAGS[,..];MESSAGE`, followed by lines that begin with a blank. It is
readable for root, with CAP_SYSLOG, or for all users if `kernel.dmesg_restrict` is 0.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

Line = tuple[float, str]
"""(seconds of the kernel's clock, message)."""
LARGEST_RECORD = 16_384
"""Bytes; the kernel's limit is half of it."""
MOST_READS = 50_000
"""Records taken in one poll; further records wait for the next poll."""
_HEAD = re.compile(rb"(\d{1,6}),(\d{1,19}),(\d{1,19}),[^;\n]*;([^\n]*)")


class Kmsg:
    """An open log. Raises OSError when it is not readable."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError:
            os.close(self._file)
            raise
        self._cut = b""
        self._next: int | None = None
        self.lost = 0
        """Records that were overwritten before they were read."""

    def read(self) -> list[Line]:
        """Return the kernel's own lines since the last call; never waits. Raises OSError."""
        lines: list[Line] = []
        for _ in range(MOST_READS):
            try:
                read = os.read(self._file, LARGEST_RECORD)
            except BlockingIOError:
                break
            except BrokenPipeError:  # overwritten; the next read goes on at the oldest that is left
                self.lost += self._next is None
                continue
            if not read:
                break
            whole, _, self._cut = (self._cut + read).rpartition(b"\n")
            self._cut = self._cut[-LARGEST_RECORD:]
            for row in whole.split(b"\n"):
                if match := _HEAD.match(row):
                    priority, number, micros = int(match[1]), int(match[2]), int(match[3])
                    if self._next is not None and number > self._next:
                        self.lost += number - self._next
                    self._next = number + 1
                    if priority < 8:  # the facility is the kernel's: programs can write here, too
                        lines.append((micros / 1e6, match[4].decode(errors="replace")))
        return lines

    def close(self) -> None:
        """Close the log."""
        os.close(self._file)
