"""The kernel's log out of the systemd journal, for users who may read the journal and not /dev/kmsg."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from predrain.collector.disks.process import Job, Programs
from predrain.collector.osd_devices.kmsg import Line

SECONDS = 10.0
"""How long journalctl may take; its files may lie on the disk that is dying."""
MOST_LINES = 2_000
"""Lines taken at one look; about 1 MB."""
_FIELDS = "MESSAGE,SYSLOG_FACILITY,_SOURCE_MONOTONIC_TIMESTAMP"


class JournalUnreadable(Exception):
    """The journal could not be read; its text says why in a few words."""


class _Entry(msgspec.Struct):
    cursor: str = msgspec.field(name="__CURSOR")
    kept: str = msgspec.field(name="__MONOTONIC_TIMESTAMP", default="0")
    logged: str = msgspec.field(name="_SOURCE_MONOTONIC_TIMESTAMP", default="")
    facility: str = msgspec.field(name="SYSLOG_FACILITY", default="0")
    message: str | list[int] | None = msgspec.field(name="MESSAGE", default=None)
    """A list of bytes when it is no text; None when it is very long."""


_ENTRY = msgspec.json.Decoder(_Entry)


class KernelJournal:
    """The journal from the time of the first successful read on. `command`: journalctl, with options that find it."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = (*command, "-k", "-o", "json", "-q", "--no-pager", f"--output-fields={_FIELDS}")
        self._cursor = ""
        self._programs = Programs(1)
        self.lost = 0
        """Looks that found more lines than they may take."""

    def read(self) -> list[Line]:
        """The kernel's own lines since the last call; the first call finds where the log ends and gives none. Raises
        Unreadable."""
        if not self._cursor:
            entries = self._entries("-n", "1")
            if not entries:  # there is a kernel, so there are lines: they are kept from us
                raise JournalUnreadable("journalctl shows no line of the kernel")
            self._cursor = entries[-1].cursor
            return []
        entries = self._entries("-n", str(MOST_LINES), f"--after-cursor={self._cursor}")
        self.lost += len(entries) >= MOST_LINES
        if entries:
            self._cursor = entries[-1].cursor
        return [
            (_seconds(entry.logged or entry.kept), entry.message)
            for entry in entries
            if isinstance(entry.message, str) and entry.facility == "0"
        ]

    def close(self) -> None:
        """Nothing is held open between two calls."""

    def _entries(self, *options: str) -> list[_Entry]:
        entries: list[_Entry] = []
        for row in self._run(options).splitlines():
            try:
                entries.append(_ENTRY.decode(row))
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
        return entries

    def _run(self, options: Sequence[str]) -> bytes:
        job = Job("journal", (*self._command, *options))
        [(_, ended)] = self._programs.run([job], SECONDS)
        if ended.why is not None or ended.status:
            raise JournalUnreadable(f"journalctl {ended.why or f'ended with {ended.status}'}")
        return ended.out


def _seconds(micros: str) -> float:
    return int(micros) / 1e6 if micros.isascii() and micros.isdigit() else 0.0
