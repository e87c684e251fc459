"""Check that a store belongs to the log beside it.

A store has an identity, made by the first service that opens it. The log carries the identity in a record of its
own (a mark, in the topic `outlooks`, which every process may read). A process that scores writes the marks. So a
lost, empty or wrong store is distinguished from a first start, on files as well as over Kafka and PostgreSQL. A
mark also carries the end of the store's audit, so that a later rewriting of the audit is detected
(service.storage.audit_ends).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from predrain.data.clock import Clock
from predrain.data.log.log_port import Log, Record, Topic
from predrain.data.refusal import Refusal
from predrain.data.store.store_port import Store
from predrain.data.wire import AuditEnd, Envelope, StoreMark, UndecodableRecord, decode_envelope
from predrain.service.storage.record_sender import RecordSender

ROOM: Final = "store"
NAME: Final = "identity"
MARK_KEY: Final = "predrain:store"
"""The key of a mark; no device has such an id."""
LOOKED_BACK: Final = 5_000
"""Newest records of `outlooks` among which a mark is searched."""
RENEWED_AFTER: Final = timedelta(days=30)
"""The age at which a mark is written again; the log drops records after 90 days at the earliest."""
NOTED_AFTER: Final = timedelta(minutes=10)
"""The age at which a mark is followed by one with the audit's new end: at most 4,464 marks a month."""
NOTING_SECONDS: Final = 60.0
"""Seconds between two checks for a due mark."""
SERVICE_TOPICS: Final = (Topic.OUTLOOKS,)
"""Topics that only a service writes and every process may read; collectors may fill others before the first
start.
"""


def find_topics_of_services(bootstrap: Sequence[str]) -> tuple[Topic, ...]:
    """Return the topics whose records only a service can have written.

    Over Kafka (`bootstrap_servers` of [kafka]) collectors fill the other topics before the first start.
    """
    return SERVICE_TOPICS if bootstrap else tuple(Topic)


class StoreMismatch(Refusal):
    """The log was written beside another store than the present one, which may be new or empty."""


@dataclass(frozen=True, slots=True)
class StoreLoss:
    """One loss of a store.

    `why`: the fault of the present store. `lost`: the identity in the log's mark; "" if the log has records and
    no mark. `found`: the identity of the present store; "" for none.
    """

    why: str
    lost: str
    found: str

    @property
    def id(self) -> str:
        """Twelve hex digits that name this loss and no later one, since an accepted store becomes the log's next
        mark.
        """
        return hashlib.sha256(f"store loss 1\n{self.lost}\n{self.found}".encode()).hexdigest()[:12]


def read_marks(log: Log) -> tuple[Envelope[StoreMark], ...]:
    """Return the marks among the last records of the log, oldest first. Raises what the log raises."""
    found: list[Envelope[StoreMark]] = []
    for record in log.read_newest(Topic.OUTLOOKS, LOOKED_BACK):
        if record.key == MARK_KEY:
            with suppress(UndecodableRecord):
                found.append(decode_envelope(record.value, StoreMark))
    return tuple(found)


def find_mark(log: Log) -> Envelope[StoreMark] | None:
    """Return the newest mark among the last records of the log. Raises what the log raises."""
    marks = read_marks(log)
    return marks[-1] if marks else None


def has_served(log: Log, topics: tuple[Topic, ...]) -> bool:
    """Return whether the log holds a record in one of `topics`."""
    return any(log.read_newest(topic, 1) for topic in topics)


def read_identity(store: Store) -> str | None:
    """Return the store's identity, or None if no service gave it one."""
    found = store.read_notes(ROOM).get(NAME)
    return found.decode() if found is not None else None


def find_loss(
    log: Log, store: Store | None, topics: tuple[Topic, ...], why: str = "is empty"
) -> StoreLoss | None:
    """Return the loss if the store is not the one beside which the log was written; None if it is, or nothing was
    lost.

    store: None if there is no store, or one of 0 bytes, as `why` says. topics: those whose records only a service
    can have written. A store with content beside a log without a mark is of version 0.1.0, or its log was
    replaced: it is accepted as it is.
    """
    mark = find_mark(log)
    lost = mark.body.store if mark is not None else ""
    identity = read_identity(store) if store is not None else None
    if identity is not None and (mark is None or lost == identity):
        return None
    if store is None or store.is_empty():
        return StoreLoss(why, lost, identity or "") if mark is not None or has_served(log, topics) else None
    if mark is None:
        return None
    return StoreLoss("is another one than the store beside which the log was written", lost, identity or "")


def join_log_to_store(
    log: Log, store: Store, clock: Clock, producer: str, new_identity: Callable[[], str], *, marks: bool
) -> None:
    """Give the store an identity if it has none and, if this process `marks`, write the identity into the log."""
    identity = store.note_once(ROOM, NAME, new_identity().encode()).decode()
    if marks:
        StoreMarks(log, store, clock, producer).write_due(identity)


class StoreMarks:
    """Writes the marks of one process: for another store, for an audit that has grown, and before the log drops
    the last one.
    """

    def __init__(self, log: Log, store: Store, clock: Clock, producer: str) -> None:
        self._log, self._store, self._clock = log, store, clock
        self._sender = RecordSender(producer, clock)
        self._last: Envelope[StoreMark] | None = None
        """The newest mark that this process knows of."""

    def step(self) -> None:
        """Write a mark if one is due; nothing if the store has no identity. Raises what log and store raise."""
        if (identity := read_identity(self._store)) is not None and self._is_due(identity):
            self.write_due(identity)

    def write_due(self, identity: str) -> None:
        """Write a mark if one is due after reading the log, where another process may have written it."""
        self._last = find_mark(self._log)
        if not self._is_due(identity):
            return
        mark = StoreMark(identity, self._find_end(identity))
        self._log.append(Topic.OUTLOOKS, [Record(MARK_KEY, self._sender.encode_envelope(mark))])
        self._last = find_mark(self._log)

    def _is_due(self, identity: str) -> bool:
        last = self._last
        if last is None or last.body.store != identity:
            return True
        age = self._clock.now() - last.sent_at
        if last.body.audit != self._find_end(identity):
            return not timedelta() <= age < NOTED_AFTER
        return age > RENEWED_AFTER

    def _find_end(self, identity: str) -> AuditEnd | None:
        """Return the present end of the audit; an end that the last mark has keeps the time of that mark."""
        found = self._store.find_audit_end()
        if found is None:
            return None
        end = AuditEnd(found[0], found[1].hex(), self._clock.now())
        last = self._last.body.audit if self._last is not None and self._last.body.store == identity else None
        return last if last is not None and (last.number, last.hash) == (end.number, end.hash) else end
