"""What a rule has chosen so far: for each PG a list of items, short or long, filled from the left."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from predrain.actions.crush.map import ITEM_NONE

_Ints = npt.NDArray[np.int64]


class Lists:
    """`items`: (rows, most), ITEM_NONE behind each row's last. `lengths`: (rows,).

    An ITEM_NONE within the length is a hole: it keeps its place, as mapper.c's `w`, `o` and `result` have it.
    """

    def __init__(self, rows: int, most: int) -> None:
        self.items: _Ints = np.full((rows, most), ITEM_NONE, dtype=np.int64)
        self.lengths: _Ints = np.zeros(rows, dtype=np.int64)

    @property
    def room(self) -> _Ints:
        """(rows,): how many items each row still takes."""
        left: _Ints = self.items.shape[1] - self.lengths
        return left

    @property
    def columns(self) -> list[_Ints]:
        """The first item of each row, then the second, as far as the longest row goes."""
        return list(self.items[:, : self.lengths.max(initial=0)].T)

    def extend(self, found: _Ints, counts: _Ints) -> None:
        """Appends to each row the first `counts` (rows,) of its row in `found`, as far as there is room."""
        counts = np.minimum(counts, self.room)
        row, column = np.nonzero(np.arange(found.shape[1]) < counts[:, None])
        self.items[row, self.lengths[row] + column] = found[row, column]
        self.lengths += counts
