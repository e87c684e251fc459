"""The courier: nothing lost while nobody answers, and nobody overrun when somebody does again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from collector.delivery import Away, Courier, LogSink, Pace, Spool
from data.clock import SystemClock
from data.log.memory import MemoryLog
from data.log.port import LogFull, Topic
from data.refusal import Refusal
from tests.collector.delivery.parcels import HOST, NOON, RecordingSink, reading, summary


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    made = Spool(tmp_path / "spool.db", HOST, Random(7))
    yield made
    made.close()


@pytest.fixture
def sink() -> RecordingSink:
    return RecordingSink()


def courier_of(spool: Spool, sink: RecordingSink, seed: int = 7, **pace: float) -> Courier:
    return Courier(spool, sink, SystemClock(), Random(seed), Pace(**pace))


def test_what_is_new_goes_at_once_and_an_empty_spool_is_looked_at_again_later(
    spool: Spool, sink: RecordingSink
) -> None:
    courier = courier_of(spool, sink, idle_seconds=3.0)
    spool.accept([reading(1)], NOON)
    spool.accept_latency([summary(1)], NOON)
    assert [courier.step() for _ in range(3)] == [0.0, 0.0, 3.0]
    assert [topic for topic, _ in sink.calls] == [Topic.READINGS, Topic.LATENCY]


def test_the_backlog_is_sent_no_faster_than_it_is_allowed_to(spool: Spool, sink: RecordingSink) -> None:
    for hour in range(101):
        spool.accept([reading(1, hour)], NOON)
    courier = courier_of(spool, sink, backlog_per_second=50.0)
    assert [courier.step(), courier.step()] == [0.0, 100 / 50.0]


def test_while_nobody_answers_the_pauses_grow_to_a_limit_and_all_is_kept(
    spool: Spool, sink: RecordingSink
) -> None:
    spool.accept([reading(1)], NOON)
    sink.away = Away("nobody there")
    courier = courier_of(spool, sink, first_pause_seconds=1.0, longest_pause_seconds=60.0)
    pauses = [courier.step() for _ in range(2000)]
    assert all(2**n / 2 <= pause <= 2**n for n, pause in enumerate(pauses[:6]))
    assert all(30 <= pause <= 60 for pause in pauses[6:])
    assert courier.trouble == "nobody there"
    assert spool.standing().readings == 1
    sink.away = None
    assert courier.step() == 0.0
    assert courier.trouble is None
    assert len(sink.given()) == 1


def test_hosts_that_failed_together_do_not_come_back_together(tmp_path: Path) -> None:
    sink = RecordingSink()
    sink.away = Away("nobody there")
    moments = []
    for host in range(50):
        spool = Spool(tmp_path / f"{host}.db", HOST, Random(host))
        spool.accept([reading(1)], NOON)
        courier = courier_of(spool, sink, seed=host)
        moments.append(sum(courier.step() for _ in range(10)))
        spool.close()
    busiest = max(sum(1 for other in moments if 0 <= other - moment < 1) for moment in moments)
    assert busiest < 10


def test_a_sink_that_names_a_time_is_not_asked_before_it(spool: Spool, sink: RecordingSink) -> None:
    spool.accept([reading(1)], NOON)
    sink.away = Away("full", 500.0)
    assert 500.0 <= courier_of(spool, sink).step() <= 750.0


def test_what_the_sink_will_never_take_is_counted_and_holds_nothing_back(
    spool: Spool, sink: RecordingSink
) -> None:
    spool.accept([reading(1), reading(2)], NOON)
    sink.refuses = {reading(1).device}
    courier_of(spool, sink).step()
    assert (spool.standing().readings, spool.standing().refused) == (0, 1)


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
        with pytest.raises(Away, match=why):
            sink.deliver(Topic.READINGS, ())
    log.whole = True
    assert sink.deliver(Topic.READINGS, ()) == ()
    assert len(tries) == 2
    sink.close()
