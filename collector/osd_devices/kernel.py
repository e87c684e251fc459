"""I/O errors that the kernel logged, by disk: from /dev/kmsg, else from the systemd journal, else nothing is known."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from predrain.collector.osd_devices.blocks import blocks
from predrain.collector.osd_devices.journal import JournalUnreadable, KernelJournal
from predrain.collector.osd_devices.kmsg import Kmsg, Line
from predrain.collector.osd_devices.loglines import logged
from predrain.collector.osd_devices.tally import ErrorTally

MOST_DISKS = 4_096
"""Names that are counted; more than a kernel can have disks on one host."""


class KernelErrors:
    """Counts from its making on, one error for each failed request (the rule is in `tally`). Safe from several threads.

    root: the host's tree. journalctl: the command that reads the journal where /dev/kmsg may not be read.
    """

    def __init__(self, root: Path = Path("/"), *, journalctl: Sequence[str] = ("journalctl",)) -> None:
        self._root = root
        self._turn = threading.Lock()
        self._tallies: dict[str, ErrorTally] = {}
        self._answered: dict[str, int] = {}
        """Errors of a disk when it was asked for last."""
        self._fresh: set[str] = set()
        """Disks asked for since the journal was read last."""
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
        """Why counts are unknown or too low, and the cure."""
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
        """Errors of a disk since it was asked for last, the first time since the making of this. None: the log is not
        readable now; what it holds by then comes with a later answer.

        disk: kernel name of a whole disk (`sda`, `nvme0n1`).
        """
        with self._turn:
            # Each look into the journal is a process: one serves every disk of a round.
            if isinstance(self._source, Kmsg) or disk in self._fresh:
                self._look()
            self._fresh.add(disk)
            if self._why is not None:
                return None
            errors = self._tallies[disk].errors if disk in self._tallies else 0
            since, self._answered[disk] = errors - self._answered.get(disk, 0), errors
            return since

    def look(self) -> None:
        """Take in what /dev/kmsg holds, before it is overwritten; costs microseconds. Worth a call every minute, since
        a dying disk fills the kernel's log within that time."""
        with self._turn:
            if isinstance(self._source, Kmsg):
                self._look()

    def close(self) -> None:
        """Let the log go."""
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
        found = [(at, line) for at, message in lines if (line := logged(message)) is not None]
        if not found:
            return
        here = blocks(self._root)
        for at, line in found:
            for disk in line.disks(here):
                if disk in self._tallies or len(self._tallies) < MOST_DISKS:
                    self._tallies.setdefault(disk, ErrorTally()).hear(line.kind, at)
