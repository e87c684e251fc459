"""The straws of straw2: the items of each bucket, their weights and hash inputs, as arrays with one row for
each bucket.

A map with `choose_args` (weight-sets) has other weights for each position of a PG's set, and may hash other
numbers than the items (Ceph's mapper.c, bucket_straw2_choose).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from predrain.actions.crush.crush_hash import hash_three_words
from predrain.actions.crush.crush_logarithm import DRAW_COST
from predrain.actions.crush.crush_map import Bucket, ChooseArgs

Ints = npt.NDArray[np.int64]

NEVER = np.iinfo(np.int64).max
"""The cost of a straw whose item cannot win."""


class StrawTable:
    """The buckets of a map with one set of `choose_args` applied, or unchanged (None)."""

    def __init__(self, buckets: Mapping[int, Bucket], args: ChooseArgs | None) -> None:
        width = max((len(bucket.items) for bucket in buckets.values()), default=0) or 1
        changed = {id_: arg for id_, arg in (args or {}).items() if id_ in buckets}
        self.positions = max((len(arg.weight_set) for arg in changed.values()), default=0) or 1
        """The number of positions that have weights of their own."""
        self.sizes = np.array([len(bucket.items) for bucket in buckets.values()], dtype=np.int64)
        self.items = np.zeros((len(buckets), width), dtype=np.int64)
        self.weights = np.zeros((self.positions, len(buckets), width), dtype=np.int64)
        """(positions, buckets, width)."""
        hashed = np.zeros_like(self.items)
        for row, bucket in enumerate(buckets.values()):
            size = len(bucket.items)
            self.items[row, :size] = hashed[row, :size] = bucket.items
            arg = changed.get(bucket.id)
            if arg is not None and arg.ids:
                hashed[row, :size] = arg.ids
            weight_set = (arg.weight_set if arg is not None else ()) or (bucket.weights,)
            for position in range(self.positions):
                self.weights[position, row, :size] = weight_set[min(position, len(weight_set) - 1)]
        self._hashed = hashed if any(arg.ids for arg in changed.values()) else None

    def draw(
        self, rows: Ints, seeds: Ints, r: Ints, position: Ints | None
    ) -> tuple[Ints, Ints, npt.NDArray[np.uint32]]:
        """Return the items of each row's bucket, the cost of each straw (the cheapest is the longest), and
        its draw.

        position: how many members each row's PG has before this one; None if every position has the same
        weights.
        """
        width = int(self.sizes[rows].max())
        items = self.items[rows, :width]
        hashed = items if self._hashed is None else self._hashed[rows, :width]
        drawn = hash_three_words(
            seeds.astype(np.uint32)[:, None], hashed.astype(np.uint32), r.astype(np.uint32)[:, None]
        )
        return items, weigh_straws(drawn, self.find_weights(rows, position, width)), drawn

    def weigh_items(self, rows: Ints, columns: Ints, seeds: Ints, r: Ints, position: Ints | None) -> Ints:
        """Return the cost of the straw of one item of each row's bucket; the arrays broadcast together."""
        hashed = (self.items if self._hashed is None else self._hashed)[rows, columns]
        drawn = hash_three_words(seeds.astype(np.uint32), hashed.astype(np.uint32), r.astype(np.uint32))
        return weigh_straws(drawn, self.find_weight(rows, position, columns))

    def find_weights(self, rows: Ints, position: Ints | None, width: int) -> Ints:
        """Return (n, width): the weights of each row's bucket at each row's position."""
        if position is None:
            first: Ints = self.weights[0][rows, :width]
            return first
        found: Ints = self.weights[np.minimum(position, self.positions - 1), rows, :width]
        return found

    def find_weight(self, rows: Ints, position: Ints | None, column: Ints) -> Ints:
        """Return (n,): the weight of one item of each row's bucket at each row's position."""
        at = 0 if position is None else np.minimum(position, self.positions - 1)
        found: Ints = self.weights[at, rows, column]
        return found

    def find_drawable(self) -> npt.NDArray[np.bool_]:
        """Return (buckets, width): True for items that can win a draw.

        Items with a weight can win; in a bucket without any weight, every item can.
        """
        weighted = self.weights > 0
        unweighted = ~np.any(weighted, axis=2, keepdims=True)
        found: npt.NDArray[np.bool_] = np.any(weighted | unweighted, axis=0)
        return found

    def weights_at(self, position: int) -> Ints:
        """Return (buckets, width): every weight at one position."""
        found: Ints = self.weights[min(position, self.positions - 1)]
        return found


def weigh_straws(drawn: npt.NDArray[np.uint32], weights: Ints) -> Ints:
    """Return the cost of straws from their draws and weights; a straw of weight 0 costs more than any other."""
    cost: Ints = DRAW_COST[drawn & np.uint32(0xFFFF)] // np.maximum(weights, 1)
    cost[weights == 0] = NEVER
    return cost
