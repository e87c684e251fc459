"""Made-up fleets of disks whose latencies are known to the last cause, and what the detector makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from predrain.models.slow.latency_history import LatencyFiles, score_latency_days

DAY = 86_400
BEGINNING = 1_767_225_600  # 2026-01-01


def fleet(
    hosts: int = 8,
    disks: int = 12,
    days: int = 5,
    bins_a_day: int = 12,
    *,
    slow: Mapping[tuple[int, int], float] | None = None,
    slow_hosts: Mapping[int, float] | None = None,
    noise: float = 0.08,
    seed: int = 1,
) -> pd.DataFrame:
    """Equal disks under a load that swings through the day; `slow`: (host, disk) -> how many times as slow."""
    chance = np.random.default_rng(seed)
    grid = pd.MultiIndex.from_product(
        [range(hosts), range(disks), range(days), range(bins_a_day)], names=["host", "disk", "d", "bin"]
    ).to_frame(index=False)
    rows = len(grid)
    swing = 1 + 0.5 * np.sin(2 * np.pi * grid["bin"] / bins_a_day)
    factor = np.array(
        [(slow or {}).get((int(h), int(d)), 1.0) for h, d in zip(grid["host"], grid["disk"], strict=True)]
    )
    whole = np.array([(slow_hosts or {}).get(int(h), 1.0) for h in grid["host"]])
    return pd.DataFrame(
        {
            "host": grid["host"],
            "disk": grid["disk"],
            "ts": BEGINNING + grid["d"] * DAY + grid["bin"] * 300,
            "lat_mean": 50.0 * swing * factor * whole * np.exp(noise * chance.standard_normal(rows)),
            "thr_kBps": 15_000.0 * swing * np.exp(0.05 * chance.standard_normal(rows)),
        }
    )


def scored(folder: Path, *frames: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that `predrain latency score` writes for files of these frames."""
    paths = []
    for number, frame in enumerate(frames):
        paths.append(folder / f"latency-{number}.parquet")
        frame.to_parquet(paths[-1])
    return of_files(*paths)


def of_files(*paths: Path, tell: Callable[[str], None] = lambda _: None) -> pd.DataFrame:
    """The same, of files that are there."""
    return pd.concat(
        [table.to_pandas() for table in score_latency_days(LatencyFiles(paths), tell)], ignore_index=True
    )


def ever_slow(found: pd.DataFrame) -> set[tuple[int, int]]:
    """(host, disk) of every disk that was slow on any day."""
    bad = found[found["slow"]]
    return set(zip(bad["host"].tolist(), bad["disk"].tolist(), strict=True))
