"""A crew: does the same work on every part of a history, and grows boosters. Here by threads of this process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from predrain.data.history import SerialRange
from predrain.data.history.files import ROWS_A_PART

if TYPE_CHECKING:
    import lightgbm as lgb

    from predrain.models.hazard import PersonPeriods, Recipe

Answer = TypeVar("Answer")


class Crew(Protocol):
    """Who works. Answers come in the order of the parts, and few of them wait at a time."""

    @property
    def apart(self) -> bool:
        """Whether the work is done where only the history files themselves can be read."""
        ...

    @property
    def rows_a_part(self) -> int:
        """How many rows a part holds at most: what bounds memory."""
        ...

    def each(self, work: Callable[[SerialRange], Answer], parts: Sequence[SerialRange]) -> Iterator[Answer]:
        """The answers of `work`, a module's function or a partial of one, to every part."""
        ...

    def grow(
        self,
        x: NDArray[np.float32],
        periods: PersonPeriods,
        recipe: Recipe,
        *,
        seed: int,
        names: list[str],
        tell: Callable[[str], None],
    ) -> lgb.Booster:
        """`models.hazard.grow`, by this crew."""
        ...


@dataclass(frozen=True, slots=True)
class Threads:
    """Threads of this process; each holds one part in memory."""

    count: int = 2
    rows_a_part: int = ROWS_A_PART
    apart: bool = False

    def each(self, work: Callable[[SerialRange], Answer], parts: Sequence[SerialRange]) -> Iterator[Answer]:
        """Work on `count` parts at a time; one answer more may wait to be taken."""
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

    def grow(
        self,
        x: NDArray[np.float32],
        periods: PersonPeriods,
        recipe: Recipe,
        *,
        seed: int,
        names: list[str],
        tell: Callable[[str], None],
    ) -> lgb.Booster:
        """On all threads together."""
        from predrain.models.hazard import grow

        return grow(x, periods, recipe, seed=seed, threads=self.count, names=names, tell=tell)
