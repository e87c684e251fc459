"""Executors do the same work on every part of a history, and grow boosters. The one here uses threads of this
process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from predrain.data.history import Copiers
from predrain.data.history.history_files import ROWS_A_PART

if TYPE_CHECKING:
    import lightgbm as lgb

    from predrain.models.forecast.hazard import PersonPeriods, Recipe

Part = TypeVar("Part")
Answer = TypeVar("Answer")


class PartExecutor(Protocol):
    """An executor of work in parts. Answers come in the order of the parts, and few of them wait at a time."""

    @property
    def copiers(self) -> Copiers | None:
        """The processes that read the parts, and copy the rows before; None: threads of this process."""
        ...

    @property
    def rows_per_part(self) -> int:
        """The largest number of rows in a part, which limits memory."""
        ...

    def map_parts(self, work: Callable[[Part], Answer], parts: Sequence[Part]) -> Iterator[Answer]:
        """Yield the answers of `work`, which is a module's function or a partial of one, for every part."""
        ...

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
        """Grow a booster as `models.forecast.hazard.grow_hazard_booster` does, with the workers of this executor."""
        ...


@dataclass(frozen=True, slots=True)
class ThreadExecutor:
    """Threads of this process. Each holds one part in memory."""

    count: int = 2
    rows_per_part: int = ROWS_A_PART
    copiers: None = None

    def map_parts(self, work: Callable[[Part], Answer], parts: Sequence[Part]) -> Iterator[Answer]:
        """Work on `count` parts at a time. One more answer may wait for the caller."""
        if self.count == 1 or len(parts) == 1:
            yield from map(work, parts)
            return
        pool = ThreadPoolExecutor(self.count, thread_name_prefix="part")
        try:
            under_way: deque[Future[Answer]] = deque()
            for part in parts:
                if len(under_way) > self.count:
                    yield under_way.popleft().result()
                under_way.append(pool.submit(work, part))
            while under_way:
                yield under_way.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)

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
        """Grow a booster on all threads together."""
        from predrain.models.forecast.hazard import grow_hazard_booster

        return grow_hazard_booster(x, periods, recipe, seed=seed, threads=self.count, names=names, tell=tell)
