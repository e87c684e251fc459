"""Landmarks as a file of the bundle, so that a fleet can continue the training with its own months.

The file is one parquet file. Drives are numbered, because their serial numbers must stay private. The file has only
the features that a booster reads, and the power-on time in whole days, which the base rates need. 300,000 landmarks
take about 3 MB, because most counters are zero.
"""

from __future__ import annotations

import io
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from predrain.data.refusal import Refusal
from predrain.features.feature_schema import NAMES_IN_ORDER, POSITION
from predrain.models.forecast.booster_columns import COLUMNS
from predrain.models.forecast.landmarks import Landmarks

PREFIX: Final = "drive-"
"""Prefix of a drive's name before its number. No serial number looks like that."""
LEVEL: Final = 12
"""Compression level of zstd; high, because the file is written once and seldom read."""
_HOURS_A_DAY: Final = 24


class UnusableLandmarks(Refusal):
    """The bytes are no landmarks, or were written for other features."""


def encode_landmarks(landmarks: Landmarks) -> bytes:
    """Encode landmarks as the bytes of the file, which are the same for the same landmarks."""
    _, drive = np.unique(landmarks.serial.astype(str), return_inverse=True)
    models, model = np.unique(landmarks.model.astype(str), return_inverse=True)
    hours = landmarks.x[:, POSITION["hours"]].astype(np.float64)
    days = np.where(np.isnan(hours), -1, np.nan_to_num(hours) // _HOURS_A_DAY)
    # The days of an end are the same for all landmarks of a drive, so they take hardly any space.
    columns: dict[str, pa.Array] = {
        "drive": pa.array(drive.astype(np.int32)),
        "model": pa.DictionaryArray.from_arrays(pa.array(model.astype(np.int16)), pa.array(models)),
        "day": pa.array(landmarks.day.astype(np.int32)),
        "last_day": pa.array((landmarks.day + landmarks.follow).astype(np.int32)),
        "watched_day": pa.array((landmarks.day + landmarks.watched).astype(np.int32)),
        "died": pa.array(landmarks.died),
        "weight": pa.array(landmarks.weight.astype(np.float32)),
        "power_on_days": pa.array(days.astype(np.int32)),
        **{f"x_{name}": pa.array(landmarks.x[:, POSITION[name]]) for name in COLUMNS},
    }
    written = io.BytesIO()
    pq.write_table(pa.table(columns), written, compression="zstd", compression_level=LEVEL)
    return written.getvalue()


def decode_landmarks(raw: bytes) -> Landmarks:
    """Decode landmarks. They have numbers in place of serial numbers, and NaN for features that no booster reads.

    Raises UnusableLandmarks.
    """
    try:
        table = pq.read_table(io.BytesIO(raw))
        x = np.full((len(table), len(NAMES_IN_ORDER)), np.nan, dtype=np.float32)
        # A newer feature was not measured for these drives: they count as drives that do not report it.
        for name in (name for name in COLUMNS if f"x_{name}" in table.column_names):
            x[:, POSITION[name]] = table[f"x_{name}"].to_numpy()
        days = table["power_on_days"].to_numpy().astype(np.float32)
        x[:, POSITION["hours"]] = np.where(days < 0, np.nan, days * _HOURS_A_DAY)
        day = table["day"].to_numpy().astype(np.int64)
        return Landmarks(
            x=x,
            serial=np.array([f"{PREFIX}{number}" for number in table["drive"].to_numpy()], dtype=object),
            model=np.array(table["model"].combine_chunks().to_pylist(), dtype=object),
            day=day,
            follow=table["last_day"].to_numpy().astype(np.int64) - day,
            died=table["died"].to_numpy(),
            watched=table["watched_day"].to_numpy().astype(np.int64) - day,
            weight=table["weight"].to_numpy().astype(np.float64),
        )
    except (pa.ArrowException, OSError, KeyError) as error:
        raise UnusableLandmarks(
            f"These landmarks cannot be continued from ({error}); take those of a bundle of this version."
        ) from error
