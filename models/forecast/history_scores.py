"""Scores of whole histories: for each landmark day one row for every drive that reported in the week before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from predrain.data.history import EPOCH, History, HistoryDefects, HistoryFiles, SerialRange
from predrain.features.drive_history_rows import ledger_of
from predrain.features.feature_schema import has_reported_counters
from predrain.features.feature_vectors import compute_feature_vectors, rows_at
from predrain.models.forecast.bundle import Bundle
from predrain.models.forecast.explanations import explain_forecasts
from predrain.models.forecast.part_executor import PartExecutor, ThreadExecutor

if TYPE_CHECKING:
    import pyarrow as pa

FRESH: Final = 6
"""A drive is scored on a day when it has a row on it or in this many days before."""


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores of one part of the drives."""

    table: pa.Table
    told: HistoryDefects


def score_landmark_days(
    history: Sequence[Path] | HistoryFiles,
    bundle: Bundle,
    *,
    first: date,
    last: date,
    every: int = 1,
    today: date | None = None,
    threads: int = 2,
    executor: PartExecutor | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[Scored]:
    """Score landmark days first, first + every, ... last, one part of the drives at a time, ordered by drive and day.

    today: rows of later days are errors. `executor`: the executor of the parts, by default `threads` threads. Raises
    UnreadableHistory.
    """
    files = history if isinstance(history, HistoryFiles) else HistoryFiles(history, threads=threads)
    executor = ThreadExecutor(threads) if executor is None else executor
    days = np.arange((first - EPOCH).days, (last - EPOCH).days + 1, every, dtype=np.int64)
    parts = files.split_into_parts(executor.rows_per_part, executor.copiers)
    work = partial(_score_part, files=files, bundle=bundle, days=days, until=last, today=today)
    for number, scored in enumerate(executor.map_parts(work, parts), 1):
        tell(f"scored part {number} of {len(parts)}: {len(scored.table):,} rows")
        yield scored


def _score_part(
    part: SerialRange,
    *,
    files: HistoryFiles,
    bundle: Bundle,
    days: NDArray[np.int64],
    until: date,
    today: date | None,
) -> Scored:
    history = files.read(until=until, today=today, part=part)
    return Scored(score_history(history, bundle, days), history.told)


def score_history(history: History, bundle: Bundle, days: NDArray[np.int64]) -> pa.Table:
    """Score every drive on every day on which it has a fresh row, ordered by drive and day."""
    ledger = ledger_of(history)
    drive = np.repeat(np.arange(history.drives, dtype=np.int64), len(days))
    day = np.tile(days, history.drives)
    row = rows_at(ledger, drive, day)
    fresh = (row >= 0) & (day - history.day[np.maximum(row, 0)] <= FRESH) if len(row) else row >= 0
    drive, day, row = drive[fresh], day[fresh], row[fresh]
    tables: list[pa.Table] = []
    for begin in range(0, max(len(drive), 1), 100_000):
        piece = slice(begin, begin + 100_000)
        model = np.array(history.model_names, dtype=object)[history.model[row[piece]]]
        watched = day[piece] - history.day[history.start[drive[piece]]] + 1
        x = compute_feature_vectors(ledger, drive[piece], day[piece])
        tables.append(
            _build_score_table(bundle, x, model, watched, history.serials[drive[piece]], day[piece])
        )
    import pyarrow as pa

    return pa.concat_tables(tables)


def _build_score_table(
    bundle: Bundle,
    x: NDArray[np.float32],
    model: NDArray[np.object_],
    watched: NDArray[np.int64],
    serials: NDArray[np.object_],
    day: NDArray[np.int64],
) -> pa.Table:
    import pyarrow as pa

    forecast = bundle.forecast(x, model, has_reported_counters(x))
    why = explain_forecasts(bundle, forecast, x, model, day, watched)
    dates = (np.datetime64(EPOCH) + day.astype("timedelta64[D]")).astype("datetime64[D]")
    columns = {
        "serial_number": pa.array([str(s) for s in serials], pa.string()),
        "date": pa.array(dates, pa.date32()),
        "model": pa.array([str(m) for m in model], pa.string()),
        "p_fail_7d": pa.array(forecast.p_fail[:, 0]),
        "p_fail_14d": pa.array(forecast.p_fail[:, 1]),
        "p_fail_30d": pa.array(forecast.p_fail[:, 2]),
        "life_p10_days": pa.array(forecast.life[:, 0], from_pandas=True),
        "life_p50_days": pa.array(forecast.life[:, 1], from_pandas=True),
        "life_p90_days": pa.array(forecast.life[:, 2], from_pandas=True),
        "status": pa.array([str(one.status) for one in why], pa.string()),
        "source": pa.array([f"model:{bundle.name}"] * len(x), pa.string()),
        "reason": pa.array([str(one) for one in why], pa.string()),
    }
    return pa.table(columns)
