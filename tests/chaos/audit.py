"""Whether all that was accepted is kept once, and nothing else; and what one process alone would have made of it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from data.clock import SystemClock
from data.ids import DeviceId, OsdId
from data.log.kafka import KafkaLog
from data.log.memory import MemoryLog
from data.log.port import Log, Record, Topic
from data.outlook import Outlook, Status
from data.reading import LatencyBatch, LatencySummary, Reading
from data.store.port import Store
from data.store.postgres import PostgresStore
from data.store.sqlite import SqliteStore
from data.wire import DeadLetter, decode
from service.alerts import Announcements
from service.fleet import Fleet
from service.scoring.bundled import BundledForecaster
from service.scoring.sender import Sender
from service.scoring.worker import Worker
from service.storage.identity import MARK_KEY
from tests.chaos import evidence
from tests.chaos.poison import Place
from tests.chaos.storm import Arena, Dealt

K = TypeVar("K")
V = TypeVar("V")
PATIENCE_SECONDS = 180.0
EVER = datetime.min.replace(tzinfo=UTC)
_SHOWN = 5


@dataclass
class Verdict:
    """Counts by name, and sentences on what should not be: none when all is well."""

    counts: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def blame(self, faults: Sequence[str]) -> None:
        """The first few of one kind, and how many more there are."""
        self.faults += faults[:_SHOWN]
        if len(faults) > _SHOWN:
            self.faults.append(f"... and {len(faults) - _SHOWN} more like these")


def judge(arena: Arena, dealt: Dealt) -> Verdict:
    """Wait until the workers have taken what was delivered, end them, and compare."""
    verdict = Verdict()
    log, store = KafkaLog(arena.broker), PostgresStore(arena.url)
    try:
        readings = evidence.carried(log, Topic.READINGS, Reading, arena.hosts)
        batches = evidence.carried(log, Topic.LATENCY, LatencyBatch, arena.hosts)
        expected = evidence.kept_of(readings.bodies)
        summaries = {(one.osd, one.window_start): one for batch in batches.bodies for one in batch.summaries}
        poison = {place for _, place in dealt.poison}
        began = time.monotonic()
        windows = {(one.host, one.window_start) for batch in batches.bodies for one in batch.windows}
        _wait(lambda: _is_through(arena, log, len(expected), len(windows), len(poison)))
        dealt.tell(f"the workers were through {time.monotonic() - began:.1f} s after the last delivery")
        for worker in arena.workers:
            if not worker.stop():
                dealt.unexpected.append(f"a worker did not end in order: see {worker.log}")
        verdict.faults += dealt.unexpected
        verdict.counts["starts that found no server, and were repeated"] = sum(
            w.revived for w in arena.workers
        )
        _judge_readings(verdict, arena, store, readings, expected)
        _judge_latencies(verdict, arena, store, batches, summaries)
        _judge_outlooks(verdict, log, store, readings, arena.folder)
        _judge_letters(verdict, log, dealt, poison)
    finally:
        log.close()
        store.close()
    return verdict


def _judge_readings(
    verdict: Verdict,
    arena: Arena,
    store: Store,
    readings: evidence.Carried[Reading],
    expected: Mapping[tuple[DeviceId, datetime], Reading],
) -> None:
    if not readings.accepted:
        verdict.faults.append("no reading was accepted: this run shows nothing")
    witnessed, gone = evidence.unwitnessed(readings.bodies, arena.hosts)
    kept = {
        (one.device, one.taken_at): one for disk in store.latest_readings() for one in store.readings(disk)
    }
    verdict.counts |= {
        "documents that drives printed": sum(host.cabinet.documents for host in arena.hosts),
        "readings accepted": readings.accepted,
        "of these before a witness": witnessed,
        "of these with a time that the drive had used": readings.accepted - len(expected),
        "readings delivered again": readings.again,
        "readings that a full disk refused": _lost(arena, "readings"),
        "readings kept": len(kept),
    }
    verdict.blame(readings.faults)
    verdict.blame(gone)
    verdict.blame(evidence.never_said(readings.bodies, arena.hosts))
    verdict.blame(_differences("a reading", expected, kept))


def _judge_latencies(
    verdict: Verdict,
    arena: Arena,
    store: Store,
    batches: evidence.Carried[LatencyBatch],
    expected: Mapping[tuple[OsdId, datetime], LatencySummary],
) -> None:
    osds = sorted({osd for osd, _ in expected})
    kept = {(one.osd, one.window_start): one for osd in osds for one in store.latency(osd, EVER)}
    verdict.counts |= {
        "latency summaries accepted": sum(len(batch.summaries) for batch in batches.bodies),
        "latency batches delivered again": batches.again,
        "latency summaries that a full disk refused": _lost(arena, "summaries"),
        "latency summaries kept": len(kept),
    }
    verdict.blame(batches.faults)
    verdict.blame(_differences("a latency summary", expected, kept))


def _lost(arena: Arena, what: str) -> int:
    return sum(host.numbers().get(f"lost.{what}", 0) for host in arena.hosts)


def _judge_outlooks(
    verdict: Verdict, log: Log, store: Store, readings: evidence.Carried[Reading], folder: Path
) -> None:
    """Outlooks, against those of one process that is given the readings in the order of their times."""
    alone, told = _alone(readings, folder)
    devices = sorted(alone.latest_readings())
    expected = {(one.device, one.as_of): one for device in devices for one in alone.outlooks(device)}
    found = {(one.device, one.as_of): one for device in devices for one in store.outlooks(device)}
    alone.close()
    verdict.counts["outlooks kept"] = len(found)
    verdict.blame(_differences("an outlook", expected, found))
    announced = _announced(log)
    verdict.counts["announcements"] = len(announced)
    keys = Counter((one.device, one.as_of) for one in announced)
    verdict.counts["announcements made twice"] = sum(count - 1 for count in keys.values())
    ours, theirs = _standing(announced), _standing(told)
    verdict.blame(
        [
            f"{device} was last announced as {ours.get(device)}, and alone as {theirs.get(device)}"
            for device in sorted(ours.keys() | theirs.keys())
            if ours.get(device) != theirs.get(device)
        ]
    )


def _judge_letters(verdict: Verdict, log: Log, dealt: Dealt, poison: set[Place]) -> None:
    """Dead letters are of the poison and of nothing else. One may be written twice; its place says that it is one."""
    letters = _letters(log)
    places = Counter(_place(letter) for letter in letters)
    what = {place: bad.what for bad, place in dealt.poison}
    verdict.counts |= {
        "poison sent": len(poison),
        "dead letters": len(places),
        "dead letters written twice": sum(count - 1 for count in places.values()),
    }
    verdict.blame(
        [f"poison ({what[place]}) has no dead letter: {place}" for place in sorted(poison - places.keys())]
    )
    reasons = {_place(letter): letter.reason for letter in letters}
    verdict.blame(
        [f"a good record became a dead letter: {reasons[place]}" for place in sorted(places.keys() - poison)]
    )


def _letters(log: Log) -> list[DeadLetter]:
    found = log.recent(Topic.DEAD_LETTERS, evidence.EVERYTHING)
    return [decode(record.value, DeadLetter).body for record in found]


def _place(letter: DeadLetter) -> Place:
    return Place(letter.topic, letter.partition, letter.offset)


def _alone(readings: evidence.Carried[Reading], folder: Path) -> tuple[SqliteStore, list[Outlook]]:
    """What one process stores, and announces."""
    clock, log = SystemClock(), MemoryLog(max_bytes=1 << 30)
    store = SqliteStore(folder / "alone.db")
    ordered = sorted(zip(readings.bodies, readings.raw, strict=True), key=lambda pair: pair[0].taken_at)
    log.append(Topic.READINGS, [Record(body.device, raw) for body, raw in ordered])
    sender = Sender("alone", clock)
    worker = Worker(log, store, clock, BundledForecaster.load(), Fleet(store), Announcements(), sender)
    worker.rebuild()
    while worker.step().taken:
        pass
    return store, _announced(log)


def _announced(log: Log) -> list[Outlook]:
    return [
        decode(record.value, Outlook).body
        for record in log.recent(Topic.OUTLOOKS, evidence.EVERYTHING)
        if record.key != MARK_KEY
    ]


def _standing(announced: Sequence[Outlook]) -> dict[DeviceId, Status]:
    """What people were last told of each device, of those that they were told is not well."""
    last = {one.device: one.status for one in sorted(announced, key=lambda one: one.as_of)}
    return {device: status for device, status in last.items() if status is not Status.GOOD}


def _differences(what: str, expected: Mapping[K, V], found: Mapping[K, V]) -> list[str]:
    return [
        *(f"{what} is lost: {key}" for key in sorted(expected.keys() - found.keys(), key=str)),
        *(
            f"{what} is there that nobody sent: {key}"
            for key in sorted(found.keys() - expected.keys(), key=str)
        ),
        *(
            f"{what} is another one: {key}: {found[key]} in place of {expected[key]}"
            for key in sorted(expected.keys() & found.keys(), key=str)
            if expected[key] != found[key]
        ),
    ]


def _is_through(arena: Arena, log: Log, readings: int, windows: int, letters: int) -> bool:
    def rows(table: str) -> int:
        return int(arena.database.ask(f"SELECT count(*) FROM {table}", arena.url))

    return (
        rows("readings") >= readings
        and rows("outlooks") >= readings
        and rows("host_latency") >= windows
        and len({_place(letter) for letter in _letters(log)}) >= letters
    )


def _wait(done: Callable[[], bool]) -> None:
    """Until it is done, or so long that it never will be: what is missing is told then."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not done() and time.monotonic() < end:
        time.sleep(0.5)
