"""What an OSD's clients waited for its disk: few points, gaps that stay gaps, beside the disk's own series."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from predrain.data.ids import HostName, OsdId
from predrain.data.latency_windows import LatencySummary
from predrain.service.rest.device_routes import POINTS, compute_client_latency_series

SINCE = datetime(2026, 9, 1, tzinfo=UTC)
WINDOW = LatencySummary(OsdId(7), HostName("stor-01"), SINCE, 60.0, 100, read_ms_p50=5.0, write_ms_p50=2.0)


def windows(count: int, every: timedelta) -> list[LatencySummary]:
    return [replace(WINDOW, window_start=SINCE + number * every) for number in range(count)]


def test_sixty_days_of_minutes_become_few_points() -> None:
    rows = windows(60 * 144, timedelta(minutes=10))
    series = compute_client_latency_series(rows, SINCE, SINCE + timedelta(days=60))
    assert {name: len(points) for name, points in series.items()} == {"read_ms": POINTS, "write_ms": POINTS}
    assert series["read_ms"][0] == (round(SINCE.timestamp() * 1000), 5.0)


def test_a_share_of_the_time_without_reads_is_not_reported_and_never_0() -> None:
    rows = [replace(WINDOW, read_ms_p50=None), replace(WINDOW, window_start=SINCE + timedelta(hours=1))]
    series = compute_client_latency_series(rows, SINCE, SINCE + timedelta(days=1))
    assert [value for _, value in series["read_ms"]] == [None, 5.0]


@given(st.lists(st.floats(0.01, 1e4), min_size=1, max_size=50))
def test_a_point_lies_within_what_its_windows_said(values: list[float]) -> None:
    rows = [replace(WINDOW, read_ms_p50=value) for value in values]
    ((_, value),) = compute_client_latency_series(rows, SINCE, SINCE + timedelta(days=60))["read_ms"]
    assert value is not None
    assert min(values) - 0.001 <= value <= max(values) + 0.001


def test_no_window_is_no_point() -> None:
    assert compute_client_latency_series([], SINCE, SINCE + timedelta(days=7)) == {
        "read_ms": [],
        "write_ms": [],
    }
