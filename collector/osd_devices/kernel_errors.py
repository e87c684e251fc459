"""I/O errors that the kernel logged, by disk: from /dev/kmsg, else from the systemd journal, else unknown."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from predrain.collector.osd_devices.block_devices import read_block_devices
from predrain.collector.osd_devices.failed_requests import ErrorTally
from predrain.collector.osd_devices.kernel_log_lines import parse_kernel_message
from predrain.collector.osd_devices.kmsg import Kmsg, Line
from predrain.collector.osd_devices.systemd_journal import JournalUnreadable, KernelJournal

MOST_DISKS = 4_096
"""Limit of the names that are counted; more than a kernel can have disks on one host."""


class KernelErrors:
    """Counts one error for each failed request since it was made (the rule is in `tally`). Safe for several threads.

    `root` is the host's tree. `journalctl` is the command that reads the journal if /dev/kmsg is not readable.
    """

    def __init__(self, root: Path = Path("/"), *, journalctl: Sequence[str] = ("journalctl",)) -> None:
        self._root = root
        self._turn = threading.Lock()
        self._tallies: dict[str, ErrorTally] = {}
        self._answered: dict[str, int] = {}
        """Errors of each disk at its last call."""
        self._fresh: set[str] = set()
        """Disks that were asked for since the journal was last read."""
        self._why: str | None = None
        self._closed = ""
        self._source: Kmsg | KernelJournal
        try:
            self._source = Kmsg(root / "dev/kmsg")
        except OSError as error:
            self._closed = f"/dev/kmsg: {error.strerror}"
            elsewhere = () if root == Path("/") else (f"--root={root}",)
            self._source = KernelJournal((*journalctl, *elsewhere))
            self._look()

    @property
    def trouble(self) -> tuple[str, ...]:
        """The reason why counts are unknown or too low, and the cure."""
        with self._turn:
            if self._why is not None:
                return (
                    f"The kernel's log cannot be read ({self._why}), so that I/O errors in it are not known; add the "
                    "collector's user to the group systemd-journal, or give it CAP_SYSLOG.",
                )
            if self._source.lost:
                return (
                    "Lines of the kernel's log were gone before they were read, so that there may be more I/O errors "
                    "than were counted; enlarge the log (kernel parameter log_buf_len).",
                )
            return ()

    def since_last(self, disk: str) -> int | None:
        """Return the errors of a disk since the last call for it, at first since this object was made.

        Return None if the log is not readable now; its errors come with a later answer. `disk` is the kernel name of
        a whole disk (`sda`, `nvme0n1`).
        """
        with self._turn:
            # Each read of the journal starts a process, so one read serves every disk of a round.
            if isinstance(self._source, Kmsg) or disk in self._fresh:
                self._look()
            self._fresh.add(disk)
            if self._why is not None:
                return None
            errors = self._tallies[disk].errors if disk in self._tallies else 0
            since, self._answered[disk] = errors - self._answered.get(disk, 0), errors
            return since

    def poll_log(self) -> None:
        """Read /dev/kmsg before its lines are overwritten; this costs microseconds.

        Call it every minute, since a failing disk fills the kernel's log within that time.
        """
        with self._turn:
            if isinstance(self._source, Kmsg):
                self._look()

    def close(self) -> None:
        """Close the log."""
        self._source.close()

    def _look(self) -> None:
        self._fresh.clear()
        try:
            lines = self._source.read()
        except JournalUnreadable as error:
            self._why = f"{self._closed}; {error}"
            return
        except OSError as error:
            self._why = f"/dev/kmsg: {error.strerror}"
            return
        self._why = None
        self._count(lines)

    def _count(self, lines: Sequence[Line]) -> None:
        found = [(at, line) for at, message in lines if (line := parse_kernel_message(message)) is not None]
        if not found:
            return
        here = read_block_devices(self._root)
        for at, line in found:
            for disk in line.disks(here):
                if disk in self._tallies or len(self._tallies) < MOST_DISKS:
                    self._tallies.setdefault(disk, ErrorTally()).count_line(line.kind, at)
