"""The agent: what is due when, on a clock that never jumps, and what becomes of what it read."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from predrain.collector.agent import Agent, Intervals, RepeatTimer
from predrain.collector.delivery import Shipper, SinkUnavailable, Spool
from predrain.collector.delivery.collector_metrics import format_metrics, write_metrics_file
from predrain.data.clock import SystemClock
from predrain.data.ids import DeviceId
from predrain.data.latency_windows import LatencySummary
from predrain.data.log.log_port import Topic
from predrain.data.reading import Counters, Reading, Smart, Unreadable
from tests.collector.delivery.parcels import HOST, NOON, RecordingSink, reading, reading_of, summary


class Seconds:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class FakeDisks:
    """Two disks, one of them hung; a round takes ten seconds."""

    nameless = ("/dev/sdz answers, but with no serial number",)

    def __init__(self, seconds: Seconds) -> None:
        self.rounds: list[float] = []
        self.scans: list[float] = []
        self.rereads: list[tuple[float, tuple[DeviceId, ...]]] = []
        self.pending = 0
        """Pending sectors of the disk that answers."""
        self._seconds = seconds

    def read_disks(self) -> Iterator[Reading]:
        self.rounds.append(self._seconds.now)
        yield self._answer()
        self._seconds.now += 10
        yield replace(reading(2, len(self.rounds)), seen=Unreadable(NOON, "hung"))

    def reread_disks(self, devices: Collection[DeviceId]) -> Iterator[Reading]:
        self.rereads.append((self._seconds.now, tuple(devices)))
        yield self._answer()

    def _answer(self) -> Reading:
        told = reading(1, len(self.rounds) + len(self.rereads) / 10)
        assert isinstance(told.seen, Smart)
        return replace(told, seen=replace(told.seen, counters=Counters(pending=self.pending)))

    def rescan(self) -> None:
        self.scans.append(self._seconds.now)


class FakeLatencies:
    """Latencies with a window at every fourth sample; a sample takes `takes` seconds."""

    def __init__(self, seconds: Seconds) -> None:
        self.samples: list[float] = []
        self.takes = 0.0
        self.trouble = {"osd.4": "the admin socket of osd.4 has nobody behind it"}
        self._seconds = seconds

    def sample(self) -> None:
        self.samples.append(self._seconds.now)
        self._seconds.now += self.takes

    def take_summaries(self) -> tuple[LatencySummary, ...]:
        return (summary(1, len(self.samples)),) if len(self.samples) % 4 == 0 else ()


class Bench:
    """An agent on a real spool, with fakes around it."""

    def __init__(self, path: Path, intervals: Intervals | None = None) -> None:
        self.seconds, self.sink = Seconds(), RecordingSink()
        self.disks, self.latencies = FakeDisks(self.seconds), FakeLatencies(self.seconds)
        self.spool = Spool(path, HOST, Random(7))
        self.over = False
        self.agent = Agent(
            self.disks, self.latencies, self.spool,
            Shipper(self.spool, self.sink, SystemClock(), Random(7)),
            clock=SystemClock(), monotonic=self.seconds, random=Random(7),
            intervals=intervals or Intervals(), stopping=lambda: self.over,
        )  # fmt: skip

    def pass_(self, seconds: float) -> None:
        self.seconds.now += seconds

    def look_for(self, seconds: float) -> None:
        end = self.seconds.now + seconds
        while self.seconds.now < end:
            self.pass_(self.agent.poll_disks())


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "spool.db")
    yield made
    made.spool.close()


def test_disks_are_read_every_hour_and_looked_for_every_ten_minutes(bench: Bench) -> None:
    bench.look_for(24 * 3600)
    assert 22 <= len(bench.disks.rounds) <= 27
    assert 24 * 6 * 0.9 <= len(bench.disks.scans) <= 24 * 6 / 0.9
    gaps = [b - a for a, b in zip(bench.disks.rounds, bench.disks.rounds[1:], strict=False)]
    assert all(3600 * 0.9 <= gap <= 3600 * 1.1 + 10 for gap in gaps)
    assert bench.disks.scans[0] == bench.disks.rounds[0] == 1000


def test_a_disk_whose_error_counts_rose_is_read_again_once_after_six_minutes(bench: Bench) -> None:
    bench.look_for(3 * 3600)
    assert bench.disks.rereads == []
    rounds = len(bench.disks.rounds)
    bench.disks.pending = 16
    bench.look_for(5 * 3600)
    (again,) = bench.disks.rereads
    assert again == (pytest.approx(bench.disks.rounds[rounds] + 360, abs=1), (reading(1).device,))
    assert bench.agent.build_tally().readings == len(bench.disks.rounds) * 2 + 1


def test_a_disk_that_is_read_every_minute_is_not_read_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "spool.db", Intervals(round=60.0))
    for bench.disks.pending in range(5):
        bench.look_for(300)
    assert bench.disks.rereads == []
    bench.spool.close()


def test_hosts_that_started_together_do_not_read_their_disks_together() -> None:
    begun = [RepeatTimer(3600.0, Random(host), 0.0) for host in range(300)]
    times = [0.0] * 300
    for _ in range(24):
        for host, beat in enumerate(begun):
            assert beat.is_due(times[host])
            times[host] += beat.compute_wait_seconds(times[host])
    busiest = max(sum(1 for other in times if 0 <= other - time < 10) for time in times)
    assert busiest < 30


def test_samples_come_every_15_seconds_from_the_start_whatever_one_takes(bench: Bench) -> None:
    bench.latencies.takes = 2.0
    for _ in range(8):
        bench.pass_(bench.agent.sample_latencies())
    assert bench.latencies.samples == [1000 + 15 * n for n in range(8)]
    bench.latencies.takes = 40.0
    bench.pass_(bench.agent.sample_latencies())
    assert bench.seconds.now == 1000 + 15 * 11


def test_every_reading_is_in_the_spool_before_it_counts_and_reaches_the_sink(bench: Bench) -> None:
    bench.look_for(60)
    bench.sink.away = SinkUnavailable("nobody there")
    bench.agent.deliver()
    tally = bench.agent.build_tally()
    assert (tally.readings, tally.disks, tally.unreadable, tally.nameless) == (2, 2, 1, 1)
    assert tally.spool is not None
    assert tally.spool.readings == 2
    assert not tally.delivering
    bench.sink.away = None
    bench.agent.deliver()
    assert [reading_of(record).device for record in bench.sink.given()] == [
        reading(1).device,
        reading(2).device,
    ]
    assert bench.agent.build_tally().delivering


def test_windows_go_to_the_spool_as_they_end(bench: Bench) -> None:
    for _ in range(9):
        bench.agent.sample_latencies()
    while bench.agent.deliver() == 0:
        pass
    assert len(bench.sink.given(Topic.LATENCY)) == 2


def test_the_end_is_not_kept_waiting_for_the_rest_of_a_round(bench: Bench) -> None:
    bench.over = True
    bench.look_for(60)
    assert bench.agent.build_tally().readings == 1
    assert bench.agent.build_tally().round_seconds is None


def test_the_metrics_follow_prometheus_and_leave_out_what_is_not_known(bench: Bench, tmp_path: Path) -> None:
    before = format_metrics(bench.agent.build_tally(), "stor-01")
    assert "round_seconds" not in before
    assert "last_delivery" not in before
    bench.look_for(60)
    bench.agent.deliver()
    file = tmp_path / "predrain.prom"
    write_metrics_file(file, format_metrics(bench.agent.build_tally(), "stor-01"))
    lines = file.read_text().splitlines()
    assert "predrain_collector_unreadable_disks 1" in lines
    assert "predrain_collector_silent_osds 1" in lines
    assert "predrain_collector_round_seconds 10" in lines
    assert 'predrain_collector_lost_total{kind="readings"} 0' in lines
    assert 'predrain_collector_sink_up{host="stor-01"} 1' in lines
    names = {line.split("{")[0].split(" ")[0] for line in lines if not line.startswith("#")}
    for name in names:
        assert f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}" in lines
        assert any(line.startswith(f"# HELP {name} ") for line in lines)
    assert file.stat().st_mode & 0o777 == 0o644
    assert [path.name for path in tmp_path.iterdir() if "prom" in path.name] == ["predrain.prom"]
