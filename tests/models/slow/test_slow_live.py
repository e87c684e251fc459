"""Live OSDs: the same judgement as over histories, hour by hour and day by day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from predrain.data.ids import HostName, OsdId
from predrain.data.latency_windows import LatencySummary, LatencyWindows
from predrain.data.slow_osd import Slowness
from predrain.models.slow.live_detector import LiveWatch

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
HOSTS, A_HOST = 5, 6
CLASSES = {OsdId(osd): "hdd" for osd in range(HOSTS * A_HOST)}


def rows(
    hours: float, slow: Mapping[int, float], start: datetime = BEGINNING, seed: int = 1
) -> Iterator[LatencySummary]:
    """Five-minute rows of all OSDs; `slow`: OSD -> how many times as slow."""
    chance = np.random.default_rng(seed)
    for bin_ in range(int(hours * 12)):
        for osd in range(HOSTS * A_HOST):
            wait = 5.0 * slow.get(osd, 1.0) * float(np.exp(0.1 * chance.standard_normal()))
            yield LatencySummary(
                osd=OsdId(osd),
                host=HostName(f"stor-{osd // A_HOST}"),
                window_start=start + timedelta(minutes=5 * bin_),
                window_seconds=300,
                operations=30_000,
                device_await_ms=wait,
                iops=100.0,
            )


def watched(watch: LiveWatch, hours: int, slow: Mapping[int, float], start: datetime = BEGINNING) -> Slowness:
    """Feed and look hour by hour; what the last look says."""
    said = Slowness()
    for hour in range(hours):
        begin = start + timedelta(hours=hour)
        watch.add_windows(LatencyWindows.from_summaries(rows(1, slow, begin, seed=hour)), CLASSES)
        said = watch.judge_elapsed_periods(begin + timedelta(hours=1, minutes=6))
    return said


def test_nothing_is_known_before_the_first_hour_is_over() -> None:
    watch = LiveWatch()
    watch.add_windows(LatencyWindows.from_summaries(rows(0.5, {})), CLASSES)
    said = watch.judge_elapsed_periods(BEGINNING + timedelta(minutes=40))
    assert said == Slowness()


def test_an_osd_much_slower_than_its_peers_is_slow_after_three_hours() -> None:
    watch = LiveWatch()
    assert watched(watch, 2, {7: 1.8}).osds == {}
    said = watched(watch, 1, {7: 1.8}, BEGINNING + timedelta(hours=2))
    assert said.osds.keys() == {7}
    slow = said.osds[OsdId(7)]
    assert 1.7 < slow.ratio < 1.9
    assert slow.since == BEGINNING
    assert slow.slow_duration == timedelta(hours=3)
    assert not slow.lasting
    assert "osd.7 answers 1." in slow.reason
    assert "5 peers on stor-1" in slow.reason
    assert len(said.judged) == HOSTS * A_HOST


def test_a_mildly_slow_osd_is_slow_after_three_days_and_then_lastingly() -> None:
    watch = LiveWatch()
    assert watched(watch, 71, {7: 1.35}).osds == {}
    said = watched(watch, 3, {7: 1.35}, BEGINNING + timedelta(hours=71))
    assert said.osds.keys() == {7}
    assert said.osds[OsdId(7)].lasting
    assert said.osds[OsdId(7)].since == BEGINNING


def test_it_is_slow_no_longer_once_it_has_been_well_for_three_hours() -> None:
    watch = LiveWatch()
    watched(watch, 4, {7: 1.8})
    still = watched(watch, 2, {}, BEGINNING + timedelta(hours=4))
    assert still.osds.keys() == {7}
    well = watched(watch, 1, {}, BEGINNING + timedelta(hours=6))
    assert well.osds == {}
    assert well.is_known_healthy(OsdId(7), BEGINNING + timedelta(hours=7), timedelta(hours=3))


def test_an_osd_that_falls_silent_is_neither_well_nor_forgotten() -> None:
    watch = LiveWatch()
    watched(watch, 4, {7: 1.8})
    later = BEGINNING + timedelta(hours=4)
    watch.add_windows(
        LatencyWindows.from_summaries(row for row in rows(4, {}, later) if row.osd != 7), CLASSES
    )
    said = watch.judge_elapsed_periods(later + timedelta(hours=4, minutes=6))
    assert 7 in said.osds
    assert 7 not in said.judged
    assert not said.is_known_healthy(OsdId(7), later, timedelta(hours=3))


def test_a_slow_host_is_reported_and_its_disks_are_not() -> None:
    slow = dict.fromkeys(range(6, 12), 2.2)
    said = watched(LiveWatch(), 73, slow)
    assert said.osds == {}
    (host,) = said.hosts
    assert host.host == "stor-1"
    assert "look at the host" in host.reason


def test_an_osd_that_comes_later_is_judged_as_well() -> None:
    watch = LiveWatch()
    for hour in range(5):
        begin = BEGINNING + timedelta(hours=hour)
        here = (row for row in rows(1, {7: 1.8}, begin, hour) if hour > 0 or row.osd != 7)
        watch.add_windows(LatencyWindows.from_summaries(here), CLASSES)
        said = watch.judge_elapsed_periods(begin + timedelta(hours=1, minutes=6))
    assert said.osds.keys() == {7}
    assert said.osds[OsdId(7)].since == BEGINNING + timedelta(hours=1)


@pytest.mark.slow
def test_taking_the_rows_again_after_a_start_gives_the_same_answer() -> None:
    slow = {7: 1.35, 20: 1.8}
    first = watched(LiveWatch(), 75, slow)
    second = LiveWatch()
    for hour in range(75):
        second.add_windows(
            LatencyWindows.from_summaries(rows(1, slow, BEGINNING + timedelta(hours=hour), seed=hour)),
            CLASSES,
        )
    assert second.judge_elapsed_periods(BEGINNING + timedelta(hours=75, minutes=6)) == first


def test_a_latency_that_only_some_osds_report_is_not_compared_with_another() -> None:
    def mixed(hour: int) -> Iterator[LatencySummary]:
        for row in rows(1, {}, BEGINNING + timedelta(hours=hour), hour):
            commit = LatencySummary(
                row.osd, row.host, row.window_start, 300, 30_000, commit_ms_p50=20.0, iops=100.0,
                device_await_ms=row.device_await_ms if row.osd % 6 < 4 else None,
            )  # fmt: skip
            yield commit

    watch = LiveWatch()
    for hour in range(4):
        watch.add_windows(LatencyWindows.from_summaries(mixed(hour)), CLASSES)
    said = watch.judge_elapsed_periods(BEGINNING + timedelta(hours=4, minutes=6))
    assert said.osds == {}


def test_an_osd_that_the_cluster_has_no_more_is_nobodys_peer() -> None:
    watch = LiveWatch()
    classes = {osd: kind for osd, kind in CLASSES.items() if osd != 7}
    for hour in range(4):
        watch.add_windows(
            LatencyWindows.from_summaries(rows(1, {7: 1.8}, BEGINNING + timedelta(hours=hour), hour)), classes
        )
    said = watch.judge_elapsed_periods(BEGINNING + timedelta(hours=4, minutes=6))
    assert said.osds == {}
    assert said.judged == classes.keys()
