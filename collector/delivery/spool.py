"""The spool: accepted records that no sink has acknowledged yet, on the collector's own disk.

A reading is accepted once it is in the spool, as the exact bytes that will be sent. It leaves only when the sink has
it, so a record that is sent twice has the same bytes. When space is short the oldest latencies are dropped first, and
a reading is dropped only when no latency is left. Dropped records are counted: summaries in the next batch
(`LatencyBatch.lost`), readings and summaries in `SpoolStatus`.
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

from predrain.collector.delivery.spool_contents import (
    TOPICS,
    UNSAID,
    DroppableEntry,
    SpoolEntry,
    SpoolStatus,
    SpoolTables,
    compute_entry_size,
    list_loss_counters,
)
from predrain.collector.delivery.spool_file import SpoolDiskFull, SpoolFile
from predrain.data.ids import HostName
from predrain.data.latency_windows import LatencyBatch, LatencySummary, LatencyWindows
from predrain.data.log.log_port import Record, Topic
from predrain.data.reading import Reading
from predrain.data.wire import InvalidValue, encode_envelope

T = TypeVar("T")
B = TypeVar("B", Reading, LatencyBatch)

BATCH_RECORDS = 500
BATCH_BYTES = 4 << 20
SUMMARIES = 1000
"""Largest number of summaries in a batch, so that its envelope stays below `data.wire.LONGEST`."""

_SUMMARY_BYTES = 512
_LONGEST_STEP = 3600


@dataclass(frozen=True, slots=True)
class SpoolLimits:
    """The limits of a spool: bytes, and days of the collector's own running time.

    Days of the host's clock would not do: when that clock jumps, every record would be too old at once.
    """

    bytes: int = 256 << 20
    days: float = 14.0


@dataclass(frozen=True, slots=True)
class DeliveryBatch:
    """The records that go to the sink in one call."""

    topic: Topic
    entries: tuple[SpoolEntry, ...]
    late: bool
    """True if the batch is backlog: newer records of the same keys went before it."""

    @property
    def records(self) -> tuple[Record, ...]:
        """The records in the order of acceptance."""
        return tuple(entry.record for entry in self.entries)


class Spool:
    """The spool in the file `path`; any thread may use it. Only opening it raises, as SpoolFile does."""

    def __init__(self, path: Path, host: HostName, random: Random, room: SpoolLimits | None = None) -> None:
        self._file = SpoolFile(path, random)
        self._host, self._room = host, room or SpoolLimits()
        self._lock = Lock()
        self._clock: datetime | None = None
        self._newest: dict[Topic, int] = dict.fromkeys(TOPICS, 0)
        self._taken: frozenset[int] = frozenset()
        # Changes that could not be written yet because the disk is full.
        self._settled: set[int] = set()
        self._unwritten: Counter[str] = Counter()

    def accept(self, readings: Sequence[Reading], now: datetime) -> tuple[str, ...]:
        """Put `readings` into the spool; they are durable on return. Return a sentence for each that was not kept."""
        with self._lock:
            try:
                return self._write(partial(self._keep, readings=readings, now=now))
            except SpoolDiskFull:
                self._shed()
            told: list[str] = []
            for reading in readings:
                try:
                    told += self._write(partial(self._keep, readings=(reading,), now=now))
                except SpoolDiskFull as refusal:
                    self._unwritten.update(list_loss_counters(Topic.READINGS))
                    told.append(f"the reading of {reading.device} is lost: {refusal}")
            return tuple(told)

    def accept_latency(self, summaries: Sequence[LatencySummary], now: datetime) -> None:
        """Put `summaries` into the spool as batches of this host. On return they are durable, or counted as lost."""
        with self._lock:
            for start in range(0, len(summaries), SUMMARIES):
                part = tuple(summaries[start : start + SUMMARIES])
                try:
                    self._write(partial(self._keep_latency, summaries=part, now=now))
                except SpoolDiskFull:
                    self._unwritten.update(dict.fromkeys(list_loss_counters(Topic.LATENCY), len(part)))

    def take_batch(self, aside: Collection[int] = ()) -> DeliveryBatch | None:
        """Return the next batch: the newest of each disk, then the newest latencies, then the rest, oldest first.

        Until `settle_batch` is called the entries are the same. Entries with a number in `aside` are left out. Return
        None if there is nothing, or if the file cannot be read.
        """
        with self._lock, suppress(SpoolDiskFull):
            for late in (False, True):
                for topic in TOPICS:
                    entries = self._file.read(partial(self._next, topic=topic, late=late, aside=aside))
                    if entries:
                        self._taken = frozenset(entry.number for entry in entries)
                        return DeliveryBatch(topic, entries, late)
        return None

    def settle_batch(
        self, batch: DeliveryBatch, now: datetime, refused: int = 0, aside: Collection[int] = ()
    ) -> None:
        """Remove a batch that the sink has.

        `refused` of its records will never be taken; those numbered in `aside` stay.
        """
        with self._lock:
            if not batch.late:
                self._newest[batch.topic] = batch.entries[-1].number
            self._taken = frozenset()
            settled = {entry.number for entry in batch.entries}.difference(aside)
            if not settled:
                return
            self._settled |= settled
            self._unwritten["refused"] += refused
            with suppress(SpoolDiskFull):  # on a full disk `_settled` is written with the next change
                self._write(lambda contents: contents.set_number("delivered_at", int(now.timestamp())))
                self._file.give_back()

    def read_status(self) -> SpoolStatus:
        """Return the present state. Raises SpoolDiskFull when the disk cannot be read."""
        with self._lock:
            written = self._file.read(lambda connection: SpoolTables(connection).read_status())
            return replace(
                written,
                lost_readings=written.lost_readings + self._unwritten["lost.readings"],
                lost_summaries=written.lost_summaries + self._unwritten["lost.summaries"],
                refused=written.refused + self._unwritten["refused"],
            )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()

    def _keep(self, contents: SpoolTables, readings: Sequence[Reading], now: datetime) -> tuple[str, ...]:
        told: list[str] = []
        for reading in readings:
            try:
                value = self._sealed(contents, reading, now)
            except InvalidValue as refusal:
                told.append(f"the reading of {reading.device} is refused: {refusal}")
                contents.add_to_number("refused", 1)
                continue
            excess = self._excess(contents, len(value), now)
            for topic in reversed(TOPICS):
                excess -= self._make_room(contents, topic, excess)
            contents.insert(Topic.READINGS, Record(reading.device, value), 1, 0)
        return tuple(told)

    def _keep_latency(
        self, contents: SpoolTables, summaries: tuple[LatencySummary, ...], now: datetime
    ) -> None:
        # The losses are known, and can be reported, only once there is space.
        excess = self._excess(contents, len(summaries) * _SUMMARY_BYTES, now)
        if self._make_room(contents, Topic.LATENCY, excess) < excess:
            contents.count_loss(Topic.LATENCY, len(summaries))
            return
        lost = contents.read_number(UNSAID)
        try:
            value = self._sealed(
                contents, LatencyBatch(self._host, LatencyWindows.from_summaries(summaries), lost), now
            )
        except InvalidValue:
            contents.count_loss(Topic.LATENCY, len(summaries))
            return
        contents.set_number(UNSAID, 0)
        contents.insert(Topic.LATENCY, Record(self._host, value), len(summaries), lost)

    def _sealed(self, contents: SpoolTables, body: B, now: datetime) -> bytes:
        """Encode `body` under its sequence number. Raises InvalidValue, and then the number stays free."""
        counted = f"sequence.{type(body).__name__}"
        sequence = contents.read_number(counted)
        # A new file counts from 0 again, so it needs a producer name of its own.
        producer = f"{self._host}/{contents.read_number('identity'):08x}"
        value = encode_envelope(body, producer=producer, sequence=sequence, sent_at=now)
        contents.set_number(counted, sequence + 1)
        return value

    def _excess(self, contents: SpoolTables, length: int, now: datetime) -> int:
        """Drop the entries that are too old; return the bytes by which a value of `length` bytes would
        exceed the limit.
        """
        passed = (now - self._clock).total_seconds() if self._clock else 0.0
        step = int(min(max(passed, 0.0), _LONGEST_STEP))
        if step or passed < 0 or self._clock is None:
            self._clock = now
        eldest = contents.add_to_number("age", step) - self._room.days * 86_400
        for topic in TOPICS:
            aged = takewhile(lambda old: old.born < eldest, contents.list_oldest(topic))
            contents.drop(topic, [old for old in aged if old.number not in self._taken])
        return contents.read_number("bytes") + compute_entry_size(length) - self._room.bytes

    def _make_room(self, contents: SpoolTables, topic: Topic, excess: int) -> int:
        """Drop the oldest entries of `topic` until `excess` bytes are free; return the bytes that were freed."""
        to_drop: list[DroppableEntry] = []
        gone = 0
        for old in contents.list_oldest(topic):
            if gone >= excess:
                break
            if old.number not in self._taken:  # the sink may have it already
                to_drop.append(old)
                gone += old.bytes
        contents.drop(topic, to_drop)
        return gone

    def _shed(self) -> None:
        """Free pages of the file because the disk itself is full: drop latencies for up to a tenth of
        the spool's bytes.
        """

        def shed(contents: SpoolTables) -> None:
            self._make_room(contents, Topic.LATENCY, contents.read_number("bytes") // 10)

        with suppress(SpoolDiskFull):
            self._write(shed)

    def _next(
        self, connection: sqlite3.Connection, topic: Topic, late: bool, aside: Collection[int]
    ) -> tuple[SpoolEntry, ...]:
        contents = SpoolTables(connection)
        choose = contents.up_to if late else contents.list_newest
        chosen: list[SpoolEntry] = []
        length = 0
        for entry in choose(topic, self._newest[topic], self._settled.union(aside), BATCH_RECORDS):
            length += len(entry.record.value)
            if chosen and (length > BATCH_BYTES or len(chosen) == BATCH_RECORDS):
                break
            chosen.append(entry)
        return tuple(chosen)

    def _write(self, work: Callable[[SpoolTables], T]) -> T:
        """Run `work` in one transaction, together with the changes that a full disk held up. Raises SpoolDiskFull."""

        def whole(connection: sqlite3.Connection) -> T:
            contents = SpoolTables(connection)
            for number in self._settled:
                contents.delete(number)
            for name, count in self._unwritten.items():
                contents.add_to_number(name, count)
            return work(contents)

        result = self._file.write(whole)
        self._settled.clear()
        self._unwritten.clear()
        return result
