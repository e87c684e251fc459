"""A small made fleet whose deaths announce themselves: pending sectors rise for three weeks before each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd

from predrain.data.history import EPOCH, History, HistoryFiles

FIRST = date(2020, 1, 1)
DAYS = 240
UNTIL = FIRST + timedelta(days=150)
LANDMARKS = np.arange((UNTIL - EPOCH).days + 1, (FIRST - EPOCH).days + DAYS - 30, 7, dtype=np.int64)
WARNED = 21


@dataclass(frozen=True)
class Fleet:
    """Daily readings with a `failure` column, and the last day of each drive that dies."""

    readings: pd.DataFrame
    death: dict[str, date]


def fleet(seed: int = 7, drives: int = 300, dying: int = 130) -> Fleet:
    """Drives of two models; the first `dying` die on some day, evenly spread."""
    rng = np.random.default_rng(seed)
    parts, death = [], {}
    ends = rng.permutation(np.linspace(40, DAYS - 1, dying).astype(int))
    hours = rng.integers(2_000, 30_000, drives)
    for number in range(drives):
        last = int(ends[number]) if number < dying else DAYS - 1
        day = np.arange(last + 1)
        to_death = last - day
        rises = rng.random(len(day)) < 0.6
        sick = rises & (to_death <= WARNED) if number < dying else np.zeros(len(day), dtype=bool)
        pending = np.cumsum(sick * 8)
        written = np.cumsum(rng.integers(1, 30, len(day))) * 2**21
        serial = f"D{number:04d}"
        if number < dying:
            death[serial] = FIRST + timedelta(days=last)
        parts.append(
            pd.DataFrame(
                {
                    "date": [FIRST + timedelta(days=int(d)) for d in day],
                    "serial_number": serial,
                    "model": "ST4000DM000" if number % 3 else "HGST HMS5C4040ALE640",
                    "failure": (to_death == 0) & (number < dying),
                    "smart_5_raw": 0,
                    "smart_9_raw": hours[number] + 24 * day,
                    "smart_187_raw": 0,
                    "smart_194_raw": 24 + number % 7,
                    "smart_197_raw": pending,
                    "smart_198_raw": pending,
                    "smart_241_raw": written,
                }
            )
        )
    readings = pd.concat(parts, ignore_index=True)
    return Fleet(readings.astype({"failure": int}), death)


def stored(readings: pd.DataFrame, path: Path) -> Path:
    """Readings as a file."""
    readings.to_parquet(path, index=False)
    return path


def history_of(readings: pd.DataFrame, path: Path) -> History:
    """Readings as a history that knows nothing of failures."""
    return HistoryFiles([stored(readings.drop(columns="failure"), path)], threads=1).read()
