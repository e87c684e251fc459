"""The shipper loses no record while its sink does not answer, and does not overrun the sink when it answers again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from structlog.testing import capture_logs

from predrain.collector.delivery import DeliveryPace, DeliveryResult, LogSink, Shipper, SinkUnavailable, Spool
from predrain.data.clock import SystemClock
from predrain.data.log.log_port import LogFull, Topic
from predrain.data.log.memory_log import MemoryLog
from predrain.data.refusal import Refusal
from tests.collector.delivery.parcels import HOST, NOON, RecordingSink, reading, reading_of, summary


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    made = Spool(tmp_path / "spool.db", HOST, Random(7))
    yield made
    made.close()


@pytest.fixture
def sink() -> RecordingSink:
    return RecordingSink()


class HandClock:
    """A clock that a test sets."""

    def __init__(self, hour: float = 0) -> None:
        self.hour = hour

    def now(self) -> datetime:
        return NOON + timedelta(hours=self.hour)

    def sleep(self, seconds: float) -> None:
        self.hour += seconds / 3600


def courier_of(spool: Spool, sink: RecordingSink, seed: int = 7, **pace: float) -> Shipper:
    return Shipper(spool, sink, SystemClock(), Random(seed), DeliveryPace(**pace))


def test_new_records_are_sent_at_once_and_an_empty_spool_is_checked_again_later(
    spool: Spool, sink: RecordingSink
) -> None:
    shipper = courier_of(spool, sink, idle_seconds=3.0)
    spool.accept([reading(1)], NOON)
    spool.accept_latency([summary(1)], NOON)
    assert [shipper.ship_batch() for _ in range(3)] == [0.0, 0.0, 3.0]
    assert [topic for topic, _ in sink.calls] == [Topic.READINGS, Topic.LATENCY]


def test_the_backlog_is_sent_no_faster_than_it_is_allowed_to(spool: Spool, sink: RecordingSink) -> None:
    for hour in range(101):
        spool.accept([reading(1, hour)], NOON)
    shipper = courier_of(spool, sink, backlog_per_second=50.0)
    assert [shipper.ship_batch(), shipper.ship_batch()] == [0.0, 100 / 50.0]


def test_while_nobody_answers_the_pauses_grow_to_a_limit_and_all_is_kept(
    spool: Spool, sink: RecordingSink
) -> None:
    spool.accept([reading(1)], NOON)
    sink.away = SinkUnavailable("nobody there")
    shipper = courier_of(spool, sink, first_pause_seconds=1.0, longest_pause_seconds=60.0)
    pauses = [shipper.ship_batch() for _ in range(2000)]
    assert all(2**n / 2 <= pause <= 2**n for n, pause in enumerate(pauses[:6]))
    assert all(30 <= pause <= 60 for pause in pauses[6:])
    assert shipper.trouble == "nobody there"
    assert spool.read_status().readings == 1
    sink.away = None
    assert shipper.ship_batch() == 0.0
    assert shipper.trouble is None
    assert len(sink.given()) == 1


def test_hosts_that_failed_together_do_not_come_back_together(tmp_path: Path) -> None:
    sink = RecordingSink()
    sink.away = SinkUnavailable("nobody there")
    moments = []
    for host in range(50):
        spool = Spool(tmp_path / f"{host}.db", HOST, Random(host))
        spool.accept([reading(1)], NOON)
        shipper = courier_of(spool, sink, seed=host)
        moments.append(sum(shipper.ship_batch() for _ in range(10)))
        spool.close()
    busiest = max(sum(1 for other in moments if 0 <= other - moment < 1) for moment in moments)
    assert busiest < 10


def test_a_sink_that_names_a_time_is_not_asked_before_it(spool: Spool, sink: RecordingSink) -> None:
    spool.accept([reading(1)], NOON)
    sink.away = SinkUnavailable("full", 500.0)
    assert 500.0 <= courier_of(spool, sink).ship_batch() <= 750.0


def test_a_reading_that_the_sink_refuses_is_counted_and_does_not_block_the_others(
    spool: Spool, sink: RecordingSink
) -> None:
    spool.accept([reading(1), reading(2)], NOON)
    sink.refuses = {reading(1).device}
    courier_of(spool, sink).ship_batch()
    assert (spool.read_status().readings, spool.read_status().refused) == (0, 1)


def test_a_reading_that_the_sink_defers_is_kept_and_does_not_block_the_others(
    spool: Spool, sink: RecordingSink
) -> None:
    spool.accept([reading(1, hour) for hour in range(3)], NOON)
    spool.accept([reading(2)], NOON)
    sink.later = {reading(1).device: 60.0}
    clock = HandClock(3)
    shipper = Shipper(spool, sink, clock, Random(7), DeliveryPace(idle_seconds=9.0))
    assert [shipper.ship_batch() for _ in range(3)][-1] == 9.0
    assert (spool.read_status().readings, spool.read_status().refused) == (3, 0)
    sink.later = {}
    assert shipper.ship_batch() == 9.0
    clock.sleep(61)
    while shipper.ship_batch() != 9.0:
        pass
    assert shipper.trouble is None
    assert [reading_of(one).taken_at.hour for one in sink.given()[-3:]] == [12, 13, 14]


def test_a_sink_that_takes_nothing_now_for_anothers_fault_is_told_as_trouble_once(
    spool: Spool, sink: RecordingSink
) -> None:
    sink.later = {reading(1).device: 60.0}
    shipper = Shipper(spool, sink, HandClock(3), Random(7))
    with capture_logs() as said:
        for hour in range(3):
            spool.accept([reading(1, hour)], NOON)
            shipper.ship_batch()
    assert shipper.trouble == f"the time of {reading(1).device} has not come"
    assert [line["event"] for line in said] == ["not taken now, the spool keeps it"]


def test_a_clock_set_back_by_years_keeps_nothing_aside_that_long(spool: Spool, sink: RecordingSink) -> None:
    spool.accept([reading(1)], NOON)
    sink.later = {reading(1).device: 60.0}
    clock = HandClock()
    shipper = Shipper(spool, sink, clock, Random(7))
    shipper.ship_batch()
    sink.later, clock.hour = {}, -9999
    shipper.ship_batch()
    assert spool.read_status().readings == 0


def test_nothing_goes_to_a_sink_whose_clock_is_hours_behind_until_one_is_set(
    spool: Spool, sink: RecordingSink
) -> None:
    spool.accept([reading(1), reading(2)], NOON)
    spool.accept([reading(1, 1)], NOON)
    sink.later = {reading(1).device: 5 * 3600.0}
    shipper = Shipper(spool, sink, HandClock(1), Random(7))
    assert shipper.ship_batch() > 0
    assert shipper.trouble == f"the time of {reading(1).device} has not come"
    assert spool.read_status().readings == 3
    sink.later = {}
    shipper.ship_batch(), shipper.ship_batch()
    assert spool.read_status().readings == 0


def test_a_reading_that_both_clocks_place_in_the_future_is_given_up_and_reported(
    spool: Spool, sink: RecordingSink
) -> None:
    years = 5 * 365 * 24.0
    spool.accept([reading(1, years), reading(2)], NOON)
    sink.later = {reading(1).device: years * 3600}
    shipper = Shipper(spool, sink, HandClock(), Random(7))
    with capture_logs() as said:
        assert shipper.ship_batch() == 0.0
    assert "was set back since" in said[0]["reason"]
    assert (spool.read_status().readings, spool.read_status().refused) == (0, 1)


def test_latencies_of_a_time_to_come_are_kept_too(spool: Spool, sink: RecordingSink) -> None:
    spool.accept_latency([summary(1)], NOON)
    sink.later = {HOST: 60.0}
    Shipper(spool, sink, HandClock(), Random(7)).ship_batch()
    assert (spool.read_status().batches, spool.read_status().refused) == (1, 0)


class BrokenLog(MemoryLog):
    """Refuses until it is whole."""

    whole = False

    def append(self, topic: Topic, records: object) -> None:
        if not self.whole:
            raise LogFull("the log is full")
        super().append(topic, records)  # type: ignore[arg-type]


def test_a_log_is_opened_late_and_again_until_it_can_be_and_what_it_says_is_told() -> None:
    tries: list[int] = []
    log = BrokenLog()

    def open_log() -> BrokenLog:
        tries.append(1)
        if len(tries) == 1:
            raise Refusal("no broker answers")
        return log

    sink = LogSink(open_log)
    assert not tries
    for why in ("no broker answers", "the log is full"):
        with pytest.raises(SinkUnavailable, match=why):
            sink.deliver(Topic.READINGS, ())
    log.whole = True
    assert sink.deliver(Topic.READINGS, ()) == DeliveryResult()
    assert len(tries) == 2
    sink.close()
