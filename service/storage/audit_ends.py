"""The ends of the audit that the log has noted, and whether the store's audit still agrees with them.

The audit's chain lies in the store, and whoever writes there could make all of it anew. The log's marks
(service.storage.identity) carry number and hash of the audit's last line at their time. A line whose hash differs from
a noted one, or that is gone, was changed or removed after that time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from data.log.port import Log
from data.store.port import AuditChain
from data.wire import AuditEnd
from service.storage.identity import read_marks


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


def read_noted_ends(log: Log, store: str) -> tuple[AuditEnd, ...]:
    """The ends of the audit of the store with the identity `store` that the log has noted, each once, oldest first."""
    marks = read_marks(log)
    return tuple(
        dict.fromkeys(
            one.body.audit for one in marks if one.body.audit is not None and one.body.store == store
        )
    )


def find_contradiction(
    noted: Sequence[AuditEnd], chain: AuditChain, hashes: Mapping[int, bytes], dropped_before: datetime
) -> ContradictedEnd | None:
    """The first of the noted ends that the audit contradicts; None where it agrees with all.

    hashes: of the audit's lines, by number, as far as they are there. dropped_before: lines that are older may have
    been dropped by retention.
    """
    for end in noted:
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
