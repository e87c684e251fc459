"""Workers that share the readings: they store the same as one worker alone, however the drives move between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from predrain.data.log.log_port import Log, Record, Topic
from predrain.data.log.memory_log import MemoryLog
from predrain.data.outlook import Outlook, Status
from predrain.data.reading import Reading
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_faults import StoreAway
from predrain.data.store.store_port import Store
from predrain.data.wire import decode_envelope
from predrain.service.fleet.fleet import Fleet
from predrain.service.forecasting import worker
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.forecasting.newest_outlooks import NewestOutlookSummaries
from predrain.service.forecasting.worker import ScoringWorker
from predrain.service.storage.record_sender import RecordSender
from predrain.service.streams.log_recall import recall_announcements
from predrain.service.streams.outlook_announcements import Announcements
from tests.service.conftest import NOON, SetClock, smart_reading
from tests.service.partitioned_log import Member, Partitions

SERIALS = tuple("ABCDEFGH")


def history(random: Random) -> list[Reading]:
    """Readings of some weeks, out of order here and there, some of them twice."""
    found = [
        smart_reading(
            serial, NOON - timedelta(days=30 - day, minutes=3 * number), pending=max(0, day - 25) * number
        )
        for day in range(30)
        for number, serial in enumerate(SERIALS)
        if random.random() < 0.8
    ]
    for _ in range(12):
        late = found.pop(random.randrange(len(found)))
        found.insert(random.randrange(len(found)), late)
    return found + random.sample(found, 5)


def worker_on(
    log: Log,
    store: Store,
    forecaster: BundledForecaster,
    *,
    bare: bool = False,
    clock: SetClock | None = None,
) -> ScoringWorker[object]:
    """bare: as `predrain work` is, which shows no outlooks and keeps only the gist of them."""
    clock = clock or SetClock()
    sender, latest = RecordSender("predrain", clock), NewestOutlookSummaries() if bare else Fleet(store)
    return ScoringWorker(log, store, clock, forecaster, latest, Announcements(), sender)  # type: ignore[arg-type]


def put(log: Log, readings: list[Reading]) -> None:
    sender = RecordSender("host", SetClock())
    log.append(
        Topic.READINGS, [Record(reading.device, sender.encode_envelope(reading)) for reading in readings]
    )


def stored(store: Store) -> dict[str, object]:
    return {device: (store.readings(device), store.outlooks(device)) for device in store.latest_readings()}


def announced(log: Log) -> set[tuple[str, object]]:
    """A crash may announce an outlook twice; nobody may announce another one."""
    found = [
        decode_envelope(record.value, Outlook).body for record in log.read_newest(Topic.OUTLOOKS, 10_000)
    ]
    assert found
    return {(outlook.device, outlook.as_of) for outlook in found}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_workers_that_come_go_and_lose_their_commit_arrive_where_one_alone_arrives(
    tmp_path: Path, forecaster: BundledForecaster, seed: int
) -> None:
    random = Random(seed)
    readings = history(random)

    alone = MemoryLog()
    put(alone, readings)
    expected = SqliteStore(tmp_path / "alone.db")
    single = worker_on(alone, expected, forecaster)
    single.rebuild()
    while single.step(7).taken:
        pass

    partitions, store = Partitions(4), SqliteStore(tmp_path / "shared.db")
    members = [Member(partitions, number) for number in range(3)]
    workers = [worker_on(member, store, forecaster, bare=True) for member in members]
    put(members[0], readings)
    partitions.give(dict.fromkeys(range(4), 0))
    idle = 0
    while idle < 30:
        if random.random() < 0.2:
            partitions.give({number: random.randrange(3) for number in range(4)})
        turn = random.randrange(3)
        if random.random() < 0.1:
            workers[turn] = worker_on(members[turn], store, forecaster, bare=True)  # killed, started again
        if random.random() < 0.2:
            _step_without_its_commit(workers[turn], members[turn])
        idle = 0 if workers[turn].step(random.choice([1, 3, 20])).taken else idle + 1
    assert stored(store) == stored(expected)
    assert announced(members[0]) == announced(alone)
    store.close()
    expected.close()


def _step_without_its_commit(worker: ScoringWorker[object], member: Member) -> None:
    """All of a step is done but its last word: its partitions went to others meanwhile."""
    owners = member.partitions.owners
    commit, lost = Member.commit, []
    Member.commit = lambda *given: lost.append(given)  # type: ignore[method-assign,assignment]
    try:
        worker.step(5)
    finally:
        Member.commit = commit  # type: ignore[method-assign]
    member.partitions.give(dict(owners))


@dataclass
class Overtaken:
    """A worker that stood still over a reading until another one had taken an earlier one, which came late."""

    slow: ScoringWorker[object]
    parts: Partitions
    store: SqliteStore
    alone: MemoryLog
    single: ScoringWorker[object]
    expected: SqliteStore

    def send(self, reading: Reading) -> None:
        put(Member(self.parts, 0), [reading])
        put(self.alone, [reading])
        while self.single.step(3).taken:
            pass


@pytest.fixture(params=[False, True], ids=["answered", "unanswered"])
def overtaken(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    forecaster: BundledForecaster,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Overtaken]:
    """unanswered: its store took the outlooks, and the connection broke before it said so."""
    monkeypatch.setattr(worker, "CHECKPOINT_READINGS", 1)
    days = [
        smart_reading("Z", NOON - timedelta(days=ago), pending=p)
        for ago, p in ((6, 0), (5, 0), (4, 40), (3, 0))
    ]
    order = [days[0], days[1], days[3], days[2]]
    alone, expected = MemoryLog(), SqliteStore(tmp_path / "alone.db")
    put(alone, order)
    single = worker_on(alone, expected, forecaster)
    single.rebuild()
    while single.step(3).taken:
        pass

    parts, store = Partitions(1), SqliteStore(tmp_path / "shared.db")
    slow, other = (worker_on(Member(parts, number), store, forecaster) for number in range(2))
    put(Member(parts, 0), order)
    parts.give({0: 0})
    save, stalled = store.save_outlooks, []

    def stall(outlooks: Iterable[Outlook]) -> None:
        made = list(outlooks)
        if stalled:
            save(made)
            return
        stalled.append(made)
        parts.give({0: 1})
        while other.step(3).taken:
            pass
        save(made)
        if request.param:
            _no_answer(made)

    store.save_outlooks = stall  # type: ignore[method-assign]
    with suppress(StoreAway):
        slow.step(3)
    store.save_outlooks = save  # type: ignore[method-assign]
    yield Overtaken(slow, parts, store, alone, single, expected)
    store.close()
    expected.close()


@pytest.mark.parametrize("store_fails", [False, True])
def test_a_worker_that_stood_still_over_another_ones_work_puts_right_what_it_overwrote(
    overtaken: Overtaken, monkeypatch: pytest.MonkeyPatch, store_fails: bool
) -> None:
    """Check a worker that scored a reading before an earlier reading came late to the other worker.

    The first worker saved its outlook after the other one had saved its own.
    """
    slow, store = overtaken.slow, overtaken.store
    assert stored(store) != stored(overtaken.expected)
    if store_fails:
        with monkeypatch.context() as away:
            away.setattr(store, "save_outlooks", _no_answer)
            with pytest.raises(StoreAway):
                slow.step(3)
    slow.step(3)
    assert stored(store) == stored(overtaken.expected)


def test_a_worker_that_stood_still_does_not_announce_again_what_another_one_announced_meanwhile(
    tmp_path: Path, forecaster: BundledForecaster
) -> None:
    """Check a worker that was frozen after it had read from the log.

    The worker was frozen for longer than a group waits for a silent member.
    """
    parts, store, clock = Partitions(1), SqliteStore(tmp_path / "shared.db"), SetClock()
    log, thawed = Member(parts, 0), Member(parts, 1)
    slow, other = (worker_on(one, store, forecaster, clock=clock) for one in (log, thawed))
    put(log, [smart_reading("Z", NOON - timedelta(days=ago), passed=ago == 6) for ago in (6, 5)])
    parts.give({0: 0})
    add, frozen = store.add_readings, []

    def freeze(readings: Iterable[Reading]) -> None:
        if not frozen:
            frozen.append(True)
            clock.sleep(12)
            parts.give({0: 1})
            while other.step().taken:
                pass
        add(readings)

    store.add_readings = freeze  # type: ignore[method-assign,assignment]
    slow.step()
    outlooks = [
        decode_envelope(record.value, Outlook).body for record in log.read_newest(Topic.OUTLOOKS, 100)
    ]
    assert [one.as_of for one in outlooks] == [NOON - timedelta(days=5)]
    store.close()


def test_a_worker_frozen_over_an_announcement_corrects_what_a_late_reading_has_made_graver_meanwhile(
    tmp_path: Path, forecaster: BundledForecaster
) -> None:
    """Its announcement is of a later reading than the graver one of the other worker, so that readers believe it."""
    parts, store = Partitions(1), SqliteStore(tmp_path / "shared.db")
    log, thawed = Member(parts, 0), Member(parts, 1)
    slow, other = (worker_on(one, store, forecaster) for one in (log, thawed))
    day = timedelta(days=1)
    put(log, [smart_reading("Z", NOON - 6 * day), smart_reading("Z", NOON - 3 * day, pending=8)])
    put(log, [smart_reading("Z", NOON - 4 * day, pending=8, passed=False)])
    parts.give({0: 0})
    append, frozen = log.append, []

    def freeze(topic: Topic, records: Sequence[Record]) -> None:
        if topic is Topic.OUTLOOKS and not frozen:
            frozen.append(True)
            parts.give({0: 1})
            while other.step().taken:
                pass
        append(topic, records)

    log.append = freeze  # type: ignore[method-assign]
    slow.step(2)
    assert last_announced(thawed) is Status.WARNING
    slow.step(2)
    (device,) = store.latest_readings()
    assert last_announced(thawed) is Status.BAD is store.outlooks(device)[-1].severity
    store.close()


def last_announced(log: Log) -> Status:
    """Return the severity of the last announcement that a process finds in the log at its start."""
    known = Announcements()
    recall_announcements(log, known)
    (outlook,) = known.list_announced_outlooks().values()
    return outlook.severity


def _no_answer(_: Iterable[Outlook]) -> None:
    raise StoreAway("the store does not answer")


def test_a_worker_that_stood_still_leaves_no_checkpoint_that_lacks_what_came_late_meanwhile(
    overtaken: Overtaken, forecaster: BundledForecaster
) -> None:
    overtaken.slow.step(3)
    taking_over = worker_on(Member(overtaken.parts, 2), overtaken.store, forecaster)
    overtaken.parts.give({0: 2})
    overtaken.send(smart_reading("Z", NOON - timedelta(days=2)))
    taking_over.step(3)
    assert stored(overtaken.store) == stored(overtaken.expected)
