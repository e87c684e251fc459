"""Figures of `--dask`: what twice the history costs, and what a second worker brings.

The histories are made: daily rows of a fleet in a file for each month, by day, so that every drive lies in every file.
Work is counted in this process and in the workers: processor seconds, and bytes that were read from files. On an idle
machine the time is that of this process and the slowest worker, since this process waits while the workers work.
"""

from __future__ import annotations

import os
import tempfile
import time
from datetime import date, timedelta
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from predrain.data.history.history_files import ROWS_A_PART
from tests.bench.figure import Figure, Work
from tests.bench.forecasting import write_query

DRIVES = 4_000
MONTHS = 6
ROWS_PER_PART = 10_000
"""So that the shorter history has 72 parts: work that grows with the parts shows in few rows."""
LARGE_DRIVES, LARGE_MONTHS = 20_000, 12
"""A history of 7.2 million drive-days, in ten parts of the size that a training uses.

Beside two workers on two cores this process needs about 1 s of processor of its own, so that in 6 months of 4,000
drives a second worker brings little.
"""
COUNTERS = (5, 9, 12, 187, 188, 193, 194, 197, 198, 199, 241, 242)


def write_months(folder: Path, count: int, fleet: int = DRIVES) -> list[Path]:
    """Write so many months of 30 days, each a file of rows by day, in which nearly every counter is new each day.

    fleet: the number of drives.
    """
    paths = []
    for month in range(count):
        first = date(2016, 1, 1) + timedelta(days=30 * month)
        counters = ", ".join(
            f"((drive % 9 = 0)::INTEGER * (hash(drive * {number}) % 100 + {month} * 30 + day))::BIGINT "
            f"AS smart_{number}_raw"
            for number in COUNTERS
        )
        paths.append(folder / f"{month:02}.parquet")
        write_query(
            f"SELECT DATE '{first}' + day::INTEGER AS date, 'Z' || lpad((hash(drive) % 10000000)::VARCHAR, 8, '0') "
            f"|| drive AS serial_number, 'ST4000DM000' AS model, (drive = {month} AND day = 29)::INTEGER AS failure, "
            f"{counters} FROM range(30) days(day), range({fleet}) drives(drive) "
            f"WHERE drive >= {month} ORDER BY day, hash(drive)",
            paths[-1],
        )
    return paths


def draw_with_dask(workers: int, count: int, fleet: int = DRIVES, rows_per_part: int = ROWS_PER_PART) -> Work:
    """Draw the landmarks of so many months, by so many workers with a thread each; `cpu` counts all processes."""
    from predrain.data.lifespan import sources_of
    from predrain.models.forecast.landmarks import draw_landmarks
    from predrain.models.lab.dask_cluster import DaskCluster

    work = Work()
    with (
        tempfile.TemporaryDirectory() as folder,
        DaskCluster(f"local:{workers}", rows_per_part=rows_per_part) as executor,
    ):
        paths = write_months(Path(folder), count, fleet)
        executor._client.run(_warm)
        (source,) = sources_of(paths)
        before, began = _count_work(executor), time.perf_counter()
        landmarks = draw_landmarks(source, until=None, seed=1, threads=1, executor=executor)
        work.seconds = time.perf_counter() - began
        cpu, read = (_count_work(executor) - before).T
    work.cpu, work.amount = float(cpu.sum()), fleet * 30 * count
    work.note = (
        f"{read.sum() / 1e6:,.0f} MB read, {len(landmarks):,} landmarks; this process and the slowest worker "
        f"{cpu[0] + cpu[1:].max():.1f} s CPU; load {os.getloadavg()[0]:.1f}"
    )
    return work


def _count_work(executor: object) -> NDArray[np.float64]:
    """Return (processes, 2): processor seconds and bytes read of this process and of each worker."""
    from predrain.models.lab.dask_cluster import DaskCluster

    assert isinstance(executor, DaskCluster)
    counted = executor._client.run(_count_own_work)
    return np.array([_count_own_work(), *(counted[worker] for worker in sorted(counted))])


def _count_own_work() -> tuple[float, float]:
    first = Path("/proc/self/io").read_text().splitlines()[0]
    return time.process_time(), float(first.removeprefix("rchar:"))


def _warm() -> None:
    """Import what is slow to import, so that it is not what is measured."""
    import predrain.models.forecast.landmarks

    del predrain


def _draw_large(workers: int) -> Work:
    return draw_with_dask(workers, LARGE_MONTHS, LARGE_DRIVES, ROWS_A_PART)


FIGURES = (
    Figure(
        "dask: landmarks of 12 months, 2 workers", "drive-days", partial(draw_with_dask, 2, 2 * MONTHS),
        partial(draw_with_dask, 2, MONTHS), "6 months: see both MB", "under 2.2 times the CPU of 6 months",
        long=True, most_times=2.2 / 2,
    ),
    Figure(
        "dask: landmarks of 20,000 drives, 2 workers", "drive-days", partial(_draw_large, 2), partial(_draw_large, 1),
        "1 worker", "1.6 times its rate", long=True, least_rate=1.6,
    ),
)  # fmt: skip
