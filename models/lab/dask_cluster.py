"""An executor on Dask workers: parts of a history as tasks, boosters by `lightgbm.dask`.

Workers open the history files, and the scratch folder with the rows of each part, by the same paths as this process.
They need the same release of predrain. Landmarks and scores equal those of one machine to the last bit. A booster does
not, because each worker sees only its own rows when the bins of a feature and the bag of a round are chosen. The
cluster is trusted: Dask transports tasks and answers in its own way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from predrain.data.history.history_files import ROWS_A_PART
from predrain.data.refusal import Refusal

if TYPE_CHECKING:
    import lightgbm as lgb
    from distributed import Client, Future, LocalCluster

    from predrain.models.forecast.hazard import PersonPeriods, Recipe

Part = TypeVar("Part")
Answer = TypeVar("Answer")

PATIENCE: Final = "20s"
"""Longest time in which a scheduler must answer."""


class NoDaskCluster(Refusal):
    """There is no Dask cluster to work on."""


class DaskCluster:
    """A context manager for the workers of `tcp://host:port`, or for N processes on this machine by `local:N`."""

    def __init__(self, address: str, *, rows_per_part: int = ROWS_A_PART) -> None:
        """Connect to the scheduler, or start the local workers. Raises NoDaskCluster."""
        try:
            import distributed
        except ImportError:
            raise NoDaskCluster("Dask is not installed: pip install 'predrain[scale]'.") from None
        self.rows_per_part = rows_per_part
        self._local: LocalCluster | None = None
        kind, _, count = address.partition(":")
        if kind == "local":
            if not count.isdecimal() or not int(count):
                raise NoDaskCluster(f"{address} names no number of workers; write local:2, say.")
            start: Any = distributed.LocalCluster
            self._local = start(
                n_workers=int(count), threads_per_worker=1, processes=True, dashboard_address=None
            )
        try:
            self._client: Client = distributed.Client(self._local or address, timeout=PATIENCE)
        except (OSError, ValueError, TimeoutError) as error:
            raise NoDaskCluster(
                f"No Dask scheduler answers at {address} ({error}); start one, or say local:2."
            ) from None
        if not self.workers:
            self._client.close()
            raise NoDaskCluster(
                f"The Dask scheduler at {address} has no workers; start some with `dask worker`."
            )

    @property
    def copiers(self) -> DaskCluster:
        """The cluster itself: its workers copy the rows of a history before they read the parts."""
        return self

    @property
    def workers(self) -> int:
        """The number of workers now."""
        return len(self._client.scheduler_info(n_workers=-1)["workers"])

    def __enter__(self) -> DaskCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()
        if self._local is not None:
            self._local.close()

    def map_parts(self, work: Callable[[Part], Answer], parts: Sequence[Part]) -> Iterator[Answer]:
        """Submit a task for each part. At most twice as many tasks as workers wait or run at a time."""
        told = self._client.scatter(work, broadcast=True)
        under_way: deque[Future[Answer]] = deque()
        for part in parts:
            if len(under_way) >= 2 * self.workers:
                yield under_way.popleft().result()
            under_way.append(self._client.submit(_call_work, told, part, pure=False))
        while under_way:
            yield under_way.popleft().result()

    def grow_booster(
        self,
        x: NDArray[np.float32],
        periods: PersonPeriods,
        recipe: Recipe,
        *,
        seed: int,
        names: list[str],
        tell: Callable[[str], None],
    ) -> lgb.Booster:
        """Grow a booster. Each worker holds a share of the rows, and histograms are added up over the network."""
        from dask import array
        from lightgbm.dask import DaskLGBMRegressor

        tell(f"trees: {recipe.rounds}, by {self.workers} workers")
        rows = np.column_stack([x[periods.landmark], periods.interval.astype(np.float32)])
        share = -(-len(rows) // self.workers)
        spread: Any = array.from_array
        settings: dict[str, Any] = dict(recipe.parameters(seed, 1, names))
        del settings["num_threads"]  # as many as a worker has
        model = DaskLGBMRegressor(
            n_estimators=recipe.rounds,
            learning_rate=settings.pop("learning_rate"),
            num_leaves=settings.pop("num_leaves"),
            min_child_samples=settings.pop("min_data_in_leaf"),
            colsample_bytree=settings.pop("feature_fraction"),
            subsample=settings.pop("bagging_fraction"),
            subsample_freq=settings.pop("bagging_freq"),
            reg_lambda=settings.pop("lambda_l2"),
            random_state=settings.pop("seed"),
            tree_learner="data",
            client=self._client,
            **settings,
        )
        model.fit(
            spread(rows, chunks=(share, rows.shape[1])),
            spread(periods.dies.astype(np.float32), chunks=share),
            sample_weight=spread(periods.weight, chunks=share),
            feature_name=[*names, "interval"],
        )
        booster: lgb.Booster = model.booster_
        return booster


def _call_work(work: Callable[[Part], Answer], part: Part) -> Answer:
    return work(part)
