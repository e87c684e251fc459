"""Dead letters: what could not be taken, listed once each, and sent in again when the reason is gone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from data.log.port import Delivered, Log, Record, Topic
from data.refusal import Refusal
from data.wire import DeadLetter, Poison, decode

REPLAYING = "deadletter-replay"
BATCH = 10_000


class Unopenable(Refusal):
    """Something in the dead-letter topic that is no dead letter."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """How many letters went back, and how many stay because only their beginning was kept."""

    sent: int
    kept: int


def standing(log: Log) -> tuple[DeadLetter, ...]:
    """Letters that were not replayed, oldest first; a letter written twice (a crash) is shown once."""
    found = {
        (one.topic, one.offset): one for _, one in _letters(log.read(Topic.DEAD_LETTERS, REPLAYING, BATCH))
    }
    return tuple(found.values())


def replay(log: Log) -> Replayed:
    """Append every letter's record to its topic again, then move past it.

    A crash between the two sends a letter twice, which has one effect: readings are keyed by device and time.
    """
    sent = kept = 0
    while records := log.read(Topic.DEAD_LETTERS, REPLAYING, BATCH):
        letters = {(one.topic, one.offset): one for _, one in _letters(records)}
        for topic in {one.topic for one in letters.values()}:
            whole = [one for one in letters.values() if one.topic is topic and one.whole]
            log.append(topic, [Record(one.key, one.value) for one in whole])
            sent += len(whole)
        kept += sum(not one.whole for one in letters.values())
        log.commit(Topic.DEAD_LETTERS, REPLAYING, records[-1].offset)
    return Replayed(sent, kept)


def _letters(records: tuple[Delivered, ...]) -> Iterator[tuple[int, DeadLetter]]:
    for record in records:
        try:
            yield record.offset, decode(record.value, DeadLetter).body
        except Poison as poison:
            raise Unopenable(
                f"offset {record.offset} of the dead letters cannot be read: {poison}; update predrain"
            ) from poison
