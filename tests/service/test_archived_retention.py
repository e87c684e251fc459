"""Retention writes a day to the archive before it thins the day, in a process of its own, and loses nothing."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from predrain.data.history.archive_reading import list_partitions, read_archived_readings
from predrain.data.reading import Reading
from predrain.service.app.application import Application
from predrain.service.app.retention import thin_old_days
from predrain.service.config.settings import BadSettings, RetentionTable, load_settings
from predrain.service.runtime.child_work import ChildEnded
from predrain.service.storage import reading_archive
from predrain.service.storage.reading_archive import ArchiveFailed, DaysToArchive
from tests.service.conftest import NOON, Place, shut, smart_reading

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
DEVICE = smart_reading("A").device


def _work_here(_what: str, work: Callable[..., object], *given: object) -> object:
    return work(*given)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The archive's work is done in this process, which saves a second for each."""
    monkeypatch.setattr(reading_archive, "run_in_child", _work_here)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def archiving(place: Place, folder: Path) -> Iterator[Application]:
    """A service with an archive, on the first day of its readings."""
    kept = RetentionTable(archive=folder, archive_years=2.0)
    made = replace(place, settings=place.settings.model_copy(update={"retention": kept})).application()
    yield made
    shut(made)


def _hourly(begin: int = 0, count: int = 30) -> list[Reading]:
    return [smart_reading("A", NOON + n * HOUR, hours=20_000 + n) for n in range(begin, begin + count)]


def _archived(folder: Path) -> list[Reading]:
    refused: list[object] = []
    found = list(read_archived_readings(folder, date.min, date.max, refused.append))
    assert not refused
    return found


def _wait_days(application: Application, days: float) -> None:
    application.clock.sleep(days * 86_400)


@pytest.mark.slow
def test_a_day_is_in_the_archive_by_the_hour_when_the_store_has_one_of_it(
    archiving: Application, folder: Path
) -> None:
    readings = _hourly()
    archiving.store.add_readings(readings)
    _wait_days(archiving, 91)
    assert archiving.apply_retention().rows == 11
    assert _archived(folder) == readings[:12]
    assert archiving.store.readings(DEVICE) == tuple(readings[11:])
    _wait_days(archiving, 1)
    archiving.apply_retention()
    assert _archived(folder) == readings
    _wait_days(archiving, 1)
    assert archiving.apply_retention().rows == 0
    assert [path.name for path in folder.glob("*/*")] == ["0001.hourly.parquet"] * 2


@pytest.mark.usefixtures("here")
@pytest.mark.slow
def test_another_folder_gets_all_days_that_the_store_still_has(
    archiving: Application, folder: Path, tmp_path: Path
) -> None:
    readings = _hourly()
    archiving.store.add_readings(readings)
    _wait_days(archiving, 130)
    archiving.apply_retention()
    other = tmp_path / "other"
    now = archiving.clock.now()
    assert archiving._archive is not None
    thin_old_days(archiving.store, now, replace(archiving._archive, folder=other))
    assert [one.taken_at for one in _archived(other)] == [readings[11].taken_at, readings[-1].taken_at]


@pytest.mark.usefixtures("here")
@pytest.mark.slow
def test_readings_of_years_stay_in_the_archive_when_the_store_has_dropped_them(
    archiving: Application, folder: Path
) -> None:
    readings = _hourly()
    archiving.store.add_readings([*readings, smart_reading("A", NOON + 400 * DAY)])
    _wait_days(archiving, 420)
    archiving.apply_retention()
    assert len(archiving.store.readings(DEVICE)) == 1
    assert _archived(folder) == readings
    archiving.store.add_readings([smart_reading("A", NOON + 800 * DAY)])
    _wait_days(archiving, 480)
    archiving.apply_retention()
    assert min(list_partitions(folder)) == (NOON + 400 * DAY).date()


@pytest.mark.usefixtures("here")
@pytest.mark.slow
def test_a_history_of_90_days_is_archived_before_it_is_dropped(place: Place, folder: Path) -> None:
    kept = RetentionTable(archive=folder, history_days=90.0)
    made = replace(place, settings=place.settings.model_copy(update={"retention": kept})).application()
    with closing(made.store):
        readings = _hourly()
        made.store.add_readings([*readings, smart_reading("A", NOON + 80 * DAY)])
        for _ in range(20):
            _wait_days(made, 0.3)
            made.apply_retention()
        _wait_days(made, 89)
        for _ in range(4):
            made.apply_retention()
            _wait_days(made, 0.4)
        assert _archived(folder) == readings
        assert len(made.store.readings(DEVICE)) == 1
        made.stop()
        made.log.close()


@pytest.mark.usefixtures("here")
@pytest.mark.slow
def test_late_readings_of_an_archived_day_are_archived_before_they_are_thinned(
    archiving: Application, folder: Path
) -> None:
    readings = _hourly(count=12)
    archiving.store.add_readings(readings[::2])
    _wait_days(archiving, 91)
    archiving.apply_retention()
    archiving.store.add_readings(readings[1::2])
    _wait_days(archiving, 1)
    archiving.apply_retention()
    assert _archived(folder) == readings
    assert archiving.store.readings(DEVICE) == (readings[-1],)


@pytest.mark.usefixtures("here")
@pytest.mark.slow
def test_a_clock_that_jumps_over_midnight_and_back_archives_each_reading_once(
    archiving: Application, folder: Path
) -> None:
    readings = _hourly()
    archiving.store.add_readings(readings[:8])
    _wait_days(archiving, 300)
    archiving.apply_retention()
    _wait_days(archiving, -299.7)
    archiving.store.add_readings(readings[8:])
    archiving.apply_retention()
    _wait_days(archiving, 92)
    archiving.apply_retention()
    assert _archived(folder) == readings
    assert len(archiving.store.readings(DEVICE)) == 2


@pytest.mark.usefixtures("here")
@pytest.mark.slow
def test_without_an_archive_that_can_be_written_nothing_is_thinned_until_it_can(
    archiving: Application, folder: Path
) -> None:
    readings = _hourly()
    archiving.store.add_readings([*readings, smart_reading("A", NOON + 450 * DAY)])
    folder.write_text("in the way")
    _wait_days(archiving, 500)
    for _ in range(2):
        with pytest.raises(ArchiveFailed, match=r"cannot be written .* nothing is thinned"):
            archiving.apply_retention()
    assert archiving.store.readings(DEVICE)[:30] == tuple(readings)
    folder.unlink()
    archiving.apply_retention()
    assert _archived(folder)[:30] == readings
    assert len(archiving.store.readings(DEVICE)) == 1


def _die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_killed_process_of_the_archive_is_told_and_nothing_is_thinned(
    archiving: Application, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = _hourly()
    archiving.store.add_readings(readings)
    _wait_days(archiving, 200)
    with monkeypatch.context() as patch:
        patch.setattr(reading_archive, "_archive_chosen_days", _die)
        with pytest.raises(ChildEnded, match="the archive ended without a result"):
            archiving.apply_retention()
    assert archiving.store.readings(DEVICE) == tuple(readings)
    archiving.apply_retention()
    assert _archived(folder) == readings


@pytest.mark.usefixtures("here")
@pytest.mark.slow
def test_a_row_that_cannot_be_read_does_not_keep_its_day_from_being_thinned(
    archiving: Application, place: Place, folder: Path
) -> None:
    readings = _hourly(count=12)
    archiving.store.add_readings(readings)
    with closing(sqlite3.connect(place.state.store)) as file:
        file.execute(
            "UPDATE readings SET document = x'00' WHERE taken_at = (SELECT min(taken_at) FROM readings)"
        )
        file.commit()
    _wait_days(archiving, 91)
    assert archiving.apply_retention().rows == 11
    assert _archived(folder) == readings[1:]


@pytest.mark.slow
def test_a_store_that_is_not_there_is_not_made_by_the_archive(place: Place, folder: Path) -> None:
    archive = reading_archive.ReadingArchive(place.state.path / "none.sqlite", folder, 5.0)
    with pytest.raises(ArchiveFailed, match="there is no store"):
        list(archive.save_days(DaysToArchive(NOON.date(), None, NOON.date())))
    assert not (place.state.path / "none.sqlite").exists()


@pytest.mark.slow
def test_the_service_loads_no_heavy_package_to_archive() -> None:
    script = (
        "import sys; from predrain.service.storage import reading_archive; "
        "print(sorted({'numpy', 'pyarrow', 'duckdb'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('archive = "/a"\narchive_years = 1.0', "as long as history_days"),
        ('archive = ""', "name a folder"),
        ('archive = "/a"\narchive_years = inf', "archive_years"),
    ],
)
def test_an_archive_that_would_lose_what_the_store_drops_is_refused(
    tmp_path: Path, text: str, why: str
) -> None:
    file = tmp_path / "predrain.toml"
    file.write_text(f"[retention]\n{text}\n")
    with pytest.raises(BadSettings, match=why):
        load_settings(file, {})
