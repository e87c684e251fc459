"""Figures of the forecast: features and scores of whole fleets, one drive's forecast, the full training."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tests.bench.figure import Figure, MissingInput, Work
from tests.bench.plain_features import difference, plain_features
from tests.conftest import data_folder

if TYPE_CHECKING:
    from predrain.data.history import History
    from predrain.data.ids import DeviceId
    from predrain.data.reading import Reading

DAILY = "st4000dm000_2018h1_daily.parquet"
SHIPPED = (DAILY, "fleet_2013_2016q1_changes.parquet", "fleet_2013_2016q1_drives.parquet")
LAST = date(2018, 6, 28)
FLEET, DAYS = 300_000, 31
DRIVES = 6_000
CANDIDATES = 6_280
"""So many of the half-year's drives that about 6,000 still report on its last day."""


def histories() -> Path:
    """The folder of the drives' histories. Raises MissingInput."""
    folder = data_folder()
    if folder is None:
        raise MissingInput("no drive histories: set PREDRAIN_DATA")
    return folder / "drives"


def half_year() -> Path:
    """ST4000DM000, January to June 2018, daily. Raises MissingInput."""
    return histories() / DAILY


def features(paths: Sequence[Path] | None = None) -> Work:
    """Every drive-day a landmark: read, held, measured; nothing kept."""
    from predrain.data.history import HistoryFiles
    from predrain.models.forecast.part_executor import ThreadExecutor

    work, executor = Work(), ThreadExecutor(2)
    _warm()
    with work.timed():
        files = HistoryFiles(paths or [half_year()], threads=2)
        for count, columns in executor.map_parts(
            partial(_measured, files=files), files.split_into_parts(executor.rows_per_part)
        ):
            work.amount += count
            work.note = f"{columns} features"
    return work


def _measured(part: object, *, files: object) -> tuple[int, int]:
    from predrain.data.history import HistoryFiles, SerialRange
    from predrain.features.drive_history_rows import ledger_of
    from predrain.features.feature_vectors import compute_feature_vectors

    assert isinstance(part, SerialRange)
    assert isinstance(files, HistoryFiles)
    history = files.read(part=part)
    ledger = ledger_of(history)
    drive, day = history.drive.astype(np.int64), history.day.astype(np.int64)
    count = columns = 0
    for begin in range(0, len(day), 100_000):
        x = compute_feature_vectors(ledger, drive[begin : begin + 100_000], day[begin : begin + 100_000])
        count, columns = count + len(x), x.shape[1]
    return count, columns


def pandas_features() -> Work:
    """The same features, as far as a page of pandas goes, of every day of the first drives; checked to be equal."""
    from predrain.data.history import HistoryFiles
    from predrain.features.drive_history_rows import ledger_of
    from predrain.features.feature_schema import NAMES_IN_ORDER
    from predrain.features.feature_vectors import compute_feature_vectors

    work = Work()
    with tempfile.TemporaryDirectory() as folder:
        some = Path(folder) / "some.parquet"
        write_query(f"SELECT * FROM '{half_year()}' WHERE serial_number < 'Z3006'", some)
        with work.timed():
            found = plain_features(some)
            work.amount = len(found)
        history = HistoryFiles([some]).read()
        x = compute_feature_vectors(
            ledger_of(history), history.drive.astype(np.int64), history.day.astype(np.int64)
        )
        ours = {name: x[:, NAMES_IN_ORDER.index(name)] for name in found.columns}
        unequal = difference(found, ours)
    assert not unequal, f"pandas and predrain differ: {unequal}"
    work.note = f"{found.shape[1]} features, each equal to ours"
    return work


def twice_as_long() -> Work:
    """The half-year, and the same half-year once more after it: histories of twice the length."""
    with tempfile.TemporaryDirectory() as folder:
        later = Path(folder) / "later.parquet"
        write_query(f"SELECT * REPLACE (date + 181 AS date) FROM '{half_year()}'", later)
        return features([half_year(), later])


@contextmanager
def large_fleet() -> Iterator[Path]:
    """The last 31 days of the half-year's drives, over and over under other serial numbers: 300,000 drives."""
    since = LAST - timedelta(days=DAYS - 1)
    month = f"SELECT * FROM '{half_year()}' WHERE date BETWEEN DATE '{since}' AND DATE '{LAST}'"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.parquet"
        write_query(
            f"WITH month AS ({month}), drives AS (SELECT DISTINCT serial_number AS name FROM month), "
            "copies AS (SELECT name, copy, name || '-' || copy AS serial FROM drives, range(20) t(copy) "
            f"ORDER BY copy, name LIMIT {FLEET}) "
            "SELECT month.* REPLACE (serial AS serial_number) FROM month JOIN copies ON serial_number = name",
            path,
        )
        yield path


def daily_pass() -> Work:
    """`predrain score` of one day over 300,000 drives."""
    with large_fleet() as path:
        return _scored(path, LAST)


def weekly_landmarks() -> Work:
    """`predrain score` over 14 weeks of the half-year's drives."""
    return _scored(half_year(), LAST - timedelta(weeks=13))


def _scored(path: Path, first: date) -> Work:
    from predrain.service.cli import main

    work = Work()
    _warm()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "scores.parquet"
        asked = ["--from", str(first), "--to", str(LAST), "--every", "7", "--out", str(out), "--threads", "2"]
        with work.timed():
            assert main(["score", str(path), *asked]) == 0
        import pyarrow.parquet as pq

        work.amount = pq.read_metadata(out).num_rows
    return work


def one_reading() -> Work:
    """A reading arrives: the drive's state goes on and its outlook is made, one drive at a time."""
    from predrain.data.history import HistoryFiles
    from predrain.data.ids import DeviceId
    from predrain.service.forecasting.bundle_choice import BundledForecaster

    history = HistoryFiles([half_year()], threads=2).read(keep=lambda names: np.arange(len(names)) % 800 == 0)
    forecaster, work, took = BundledForecaster.load(), Work(), []
    for drive in range(history.drives):
        device, state, before = DeviceId(f"ST4000DM000_{history.serials[drive]}"), None, {}
        for row in range(history.start[drive], history.start[drive + 1]):
            reading = _reading(device, history, row)
            if row < history.start[drive + 1] - 12:
                state = forecaster.fold(state, [reading])
                continue
            seconds = work.seconds
            with work.timed():
                state = forecaster.fold(state, [reading])
                (outlook,) = forecaster.compute_outlooks([state], reading.taken_at, before)
            before = {device: outlook}
            took.append(work.seconds - seconds)
    work.amount = len(took)
    half, most = np.quantile(took, [0.5, 0.99]) * 1000
    work.note = f"p50 {half:.1f} ms, p99 {most:.1f} ms"
    return work


def _reading(device: DeviceId, history: History, row: int) -> Reading:
    from predrain.data.history import EPOCH
    from predrain.data.ids import HostName
    from predrain.data.reading import Attribute, Counters, Identity, Protocol, Reading, Smart

    raw = {n: int(values[row]) for n, values in history.raw.items() if np.isfinite(values[row])}
    at = datetime.combine(EPOCH + timedelta(days=int(history.day[row])), datetime.min.time(), UTC)
    smart = Smart(
        protocol=Protocol.ATA,
        identity=Identity(model="ST4000DM000", serial="bench", rotation_rpm=5900),
        passed=True,
        counters=Counters(reallocated=raw.get(5), pending=raw.get(197), reported_uncorrectable=raw.get(187)),
        attributes={n: Attribute(str(n), value) for n, value in raw.items()},
        power_on_hours=raw.get(9),
        temperature_c=raw.get(194),
    )
    return Reading(device, HostName("bench"), at, at, smart)


def latest_day() -> Work:
    """Features from the whole half-year and scores of one day, of drives already in memory."""
    from predrain.data.history import HistoryFiles
    from predrain.models.forecast.bundle import Bundle
    from predrain.models.forecast.history_scores import score_history

    history = HistoryFiles([half_year()], threads=2).read(
        keep=lambda names: np.arange(len(names)) < CANDIDATES
    )
    bundle = Bundle.load(None, threads=2)
    last = np.array([int(history.day.max())])
    score_history(history, bundle, last)
    work = Work(note=f"{len(history.day):,} rows of history")
    with work.timed():
        work.amount = len(score_history(history, bundle, last))
    return work


def trees_alone(rows: int) -> Work:
    """LightGBM's own prediction of as many rows and intervals: what no code around it can go below."""
    import lightgbm as lgb

    from predrain.models.forecast.bundle import DEFAULT
    from predrain.models.forecast.hazard import INTERVALS

    half_year()
    booster = lgb.Booster(model_file=DEFAULT / "model.txt")
    x = np.random.default_rng(0).random((min(rows, 20_000), booster.num_feature()))
    booster.predict(x[:10], num_threads=2)
    work = Work(amount=rows)
    with work.timed():
        for _ in range(INTERVALS * rows // len(x)):
            booster.predict(x, num_threads=2)
    return work


def full_training() -> Work:
    """Train as `make train` does: landmarks, three cross-fitted boosters, calibration, thresholds, the last booster."""
    from predrain.models.forecast.training import train_forecaster

    folder, work = histories(), Work()
    with work.timed():
        trained = train_forecaster([folder / name for name in SHIPPED], name="bench", threads=2)
    work.amount = trained.facts.counts["landmarks"]
    work.note = f"{trained.facts.counts['deaths']:,} deaths"
    return work


def landmarks_alone() -> Work:
    """Drawing the landmarks, without learning."""
    from predrain.data.lifespan import sources_of
    from predrain.models.forecast.landmarks import draw_landmarks

    folder, work = histories(), Work()
    with work.timed():
        for source in sources_of([folder / name for name in SHIPPED]):
            work.amount += len(draw_landmarks(source, until=None, seed=20180630))
    return work


def write_query(query: str, out: Path) -> None:
    """Write the rows of a query to a parquet file."""
    import duckdb

    with duckdb.connect(":memory:", config={"threads": 2, "memory_limit": "1GB"}) as connection:
        connection.execute("SET preserve_insertion_order = false; SET enable_progress_bar = false")
        connection.execute(f"COPY ({query}) TO '{out}' (FORMAT parquet, COMPRESSION lz4)")


def _warm() -> None:
    """Import what is slow to import, so that it is not what is measured."""
    import duckdb
    import lightgbm
    import pyarrow.compute

    del duckdb, lightgbm, pyarrow


FIGURES = (
    Figure(
        "features of 2018 H1, every day", "drive-days", features, pandas_features,
        "plain pandas, a subset of them", "250,000/s and under 3 GB",
        lambda work, gigabytes: work.quiet_rate >= 250_000 and gigabytes < 3,
    ),
    Figure(
        "features of histories twice as long", "drive-days", twice_as_long, features,
        "2018 H1 alone: see both peaks", "250,000/s and under 3 GB",
        lambda work, gigabytes: work.quiet_rate >= 250_000 and gigabytes < 3,
    ),
    Figure(
        "scores of a day, features included", "drives", latest_day, partial(trees_alone, DRIVES),
        "LightGBM's predict alone", "6,000 under 1 s", lambda work, _: work.quiet < 1,
    ),
    Figure(
        "predrain score, one day of 300,000 drives", "drives", daily_pass, partial(trees_alone, FLEET),
        "LightGBM's predict alone", "under 2 min", lambda work, _: work.quiet < 120,
    ),
    Figure(
        "predrain score, 14 weeks of 2018 H1", "scores", weekly_landmarks, partial(trees_alone, 14 * 28_000),
        "LightGBM's predict alone", "under 60 s", lambda work, _: work.quiet < 60,
    ),
    Figure(
        "one drive's forecast as a reading arrives", "readings", one_reading, partial(trees_alone, 1),
        "LightGBM's predict alone", "under 5 ms", lambda work, _: work.quiet / work.amount < 0.005,
    ),
    Figure(
        "full training", "landmarks", full_training, landmarks_alone,
        "drawing the landmarks alone", "under 15 min and 8 GB",
        lambda work, gigabytes: work.quiet < 900 and gigabytes < 8, long=True,
    ),
)  # fmt: skip
