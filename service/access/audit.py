"""What was asked that changes something, by whom, from where, and what came of it: lines of the store's journal.

Lines are only added, and dropped when they are old (`[retention] audit_days`). What is refused for want of a
credential may be a flood: of each address ten such lines a minute are written, and the next one says how many were not.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass

from data.clock import Clock
from data.drain import JournalEntry
from data.store.port import Store
from service.access.limits import Buckets

AUDIT = "audit"
"""The journal's name, beside those of drains."""
NOBODY = "nobody"
"""The caller of a request whose token or session let nobody in."""
REFUSED_A_MINUTE = 10
MOST_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Call:
    """One request that acts. `asked`: method, path and what the body said; `answered`: the status, in words."""

    caller: str
    address: str
    asked: str
    answered: str
    mark: str
    """Told apart by it: two calls may be alike to the microsecond."""


class Audit:
    """Writes the record of one process; the journal has those of all that share the store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._strangers = Buckets(REFUSED_A_MINUTE / 60.0, REFUSED_A_MINUTE)
        self._lock = threading.Lock()
        self._unwritten: Counter[str] = Counter()

    def write(self, call: Call) -> None:
        """Keep `call`. Raises what the store raises."""
        answered = call.answered
        if call.caller == NOBODY:
            with self._lock:
                if self._strangers.take(call.address):
                    if len(self._unwritten) < MOST_COUNTED or call.address in self._unwritten:
                        self._unwritten[call.address] += 1
                    return
                more = self._unwritten.pop(call.address, 0)
            answered += f"; before it {more} more like it from there, not written" if more else ""
        seen = f"from {call.address}, call {call.mark}"
        self._store.add_journal(
            [JournalEntry(AUDIT, self._clock.now(), seen, call.asked, answered, caller=call.caller)]
        )
