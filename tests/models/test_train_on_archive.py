"""Training and backtests read an archive of one's own fleet as they read any history."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from predrain.data.device_id import device_id
from predrain.data.history import EPOCH, HistoryFiles, UnreadableHistory, describe_files, list_history_files
from predrain.data.history.archive_writing import archive_days
from predrain.data.history.history_export import find_death_days
from predrain.data.ids import HostName
from predrain.data.lifespan import sources_of
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.reading import Attribute, Counters, Identity, Protocol, Reading, Smart
from predrain.data.store.sqlite_store import MEMORY, SqliteStore
from predrain.data.store.store_port import Store
from predrain.features.drive_state import values_of
from predrain.models.forecast.bundle import trees_hash
from predrain.models.forecast.hazard import Recipe
from predrain.models.forecast.training import train_forecaster

DAILY = Path(__file__).parents[1] / "data" / "drives" / "daily.parquet"
SMALL = Recipe(rounds=20, least=20)


def add_history(store: Store, path: Path) -> tuple[int, ...]:
    """Give the store the readings and the failures of a history of daily rows; return its days."""
    history, (source,) = HistoryFiles([path]).read(), sources_of([path])
    spans = source.lifespans
    for index, serial in enumerate(history.serials):
        readings = []
        for row in range(history.start[index], history.start[index + 1]):
            raw = {n: int(read[row]) for n, read in history.raw.items() if not np.isnan(read[row])}
            at = datetime.combine(EPOCH + timedelta(days=int(history.day[row])), datetime.min.time(), UTC)
            model = history.model_names[history.model[row]]
            name = device_id(None, model, str(serial))
            assert name is not None
            smart = Smart(
                Protocol.ATA,
                Identity(model=model, serial=str(serial)),
                True,
                Counters(),
                {n: Attribute(f"smart_{n}", count) for n, count in raw.items()},
            )
            readings.append(Reading(name, HostName("h"), at, at, smart))
        store.add_readings(readings)
        place = int(spans.find_positions(history.serials)[index])
        if place >= 0 and spans.died[place]:
            died = EPOCH + timedelta(days=int(spans.last[place]))
            stated = datetime.combine(died, datetime.max.time(), UTC)
            store.add_outcome(Outcome(readings[-1].device, stated, DriveFate.FAILED, "operator"))
    return tuple(sorted({int(day) for day in history.day}))


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    with closing(SqliteStore(MEMORY)) as store:
        days = add_history(store, DAILY)
        archive_days(
            store,
            folder,
            values_of,
            tuple(EPOCH + timedelta(days=day) for day in days),
            find_death_days(store),
        )
    return folder


@pytest.mark.slow
def test_a_bundle_that_is_trained_on_an_archive_is_that_of_the_archived_history(archive: Path) -> None:
    of_archive, of_history = (
        train_forecaster(list_history_files([path]), name="one", threads=1, recipe=SMALL)
        for path in (archive, DAILY)
    )
    assert trees_hash(of_archive.booster.model_to_string()) == trees_hash(
        of_history.booster.model_to_string()
    )
    assert of_archive.facts.thresholds == of_history.facts.thresholds


@pytest.mark.slow
def test_files_of_an_archive_are_named_by_their_days(archive: Path) -> None:
    files = list_history_files([archive])
    first, last = (path.parent.name.removeprefix("day=") for path in (files[0], files[-1]))
    assert describe_files(files) == f"archive of {first} to {last}"
    assert describe_files(files[:1]) == f"archive of {first}"


def test_many_files_are_named_by_the_first_and_the_number_of_the_others() -> None:
    files = [Path(f"part{number}.parquet") for number in range(1, 6)]
    assert describe_files(files) == "part1, part2, part3, 2 more"
    assert describe_files(files[:2]) == "part1, part2"


def test_a_day_that_an_archive_was_about_to_remove_is_no_part_of_the_folder(tmp_path: Path) -> None:
    for name in ("day=2026-11-27", ".dropped-2021-11-27"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0001.hourly.parquet").touch()
    assert [path.parent.name for path in list_history_files([tmp_path])] == ["day=2026-11-27"]


def test_a_folder_stands_for_its_files_and_an_empty_one_is_refused(tmp_path: Path) -> None:
    for name in ("b.csv", "a.parquet", "notes.txt"):
        (tmp_path / name).touch()
    assert [path.name for path in list_history_files([tmp_path])] == ["a.parquet", "b.csv"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnreadableHistory, match="no parquet or CSV file below"):
        list_history_files([tmp_path / "empty"])
