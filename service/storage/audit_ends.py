"""The ends of the audit that the log has noted, and whether the store's audit still agrees with them.

A restore puts an older audit in place of the one whose ends the log has noted since. The restored audit has a line of
it, which tells which ends need not agree: those that were noted between the making of the backup and its restore.

The audit's chain lies in the store, and whoever writes there could make all of it anew. The log's marks
(service.storage.identity) carry number and hash of the audit's last line at their time. A line whose hash differs from
a noted one, or that is gone, was changed or removed after that time.
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
from predrain.data.log.port import Log
from predrain.data.store.port import AuditChain
from predrain.data.wire import AuditEnd
from predrain.service.storage.identity import read_marks

RESTORE: Final = "restore"
"""The name of a restore among the acts of the audit."""


class Contradiction(StrEnum):
    """REWRITTEN: the line is another one, or none. CUT: the audit ends before the line. DROPPED: the line is gone from
    the beginning, and is younger than lines that retention drops.
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
    """A restore of the store, as its line in the audit has it. signed_by: the id of the key that vouched for the
    backup; None where a person trusted it without one.
    """

    at: datetime
    made_at: datetime
    by: str
    signed_by: str | None

    def explains(self, end: AuditEnd) -> bool:
        """Whether the restored audit need not have this end: it was noted after the backup and before its restore."""
        return self.made_at <= end.noted_at <= self.at


def find_restores(lines: Iterable[JournalEntry]) -> tuple[NotedRestore, ...]:
    """The restores among lines of the audit, in their order."""
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
    """The ends of the audit of the store with the identity `store` that the log has noted, each once, oldest first."""
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
    """The first of the noted ends that the audit contradicts and no restore explains; None where there is none.

    hashes: of the audit's lines, by number, as far as they are there. dropped_before: lines that are older may have
    been dropped by retention.
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
