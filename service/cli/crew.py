"""Who works for `predrain train` and `predrain score`: threads here, or a Dask cluster."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from predrain.models.scale import Crew

Dask = Annotated[
    str | None, Parameter(help="tcp://SCHEDULER:8786, or local:N for N processes here (predrain[scale])")
]
RowsAPart = Annotated[
    int | None, Parameter(help="rows of history in memory at a time, a thread or worker; 750,000 by default")
]


def crew_of(dask: str | None, rows_a_part: int | None, threads: int) -> AbstractContextManager[Crew]:
    """Raises NoCluster."""
    from predrain.data.history.files import ROWS_A_PART
    from predrain.models.scale import Threads

    rows = rows_a_part or ROWS_A_PART
    if dask is None:
        return nullcontext(Threads(threads, rows))
    from predrain.models.scale.cluster import DaskCluster

    return DaskCluster(dask, rows_a_part=rows)
