"""The latency signal: ratios to an OSD's own hour, on seeded series."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from predrain.actions.cluster.osd_latency import LatencyHistory, LatencySample, LatencySource
from predrain.data.ids import OsdId

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
ONE = OsdId(1)
Level = Callable[[float], float]
"""Latency in milliseconds by the hour since the beginning."""


def looks(
    hours: float,
    level: Level,
    latencies: LatencyHistory | None = None,
    *,
    source: LatencySource = LatencySource.PROBE,
    busy: Callable[[float], bool] = lambda _: False,
    noise: float = 0.1,
    seed: int = 1,
) -> Iterator[tuple[float, float | None]]:
    """Yield (hour, ratio of osd.1) at each poll, every 10 s."""
    chance, kept = Random(seed), latencies or LatencyHistory()
    for step in range(int(hours * 360)):
        now, hour = BEGIN + timedelta(seconds=10 * step), step / 360
        sample = LatencySample(ONE, now, source, level(hour) * chance.lognormvariate(0, noise))
        yield hour, kept.update_ratios(now, [sample], {ONE} if busy(hour) else set()).get(ONE)


def ratios(hours: float, level: Level, since: float, **more: object) -> list[float]:
    """Return the ratios from the hour `since` on, and check that each poll has one."""
    found = [ratio for hour, ratio in looks(hours, level, **more) if hour >= since]  # type: ignore[arg-type]
    known = [ratio for ratio in found if ratio is not None]
    assert len(known) == len(found)
    return known


def test_a_steady_latency_is_1_within_a_tenth() -> None:
    found = ratios(3, lambda _: 8.0, since=0.5)
    assert min(found) > 0.85
    assert max(found) < 1.2
    assert sum(0.9 < ratio < 1.1 for ratio in found) > 0.9 * len(found)


def test_a_jump_shows_within_a_minute_and_in_full() -> None:
    found = ratios(2, lambda hour: 8.0 if hour < 1 else 16.0, since=1 + 1 / 60)
    assert min(found[:30]) > 1.8


def test_a_drift_over_a_day_becomes_usual_and_a_drift_over_an_hour_does_not() -> None:
    slow = ratios(6, lambda hour: 8.0 * 2 ** (hour / 24), since=2)
    assert max(slow) < 1.2
    quick = ratios(2, lambda hour: 8.0 * (1 if hour < 1 else 2 ** (hour - 1)), since=1.9)
    assert min(quick) > 1.25


def test_a_single_spike_moves_nothing() -> None:
    found = ratios(2, lambda hour: 800.0 if round(hour * 360) == 400 else 8.0, since=1, noise=0.0)
    assert set(found) == {1.0}


def test_latency_that_a_drain_causes_does_not_become_usual() -> None:
    found = ratios(8, lambda hour: 8.0 if hour < 1 else 12.0, since=2, busy=lambda hour: hour >= 1, noise=0.0)
    assert set(found) == {1.5}


def test_a_usual_hour_that_is_a_day_old_is_no_signal() -> None:
    found = list(looks(26, lambda _: 8.0, busy=lambda hour: hour >= 1, noise=0.0))
    assert [ratio for hour, ratio in found if hour > 25.1] == [None] * (len(found) - int(25.1 * 360) - 1)


def test_too_few_samples_are_no_signal() -> None:
    first = next(hour for hour, ratio in looks(1, lambda _: 8.0) if ratio is not None)
    assert first == 300 / 3600


def test_after_a_restart_of_this_process_there_is_no_signal_until_there_is_a_usual_again() -> None:
    calm, busy_again = LatencyHistory(), LatencyHistory()
    assert list(looks(1, lambda _: 8.0, calm))[-1][1] is not None
    assert {ratio for _, ratio in looks(1, lambda _: 8.0, busy_again, busy=lambda _: True)} == {None}


def test_an_osd_that_is_silent_for_a_minute_has_no_signal_and_its_usual_is_kept() -> None:
    latencies = LatencyHistory()
    for _ in looks(1, lambda _: 8.0, latencies, noise=0.0):
        pass
    later = BEGIN + timedelta(hours=1, minutes=5)
    assert latencies.update_ratios(later, []) == {}
    back = [
        LatencySample(ONE, later + timedelta(seconds=5 * n), LatencySource.PROBE, 20.0) for n in range(1, 4)
    ]
    assert latencies.update_ratios(back[-1].at, back) == {ONE: 2.5}


def test_an_osd_that_left_the_map_is_forgotten() -> None:
    latencies = LatencyHistory()
    for _ in looks(1, lambda _: 8.0, latencies):
        pass
    latencies.drop_absent_osds([])
    assert latencies.update_ratios(BEGIN + timedelta(hours=1), []) == {}


def fed(
    latencies: LatencyHistory, source: LatencySource, before: float, now: float, osd: OsdId = ONE
) -> None:
    """Half an hour at `before`, then a minute at `now`, in milliseconds."""
    for step in range(186):
        at = BEGIN + timedelta(seconds=10 * step)
        latencies.update_ratios(at, [LatencySample(osd, at, source, before if step < 180 else now)])


END = BEGIN + timedelta(seconds=1850)


def test_latency_counted_by_the_host_is_believed_before_the_probe_and_the_probe_before_osd_perf() -> None:
    latencies = LatencyHistory()
    fed(latencies, LatencySource.PERF, 10.0, 40.0)
    assert latencies.update_ratios(END, []) == {ONE: 4.0}
    fed(latencies, LatencySource.PROBE, 10.0, 30.0)
    assert latencies.update_ratios(END, []) == {ONE: 3.0}
    fed(latencies, LatencySource.READ, 10.0, 11.0)
    fed(latencies, LatencySource.WRITE, 10.0, 20.0)
    assert latencies.update_ratios(END, []) == {ONE: 2.0}


def test_whole_milliseconds_of_a_fast_osd_are_no_signal() -> None:
    latencies = LatencyHistory()
    fed(latencies, LatencySource.PERF, 2.0, 3.0)
    assert latencies.update_ratios(END, []) == {}


def test_the_slowest_probe_of_the_last_minute_is_kept_though_medians_pass_over_it() -> None:
    latencies = LatencyHistory()
    for hour, _ in looks(1, lambda _: 8.0, latencies, noise=0.0):
        assert hour < 1
    at = BEGIN + timedelta(hours=1)
    latencies.update_ratios(at, [LatencySample(ONE, at, LatencySource.PROBE, 1900.0)])
    assert latencies.slowest_ms(at) == {ONE: 1900.0}
    assert latencies.slowest_ms(at + timedelta(seconds=61)) == {}


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.sampled_from(LatencySource),
            st.floats(-1, 1e9, allow_nan=False),
            st.floats(-100, 400),
            st.booleans(),
        ),
        max_size=300,
    )
)
def test_a_latency_ratio_is_finite_and_above_0_for_any_samples(
    rows: list[tuple[int, LatencySource, float, float, bool]],
) -> None:
    latencies, now = LatencyHistory(), BEGIN
    for osd, source, ms, later, moving in rows:
        now += timedelta(seconds=later)
        found = latencies.update_ratios(
            now, [LatencySample(OsdId(osd), now, source, ms)], {OsdId(osd)} if moving else set()
        )
        assert all(0 < ratio < float("inf") for ratio in found.values())
