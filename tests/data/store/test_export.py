"""Exports of the store as files that training reads: each is whole or absent, none is made twice, nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from predrain.data.history import EPOCH, HistoryFiles
from predrain.data.history.history_export import ExportedMonth, ExportFailed, export_monthly_files
from predrain.data.ids import DeviceId, HostName
from predrain.data.lifespan import sources_of
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.reading import Attribute, Counters, Identity, Protocol, Reading, Smart, Unreadable
from predrain.data.store.sqlite_store import MEMORY, SqliteStore
from predrain.data.store.store_port import Store
from predrain.features.drive_state import values_of

NOON = datetime(2026, 1, 30, 12, tzinfo=UTC)
DAY = timedelta(days=1)
LAST = date(2026, 2, 28)


@pytest.fixture
def store() -> Iterator[Store]:
    store = SqliteStore(MEMORY)
    yield store
    store.close()


def _reading(serial: str, at: datetime, reallocated: int = 0) -> Reading:
    smart = Smart(
        Protocol.ATA,
        Identity(model="ST4000", serial=serial, capacity_bytes=4 * 10**12),
        True,
        Counters(),
        {5: Attribute("Reallocated_Sector_Ct", reallocated, 100), 250: Attribute("Read_Error_Retry_Rate", 7)},
        power_on_hours=1000,
    )
    return Reading(DeviceId(f"ATA_ST4000_{serial}"), HostName("h"), at, at, smart)


def _days(serial: str, count: int) -> list[Reading]:
    return [_reading(serial, NOON + n * DAY, n) for n in range(count)]


def _export(store: Store, out: Path | str, through: date = LAST) -> list[ExportedMonth]:
    return list(export_monthly_files(store, str(out), values_of, through=through))


def _files(out: Path) -> list[Path]:
    return sorted(out.glob("*/*"))


def _rows(out: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    return [row for path in _files(out) for row in pq.ParquetFile(path).read().to_pylist()]


def test_training_reads_what_was_exported(store: Store, tmp_path: Path) -> None:
    store.add_readings([*_days("Z1", 5), *_days("Z2", 4)])
    store.add_readings([_reading("Z1", NOON + DAY - timedelta(hours=3), 99)])
    store.add_readings([replace(_reading("Z2", NOON + timedelta(hours=5)), seen=Unreadable(NOON, "silent"))])
    store.add_outcome(Outcome(DeviceId("ATA_ST4000_Z2"), NOON + 9 * DAY, DriveFate.FAILED, "operator"))
    assert [month.rows for month in _export(store, tmp_path)] == [4, 5]
    assert [path.relative_to(tmp_path).as_posix() for path in _files(tmp_path)] == [
        "month=2026-01/part.parquet",
        "month=2026-02/part.parquet",
    ]
    history = HistoryFiles(_files(tmp_path)).read()
    first = (NOON.date() - EPOCH).days
    assert list(history.serials) == ["Z1", "Z2"]
    assert list(history.day) == [*range(first, first + 5), *range(first, first + 4)]
    assert list(history.raw[5]) == [0, 1, 2, 3, 4, 0, 1, 2, 3]
    assert set(history.raw[9]) == {1000.0}
    assert history.told.sentences() == []
    (source,) = sources_of(_files(tmp_path))
    assert list(source.lifespans.died) == [False, True]
    assert list(source.lifespans.last) == [first + 4, first + 3]


def test_rows_have_all_that_backblaze_s_have(store: Store, tmp_path: Path) -> None:
    store.add_readings([_reading("Z1", NOON, 3)])
    _export(store, tmp_path)
    (row,) = _rows(tmp_path)
    assert row == {
        "date": NOON.date(), "serial_number": "Z1", "model": "ST4000", "capacity_bytes": 4 * 10**12, "failure": 0,
        "smart_5_raw": 3.0, "smart_5_normalized": 100, "smart_9_raw": 1000.0, "smart_250_raw": 7.0,
        "smart_250_normalized": None,
    }  # fmt: skip


@pytest.mark.parametrize(("number", "told"), [(2**63 - 1, 2**63 - 1), (2**63, None), (2**64 - 1, None)])
def test_a_number_that_no_column_holds_is_not_known_and_the_export_goes_on(
    store: Store, tmp_path: Path, number: int, told: int | None
) -> None:
    reading = _reading("Z1", NOON)
    assert isinstance(reading.seen, Smart)
    odd = replace(
        reading.seen,
        identity=replace(reading.seen.identity, capacity_bytes=number),
        attributes={250: Attribute("Read_Error_Retry_Rate", number, number)},
    )
    store.add_readings([replace(reading, seen=odd), _reading("Z2", NOON)])
    _export(store, tmp_path)
    first, second = _rows(tmp_path)
    assert (first["capacity_bytes"], first["smart_250_normalized"]) == (told, told)
    assert first["smart_250_raw"] == float(number)
    assert second["capacity_bytes"] == 4 * 10**12


def test_months_that_have_everything_are_left_alone(store: Store, tmp_path: Path) -> None:
    store.add_readings(_days("Z1", 5))
    assert [month.rows for month in _export(store, tmp_path)] == [2, 3]
    before = [path.stat().st_mtime_ns for path in _files(tmp_path)]
    assert [month.rows for month in _export(store, tmp_path)] == [None, None]
    store.add_readings([_reading("Z1", NOON + 5 * DAY)])
    assert [month.rows for month in _export(store, tmp_path)] == [None, 4]
    assert _files(tmp_path)[0].stat().st_mtime_ns == before[0]


def test_today_is_left_for_tomorrow(store: Store, tmp_path: Path) -> None:
    store.add_readings(_days("Z1", 5))
    _export(store, tmp_path, date(2026, 2, 1))
    assert [row["date"].day for row in _rows(tmp_path)] == [30, 31, 1]


def test_readings_pruned_from_the_store_stay_in_the_exported_files(store: Store, tmp_path: Path) -> None:
    store.add_readings(_days("Z1", 5))
    _export(store, tmp_path)
    before = _rows(tmp_path)
    store.prune(history=NOON + 3 * DAY)
    _export(store, tmp_path)
    assert _rows(tmp_path) == before


def test_a_death_that_is_told_later_is_put_in_and_one_that_is_cleared_taken_out(
    store: Store, tmp_path: Path
) -> None:
    store.add_readings(_days("Z1", 5))
    _export(store, tmp_path)
    device = DeviceId("ATA_ST4000_Z1")
    for at, fate, failures in (
        (3, DriveFate.FAILED, [0, 0, 0, 1, 0]),
        (9, DriveFate.CLEARED, [0, 0, 0, 0, 0]),
    ):
        store.add_outcome(Outcome(device, NOON + at * DAY, fate, "operator"))
        _export(store, tmp_path)
        assert [row["failure"] for row in _rows(tmp_path)] == failures


def test_an_export_that_was_killed_goes_on_and_leaves_no_half_file(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as pq

    store.add_readings(_days("Z1", 5))
    months = export_monthly_files(store, str(tmp_path), values_of, through=LAST)
    assert next(months).rows == 2
    real = pq.write_table

    def dying(table: Any, file: Any, **_: Any) -> None:
        file.write(b"PAR1")
        raise KeyboardInterrupt

    monkeypatch.setattr(pq, "write_table", dying)
    with pytest.raises(KeyboardInterrupt):
        next(months)
    monkeypatch.setattr(pq, "write_table", real)
    assert not (tmp_path / "month=2026-02" / "part.parquet").exists()
    assert [month.rows for month in _export(store, tmp_path)] == [None, 3]
    assert [path.name for path in _files(tmp_path)] == ["part.parquet", "part.parquet"]


def test_any_place_that_fsspec_knows_will_do(store: Store) -> None:
    store.add_readings(_days("Z1", 5))
    assert [month.rows for month in _export(store, "memory://history")] == [2, 3]
    assert [month.rows for month in _export(store, "memory://history")] == [None, None]


def test_a_place_that_cannot_be_written_is_refused_with_the_cure(store: Store, tmp_path: Path) -> None:
    store.add_readings(_days("Z1", 1))
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ExportFailed, match=r"cannot be written .*name a folder"):
        _export(store, tmp_path / "file")
    with pytest.raises(ExportFailed, match=r"cannot be opened .*is installed"):
        _export(store, "nowhere://x")
    (tmp_path / "month=2026-01").mkdir()
    (tmp_path / "month=2026-01" / "part.parquet").write_text("no parquet")
    with pytest.raises(ExportFailed, match=r"cannot be read .*move it away"):
        _export(store, tmp_path)


def test_two_exports_at_once_to_one_folder_both_end_and_leave_whole_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as pq

    together, write = Barrier(2), pq.write_table

    def side_by_side(table: Any, file: Any, **options: Any) -> None:
        together.wait(30)  # both have begun their files
        write(table, file, **options)
        together.wait(30)

    monkeypatch.setattr(pq, "write_table", side_by_side)

    def run(_: int) -> list[ExportedMonth]:
        with closing(SqliteStore(MEMORY)) as own:
            own.add_readings(_days("Z1", 5))
            return _export(own, tmp_path)

    with ThreadPoolExecutor(2) as pool:
        assert [[month.rows for month in months] for months in pool.map(run, range(2))] == [[2, 3], [2, 3]]
    assert len(_rows(tmp_path)) == 5
