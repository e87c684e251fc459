"""How an OSD answered over time: few points, gaps that stay gaps, beside its peers and the disk's own series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from predrain.data.ids import HostName, OsdId
from predrain.data.latency_windows import LatencySummary, LatencyWindows
from predrain.service.rest.osd_latency_series import (
    OSD_SERIES,
    POINTS,
    SeriesPoints,
    compute_osd_latency_series,
)

SINCE = datetime(2026, 9, 1, tzinfo=UTC)
OSD = OsdId(7)
PEERS = [OsdId(8), OsdId(9)]
WINDOW = LatencySummary(
    OSD, HostName("stor-01"), SINCE, 60.0, 100, read_ms_p50=5.0, write_ms_p50=2.0, commit_ms_p50=3.0
)


def series_of(
    rows: Sequence[LatencySummary], days: int = 60, peers: Sequence[OsdId] = PEERS
) -> dict[str, SeriesPoints]:
    windows = LatencyWindows.from_summaries(rows)
    return compute_osd_latency_series(windows, OSD, peers, SINCE, SINCE + timedelta(days=days))


def values_of(points: SeriesPoints) -> list[float | None]:
    return [value for _, value in points]


def minutes(count: int, every: timedelta = timedelta(minutes=1)) -> list[LatencySummary]:
    return [replace(WINDOW, window_start=SINCE + number * every) for number in range(count)]


def beside(rows: Sequence[LatencySummary], *commits: float | None) -> list[LatencySummary]:
    """The rows, and peers from osd.8 on whose commits took so many ms at the same times."""
    return [
        *rows,
        *(
            replace(row, osd=OsdId(8 + place), commit_ms_p50=commit)
            for row in rows
            for place, commit in enumerate(commits)
        ),
    ]


def test_sixty_days_of_minutes_become_few_points() -> None:
    series = series_of(minutes(60 * 144, timedelta(minutes=10)))
    assert {name: len(points) for name, points in series.items()} == dict.fromkeys(OSD_SERIES, POINTS)
    assert series["read_ms"][0] == (round(SINCE.timestamp() * 1000), 5.0)


def test_a_share_of_the_time_without_reads_is_not_reported_and_never_0() -> None:
    rows = [replace(WINDOW, read_ms_p50=None), replace(WINDOW, window_start=SINCE + timedelta(hours=1))]
    assert values_of(series_of(rows, days=1)["read_ms"]) == [None, 5.0]


@given(st.lists(st.floats(0.01, 1e4), min_size=1, max_size=50))
def test_a_point_lies_within_what_its_windows_said(values: list[float]) -> None:
    rows = [replace(row, read_ms_p50=value) for row, value in zip(minutes(len(values)), values, strict=True)]
    ((_, value),) = series_of(rows)["read_ms"]
    assert value is not None
    assert min(values) - 0.001 <= value <= max(values) + 0.001


def test_no_window_is_no_point() -> None:
    assert series_of([], days=7) == {name: [] for name in OSD_SERIES}


def test_the_ratio_is_to_the_middle_of_the_peers_in_the_same_minute() -> None:
    rows = beside([replace(WINDOW, commit_ms_p50=12.0)], 2.0, 4.0)
    assert values_of(series_of(rows, days=1)["latency_ratio"]) == [4.0]


def test_an_osd_that_is_no_peer_is_not_compared() -> None:
    rows = beside([replace(WINDOW, commit_ms_p50=12.0)], 2.0, 4.0, 400.0)
    assert values_of(series_of(rows, days=1)["latency_ratio"]) == [4.0]


def test_the_device_is_compared_rather_than_the_commits_if_all_of_them_report_it() -> None:
    rows = [
        replace(row, device_await_ms=1.0) for row in beside([replace(WINDOW, commit_ms_p50=12.0)], 2.0, 4.0)
    ]
    assert values_of(series_of(rows, days=1)["latency_ratio"]) == [1.0]


def test_one_peer_is_too_few_to_tell_the_slow_one_from_the_fast_one() -> None:
    series = series_of(beside([replace(WINDOW, commit_ms_p50=12.0)], 2.0), days=1)
    assert (values_of(series["latency_ratio"]), values_of(series["slow_minutes"])) == ([None], [None])


def test_five_slow_minutes_of_two_hours_are_counted_though_the_middle_of_the_hours_is_not_slow() -> None:
    rows = [
        replace(row, commit_ms_p50=30.0 if 10 <= place < 15 else 3.0)
        for place, row in enumerate(minutes(120))
    ]
    series = series_of([*rows, *beside(minutes(120), 3.0, 3.0)[120:]])
    assert values_of(series["latency_ratio"]) == [1.0]
    assert values_of(series["slow_minutes"]) == [5.0]


def test_of_the_operations_that_waited_too_long_the_most_at_once_is_shown() -> None:
    rows = [replace(row, slow_ops=count) for row, count in zip(minutes(3), (0, 4, 1), strict=True)]
    assert values_of(series_of(rows)["slow_ops"]) == [4]
    assert values_of(series_of(minutes(3))["slow_ops"]) == [None]
