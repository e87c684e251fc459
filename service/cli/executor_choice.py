"""Chooses the workers of `predrain train` and `predrain score`: threads here, or a Dask cluster."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from predrain.models.forecast.part_executor import PartExecutor

HistoryFile = Annotated[
    Path, Parameter(help="History files, or folders of them: parquet or CSV, such as an archive.")
]
Threads = Annotated[int, Parameter(help="number of threads")]
Dask = Annotated[
    str | None, Parameter(help="tcp://SCHEDULER:8786, or local:N for N processes here (predrain[scale])")
]
RowsAPart = Annotated[
    int | None, Parameter(help="rows of history in memory at a time, a thread or worker; 750,000 by default")
]


def choose_executor(
    dask: str | None, rows_per_part: int | None, threads: int
) -> AbstractContextManager[PartExecutor]:
    """Raises NoCluster."""
    from predrain.data.history.history_files import ROWS_A_PART
    from predrain.models.forecast.part_executor import ThreadExecutor

    rows = rows_per_part or ROWS_A_PART
    if dask is None:
        return nullcontext(ThreadExecutor(threads, rows))
    from predrain.models.lab.dask_cluster import DaskCluster

    return DaskCluster(dask, rows_per_part=rows)
