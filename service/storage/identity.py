"""Whether a store belongs to the log beside it.

A store has an identity, made by the first service that opens it. The log carries it in a record of its own (a mark, in
the topic `outlooks`, which every process may read), written by who scores. A store that is lost, empty or another one
is so told apart from a first start, on files as over Kafka and PostgreSQL. A mark also carries where the store's audit
ended, so that an audit that is made anew later is found out (service.storage.audit_ends).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from predrain.data.clock import Clock
from predrain.data.log.port import Log, Record, Topic
from predrain.data.refusal import Refusal
from predrain.data.store.port import Store
from predrain.data.wire import AuditEnd, Envelope, Poison, StoreMark, decode
from predrain.service.scoring.sender import Sender

ROOM: Final = "store"
NAME: Final = "identity"
MARK_KEY: Final = "predrain:store"
"""The key of a mark; no device has such an id."""
LOOKED_BACK: Final = 5_000
"""Records of `outlooks` among which the mark is looked for."""
RENEWED_AFTER: Final = timedelta(days=30)
"""Age at which a mark is written anew: the log drops records after 90 days at the earliest."""
NOTED_AFTER: Final = timedelta(minutes=10)
"""Age at which a mark is followed by one with the audit's new end: at most 4,464 marks a month."""
NOTING_SECONDS: Final = 60.0
"""Between two looks whether a mark is due."""
SERVICE_TOPICS: Final = (Topic.OUTLOOKS,)
"""What only a service writes and every process may read; collectors may fill others before the first start."""


def find_topics_of_services(bootstrap: Sequence[str]) -> tuple[Topic, ...]:
    """The topics whose records only a service can have written: over Kafka (`bootstrap` of [kafka]) collectors fill
    others before the first start.
    """
    return SERVICE_TOPICS if bootstrap else tuple(Topic)


class StoreMismatch(Refusal):
    """The log was written beside another store than the one that is there, which may be new or empty."""


@dataclass(frozen=True, slots=True)
class StoreLoss:
    """One loss of a store. `why`: what is wrong with the store that is there. `lost`: the identity in the log's mark;
    "" where the log has records and no mark. `found`: the identity of the store that is there; "" for none.
    """

    why: str
    lost: str
    found: str

    @property
    def id(self) -> str:
        """Twelve hex digits that name this loss and no later one: what is accepted becomes the log's next mark."""
        return hashlib.sha256(f"store loss 1\n{self.lost}\n{self.found}".encode()).hexdigest()[:12]


def read_marks(log: Log) -> tuple[Envelope[StoreMark], ...]:
    """The marks among the last records of the log, oldest first. Raises what the log raises."""
    found: list[Envelope[StoreMark]] = []
    for record in log.recent(Topic.OUTLOOKS, LOOKED_BACK):
        if record.key == MARK_KEY:
            with suppress(Poison):
                found.append(decode(record.value, StoreMark))
    return tuple(found)


def find_mark(log: Log) -> Envelope[StoreMark] | None:
    """The newest mark among the last records of the log. Raises what the log raises."""
    marks = read_marks(log)
    return marks[-1] if marks else None


def has_served(log: Log, topics: tuple[Topic, ...]) -> bool:
    """Whether the log holds a record in one of `topics`."""
    return any(log.recent(topic, 1) for topic in topics)


def read_identity(store: Store) -> str | None:
    """The store's identity, or None where no service gave it one."""
    found = store.notes(ROOM).get(NAME)
    return found.decode() if found is not None else None


def find_loss(
    log: Log, store: Store | None, topics: tuple[Topic, ...], why: str = "is empty"
) -> StoreLoss | None:
    """How the store is not the one whose readings the log carried; None where it is that one, or nothing was lost.

    store: None where there is no store, or one without a byte, as `why` says. topics: those whose records only a
    service can have written. A store that holds something beside a log without a mark is one of version 0.1.0, or one
    whose log was replaced: it is taken as it is.
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
    """Give the store an identity if it has none and, where this process `marks`, let the log carry it."""
    identity = store.note_once(ROOM, NAME, new_identity().encode()).decode()
    if marks:
        StoreMarks(log, store, clock, producer).write_due(identity)


class StoreMarks:
    """Writes the marks of one process: a new one for another store, for an audit that has grown, and before the log
    drops the last one.
    """

    def __init__(self, log: Log, store: Store, clock: Clock, producer: str) -> None:
        self._log, self._store, self._clock = log, store, clock
        self._sender = Sender(producer, clock)
        self._last: Envelope[StoreMark] | None = None
        """The newest mark that this process knows of."""

    def step(self) -> None:
        """Write a mark if one is due; nothing where the store has no identity. Raises what log and store raise."""
        if (identity := read_identity(self._store)) is not None and self._is_due(identity):
            self.write_due(identity)

    def write_due(self, identity: str) -> None:
        """The same after a look into the log, where another process may have written the mark that is due."""
        self._last = find_mark(self._log)
        if not self._is_due(identity):
            return
        mark = StoreMark(identity, self._find_end(identity))
        self._log.append(Topic.OUTLOOKS, [Record(MARK_KEY, self._sender.seal(mark))])
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
        """Where the audit ends now; the time of an end that the last mark has is the mark's."""
        found = self._store.find_audit_end()
        if found is None:
            return None
        end = AuditEnd(found[0], found[1].hex(), self._clock.now())
        last = self._last.body.audit if self._last is not None and self._last.body.store == identity else None
        return last if last is not None and (last.number, last.hash) == (end.number, end.hash) else end
