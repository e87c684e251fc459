"""Landmarks as a file that travels with a bundle, so that a fleet can continue the training with its own months.

One parquet file. Drives are numbered, since nobody outside may learn their serial numbers. Of the features it keeps
those that a booster reads, and the power-on time in whole days, which the base rates need. 300,000 landmarks take about
3 MB, because most counters stand at zero.
"""

from __future__ import annotations

import io
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from predrain.data.refusal import Refusal
from predrain.features.schema import NAMES_IN_ORDER, POSITION
from predrain.models.booster_columns import COLUMNS
from predrain.models.landmarks import Landmarks

PREFIX: Final = "drive-"
"""Goes before a drive's number, which makes its name; no serial number looks like that."""
LEVEL: Final = 12
"""zstd's level: written once, read seldom."""
_HOURS_A_DAY: Final = 24


class UnusableLandmarks(Refusal):
    """The bytes are no landmarks, or were written for other features."""


def encode_landmarks(landmarks: Landmarks) -> bytes:
    """The file's bytes, the same for the same landmarks."""
    _, drive = np.unique(landmarks.serial.astype(str), return_inverse=True)
    models, model = np.unique(landmarks.model.astype(str), return_inverse=True)
    hours = landmarks.x[:, POSITION["hours"]].astype(np.float64)
    days = np.where(np.isnan(hours), -1, np.nan_to_num(hours) // _HOURS_A_DAY)
    # The days of an end are the same for all landmarks of a drive, and so need hardly any room.
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
    """The landmarks, with numbers in place of serial numbers; features that no booster reads are not reported.

    Raises UnusableLandmarks.
    """
    try:
        table = pq.read_table(io.BytesIO(raw))
        x = np.full((len(table), len(NAMES_IN_ORDER)), np.nan, dtype=np.float32)
        for name in COLUMNS:
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
