"""Whether a store belongs to the log beside it.

A store has an identity, made by the first service that opens it. The log carries it in a record of its own (a mark, in
the topic `outlooks`, which every process may read), written by who scores. A store that is lost, empty or another one
is so told apart from a first start, on files as over Kafka and PostgreSQL.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from data.clock import Clock
from data.log.port import Log, Record, Topic
from data.refusal import Refusal
from data.store.port import Store
from data.wire import Envelope, Poison, StoreMark, decode
from service.scoring.sender import Sender

ROOM: Final = "store"
NAME: Final = "identity"
MARK_KEY: Final = "predrain:store"
"""The key of a mark; no device has such an id."""
LOOKED_BACK: Final = 5_000
"""Records of `outlooks` among which the mark is looked for."""
RENEWED_AFTER: Final = timedelta(days=30)
"""Age at which a mark is written anew: the log drops records after 90 days at the earliest."""
SERVICE_TOPICS: Final = (Topic.OUTLOOKS,)
"""What only a service writes and every process may read; collectors may fill others before the first start."""


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


def find_mark(log: Log) -> Envelope[StoreMark] | None:
    """The newest mark among the last records of the log. Raises what the log raises."""
    for record in reversed(log.recent(Topic.OUTLOOKS, LOOKED_BACK)):
        if record.key == MARK_KEY:
            try:
                return decode(record.value, StoreMark)
            except Poison:
                continue
    return None


def has_served(log: Log, topics: tuple[Topic, ...]) -> bool:
    """Whether the log holds a record in one of `topics`."""
    return any(log.recent(topic, 1) for topic in topics)


def read_identity(store: Store) -> str | None:
    """The store's identity, or None where no service gave it one."""
    found = store.notes(ROOM).get(NAME)
    return found.decode() if found is not None else None


def find_loss(log: Log, store: Store | None, topics: tuple[Topic, ...], why: str = "is empty") -> StoreLoss | None:
    """How the store is not the one whose readings the log carried; None where it is that one, or nothing was lost.

    store: None where there is no store, or one without a byte, as `why` says. topics: those whose records only a service
    can have written. A store that holds something beside a log without a mark is one of version 0.1.0, or one whose log
    was replaced: it is taken as it is.
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
        _mark(log, identity, Sender(producer, clock), clock.now())


def renew_mark(log: Log, store: Store, clock: Clock, producer: str) -> None:
    """Write the mark anew before the log drops it; nothing where the store has no identity."""
    if (identity := read_identity(store)) is not None:
        _mark(log, identity, Sender(producer, clock), clock.now())


def _mark(log: Log, identity: str, sender: Sender, now: datetime) -> None:
    mark = find_mark(log)
    if mark is None or mark.body.store != identity or now - mark.sent_at > RENEWED_AFTER:
        log.append(Topic.OUTLOOKS, [Record(MARK_KEY, sender.seal(StoreMark(identity)))])
