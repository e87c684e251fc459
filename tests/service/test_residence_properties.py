"""Properties of every interleaving of two hosts that name one disk, however its readings are batched or delivered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predrain.data.ids import DeviceId, HostName
from predrain.data.log.log_port import Delivered, Record, Topic
from predrain.data.log.memory_log import MemoryLog
from predrain.data.outlook import Outlook
from predrain.data.reading import Reading, Unreadable
from predrain.data.residence import (
    Placement,
    ResidenceLimits,
    ResidenceState,
    begin_residence,
    decide_residence,
    name_apart,
    place_reading,
)
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.unreadable import UnreadableCause
from predrain.service.fleet.fleet import Fleet
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.forecasting.worker import ScoringWorker
from predrain.service.storage.record_sender import RecordSender
from predrain.service.streams.outlook_announcements import Announcements
from tests.service.conftest import NOON, SetClock, smart_reading

HOME, RIVAL = HostName("stor-01"), HostName("stor-02")
DISK = DeviceId("ST4000DM000_P")
LIMITS = ResidenceLimits()
_FORECASTER: list[BundledForecaster] = []


def of_rival(at: datetime, received: datetime, *, pending: int = 0) -> Reading:
    sick = smart_reading("P", at, pending=pending, passed=not pending)
    return replace(sick, host=RIVAL, received_at=received)


@st.composite
def interleavings(draw: st.DrawFn) -> list[Reading]:
    """A home that is never silent for long, and a rival that says what it likes, backdated or not, at any time."""
    start = NOON - timedelta(days=3)
    found, hours = [smart_reading("P", start)], 0.0
    for _ in range(draw(st.integers(2, 10))):
        hours += draw(st.floats(0.1, 5.5))
        now = start + timedelta(hours=hours)
        for _ in range(draw(st.integers(0, 2))):
            back = timedelta(hours=draw(st.sampled_from([0.0, 0.0, 1.0, 30.0, 24.0 * 7])))
            found.append(of_rival(now - back, now, pending=draw(st.sampled_from([0, 4000]))))
        found.append(smart_reading("P", now + timedelta(seconds=1)))
    return found


@given(interleavings())
def test_the_home_keeps_every_disk_that_it_goes_on_to_read(readings: list[Reading]) -> None:
    residence = begin_residence(readings[0])
    for reading in readings[1:]:
        residence, placement = place_reading(residence, reading, LIMITS)
        assert placement is (Placement.HOME if reading.host == HOME else Placement.APART)
        verdict = decide_residence(residence, (), reading.received_at, LIMITS)
        assert verdict.home == HOME


@given(interleavings())
def test_the_clusters_list_is_obeyed_and_a_list_of_both_hosts_settles_nothing(
    readings: list[Reading],
) -> None:
    residence = begin_residence(readings[0])
    for reading in readings[1:]:
        residence, _ = place_reading(residence, reading, LIMITS)
    for listed in (HOME, RIVAL):
        verdict = decide_residence(residence, [listed], NOON, LIMITS)
        named = listed == HOME or residence.claims
        assert verdict.home == (listed if named else HOME)
    both = decide_residence(residence, [HOME, RIVAL], NOON, LIMITS)
    assert both.home == HOME
    assert (both.state is ResidenceState.SETTLED) == (not residence.claims)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(interleavings(), st.lists(st.integers(1, 7), min_size=1, max_size=4))
def test_the_homes_outlooks_are_those_without_the_rival_in_every_batching(
    readings: list[Reading], sizes: list[int]
) -> None:
    alone = scored([one for one in readings if one.host == HOME], [1])
    assert scored(readings, sizes)[DISK] == alone[DISK]


@st.composite
def moves(draw: st.DrawFn) -> list[Reading]:
    """A disk that is read by its home, perhaps missed there or named by both, and then read by the rival."""
    start = NOON - timedelta(days=4)
    found = [smart_reading("P", start + timedelta(hours=hour)) for hour in range(draw(st.integers(1, 4)))]
    last = start + timedelta(hours=draw(st.integers(4, 8)))
    both = draw(st.integers(0, 3))
    found += [
        one
        for turn in range(both)
        for one in (
            of_rival(last + timedelta(hours=turn), last + timedelta(hours=turn)),
            smart_reading("P", last + timedelta(hours=turn + 0.5)),
        )
    ]
    last += timedelta(hours=both)
    if draw(st.booleans()):
        missed = Unreadable(last, "no words", UnreadableCause.DEVICE_GONE)
        found.append(replace(smart_reading("P", last), seen=missed))
    return found + [
        of_rival(last + timedelta(hours=hour), last + timedelta(hours=hour))
        for hour in range(1, draw(st.integers(2, 10)))
    ]


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(moves(), st.lists(st.integers(1, 30), min_size=1, max_size=4))
def test_a_move_gives_the_same_histories_and_outlooks_in_every_batching(
    readings: list[Reading], sizes: list[int]
) -> None:
    assert scored(readings, sizes) == scored(readings, [1])


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(moves(), st.lists(st.integers(0, 6), min_size=1, max_size=4))
def test_a_move_comes_out_the_same_when_processes_are_killed_before_they_commit(
    readings: list[Reading], kills: list[int]
) -> None:
    whole, broken = kept(readings, []), kept(readings, kills)
    assert broken == whole


def scored(readings: Sequence[Reading], sizes: Sequence[int]) -> dict[DeviceId, tuple[Outlook, ...]]:
    """The newest outlook of each device, and the histories, after steps of these sizes."""
    store, log = SqliteStore(":memory:"), filled(readings)
    worker = worker_on(store, log)
    turn = 0
    while worker.step(sizes[turn % len(sizes)]).taken:
        turn += 1
    found = {device: store.outlooks(device) for device in store.latest_readings()}
    store.close()
    return found


class Killed(Exception):
    """A process that is gone before it commits."""


class Fused(MemoryLog):
    """A log whose `commit` kills the process that reaches it, so many times."""

    fuse = 0

    def commit(self, topic: Topic, group: str, done: Sequence[Delivered]) -> None:
        if topic is Topic.READINGS and self.fuse:
            self.fuse -= 1
            raise Killed
        super().commit(topic, group, done)


def kept(
    readings: Sequence[Reading], kills: Sequence[int]
) -> dict[DeviceId, list[tuple[HostName, datetime]]]:
    """The histories after all, where processes were killed after so many steps each."""
    store, log = SqliteStore(":memory:"), Fused()
    sender = RecordSender("test", SetClock())
    log.append(Topic.READINGS, [Record(one.device, sender.encode_envelope(one)) for one in readings])
    for steps in kills:
        worker = worker_on(store, log)
        try:
            for number in range(steps + 1):
                log.fuse = int(number == steps)
                worker.step(3)
        except Killed:
            pass
        log.fuse = 0
    worker = worker_on(store, log)
    while worker.step(3).taken:
        pass
    names = {*store.latest_readings(), DISK, name_apart(DISK, HOME), name_apart(DISK, RIVAL)}
    found = {name: [(one.host, one.taken_at) for one in store.readings(name)] for name in sorted(names)}
    store.close()
    return found


def filled(readings: Sequence[Reading]) -> MemoryLog:
    log, sender = MemoryLog(), RecordSender("test", SetClock())
    log.append(Topic.READINGS, [Record(one.device, sender.encode_envelope(one)) for one in readings])
    return log


def worker_on(store: SqliteStore, log: MemoryLog) -> ScoringWorker[object]:
    if not _FORECASTER:
        _FORECASTER.append(BundledForecaster.load())
    clock = SetClock()
    worker = ScoringWorker(
        log, store, clock, _FORECASTER[0], Fleet(store), Announcements(), RecordSender("test", clock)
    )
    worker.rebuild()
    return worker  # type: ignore[return-value]
