"""What was asked that changes something, by whom, from where, and what came of it: lines of the store's journal.

Lines are only added, each chained to the line before (`data.store.chain`), and dropped when they are old
(`[retention] audit_days`). Requests without a good credential, and those that are beyond what their caller may send,
may be a flood: they are counted, and one line a caller tells of all those of a minute.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from predrain.data.clock import Clock
from predrain.data.drain import JournalEntry
from predrain.data.store.port import AUDIT, Store
from predrain.service.access.acts import canonical_json
from predrain.service.tokens import new_token

__all__ = ["AUDIT", "NOBODY", "THIS_MACHINE", "Audit", "Call", "audit_line"]

NOBODY = "nobody"
"""The caller of a request whose token or session let nobody in."""
THIS_MACHINE = "this machine"
"""Where a command was typed."""
MOST_ADDRESSES = 1_000
"""Addresses that are told apart within one minute."""
TOLD_ADDRESSES = 5
OTHERS = "others"


@dataclass(frozen=True, slots=True)
class Call:
    """One request that acts. `asked`: the canonical act; `answered`: the status, in words."""

    caller: str
    address: str
    asked: str
    answered: str


@dataclass(slots=True)
class _Refused:
    """Requests of one caller since `since` that were refused before they were carried out."""

    since: datetime
    addresses: Counter[str] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)


def audit_line(call: Call, at: datetime) -> JournalEntry:
    """`call` as the journal holds it. Two calls may be alike to the microsecond: a mark tells them apart."""
    seen = f"from {call.address}, call {new_token()[:8]}"
    return JournalEntry(AUDIT, at, seen, call.asked, call.answered, caller=call.caller)


class Audit:
    """Writes the record of one process; the journal has those of all that share the store. Thread-safe."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._lock = threading.Lock()
        self._refused: dict[str, _Refused] = {}

    def write(self, call: Call) -> None:
        """Keep `call`. Raises what the store raises."""
        self._store.add_journal([audit_line(call, self._clock.now())])

    def count_refused(self, address: str, request: str, caller: str = NOBODY) -> bool:
        """Count a request that came without a good credential, or that is beyond what its caller may send; whether it
        is the first of all since the last `flush`.

        request: method, route and status, of which there are few; never what the sender made up.
        """
        with self._lock:
            first = not self._refused
            found = self._refused.setdefault(caller, _Refused(self._clock.now()))
            known = address in found.addresses or len(found.addresses) < MOST_ADDRESSES
            found.addresses[address if known else OTHERS] += 1
            found.requests[request] += 1
            return first

    def flush(self) -> None:
        """Write what was counted, one line a caller. Raises what the store raises; then only the metric has it."""
        with self._lock:
            refused, self._refused = self._refused, {}
        for caller, found in refused.items():
            self.write(_counted(caller, found))


def _counted(caller: str, found: _Refused) -> Call:
    most = found.addresses.most_common(TOLD_ADDRESSES)
    told = ", ".join(f"{address} ({count})" for address, count in most)
    more = len(found.addresses) - len(most)
    source = f"{told} and {more} further addresses" if more > 0 else told
    count = found.requests.total()
    why = "without a good credential" if caller == NOBODY else "refused before anything was done"
    return Call(
        caller,
        f"{source}, since {found.since:%Y-%m-%d %H:%M:%S}Z",
        f"{count} request{'' if count == 1 else 's'} {why} {canonical_json(dict(found.requests))}",
        "refused",
    )
