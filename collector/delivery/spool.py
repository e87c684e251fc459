"""The spool: what a collector has accepted and nobody has acknowledged yet, on its own disk.

A reading is accepted once it is here, as the very bytes that will be sent, and leaves only when the sink has it; so
what is sent twice is the same bytes. When room is short the oldest latencies go first, and a reading goes only when no
latency is left. What went is counted: summaries in the next batch (`LatencyBatch.lost`), both in `SpoolStatus`.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import takewhile
from pathlib import Path
from random import Random
from threading import Lock
from typing import TypeVar

from predrain.collector.delivery.contents import (
    TOPICS,
    UNSAID,
    Contents,
    Old,
    SpoolEntry,
    SpoolStatus,
    losses,
    size,
)
from predrain.collector.delivery.file import NoRoom, SpoolFile
from predrain.data.ids import HostName
from predrain.data.log.port import Record, Topic
from predrain.data.reading import LatencyBatch, LatencySummary, Reading
from predrain.data.windows import Windows
from predrain.data.wire import Misshapen, encode

T = TypeVar("T")
B = TypeVar("B", Reading, LatencyBatch)

BATCH_RECORDS = 500
BATCH_BYTES = 4 << 20
SUMMARIES = 1000
"""Most summaries in a batch, so that its envelope stays below `data.wire.LONGEST`."""

_SUMMARY_BYTES = 512
_LONGEST_STEP = 3600


@dataclass(frozen=True, slots=True)
class SpoolLimits:
    """What a spool may keep: bytes, and days of the collector's own running time.

    Not days of the host's clock: when that jumps, everything would be too old at once.
    """

    bytes: int = 256 << 20
    days: float = 14.0


@dataclass(frozen=True, slots=True)
class DeliveryBatch:
    """What goes to the sink in one call."""

    topic: Topic
    entries: tuple[SpoolEntry, ...]
    late: bool
    """Backlog: newer records of the same keys went before."""

    @property
    def records(self) -> tuple[Record, ...]:
        """In the order of acceptance."""
        return tuple(entry.record for entry in self.entries)


class Spool:
    """The spool in the file `path`; any thread may use it. Only opening it raises: what SpoolFile does."""

    def __init__(self, path: Path, host: HostName, random: Random, room: SpoolLimits | None = None) -> None:
        self._file = SpoolFile(path, random)
        self._host, self._room = host, room or SpoolLimits()
        self._lock = Lock()
        self._clock: datetime | None = None
        self._newest: dict[Topic, int] = dict.fromkeys(TOPICS, 0)
        self._taken: frozenset[int] = frozenset()
        # What a full disk would not let us write down yet.
        self._settled: set[int] = set()
        self._unwritten: Counter[str] = Counter()

    def accept(self, readings: Sequence[Reading], now: datetime) -> tuple[str, ...]:
        """Keep `readings`: they are durable when it returns. The sentences tell of those that were not kept."""
        with self._lock:
            try:
                return self._write(partial(self._keep, readings=readings, now=now))
            except NoRoom:
                self._shed()
            told: list[str] = []
            for reading in readings:
                try:
                    told += self._write(partial(self._keep, readings=(reading,), now=now))
                except NoRoom as refusal:
                    self._unwritten.update(losses(Topic.READINGS))
                    told.append(f"the reading of {reading.device} is lost: {refusal}")
            return tuple(told)

    def accept_latency(self, summaries: Sequence[LatencySummary], now: datetime) -> None:
        """Keep `summaries` as batches of this host: they are durable when it returns, or counted as lost."""
        with self._lock:
            for start in range(0, len(summaries), SUMMARIES):
                part = tuple(summaries[start : start + SUMMARIES])
                try:
                    self._write(partial(self._keep_latency, summaries=part, now=now))
                except NoRoom:
                    self._unwritten.update(dict.fromkeys(losses(Topic.LATENCY), len(part)))

    def take(self, aside: Collection[int] = ()) -> DeliveryBatch | None:
        """What to deliver next: the newest of each disk, the newest latencies, then the rest, oldest first.

        The same entries until `done`; none of those whose numbers are `aside`. None when there is nothing, or when the
        file cannot be read.
        """
        with self._lock, suppress(NoRoom):
            for late in (False, True):
                for topic in TOPICS:
                    entries = self._file.read(partial(self._next, topic=topic, late=late, aside=aside))
                    if entries:
                        self._taken = frozenset(entry.number for entry in entries)
                        return DeliveryBatch(topic, entries, late)
        return None

    def done(
        self, batch: DeliveryBatch, now: datetime, refused: int = 0, aside: Collection[int] = ()
    ) -> None:
        """The sink has `batch`, but for `refused` of it that it will never take, and for the numbers `aside`, which
        stay."""
        with self._lock:
            if not batch.late:
                self._newest[batch.topic] = batch.entries[-1].number
            self._taken = frozenset()
            settled = {entry.number for entry in batch.entries}.difference(aside)
            if not settled:
                return
            self._settled |= settled
            self._unwritten["refused"] += refused
            with suppress(NoRoom):  # then `_settled` is written with whatever is written next
                self._write(lambda contents: contents.note("delivered_at", int(now.timestamp())))
                self._file.give_back()

    def standing(self) -> SpoolStatus:
        """How it stands now. Raises NoRoom when the disk cannot be read."""
        with self._lock:
            written = self._file.read(lambda connection: Contents(connection).standing())
            return replace(
                written,
                lost_readings=written.lost_readings + self._unwritten["lost.readings"],
                lost_summaries=written.lost_summaries + self._unwritten["lost.summaries"],
                refused=written.refused + self._unwritten["refused"],
            )

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._file.close()

    def _keep(self, contents: Contents, readings: Sequence[Reading], now: datetime) -> tuple[str, ...]:
        told: list[str] = []
        for reading in readings:
            try:
                value = self._sealed(contents, reading, now)
            except Misshapen as refusal:
                told.append(f"the reading of {reading.device} is refused: {refusal}")
                contents.add("refused", 1)
                continue
            excess = self._excess(contents, len(value), now)
            for topic in reversed(TOPICS):
                excess -= self._make_room(contents, topic, excess)
            contents.insert(Topic.READINGS, Record(reading.device, value), 1, 0)
        return tuple(told)

    def _keep_latency(self, contents: Contents, summaries: tuple[LatencySummary, ...], now: datetime) -> None:
        # Losses are known, and can be said, only once there is room.
        excess = self._excess(contents, len(summaries) * _SUMMARY_BYTES, now)
        if self._make_room(contents, Topic.LATENCY, excess) < excess:
            contents.lose(Topic.LATENCY, len(summaries))
            return
        lost = contents.number(UNSAID)
        try:
            value = self._sealed(contents, LatencyBatch(self._host, Windows.of(summaries), lost), now)
        except Misshapen:
            contents.lose(Topic.LATENCY, len(summaries))
            return
        contents.note(UNSAID, 0)
        contents.insert(Topic.LATENCY, Record(self._host, value), len(summaries), lost)

    def _sealed(self, contents: Contents, body: B, now: datetime) -> bytes:
        """`body` under its sequence number. Raises Misshapen, and then the number is still free."""
        counted = f"sequence.{type(body).__name__}"
        sequence = contents.number(counted)
        # A new file counts from 0 again, so that it is a producer of its own.
        producer = f"{self._host}/{contents.number('identity'):08x}"
        value = encode(body, producer=producer, sequence=sequence, sent_at=now)
        contents.note(counted, sequence + 1)
        return value

    def _excess(self, contents: Contents, length: int, now: datetime) -> int:
        """Bytes by which a value of `length` would be too much, once what is too old has gone."""
        passed = (now - self._clock).total_seconds() if self._clock else 0.0
        step = int(min(max(passed, 0.0), _LONGEST_STEP))
        if step or passed < 0 or self._clock is None:
            self._clock = now
        eldest = contents.add("age", step) - self._room.days * 86_400
        for topic in TOPICS:
            aged = takewhile(lambda old: old.born < eldest, contents.oldest(topic))
            contents.drop(topic, [old for old in aged if old.number not in self._taken])
        return contents.number("bytes") + size(length) - self._room.bytes

    def _make_room(self, contents: Contents, topic: Topic, excess: int) -> int:
        """Give up the oldest of `topic` until `excess` bytes have gone; returns the bytes that went."""
        doomed: list[Old] = []
        gone = 0
        for old in contents.oldest(topic):
            if gone >= excess:
                break
            if old.number not in self._taken:  # the sink may have it already
                doomed.append(old)
                gone += old.bytes
        contents.drop(topic, doomed)
        return gone

    def _shed(self) -> None:
        """The disk itself is full: free some pages of the file by giving up a tenth of it, if it is latencies."""

        def shed(contents: Contents) -> None:
            self._make_room(contents, Topic.LATENCY, contents.number("bytes") // 10)

        with suppress(NoRoom):
            self._write(shed)

    def _next(
        self, connection: sqlite3.Connection, topic: Topic, late: bool, aside: Collection[int]
    ) -> tuple[SpoolEntry, ...]:
        contents = Contents(connection)
        choose = contents.up_to if late else contents.newest
        chosen: list[SpoolEntry] = []
        length = 0
        for entry in choose(topic, self._newest[topic], self._settled.union(aside), BATCH_RECORDS):
            length += len(entry.record.value)
            if chosen and (length > BATCH_BYTES or len(chosen) == BATCH_RECORDS):
                break
            chosen.append(entry)
        return tuple(chosen)

    def _write(self, work: Callable[[Contents], T]) -> T:
        """One transaction, with what a full disk kept from being written before. Raises NoRoom."""

        def whole(connection: sqlite3.Connection) -> T:
            contents = Contents(connection)
            for number in self._settled:
                contents.delete(number)
            for name, count in self._unwritten.items():
                contents.add(name, count)
            return work(contents)

        result = self._file.write(whole)
        self._settled.clear()
        self._unwritten.clear()
        return result
