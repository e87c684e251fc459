"""Old readings and outlooks become daily values, old latencies become windows of ten minutes; the newest rows stay."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from operator import attrgetter
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Row, Select, Table, select, text
from sqlalchemy.dialects import postgresql

from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.latency_windows import LatencySummary, LatencyWindows
from predrain.data.outlook import Outlook, Status
from predrain.data.reading import Counters, Identity, Protocol, Reading, Smart, Unreadable
from predrain.data.store import store_schema, stored_latencies, table_upkeep
from predrain.data.store.coarse_latencies import merge_latency_summaries
from predrain.data.store.database import Database
from predrain.data.store.latency_columns import pack_latency_windows, unpack_latency_windows
from predrain.data.store.postgres_store import PostgresStore
from predrain.data.store.sql_store import SqlStore
from predrain.data.store.sqlite_store import MEMORY, SqliteStore
from predrain.data.store.store_port import Store
from predrain.data.store.store_schema import from_microseconds, to_microseconds
from predrain.data.wire.strict_json import InvalidValue

DAY_1 = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
A, B = DeviceId("a"), DeviceId("b")
FULL = LatencySummary(
    OsdId(3), HostName("h"), DAY_1, 60.0, 100, 1.0, 9.0, 2.0, 8.0, 3.0, 7.0, 4.0, 5.0, 6.0, 2, 1, False, True
)


def _reading(device: DeviceId, at: datetime, *, readable: bool = True) -> Reading:
    smart = Smart(Protocol.ATA, Identity(model="ST4000"), True, Counters(pending=0))
    return Reading(device, HostName("h"), at, at, smart if readable else Unreadable(at, "no answer"))


def _outlook(at: datetime) -> Outlook:
    return Outlook(A, at, Status.GOOD, "rule:x", (), "", None, None, None, None, None)


def test_a_packed_latency_comes_back_whole() -> None:
    assert all(getattr(FULL, field.name) is not None for field in dataclasses.fields(FULL)[:-1])
    both = (FULL, LatencySummary(OsdId(5), HostName("h"), DAY_1, 60.0, 0))
    (windows,) = LatencyWindows.from_summaries(both)
    assert unpack_latency_windows("h", DAY_1, pack_latency_windows(windows)).summaries() == both
    assert [windows.find_osd_summary(OsdId(osd)) for osd in (3, 5, 4)] == [*both, None]


@given(st.binary(max_size=60))
def test_bytes_that_are_no_packed_latency_are_refused(raw: bytes) -> None:
    with suppress(InvalidValue):
        found = unpack_latency_windows("h", DAY_1, raw)
        assert unpack_latency_windows("h", DAY_1, pack_latency_windows(found)) == found or found != found


def test_columns_of_several_lengths_are_refused() -> None:
    windows = replace(LatencyWindows.from_summaries([FULL])[0], iops=[1.0, 2.0])
    with pytest.raises(InvalidValue, match="not of one length"):
        unpack_latency_windows("h", DAY_1, pack_latency_windows(windows))


def test_ten_minutes_keep_counts_medians_by_weight_and_the_highest_percentile() -> None:
    busy = replace(FULL, window_start=DAY_1 + MINUTE, operations=300, read_ms_p50=5.0, read_ms_p99=30.0,
                   device_await_ms=8.0, iops=15.0, slow_ops=1, backfills_max=3, recovering=True)  # fmt: skip
    idle = LatencySummary(OsdId(3), HostName("h"), DAY_1 + 2 * MINUTE, 60.0, 0)
    one = merge_latency_summaries([FULL, busy, idle], DAY_1)
    assert (one.osd, one.window_start, one.window_seconds, one.operations) == (3, DAY_1, 600.0, 400)
    assert (one.read_ms_p50, one.read_ms_p99, one.write_ms_p50) == (5.0, 30.0, 2.0)
    assert (one.device_await_ms, one.iops, one.slow_ops) == (7.0, 10.0, 2)
    assert (one.backfills_max, one.recovering, one.scrubbing) == (3, True, True)


def test_ten_minutes_of_silence_know_nothing() -> None:
    idle = LatencySummary(OsdId(3), HostName("h"), DAY_1, 60.0, 0)
    assert merge_latency_summaries([idle, idle], DAY_1) == replace(idle, window_seconds=600.0)


@given(st.lists(st.tuples(st.integers(0, 1000), st.floats(0, 1e6)), min_size=1, max_size=10))
def test_a_coarse_median_is_one_of_the_windows_own(windows: list[tuple[int, float]]) -> None:
    made = merge_latency_summaries([replace(FULL, operations=n, read_ms_p50=v) for n, v in windows], DAY_1)
    assert made.read_ms_p50 in [value for _, value in windows]
    assert made.operations == sum(n for n, _ in windows)


def test_latencies_that_are_old_become_one_in_ten_minutes_and_young_ones_stay(store: Store) -> None:
    windows = [replace(FULL, window_start=DAY_1 + n * MINUTE, operations=n) for n in range(35)]
    store.add_latency(LatencyWindows.from_summaries(windows))
    store.add_latency(LatencyWindows.from_summaries([replace(windows[0], osd=OsdId(7))]))
    assert store.merge_old_latencies(DAY_1 + 29 * MINUTE) == 21 - 3
    kept = store.read_latency_summaries(3, DAY_1)
    assert [one.window_start for one in kept[:2]] == [DAY_1, DAY_1 + 10 * MINUTE]
    assert [one.operations for one in kept[:2]] == [sum(range(10)), sum(range(10, 20))]
    assert kept[2:] == tuple(windows[20:])
    assert store.merge_old_latencies(DAY_1 + 29 * MINUTE) == 0
    assert [one.window_seconds for one in store.read_latency_summaries(7, DAY_1)] == [600.0]


def test_a_latency_that_comes_too_late_for_its_ten_minutes_does_not_change_them(store: Store) -> None:
    store.add_latency(
        LatencyWindows.from_summaries([replace(FULL, window_start=DAY_1 + n * MINUTE) for n in range(5)])
    )
    store.merge_old_latencies(DAY_1 + 10 * MINUTE)
    kept = store.read_latency_summaries(3, DAY_1)
    store.add_latency(
        LatencyWindows.from_summaries([replace(FULL, window_start=DAY_1 + n * MINUTE) for n in range(10)])
    )
    assert store.merge_old_latencies(DAY_1 + 10 * MINUTE) == 10
    assert store.read_latency_summaries(3, DAY_1) == kept


def test_ten_minutes_take_in_an_osd_that_they_lack_however_late_it_comes(store: Store) -> None:
    store.add_latency(
        LatencyWindows.from_summaries([replace(FULL, window_start=DAY_1 + n * MINUTE) for n in range(5)])
    )
    store.merge_old_latencies(DAY_1 + 10 * MINUTE)
    kept = store.read_latency_summaries(3, DAY_1)
    late = [replace(FULL, osd=OsdId(4), window_start=DAY_1 + n * MINUTE) for n in range(3)]
    store.add_latency(LatencyWindows.from_summaries(late))
    assert store.read_latency_summaries(4, DAY_1) == tuple(late)
    store.merge_old_latencies(DAY_1 + 10 * MINUTE)
    assert store.read_latency_summaries(3, DAY_1) == kept
    assert store.read_latency_summaries(4, DAY_1) == (merge_latency_summaries(late, DAY_1),)


@pytest.mark.system
def test_a_latency_that_a_worker_adds_while_its_ten_minutes_are_made_is_not_lost(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backlog of the day before, delivered to another process beside the daily tidying."""
    late = [replace(FULL, osd=OsdId(4), window_start=DAY_1 + MINUTE)]
    with closing(PostgresStore(url)) as tidying, closing(PostgresStore(url)) as worker:
        worker.add_latency(LatencyWindows.from_summaries([FULL]))
        opened = stored_latencies.unpack_latency_rows

        def beside(database: Database, rows: Iterable[Row[str, int, bytes]]) -> tuple[LatencyWindows, ...]:
            monkeypatch.undo()
            worker.add_latency(LatencyWindows.from_summaries(late))
            return opened(database, rows)

        monkeypatch.setattr(stored_latencies, "unpack_latency_rows", beside)
        tidying.merge_old_latencies(DAY_1 + HOUR)
        assert worker.read_latency_summaries(4, DAY_1) == tuple(late)
        tidying.merge_old_latencies(DAY_1 + HOUR)
        assert [sorted(one.osd) for one in worker.host_latency(HostName("h"), DAY_1)] == [[3, 4]]


def test_old_days_keep_their_last_reading_and_their_last_that_says_something(store: Store) -> None:
    readings = [_reading(A, DAY_1 + n * HOUR, readable=n % 24 < 22) for n in range(60)]
    store.add_readings([*readings, _reading(B, DAY_1 + HOUR)])
    assert store.thin_to_daily_values(date(2026, 3, 3)) == 48 - 4
    kept = [readings[n] for n in (21, 23, 45, 47, *range(48, 60))]
    assert store.readings(A) == tuple(kept)
    assert store.readings(B) == (_reading(B, DAY_1 + HOUR),)
    assert store.thin_to_daily_values(date(2026, 3, 3)) == 0


def test_of_a_disk_that_was_only_silent_the_last_silence_stays(store: Store) -> None:
    store.add_readings([_reading(A, DAY_1 + n * HOUR, readable=False) for n in range(5)])
    assert store.thin_to_daily_values(date(2026, 3, 2)) == 4
    assert store.readings(A) == (_reading(A, DAY_1 + 4 * HOUR, readable=False),)


def test_old_days_keep_their_last_outlook(store: Store) -> None:
    store.save_outlooks([_outlook(DAY_1 + n * HOUR) for n in range(30)])
    assert store.thin_to_daily_values(date(2026, 3, 2)) == 23
    assert store.outlooks(A) == tuple(_outlook(DAY_1 + n * HOUR) for n in range(23, 30))
    assert store.latest_outlooks() == {A: _outlook(DAY_1 + 29 * HOUR)}


@dataclasses.dataclass(frozen=True)
class Kept:
    """A row of a history that is to be thinned: a reading that says something, one that does not, or damaged bytes."""

    device: DeviceId
    at: datetime
    says: bool
    damaged: bool


def _rows_to_keep(rows: Sequence[Kept], since: datetime, before: datetime) -> set[tuple[DeviceId, datetime]]:
    """The rule, row by row: of each day of a device the last row stays, and the last that says something."""
    kept = set[tuple[DeviceId, datetime]]()
    last = dict[tuple[DeviceId, date, bool], Kept]()
    for row in sorted(rows, key=attrgetter("at")):
        if not since <= row.at < before:
            kept.add((row.device, row.at))
            continue
        last[row.device, row.at.date(), False] = row
        if row.says and not row.damaged:
            last[row.device, row.at.date(), True] = row
    return kept | {(row.device, row.at) for row in last.values()}


def _stored_keys(store: SqlStore, table: Table, time: str) -> set[tuple[DeviceId, datetime]]:
    wanted = select(table.c.device, table.c[time])
    rows = store._database.read(lambda connection: connection.execute(wanted).all())
    return {(DeviceId(device), from_microseconds(at)) for device, at in rows}


def _store_history(store: SqlStore, rows: Sequence[Kept]) -> None:
    store.add_readings([_reading(one.device, one.at, readable=one.says) for one in rows])
    store.save_outlooks([replace(_outlook(one.at), device=one.device) for one in rows])
    table = store_schema.readings
    for one in rows:
        if one.damaged:
            damage = table.update().where(
                table.c.device == one.device, table.c.taken_at == to_microseconds(one.at)
            )
            store._database.write(
                lambda connection, damage=damage: connection.execute(damage, {"document": b"x"})
            )


HISTORIES = st.lists(
    st.builds(
        Kept,
        st.sampled_from([DeviceId(name) for name in "abcde"]),
        st.integers(0, 95).map(lambda hour: DAY_1 + hour * HOUR),
        st.booleans(),
        st.integers(0, 9).map(lambda one: one == 0),
    ),
    unique_by=lambda one: (one.device, one.at),
    max_size=60,
)


@given(HISTORIES, st.integers(0, 3), st.integers(1, 4), st.booleans())
def test_thinning_keeps_of_any_history_what_the_rule_keeps_row_by_row(
    rows: list[Kept], first: int, last: int, whole: bool
) -> None:
    since, before = DAY_1 + first * 24 * HOUR, DAY_1 + last * 24 * HOUR
    with (
        closing(SqliteStore(MEMORY)) as store,
        patch.object(table_upkeep, "TOGETHER", 2),
        patch.object(table_upkeep, "FEW_TOGETHER", 3),
    ):
        _store_history(store, rows)
        dropped = store.thin_to_daily_values(before.date(), None if whole else since.date())
        kept = _rows_to_keep(rows, DAY_1 if whole else since, before)
        silent = [replace(one, says=False, damaged=False) for one in rows]
        of_outlooks = _rows_to_keep(silent, DAY_1 if whole else since, before)
        assert _stored_keys(store, store_schema.readings, "taken_at") == kept
        assert _stored_keys(store, store_schema.outlooks, "as_of") == of_outlooks
        assert dropped == 2 * len(rows) - len(kept) - len(of_outlooks)


def test_pruning_by_many_disks_at_once_drops_what_is_old_of_each_and_no_newest(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_upkeep, "TOGETHER", 2)
    devices = [DeviceId(f"d{number}") for number in range(7)]
    store.add_readings(
        [
            _reading(one, DAY_1 + day * 24 * HOUR)
            for place, one in enumerate(devices)
            for day in range(place + 1)
        ]
    )
    assert store.prune(history=DAY_1 + 3 * 24 * HOUR) == 1 + 2 + 3 + 3 + 3 + 3 + 3
    assert [len(store.readings(one)) for one in devices] == [0, 0, 0, 1, 2, 3, 4]
    assert set(store.latest_readings()) == set(devices)
    assert store.prune(history=DAY_1 + 3 * 24 * HOUR) == 0


def test_a_disk_without_a_newest_reading_is_pruned_too(store: Store) -> None:
    store.add_readings([_reading(A, DAY_1), _reading(B, DAY_1)])
    store.forget_newest(A)
    assert store.prune(history=DAY_1 + HOUR) == 2
    assert store.readings(A) == ()


@pytest.mark.system
def test_thinning_in_a_table_without_statistics_reads_no_row_outside_its_ranges(url: str) -> None:
    """A plain join lets the planner read the whole table for a few devices."""
    with closing(PostgresStore(url)) as store:
        days = table_upkeep._select_full_days(
            store._database, store_schema.readings, "taken_at", 0, to_microseconds(DAY_1), [A, B]
        )
        rows = store._database.read(
            lambda connection: connection.execute(text("EXPLAIN " + _written_out(days))).scalars().all()
        )
    assert not [row for row in rows if "Seq Scan on readings" in row]
    assert [row for row in rows if "on readings" in row]


def _written_out(query: Select[Any]) -> str:
    return str(query.compile(dialect=postgresql.dialect(), compile_kwargs={"literal_binds": True}))


def test_daily_values_are_a_day_s_last_that_say_something_and_the_same_before_and_after_thinning(
    store: Store,
) -> None:
    store.add_readings([_reading(A, DAY_1 + n * HOUR, readable=n % 24 < 22) for n in range(60)])
    store.add_readings([_reading(B, DAY_1 + n * HOUR, readable=n > 23) for n in range(40)])
    wanted = [_reading(A, DAY_1 + n * HOUR) for n in (21, 45)] + [_reading(B, DAY_1 + 39 * HOUR)]
    assert list(store.read_daily_readings(date(2026, 3, 1), date(2026, 3, 2))) == wanted
    days = store.compute_day_fingerprints()
    store.thin_to_daily_values(date(2026, 3, 4))
    assert list(store.read_daily_readings(date(2026, 3, 1), date(2026, 3, 2))) == wanted
    assert list(store.read_daily_readings(date(2026, 3, 3), date(2026, 3, 9))) == [
        _reading(A, DAY_1 + 59 * HOUR)
    ]
    assert store.compute_day_fingerprints() == days


def test_a_day_s_number_changes_with_its_daily_values_only(store: Store) -> None:
    assert store.compute_day_fingerprints() == {}
    store.add_readings([_reading(A, DAY_1 + HOUR), _reading(A, DAY_1 + 25 * HOUR)])
    before = store.compute_day_fingerprints()
    assert set(before) == {date(2026, 3, 1), date(2026, 3, 2)}
    store.add_readings([_reading(A, DAY_1)])
    assert store.compute_day_fingerprints() == before
    store.add_readings([_reading(A, DAY_1 + 2 * HOUR)])
    later = store.compute_day_fingerprints()
    assert later[date(2026, 3, 1)] != before[date(2026, 3, 1)]
    assert later[date(2026, 3, 2)] == before[date(2026, 3, 2)]


def test_upkeep_that_was_stopped_goes_on(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.add_latency(
        LatencyWindows.from_summaries(
            [replace(FULL, osd=OsdId(n), host=HostName(f"h-{n}")) for n in range(3)]
        )
    )

    def dying(windows: Sequence[LatencySummary], start: datetime) -> LatencySummary:
        if windows[0].osd == 1:
            raise KeyboardInterrupt
        return merge_latency_summaries(windows, start)

    monkeypatch.setattr("predrain.data.store.coarse_latencies.merge_latency_summaries", dying)
    with pytest.raises(KeyboardInterrupt):
        store.merge_old_latencies(DAY_1 + HOUR)
    monkeypatch.undo()
    assert [store.read_latency_summaries(n, DAY_1)[0].window_seconds for n in range(3)] == [600.0, 60.0, 60.0]
    assert store.merge_old_latencies(DAY_1 + HOUR) == 0
    assert [store.read_latency_summaries(n, DAY_1)[0].window_seconds for n in range(3)] == [
        600.0,
        600.0,
        600.0,
    ]
