"""The archive gives back each reading that the store thins, and is a history that training reads in place."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predrain.data.history import EPOCH, LIMITS, HistoryFiles, archive_writing
from predrain.data.history.archive_reading import (
    DamagedPartition,
    list_partitions,
    read_archived_readings,
)
from predrain.data.history.archive_writing import (
    ArchivedDays,
    ArchiveUnwritable,
    archive_days,
    drop_old_partitions,
)
from predrain.data.history.history_export import export_monthly_files, find_death_days
from predrain.data.ids import ClusterId, DeviceId, HostName, OsdId
from predrain.data.lifespan import sources_of
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.reading import (
    Attribute,
    Counters,
    Identity,
    Logs,
    OsdDevice,
    Protocol,
    Reading,
    Role,
    Smart,
    Unreadable,
)
from predrain.data.residence import BETWEEN
from predrain.data.smart import Undecodable, decode_smartctl_output
from predrain.data.store.sqlite_store import MEMORY, SqliteStore
from predrain.data.store.store_port import Store
from predrain.data.unreadable import UnreadableCause
from predrain.features.drive_state import values_of

SAMPLES = Path(__file__).parents[1] / "smart" / "samples"
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
DAY = BEGIN.date()
NEXT = DAY + timedelta(days=1)
HOUR = timedelta(hours=1)
INTS = st.none() | st.integers(0, 2**64 - 1)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=9)
TIMES = st.integers(0, 2**52).map(lambda at: datetime(2000, 1, 1, tzinfo=UTC) + timedelta(microseconds=at))
SMARTS = st.builds(
    Smart,
    st.sampled_from(Protocol),
    st.builds(Identity, *[st.none() | TEXTS] * 6, INTS, INTS),
    st.none() | st.booleans(),
    st.builds(Counters, *[INTS] * 17),
    st.dictionaries(
        st.sampled_from([*LIMITS, 1, 7, 190, 255]),
        st.builds(Attribute, TEXTS, st.integers(-128, 2**64 - 1), INTS, INTS, INTS, INTS),
        max_size=6,
    ),
    INTS,
    st.none() | st.integers(-60, 150),
    st.none() | st.lists(st.integers(0, 7), max_size=3).map(tuple),
    INTS,
    st.none() | st.builds(Logs, *[INTS] * 4),
)
READINGS = st.builds(
    Reading,
    st.sampled_from([DeviceId(name) for name in ("A", "B_1", f"B_1{BETWEEN}h", "ä\U0001f4bd")]),
    TEXTS.map(HostName),
    st.integers(0, 86_399_999_999).map(lambda at: BEGIN + timedelta(microseconds=at)),
    TIMES,
    SMARTS | st.builds(Unreadable, TIMES, TEXTS, st.sampled_from(UnreadableCause)),
    st.lists(
        st.builds(
            OsdDevice,
            st.integers(0, 9).map(OsdId),
            st.sampled_from(Role),
            st.none() | st.just(ClusterId("00000000-0000-0000-0000-000000000001")),
        ),
        max_size=2,
    ).map(tuple),
    INTS,
)


@cache
def _list_samples() -> list[Smart]:
    """Every drive that the samples' documents show, as JSON."""
    found = []
    for path in sorted(SAMPLES.rglob("*.json")):
        try:
            found.append(decode_smartctl_output(path.read_bytes(), BEGIN).smart)
        except Undecodable:
            continue
    assert len({one.identity.model for one in found}) > 20
    return found


def _take(smart: Smart | Unreadable, number: int, at: datetime) -> Reading:
    return Reading(
        DeviceId(f"D_{number:04}"), HostName(f"h{number % 3}"), at, at + timedelta(seconds=2), smart
    )


def _list_day(day: date = DAY, hours: int = 24) -> list[Reading]:
    """An hourly day of one drive of each sample; the third drive cannot be read from noon on."""
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return [
        _take(
            Unreadable(begin, "silent", UnreadableCause.TIMEOUT)
            if number == 2 and hour >= 12
            else replace(
                smart,
                identity=replace(smart.identity, serial=f"{number:04}"),
                power_on_hours=(smart.power_on_hours or 0) % 100_000 + hour,
            ),
            number,
            begin + hour * HOUR + timedelta(microseconds=number),
        )
        for number, smart in enumerate(_list_samples())
        for hour in range(hours)
    ]


def _archive(store: Store, folder: Path, *days: date) -> ArchivedDays:
    return archive_days(store, folder, values_of, days or (DAY,), find_death_days(store))


def _refuse(damaged: DamagedPartition) -> None:
    raise damaged


def _read(folder: Path, refuse: Callable[[DamagedPartition], None] = _refuse) -> list[Reading]:
    return list(read_archived_readings(folder, date.min, date.max, refuse))


def _order(readings: list[Reading]) -> list[Reading]:
    return sorted(readings, key=lambda one: (one.taken_at.date(), one.device, one.taken_at))


def _files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*") if path.name != ".lock")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of its own: the store's file lies beside it."""
    return tmp_path / "archive"


@pytest.fixture
def day() -> list[Reading]:
    return _list_day(hours=4)


@pytest.mark.slow
def test_drives_of_all_makers_come_back_as_they_were_stored(store: Store, folder: Path) -> None:
    day = _list_day()
    store.add_readings(day)
    done = _archive(store, folder)
    assert done.readings == len(day)
    assert set(done.counts.values()) == {24}
    assert _read(folder) == _order(day)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(READINGS, min_size=1, max_size=12, unique_by=lambda one: (one.device, one.taken_at)))
def test_any_reading_comes_back_with_what_is_unknown_unknown(readings: list[Reading]) -> None:
    with closing(SqliteStore(MEMORY)) as store, TemporaryDirectory() as folder:
        store.add_readings(readings)
        _archive(store, Path(folder))
        assert _read(Path(folder)) == _order(readings)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(READINGS, min_size=1, max_size=12, unique_by=lambda one: (one.device, one.taken_at)))
def test_training_reads_of_each_drive_the_last_values_of_the_day_as_the_features_use_them(
    readings: list[Reading],
) -> None:
    wanted: dict[str, dict[int, float]] = {}
    for number, one in enumerate(sorted(readings, key=lambda one: one.taken_at)):
        readings[number] = one
        if isinstance(one.seen, Smart):
            own = replace(one.seen.identity, serial=one.device)
            readings[number] = replace(one, seen=replace(one.seen, identity=own))
            if BETWEEN not in one.device:
                wanted[one.device] = values_of(one.seen)
    with closing(SqliteStore(MEMORY)) as store, TemporaryDirectory() as folder:
        store.add_readings(readings)
        _archive(store, Path(folder))
        history = HistoryFiles(list(Path(folder).glob("*/*.parquet"))).read()
    assert list(history.serials) == sorted(wanted)
    assert set(history.day) <= {(DAY - EPOCH).days}
    for n in LIMITS:
        read = history.raw.get(n, np.full(len(wanted), np.nan))
        assert repr(list(read)) == repr([np.float64(wanted[one].get(n, np.nan)) for one in history.serials])
    assert history.told.refused_rows == 0


@pytest.mark.slow
def test_an_archive_and_an_export_of_one_store_are_one_history(store: Store, folder: Path) -> None:
    store.add_readings([*_list_day(hours=3), *_list_day(NEXT, hours=3)])
    _archive(store, folder / "archive", DAY, NEXT)
    list(export_monthly_files(store, f"{folder}/export", values_of, through=NEXT))
    archived, exported = (
        HistoryFiles(sorted(folder.glob(f"{kind}/*/*.parquet"))).read() for kind in ("archive", "export")
    )
    assert list(archived.serials) == list(exported.serials)
    assert list(archived.day) == list(exported.day)
    assert archived.model_names == exported.model_names
    assert {n: read.tobytes() for n, read in archived.raw.items()} == {
        n: read.tobytes() for n, read in exported.raw.items()
    }


def test_deaths_that_are_known_are_in_the_archive(store: Store, folder: Path) -> None:
    store.add_readings([*_list_day(hours=2), *_list_day(NEXT, hours=2)])
    store.add_outcome(Outcome(DeviceId("D_0001"), BEGIN + 40 * HOUR, DriveFate.FAILED, "operator"))
    _archive(store, folder, DAY, NEXT)
    (source,) = sources_of(sorted(folder.glob("day=*/*.parquet")))
    dead = [
        str(serial)
        for serial, died in zip(source.lifespans.serials, source.lifespans.died, strict=True)
        if died
    ]
    assert dead == ["0001"]
    assert set(source.lifespans.last) <= {(DAY - EPOCH).days, (NEXT - EPOCH).days}


def test_a_day_that_is_archived_is_written_no_second_time(
    store: Store, day: list[Reading], folder: Path
) -> None:
    store.add_readings(day)
    first = _archive(store, folder)
    before = (folder / f"day={DAY}" / "0001.hourly.parquet").read_bytes()
    again = _archive(store, folder)
    assert (again.readings, again.counts) == (0, first.counts)
    assert _files(folder) == [f"day={DAY}/0001.hourly.parquet"]
    with TemporaryDirectory() as other:
        _archive(store, Path(other))
        assert (Path(other) / f"day={DAY}" / "0001.hourly.parquet").read_bytes() == before


def test_late_readings_get_a_file_of_their_own_and_each_is_read_once(
    store: Store, day: list[Reading], folder: Path
) -> None:
    late = day[1::4]
    store.add_readings([one for one in day if one not in late])
    _archive(store, folder)
    store.thin_to_daily_values(NEXT)
    store.add_readings(late)
    assert _archive(store, folder).readings == len(late)
    assert _files(folder) == [f"day={DAY}/0001.hourly.parquet", f"day={DAY}/0002.hourly.parquet"]
    assert _read(folder) == _order(day)
    doubled = folder / f"day={DAY}" / "0003.hourly.parquet"
    doubled.write_bytes((folder / f"day={DAY}" / "0001.hourly.parquet").read_bytes())
    assert _read(folder) == _order(day)


@pytest.mark.slow
def test_a_day_of_many_drives_is_cut_into_several_files(
    store: Store, day: list[Reading], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_writing, "TOGETHER", 3)
    monkeypatch.setattr(archive_writing, "FILE_ROWS", 20)
    store.add_readings(day)
    _archive(store, folder)
    assert len(_files(folder)) > 2
    assert _read(folder) == _order(day)
    assert len(HistoryFiles([folder / name for name in _files(folder)]).read().serials) == len(
        _list_samples()
    )


class Killed(BaseException):
    """The process ends at this call."""


CALLS = ("fsync", "rename", "mkdir")


def _kill_at(monkeypatch: pytest.MonkeyPatch, call: int) -> Callable[[], int]:
    """End the process at the `call`-th step that touches the disk; return how many steps there were."""
    steps = [0]

    def step(real: Callable[..., object]) -> Callable[..., object]:
        def run(*given: object, **named: object) -> object:
            steps[0] += 1
            if steps[0] == call:
                raise Killed
            return real(*given, **named)

        return run

    for name in CALLS:
        monkeypatch.setattr(os, name, step(getattr(os, name)))
    monkeypatch.setattr(archive_writing, "_write_parquet", step(archive_writing._write_parquet))
    return lambda: steps[0]


@pytest.mark.slow
def test_a_kill_at_any_step_loses_nothing_and_the_next_run_completes_the_day(
    day: list[Reading], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    call = 0
    while True:
        call += 1
        here = folder / str(call)
        with closing(SqliteStore(MEMORY)) as store:
            store.add_readings(day)
            with monkeypatch.context() as patch:
                _kill_at(patch, call)
                try:
                    _archive(store, here)
                    break
                except Killed:
                    pass
            whole = _read(here) if here.exists() else []
            assert whole in ([], _order(day))
            _archive(store, here)
            assert _read(here) == _order(day)
            assert _files(here) == [f"day={DAY}/0001.hourly.parquet"]
    assert call > 5


def test_a_half_written_file_is_no_part_of_the_day_and_is_removed(
    store: Store, day: list[Reading], folder: Path
) -> None:
    (folder / f"day={DAY}").mkdir(parents=True)
    (folder / f"day={DAY}" / "0001.part").write_bytes(b"PAR1 and no end")
    store.add_readings(day)
    assert _read(folder) == []
    _archive(store, folder)
    assert _files(folder) == [f"day={DAY}/0001.hourly.parquet"]


@pytest.mark.parametrize("part", ["header", "middle", "end", "all"])
def test_a_damaged_file_is_named_with_the_cure_and_the_others_are_read(
    store: Store, day: list[Reading], folder: Path, part: str
) -> None:
    other = _list_day(NEXT, hours=4)
    store.add_readings([*day, *other])
    _archive(store, folder, DAY, NEXT)
    path = folder / f"day={DAY}" / "0001.hourly.parquet"
    whole = path.read_bytes()
    at = {"header": 0, "middle": 700, "end": len(whole) - 8, "all": 0}[part]
    path.write_bytes(
        b"" if part == "all" else whole[:at] + bytes(b ^ 0xFF for b in whole[at : at + 8]) + whole[at + 8 :]
    )
    refused: list[DamagedPartition] = []
    assert _read(folder, refused.append) == _order(other)
    (damaged,) = refused
    assert str(path) in str(damaged)
    assert "move it away" in str(damaged)


def test_the_readings_of_a_damaged_file_are_written_again_from_the_store(
    store: Store, day: list[Reading], folder: Path
) -> None:
    store.add_readings(day)
    _archive(store, folder)
    path = folder / f"day={DAY}" / "0001.hourly.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    done = _archive(store, folder)
    assert done.readings == len(day)
    (told,) = done.damaged
    assert str(path) in told
    assert _read(folder, lambda _: None) == _order(day)


def test_a_full_disk_is_named_with_the_cure_and_leaves_no_file(
    store: Store, day: list[Reading], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(_rows: object, path: Path) -> None:
        path.write_bytes(b"PAR1")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store.add_readings(day)
    with monkeypatch.context() as patch:
        patch.setattr(archive_writing, "_write_parquet", fill)
        with pytest.raises(ArchiveUnwritable, match=r"No space left .* free space .* nothing is thinned"):
            _archive(store, folder)
    assert _read(folder) == []
    _archive(store, folder)
    assert _files(folder) == [f"day={DAY}/0001.hourly.parquet"]


def test_a_second_writer_waits_for_its_next_try(store: Store, folder: Path) -> None:
    with (
        archive_writing._lock_archive(folder),
        pytest.raises(ArchiveUnwritable, match="another process writes"),
    ):
        _archive(store, folder)


def test_a_day_that_is_too_old_is_dropped_as_a_folder_whatever_the_clock_says(
    store: Store, folder: Path
) -> None:
    days = [DAY - timedelta(days=n) for n in (800, 731, 700, 0)]
    for one in days:
        store.add_readings(_list_day(one, hours=1)[:3])
    _archive(store, folder, *days)
    assert drop_old_partitions(folder, 2.0) == tuple(days[:2])
    assert list(list_partitions(folder)) == days[2:]
    assert drop_old_partitions(folder, 2.0) == ()


def test_a_drop_that_was_killed_is_ended_by_the_next_run(store: Store, folder: Path) -> None:
    store.add_readings(_list_day(hours=1)[:3])
    _archive(store, folder)
    (folder / f"day={DAY}").rename(folder / f".dropped-{DAY}")
    assert _read(folder) == []
    drop_old_partitions(folder, 2.0)
    assert [path.name for path in folder.iterdir()] == [".lock"]


def test_more_counts_than_fit_into_memory_leave_days_for_the_next_run(
    store: Store, day: list[Reading], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_writing, "MOST_COUNTS", 1)
    store.add_readings([*day, *_list_day(NEXT, hours=4)])
    done = _archive(store, folder, DAY, NEXT)
    assert done.left == (NEXT,)
    assert {of for _, of in done.counts} == {DAY}


def test_the_days_and_times_of_readings_are_those_that_were_stored(store: Store, day: list[Reading]) -> None:
    other = _list_day(NEXT, hours=2)
    store.add_readings([*day, *other])
    assert store.list_reading_days(NEXT) == (DAY,)
    assert store.list_reading_days(NEXT + timedelta(days=1)) == (DAY, NEXT)
    times = {device: list(taken) for device, taken in store.iterate_day_times(NEXT)}
    assert times == {
        one.device: [other.taken_at for other in _list_day(NEXT, hours=2) if other.device == one.device]
        for one in other
    }
    assert list(store.read_day_readings(DAY, [DeviceId("D_0001"), DeviceId("none")])) == day[4:8]


def test_only_days_with_as_many_readings_as_are_archived_are_thinned(
    store: Store, day: list[Reading]
) -> None:
    store.add_readings(day)
    counts = {(DeviceId("D_0000"), DAY): 4, (DeviceId("D_0001"), DAY): 3}
    assert store.thin_to_daily_values(NEXT, None, counts) == 3
    assert len(store.readings(DeviceId("D_0001"))) == 4
    assert store.thin_to_daily_values(NEXT, None, {}) == 0


def _thin_beside(store: Store, other: Store, day: list[Reading], monkeypatch: pytest.MonkeyPatch) -> None:
    from predrain.data.store import table_upkeep

    thin = table_upkeep._thin_days

    def beside(*given: object) -> tuple[int, int]:
        monkeypatch.undo()
        late = replace(day[1], taken_at=day[1].taken_at + timedelta(seconds=1))
        other.add_readings([late])
        return thin(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(table_upkeep, "_thin_days", beside)
    counts = {(one.device, DAY): 4 for one in day}
    assert store.thin_to_daily_values(NEXT, None, counts) == 0
    assert len(store.readings(day[1].device)) == 5


@pytest.mark.system
def test_a_reading_that_comes_while_its_day_is_thinned_is_not_dropped(
    url: str, day: list[Reading], monkeypatch: pytest.MonkeyPatch
) -> None:
    from predrain.data.store.postgres_store import PostgresStore

    with closing(PostgresStore(url)) as store, closing(PostgresStore(url)) as other:
        store.add_readings(day)
        _thin_beside(store, other, day, monkeypatch)
