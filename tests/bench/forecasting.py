"""Figures of the forecast: features over half a year, and the scores of one day."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.bench.figure import Figure, MissingInput, Work
from tests.conftest import data_folder

COUNTERS = tuple(f"smart_{number}_raw" for number in (5, 187, 188, 197, 198))
DRIVES = 6_000
CANDIDATES = 6_280
"""So many of the half-year's drives that about 6,000 still report on its last day."""


def half_year() -> Path:
    """ST4000DM000, January to June 2018, daily. Raises MissingInput."""
    folder = data_folder()
    if folder is None:
        raise MissingInput("no drive histories: set PREDRAIN_DATA")
    return folder / "drives" / "st4000dm000_2018h1_daily.parquet"


def features() -> Work:
    """Every drive-day a landmark: read, held, measured; nothing kept."""
    from data.history import HistoryFiles
    from features.ledger import ledger_of
    from features.vector import vectors

    work = Work()
    with work.timed():
        files = HistoryFiles([half_year()], threads=2)
        for part in files.parts():
            history = files.read(part=part)
            ledger = ledger_of(history)
            drive, day = history.drive.astype(np.int64), history.day.astype(np.int64)
            for begin in range(0, len(day), 250_000):
                piece = slice(begin, begin + 250_000)
                x = vectors(ledger, drive[piece], day[piece])
                work.amount += len(x)
                work.note = f"{x.shape[1]} features"
    return work


def pandas_differences() -> Work:
    """A plain read, and one difference of each counter within its drive."""
    import pandas as pd

    work = Work()
    with work.timed():
        frame = pd.read_parquet(half_year(), columns=["serial_number", "date", *COUNTERS])
        changed = frame.groupby("serial_number", observed=True)[list(COUNTERS)].diff()
        work.amount = len(changed)
    work.note = f"{len(COUNTERS)} features"
    return work


def latest_day() -> Work:
    """Features from the whole half-year and scores of one day, of drives already in memory."""
    from data.history import HistoryFiles
    from models.bundle import Bundle
    from models.score import score_history

    history = HistoryFiles([half_year()], threads=2).read(keep=_first_drives)
    bundle = Bundle.load(None, threads=2)
    last = np.array([int(history.day.max())])
    score_history(history, bundle, last)
    work = Work(note=f"{len(history.day):,} rows of history")
    with work.timed():
        work.amount = len(score_history(history, bundle, last))
    return work


def booster_alone() -> Work:
    """LightGBM's own prediction of as many rows: what no code around it can go below."""
    import lightgbm as lgb

    from models.bundle import DEFAULT

    booster = lgb.Booster(model_file=DEFAULT / "model.txt")
    half_year()
    rows = np.random.default_rng(0).random((DRIVES, booster.num_feature()))
    booster.predict(rows[:10], num_threads=2)
    work = Work(amount=DRIVES)
    with work.timed():
        booster.predict(rows, num_threads=2)
    return work


def _first_drives(serials: list[str]) -> np.ndarray:
    return np.arange(len(serials)) < CANDIDATES


FIGURES = (
    Figure(
        "features of 2018 H1, every day", "drive-days", features, pandas_differences,
        "pandas: read, groupby, diff", "under 120 s and 4 GB",
        lambda work, gigabytes: work.seconds < 120 and gigabytes < 4,
    ),
    Figure(
        "scores of a day, features included", "drives", latest_day, booster_alone,
        "LightGBM's predict alone", "6,000 under 1 s", lambda work, _: work.seconds < 1,
    ),
)  # fmt: skip
