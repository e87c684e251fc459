"""The audit: each request that changes something, its caller, its address and its answer, in the store's journal.

Lines are only appended. Each is chained to the line before (`data.store.audit_chain`), and old lines are dropped
(`[retention] audit_days`). Requests without a valid credential, and requests over their caller's limits, may be a
flood: they are counted, and one line per caller summarizes those of a minute.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from predrain.data.clock import Clock
from predrain.data.drain import JournalEntry
from predrain.data.store.store_port import AUDIT, Store
from predrain.service.access.canonical_requests import canonical_json
from predrain.service.access.tokens import new_token

__all__ = ["AUDIT", "NOBODY", "THIS_MACHINE", "Audit", "AuditedCall", "audit_line", "was_refused"]

NOBODY = "nobody"
"""The caller in the audit for a request without a valid token or session."""
THIS_MACHINE = "this machine"
"""The address in the audit for a command that was typed on the machine of the service."""
MOST_ADDRESSES = 1_000
"""The most addresses that are counted separately within one minute."""
TOLD_ADDRESSES = 5
OTHERS = "others"
REFUSED = "refused"
"""The answer in the audit to requests that were counted and not carried out."""
_ERROR = 400
"""The lowest status of HTTP of a request that was not carried out."""


@dataclass(frozen=True, slots=True)
class AuditedCall:
    """One request that changes something. `asked`: the canonical act; `answered`: the status, in words."""

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


def audit_line(call: AuditedCall, at: datetime) -> JournalEntry:
    """Return `call` as a journal entry. A random mark distinguishes two calls that are alike to the microsecond."""
    seen = f"from {call.address}, call {new_token()[:8]}"
    return JournalEntry(AUDIT, at, seen, call.asked, call.answered, caller=call.caller)


def was_refused(line: JournalEntry) -> bool:
    """Return whether a line of the audit is about requests that were not carried out."""
    return line.answered == REFUSED or (line.answered.isdecimal() and int(line.answered) >= _ERROR)


class Audit:
    """Writes the audit of one process; the journal has those of all processes that share the store. Thread-safe."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._lock = threading.Lock()
        self._refused: dict[str, _Refused] = {}

    def write(self, call: AuditedCall) -> None:
        """Append `call` to the audit. Raises what the store raises."""
        self._store.add_journal([audit_line(call, self._clock.now())])

    def count_refused(self, address: str, request: str, caller: str = NOBODY) -> bool:
        """Count a request without a valid credential, or over its caller's limits of rate and size. Return whether it
        is the first of all since the last `flush`.

        request: method, route and status, which have few values; never a text that the sender chose.
        """
        with self._lock:
            first = not self._refused
            found = self._refused.setdefault(caller, _Refused(self._clock.now()))
            known = address in found.addresses or len(found.addresses) < MOST_ADDRESSES
            found.addresses[address if known else OTHERS] += 1
            found.requests[request] += 1
            return first

    def flush(self) -> None:
        """Write the counts, one line per caller. Raises what the store raises; then only the metric has these
        counts.
        """
        with self._lock:
            refused, self._refused = self._refused, {}
        for caller, found in refused.items():
            self.write(_summarize_refused_calls(caller, found))


def _summarize_refused_calls(caller: str, found: _Refused) -> AuditedCall:
    most = found.addresses.most_common(TOLD_ADDRESSES)
    told = ", ".join(f"{address} ({count})" for address, count in most)
    more = len(found.addresses) - len(most)
    source = f"{told} and {more} further addresses" if more > 0 else told
    count = found.requests.total()
    why = "without a good credential" if caller == NOBODY else "refused before anything was done"
    return AuditedCall(
        caller,
        f"{source}, since {found.since:%Y-%m-%d %H:%M:%S}Z",
        f"{count} request{'' if count == 1 else 's'} {why} {canonical_json(dict(found.requests))}",
        REFUSED,
    )
