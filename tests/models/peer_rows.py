"""One drive's readings as the peers see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd

from predrain.data.history import EPOCH, HistoryFiles
from predrain.models.lab.peers.drive_days import DriveDayRows
from predrain.models.lab.peers.peer_columns import load_peer_columns

START = date(2018, 1, 1)
DAY0 = (START - EPOCH).days


def rows_of(
    tmp_path: Path, readings: Mapping[str, Sequence[object]], day: int, model: str = "M"
) -> DriveDayRows:
    """One drive with a row a day from 2018-01-01, asked on `day` (0 is the first).

    readings: raw values by SMART id, or any column by its name.
    """
    number = max(len(values) for values in readings.values())
    frame = pd.DataFrame(
        {"date": [START + timedelta(n) for n in range(number)], "serial_number": "a", "model": "M"}
    )
    for name, values in readings.items():
        column = name if name.startswith("smart") else f"smart_{name}_raw"
        frame[column] = pd.array(values, dtype="Int64")
    frame["model"] = model
    frame.to_parquet(tmp_path / "a.parquet")
    history = HistoryFiles([tmp_path / "a.parquet"], threads=1).read()
    columns = load_peer_columns([tmp_path / "a.parquet"], history, threads=1)
    return DriveDayRows.from_history(history, np.array([0]), np.array([DAY0 + day]), columns)
