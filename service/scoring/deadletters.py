"""What a record of the log holds, or why not; and those that hold nothing: listed once each, and sent in again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from predrain.data.log.port import Delivered, Log, Record, Topic
from predrain.data.reading import LatencyBatch, Reading
from predrain.data.wire import DeadLetter, Poison, decode

REPLAYING = "deadletter-replay"
BATCH = 10_000
T = TypeVar("T", Reading, LatencyBatch)


@dataclass(frozen=True, slots=True)
class DeadLetterCounts:
    """What waits in the dead-letter topic, oldest first in each of its partitions."""

    letters: tuple[DeadLetter, ...]
    """A letter written twice (a crash) is here once."""
    sealed: tuple[str, ...]
    """A sentence for each record there that this predrain cannot open."""


@dataclass(frozen=True, slots=True)
class DeadLetterReplay:
    """What a replay did."""

    sent: int
    kept: int
    """Letters that stay because their record is not there whole."""
    sealed: int
    """Records that stay because this predrain cannot open them."""


def opened(record: Delivered, kind: type[T]) -> T:
    """The value in a record. Raises Poison, also for one under another's key: its order with its like is lost."""
    if record.damage:
        raise Poison(record.damage)
    value = decode(record.value, kind).body
    if record.key != (own := _key(value)):
        raise Poison(
            f"it came under the key {record.key[:64]!r} and tells of {own[:64]!r}: mend what sends it; a replay puts it"
            " under its own"
        )
    return value


def standing(log: Log) -> DeadLetterCounts:
    """What was not replayed. Raises what the log raises."""
    letters, sealed = _sorted(log.read(Topic.DEAD_LETTERS, REPLAYING, BATCH))
    return DeadLetterCounts(
        tuple(letter for letter, _ in letters),
        tuple(
            f"offset {record.offset} of partition {record.partition} of the dead letters cannot be opened: {why}"
            for record, why in sealed
        ),
    )


def replay(log: Log) -> DeadLetterReplay:
    """Append the record of every letter that is there now to its topic again, and move past it; what cannot be sent is
    put behind the others. What comes back meanwhile waits for the next replay.

    A crash between the two sends a letter twice, which has one effect: readings are keyed by device and time.
    """
    sent = kept = closed = 0
    log.commit(
        Topic.DEAD_LETTERS, REPLAYING, ()
    )  # who may not move past them would send them again and again
    ends = {one.partition: one.offset for one in log.recent(Topic.DEAD_LETTERS, 1)}
    while due := _until(log.read(Topic.DEAD_LETTERS, REPLAYING, BATCH), ends):
        letters, sealed = _sorted(due)
        for topic in sorted({letter.topic for letter, _ in letters}):
            again = [_record(one) for one, _ in letters if one.topic is topic and one.whole]
            log.append(topic, again)
            sent += len(again)
        cut = [record for letter, record in letters if not letter.whole]
        staying = [*cut, *(record for record, _ in sealed)]
        log.append(Topic.DEAD_LETTERS, [Record(one.key, one.value) for one in staying])
        kept, closed = kept + len(cut), closed + len(sealed)
        log.commit(Topic.DEAD_LETTERS, REPLAYING, due)
    return DeadLetterReplay(sent, kept, closed)


def _until(records: Sequence[Delivered], ends: Mapping[int, int]) -> tuple[Delivered, ...]:
    return tuple(one for one in records if one.offset <= ends.get(one.partition, -1))


def _record(letter: DeadLetter) -> Record:
    """The record as it was, but for the key of a value that tells its own."""
    value: Reading | LatencyBatch
    try:
        if letter.topic is Topic.LATENCY:
            value = decode(letter.value, LatencyBatch).body
        else:
            value = decode(letter.value, Reading).body
    except Poison:
        return Record(letter.key, letter.value)
    return Record(_key(value), letter.value)


def _key(value: Reading | LatencyBatch) -> str:
    return value.device if isinstance(value, Reading) else value.host


def _sorted(
    records: Sequence[Delivered],
) -> tuple[list[tuple[DeadLetter, Delivered]], list[tuple[Delivered, Poison]]]:
    """Letters with their records, each letter once, and records that are none with the reason."""
    letters: dict[tuple[Topic, int, int, bytes], tuple[DeadLetter, Delivered]] = {}
    sealed: list[tuple[Delivered, Poison]] = []
    for record in records:
        try:
            one = decode(record.value, DeadLetter).body
        except Poison as poison:
            sealed.append((record, poison))
        else:
            # A topic that was made anew gives its places a second time.
            letters[one.topic, one.partition, one.offset, one.value] = one, record
    return list(letters.values()), sealed
