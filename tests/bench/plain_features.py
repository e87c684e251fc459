"""Features in plain pandas, by their definitions alone: nothing of predrain's is used to make them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

COUNTERS = (5, 187, 188, 197, 198)
WINDOWS = (3, 7, 15, 30)
LONG_AGO = 90


def plain_features(path: Path) -> pd.DataFrame:
    """Levels, rises over windows, days with a rise, days since one, falls, and temperature, of every row's day."""
    raw = [f"smart_{n}_raw" for n in COUNTERS]
    columns = ["serial_number", "date", *raw, "smart_194_raw"]
    frame = pd.read_parquet(path, columns=columns).sort_values(["serial_number", "date"], ignore_index=True)
    frame["date"] = pd.to_datetime(frame["date"]).astype("datetime64[us]")
    drive = frame["serial_number"]
    level = frame.groupby(drive)[raw].ffill()
    step = level.groupby(drive).diff().clip(lower=0).fillna(0.0)
    running = pd.concat(
        [
            step.groupby(drive).cumsum().add_suffix("_risen"),
            (step > 0).astype(float).groupby(drive).cumsum().add_suffix("_rises"),
            level.add_suffix("_level"),
        ],
        axis=1,
    )
    out = {}
    for window in WINDOWS:
        grown = running - _as_of(frame, running, window)
        for n, name in zip(COUNTERS, raw, strict=True):
            risen = grown[f"{name}_risen"].where(level[name].notna())
            out[f"smart_{n}_up_{window}d"] = risen
            if window == 30:
                out[f"smart_{n}_rises_30d"] = grown[f"{name}_rises"]
                out[f"smart_{n}_net_30d"] = grown[f"{name}_level"]
    for n, name in zip(COUNTERS, raw, strict=True):
        rose_on = frame["date"].where(step[name] > 0).groupby(drive).ffill()
        out[f"smart_{n}"] = level[name]
        out[f"smart_{n}_since_rise"] = (frame["date"] - rose_on).dt.days.clip(upper=LONG_AGO)
    celsius = frame["smart_194_raw"].mod(256)
    out["celsius"] = celsius.where(celsius.gt(0) & celsius.le(150)).groupby(drive).ffill()
    return pd.DataFrame(out).astype("float32")


def _as_of(frame: pd.DataFrame, running: pd.DataFrame, window: int) -> pd.DataFrame:
    """The running totals that held so many days before each row, or on its drive's first day if that is later."""
    keys = frame[["serial_number", "date"]]
    right = pd.concat([keys, running], axis=1).sort_values("date")
    left = keys.assign(
        date=keys["date"] - pd.Timedelta(days=window).as_unit("us"), row=keys.index
    ).sort_values("date")
    found = pd.merge_asof(left, right, on="date", by="serial_number").set_index("row").sort_index()
    first = keys.groupby("serial_number")["date"].transform("idxmin")
    early = keys["date"] - keys.loc[first, "date"].set_axis(keys.index) < pd.Timedelta(days=window)
    return found[running.columns].where(~early, running.loc[first].set_axis(running.index))


def difference(found: pd.DataFrame, ours: Mapping[str, np.ndarray]) -> list[str]:
    """Names of the columns in which a row differs."""
    return [name for name in found if not np.array_equal(found[name].to_numpy(), ours[name], equal_nan=True)]
