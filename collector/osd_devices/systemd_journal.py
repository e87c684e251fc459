"""Reads the kernel's log from the systemd journal, for users who may read the journal and not /dev/kmsg."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from predrain.collector.disks.process import ProgramCall, Programs
from predrain.collector.osd_devices.kmsg import Line

SECONDS = 10.0
"""Longest time for journalctl, in seconds; its files may lie on the disk that is failing."""
MOST_LINES = 2_000
"""Lines taken in one poll; about 1 MB."""
_FIELDS = "MESSAGE,SYSLOG_FACILITY,_SOURCE_MONOTONIC_TIMESTAMP"


class JournalUnreadable(Exception):
    """The journal could not be read; the text says why in a few words."""


class _Entry(msgspec.Struct):
    cursor: str = msgspec.field(name="__CURSOR")
    kept: str = msgspec.field(name="__MONOTONIC_TIMESTAMP", default="0")
    logged: str = msgspec.field(name="_SOURCE_MONOTONIC_TIMESTAMP", default="")
    facility: str = msgspec.field(name="SYSLOG_FACILITY", default="0")
    message: str | list[int] | None = msgspec.field(name="MESSAGE", default=None)
    """A list of bytes if the message is no text; None if it is very long."""


_ENTRY = msgspec.json.Decoder(_Entry)


class KernelJournal:
    """The journal since the first successful read. `command` is journalctl, with the options that
    locate the journal.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = (*command, "-k", "-o", "json", "-q", "--no-pager", f"--output-fields={_FIELDS}")
        self._cursor = ""
        self._programs = Programs(1)
        self.lost = 0
        """Number of polls that found more lines than the limit."""

    def read(self) -> list[Line]:
        """Return the kernel's own lines since the last call. The first call only finds the end of the log.

        Raises JournalUnreadable.
        """
        if not self._cursor:
            entries = self._entries("-n", "1")
            if not entries:  # a running kernel has logged lines, so they are hidden from this user
                raise JournalUnreadable("journalctl shows no line of the kernel")
            self._cursor = entries[-1].cursor
            return []
        entries = self._entries("-n", str(MOST_LINES), f"--after-cursor={self._cursor}")
        self.lost += len(entries) >= MOST_LINES
        if entries:
            self._cursor = entries[-1].cursor
        return [
            (_parse_microseconds(entry.logged or entry.kept), entry.message)
            for entry in entries
            if isinstance(entry.message, str) and entry.facility == "0"
        ]

    def close(self) -> None:
        """Do nothing: nothing is held open between two calls."""

    def _entries(self, *options: str) -> list[_Entry]:
        entries: list[_Entry] = []
        for row in self._run(options).splitlines():
            try:
                entries.append(_ENTRY.decode(row))
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
        return entries

    def _run(self, options: Sequence[str]) -> bytes:
        job = ProgramCall("journal", (*self._command, *options))
        [(_, ended)] = self._programs.run([job], SECONDS)
        if ended.why is not None or ended.status:
            raise JournalUnreadable(f"journalctl {ended.why or f'ended with {ended.status}'}")
        return ended.out


def _parse_microseconds(micros: str) -> float:
    return int(micros) / 1e6 if micros.isascii() and micros.isdigit() else 0.0
