"""Decode the records of the log, and handle the undecodable ones: each is listed once, and can be replayed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from predrain.data.latency_windows import LatencyBatch
from predrain.data.log.log_port import Delivered, Log, Record, Topic
from predrain.data.reading import Reading
from predrain.data.wire import DeadLetter, UndecodableRecord, decode_envelope

REPLAYING = "deadletter-replay"
BATCH = 10_000
T = TypeVar("T", Reading, LatencyBatch)


@dataclass(frozen=True, slots=True)
class DeadLetterCounts:
    """The content of the dead-letter topic, oldest first in each of its partitions."""

    letters: tuple[DeadLetter, ...]
    """A letter that was written twice (a crash) is here once."""
    sealed: tuple[str, ...]
    """A sentence for each record that this predrain cannot open."""


@dataclass(frozen=True, slots=True)
class DeadLetterReplay:
    """The counts of a replay."""

    sent: int
    kept: int
    """Letters that stay because their record is incomplete."""
    sealed: int
    """Records that stay because this predrain cannot open them."""


def decode_log_record(record: Delivered, kind: type[T]) -> T:
    """Return the value in a record.

    Raises UndecodableRecord, also for a record under another's key, since its order among its own kind is lost.
    """
    if record.damage:
        raise UndecodableRecord(record.damage)
    value = decode_envelope(record.value, kind).body
    if record.key != (own := _find_record_key(value)):
        raise UndecodableRecord(
            f"it came under the key {record.key[:64]!r} and tells of {own[:64]!r}: mend what sends it; a replay puts it"
            " under its own"
        )
    return value


def list_dead_letters(log: Log) -> DeadLetterCounts:
    """Return the letters that were not replayed. Raises what the log raises."""
    letters, sealed = _decode_dead_letters(log.read(Topic.DEAD_LETTERS, REPLAYING, BATCH))
    return DeadLetterCounts(
        tuple(letter for letter, _ in letters),
        tuple(
            f"offset {record.offset} of partition {record.partition} of the dead letters cannot be opened: {why}"
            for record, why in sealed
        ),
    )


def replay_dead_letters(log: Log) -> DeadLetterReplay:
    """Append the record of every present letter to its topic again, and commit the letters.

    A letter that cannot be sent is moved behind the others. A letter that comes back meanwhile waits for the next
    replay. A crash between append and commit sends a letter twice, which has one effect: readings are keyed by
    device and time.
    """
    sent = kept = closed = 0
    log.commit(
        Topic.DEAD_LETTERS, REPLAYING, ()
    )  # a process that may not commit would send them again and again
    ends = {one.partition: one.offset for one in log.read_newest(Topic.DEAD_LETTERS, 1)}
    while due := _select_records_until(log.read(Topic.DEAD_LETTERS, REPLAYING, BATCH), ends):
        letters, sealed = _decode_dead_letters(due)
        for topic in sorted({letter.topic for letter, _ in letters}):
            again = [_rebuild_record(one) for one, _ in letters if one.topic is topic and one.whole]
            log.append(topic, again)
            sent += len(again)
        cut = [record for letter, record in letters if not letter.whole]
        staying = [*cut, *(record for record, _ in sealed)]
        log.append(Topic.DEAD_LETTERS, [Record(one.key, one.value) for one in staying])
        kept, closed = kept + len(cut), closed + len(sealed)
        log.commit(Topic.DEAD_LETTERS, REPLAYING, due)
    return DeadLetterReplay(sent, kept, closed)


def _select_records_until(records: Sequence[Delivered], ends: Mapping[int, int]) -> tuple[Delivered, ...]:
    return tuple(one for one in records if one.offset <= ends.get(one.partition, -1))


def _rebuild_record(letter: DeadLetter) -> Record:
    """Return the original record, with the value's own key if the value can be decoded."""
    value: Reading | LatencyBatch
    try:
        if letter.topic is Topic.LATENCY:
            value = decode_envelope(letter.value, LatencyBatch).body
        else:
            value = decode_envelope(letter.value, Reading).body
    except UndecodableRecord:
        return Record(letter.key, letter.value)
    return Record(_find_record_key(value), letter.value)


def _find_record_key(value: Reading | LatencyBatch) -> str:
    return value.device if isinstance(value, Reading) else value.host


def _decode_dead_letters(
    records: Sequence[Delivered],
) -> tuple[list[tuple[DeadLetter, Delivered]], list[tuple[Delivered, UndecodableRecord]]]:
    """Return the letters with their records, each letter once, and the undecodable records with the reason."""
    letters: dict[tuple[Topic, int, int, bytes], tuple[DeadLetter, Delivered]] = {}
    sealed: list[tuple[Delivered, UndecodableRecord]] = []
    for record in records:
        try:
            one = decode_envelope(record.value, DeadLetter).body
        except UndecodableRecord as poison:
            sealed.append((record, poison))
        else:
            # A topic that was created again reuses its offsets.
            letters[one.topic, one.partition, one.offset, one.value] = one, record
    return list(letters.values()), sealed
