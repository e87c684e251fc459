"""The ends of the audit that the log has noted, and whether the store's audit still agrees with them.

The audit's chain is in the store, and a process with write access to the store could compute all of it again. The
log's marks (service.storage.store_identity) carry number and hash of the audit's last line at their time. A line whose
hash differs from a noted one, or that is missing, was changed or removed after that time.

A restore replaces the audit by an older one, whose noted ends the log still has. The restored audit has a line
about the restore. By this line the ends that were noted between the backup and its restore need not agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from predrain.data.drain import JournalEntry
from predrain.data.log.log_port import Log
from predrain.data.store.store_port import AuditChain
from predrain.data.wire import AuditEnd
from predrain.service.storage.store_identity import read_marks

RESTORE: Final = "restore"
"""The name of a restore among the acts of the audit."""


class Contradiction(StrEnum):
    """The ways in which an audit contradicts a noted end.

    REWRITTEN: the line is different or missing. CUT: the audit ends before the line. DROPPED: the line is missing
    from the beginning, and is younger than lines that retention drops.
    """

    REWRITTEN = "rewritten"
    CUT = "cut"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class ContradictedEnd:
    """An end of the audit that the log has noted and the store's audit contradicts."""

    end: AuditEnd
    how: Contradiction


@dataclass(frozen=True, slots=True)
class NotedRestore:
    """A restore of the store, from its line in the audit.

    signed_by: the id of the key that signed the backup; None if a person trusted the backup without a signature.
    """

    at: datetime
    made_at: datetime
    by: str
    signed_by: str | None

    def explains(self, end: AuditEnd) -> bool:
        """Return whether the restored audit may lack this end: it was noted after the backup and before the
        restore.
        """
        return self.made_at <= end.noted_at <= self.at


def find_restores(lines: Iterable[JournalEntry]) -> tuple[NotedRestore, ...]:
    """Return the restores among lines of the audit, in their order."""
    found = []
    for line in lines:
        name, _, said = line.decided.partition(" ")
        if name != RESTORE:
            continue
        with suppress(msgspec.MsgspecError):
            told = msgspec.json.decode(said, type=_Restore)
            found.append(NotedRestore(line.at, told.made_at, line.caller, told.signed_by))
    return tuple(found)


class _Restore(msgspec.Struct, frozen=True):
    made_at: datetime
    signed_by: str | None = None


def read_noted_ends(log: Log, store: str) -> tuple[AuditEnd, ...]:
    """Return the audit ends that the log has noted for the store with the identity `store`, each once, oldest
    first.
    """
    marks = read_marks(log)
    return tuple(
        dict.fromkeys(
            one.body.audit for one in marks if one.body.audit is not None and one.body.store == store
        )
    )


def find_contradiction(
    noted: Sequence[AuditEnd],
    chain: AuditChain,
    hashes: Mapping[int, bytes],
    dropped_before: datetime,
    restores: Sequence[NotedRestore] = (),
) -> ContradictedEnd | None:
    """Return the first noted end that the audit contradicts and no restore explains, or None.

    hashes: of the audit's lines, by number, as far as they exist. dropped_before: retention may have dropped
    older lines.
    """
    for end in noted:
        if any(one.explains(end) for one in restores):
            continue
        if end.number > chain.ended:
            return ContradictedEnd(end, Contradiction.CUT)
        if end.number <= chain.anchored:
            if end.noted_at > dropped_before:
                return ContradictedEnd(end, Contradiction.DROPPED)
            continue
        found = hashes.get(end.number)
        if found is None or found.hex() != end.hash:
            return ContradictedEnd(end, Contradiction.REWRITTEN)
    return None
