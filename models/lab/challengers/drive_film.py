"""A drive's last ninety days as a film: a sequence of frames with its counters, its work and its temperature.

The steps are days at first and longer farther back. Each frame is read from the accumulated rows
(`features.drive_history_rows`) that held then, so the number and spacing of a drive's rows have no effect.
Frames before the drive's first row are empty, and one channel marks them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.features.drive_history_rows import COUNTERS, MINOR, WORK, FeatureLedger, Floats
from predrain.features.feature_vectors import rows_at

AGO: Final = (0, 1, 2, 3, 4, 5, 6, 7, 9, 11, 14, 17, 21, 25, 30, 36, 45, 60, 75, 90)
"""Days before the landmark at which a frame ends. The frame begins at the next entry's day."""
STEPS: Final = len(AGO) - 1
CHANNELS: Final = 4 * len(COUNTERS) + len(MINOR) + 2 * len(WORK) + 3
"""Channels of a frame.

Each counter has four: level, rise, fall, and whether it is reported. Each minor count has its rise. Each kind
of work has its amount a day and whether it is reported. The last three are the temperature, whether it is
reported, and whether the drive was watched.
"""
SECTORS_PER_GIB: Final = 2.0**21
_SCALE: Final = {193: 1.0, 241: SECTORS_PER_GIB, 242: SECTORS_PER_GIB}


def build_films(
    ledger: FeatureLedger, drive: NDArray[np.int64], day: NDArray[np.int64]
) -> NDArray[np.float16]:
    """Build (pairs, STEPS, CHANNELS), the oldest frame first. drive, day: (pairs,) as for `compute_feature_vectors`.

    Only rows dated on the landmark day or before are used.
    """
    first = ledger.start[drive]
    rows = np.stack([rows_at(ledger, drive, day - ago) for ago in reversed(AGO)], axis=1)
    watched = rows >= 0
    held = np.where(watched, rows, first[:, None])
    opens, closes = held[:, :-1], held[:, 1:]
    seen = watched[:, 1:]
    frames: list[Floats] = []
    with np.errstate(invalid="ignore"):
        for n in COUNTERS:
            level, risen = ledger.rows[f"level_{n}"], ledger.rows[f"risen_{n}"]
            rise = risen[closes] - risen[opens]
            net = level[closes] - level[opens]
            frames += [
                np.log1p(level[closes]),
                np.log1p(rise),
                np.log1p(np.maximum(rise - net, 0.0)),
                np.isfinite(level[closes]).astype(np.float64),
            ]
        for n in MINOR:
            frames.append(np.log1p(ledger.rows[f"risen_{n}"][closes] - ledger.rows[f"risen_{n}"][opens]))
        days = -np.diff(np.array(AGO[::-1], dtype=np.float64))
        for n in WORK:
            risen = ledger.rows[f"risen_{n}"]
            frames += [
                np.log1p((risen[closes] - risen[opens]) / (days * _SCALE[n])),
                np.isfinite(ledger.rows[f"level_{n}"][closes]).astype(np.float64),
            ]
        celsius = ledger.rows["level_194"][closes]
        frames += [(celsius - 25.0) / 10.0, np.isfinite(celsius).astype(np.float64), np.ones(seen.shape)]
    stacked = np.stack(frames, axis=2)
    return np.where(seen[:, :, None], np.nan_to_num(stacked), 0.0).astype(np.float16)
