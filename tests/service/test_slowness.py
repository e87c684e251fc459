"""From latencies in the store to the controller's hands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.simulator import SimulatedCluster
from predrain.data.ids import HostName, OsdId
from predrain.data.latency_windows import LatencySummary, LatencyWindows
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.drains.slow_osds import READ_EVERY, SlowOsds
from tests.actions.made import wide_spec

START = datetime(2026, 1, 1, tzinfo=UTC)
VIEW = SimulatedCluster(wide_spec(hosts=4, per_host=6), 1).view()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store.db")
    yield store
    store.close()


def measured(view: ClusterView, hours: int, slow: int, start: datetime = START) -> list[LatencySummary]:
    """Rows of every OSD, one of them three times as slow."""
    return [
        LatencySummary(
            osd.id, osd.host, start + timedelta(minutes=5 * bin_), 300, 3_000,
            device_await_ms=(15.0 if osd.id == slow else 5.0) + 0.01 * (osd.id + bin_ % 3),
        )
        for bin_ in range(12 * hours)
        for osd in view.osds.values()
    ]  # fmt: skip


def test_an_osd_that_the_store_shows_slow_for_three_hours_is_slow(store: SqliteStore) -> None:
    osds = SlowOsds(store)
    assert osds.poll_slowness(VIEW, START).osds == {}
    store.add_latency(LatencyWindows.from_summaries(measured(VIEW, 4, slow=7)))
    said = osds.poll_slowness(VIEW, START + timedelta(hours=4, minutes=6))
    assert said.osds.keys() == {7}
    assert said.osds[next(iter(said.osds))].since == START


def test_a_clock_that_is_set_back_does_not_keep_the_store_from_being_read(store: SqliteStore) -> None:
    osds = SlowOsds(store)
    osds.poll_slowness(VIEW, START + timedelta(days=2))
    store.add_latency(LatencyWindows.from_summaries(measured(VIEW, 4, slow=7)))
    assert osds.poll_slowness(VIEW, START + timedelta(hours=4, minutes=6)).osds.keys() == {7}


def test_rows_that_were_read_once_are_not_read_again(store: SqliteStore) -> None:
    osds = SlowOsds(store)
    for hour in range(5):
        begin = START + timedelta(hours=hour)
        store.add_latency(LatencyWindows.from_summaries(measured(VIEW, 1, slow=7, start=begin)))
        said = osds.poll_slowness(VIEW, begin + timedelta(hours=1, minutes=6))
    again = SlowOsds(store).poll_slowness(VIEW, START + timedelta(hours=5, minutes=6))
    assert said == again
    assert said.osds.keys() == {7}


def test_between_two_looks_the_store_is_left_alone(store: SqliteStore) -> None:
    osds = SlowOsds(store)
    now = START + timedelta(hours=4, minutes=6)
    first = osds.poll_slowness(VIEW, now)
    store.add_latency(LatencyWindows.from_summaries(measured(VIEW, 4, slow=7)))
    assert osds.poll_slowness(VIEW, now + READ_EVERY / 2) is first
    assert osds.poll_slowness(VIEW, now + READ_EVERY).osds.keys() == {7}


def test_osds_of_another_class_are_no_peers(store: SqliteStore) -> None:
    view = replace(
        VIEW,
        osds={
            id_: replace(osd, device_class="ssd" if osd.id % 6 < 5 else "hdd")
            for id_, osd in VIEW.osds.items()
        },
    )
    osds = SlowOsds(store)
    store.add_latency(LatencyWindows.from_summaries(measured(view, 4, slow=5)))
    assert osds.poll_slowness(view, START + timedelta(hours=4, minutes=6)).osds == {}


def test_a_host_has_no_say_about_the_osds_of_another_host(store: SqliteStore) -> None:
    forger = VIEW.osds[OsdId(20)].host
    rows = measured(VIEW, 4, slow=-1)
    forged = [replace(row, host=forger, device_await_ms=50.0) for row in rows if row.osd == 3]
    assert VIEW.osds[OsdId(3)].host != forger
    store.add_latency(LatencyWindows.from_summaries([*rows, *forged]))
    assert SlowOsds(store).poll_slowness(VIEW, START + timedelta(hours=4, minutes=6)).osds == {}


def test_collectors_that_are_set_to_names_of_their_own_are_heard(store: SqliteStore) -> None:
    rows = [replace(row, host=HostName(f"node-{row.host}")) for row in measured(VIEW, 4, slow=7)]
    store.add_latency(LatencyWindows.from_summaries(rows))
    assert SlowOsds(store).poll_slowness(VIEW, START + timedelta(hours=4, minutes=6)).osds.keys() == {7}
