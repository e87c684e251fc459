"""The items of a bucket that can win a draw of a PG whose members are known.

A rule with one choose step accepts an item or rejects it. An accepted item holds a member of the PG. A
rejected item is one of three kinds: the PG already has it, so it holds a member too; it holds an OSD that its
override may reject; or it leads to no OSD. Every draw of the PG is therefore won by an item that leads to a
member or to a leaf of the last two kinds. No straw of another item needs to be computed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from predrain.actions.crush.crush_map import CrushMap, CrushRule
from predrain.actions.crush.crush_rules import SETTERS
from predrain.actions.crush.straw2 import Ints

Bools = npt.NDArray[np.bool_]
Step = tuple[int, int]
"""A bucket's row and the column of one of its items."""


class CandidateTable:
    """The candidates of one rule, by row and column of a `StrawTable`. The map must be a forest
    (`is_forest`).
    """

    def __init__(
        self,
        crush: CrushMap,
        root: int,
        kind: str,
        rejectable: Collection[int],
        drawable: Bools,
        lowered: Bools,
    ) -> None:
        """rejectable: OSDs that a draw may find although they are no members of the PG.

        drawable, lowered: (buckets, width), the items that can win at all, and the items that get a lower
        weight.
        """
        self.lowered = lowered
        rows_of = {id_: row for row, id_ in enumerate(crush.buckets)}
        self.root = rows_of[root]
        paths: dict[int, tuple[Step, ...]] = {}
        self._always = lowered.copy()  # a lowered item that wins is found in every draw
        self._depths = np.zeros(len(rows_of), dtype=np.int64)
        lowered_osds: set[int] = set()
        self.reaches_every_pg = False
        """True if any PG may have a draw that a lowered item wins, wherever its members are."""
        waiting: list[tuple[int, tuple[Step, ...], bool]] = [(root, (), kind == "osd")]
        while waiting:
            id_, path, arrives = waiting.pop()
            bucket = crush.buckets.get(id_)
            if bucket is not None:
                self._depths[rows_of[id_]] = len(path)
                for column, item in enumerate(bucket.items):
                    if not drawable[rows_of[id_], column]:
                        continue
                    below = crush.buckets.get(item)
                    arrives_below = arrives or (below is not None and below.type == kind)
                    waiting.append((item, (*path, (rows_of[id_], column)), arrives_below))
            if bucket is None or not bucket.items:
                is_lowered = any(lowered[step] for step in path)
                if is_lowered:
                    lowered_osds.add(id_)
                paths[id_] = path
                if id_ < 0 or not arrives or id_ in rejectable:
                    self.reaches_every_pg |= is_lowered
                    for step in path:
                        self._always[step] = True
        self.lowered_osds = frozenset(lowered_osds)
        """OSDs below lowered items."""
        self._fill_paths({osd: path for osd, path in paths.items() if osd >= 0})

    def _fill_paths(self, paths: dict[int, tuple[Step, ...]]) -> None:
        """Fill the arrays by depth and OSD; the column behind the last OSD stands for every number that the
        tree lacks.
        """
        shape = max(map(len, paths.values()), default=0) + 1, max(paths, default=-1) + 2
        self._rows = np.full(shape, -1, dtype=np.int64)
        self._columns = np.zeros(shape, dtype=np.int64)
        for osd, path in paths.items():
            for depth, (row, column) in enumerate(path):
                self._rows[depth, osd], self._columns[depth, osd] = row, column

    def fill_members(self, members: Sequence[Collection[int]]) -> Ints:
        """Return (n, most): the members of n PGs, each row padded with an OSD that the tree lacks."""
        absent = self._rows.shape[1] - 1
        lengths = np.fromiter(map(len, members), np.int64, len(members))
        found = np.full((len(members), int(lengths.max(initial=0))), absent, dtype=np.int64)
        flat = np.fromiter(chain.from_iterable(members), np.int64, int(lengths.sum()))
        found[np.arange(found.shape[1]) < lengths[:, None]] = np.minimum(flat, absent)
        return found

    def find_candidates(self, rows: Ints, members: Ints, width: int) -> Bools:
        """Return (n, width): True for items of each row's bucket that can win a draw of a PG with these
        members (n, most).
        """
        found: Bools = self._always[rows, :width]
        depths = self._depths[rows][:, None]
        at, which = np.nonzero(self._rows[depths, members] == rows[:, None])
        found[at, self._columns[depths[at, 0], members[at, which]]] = True
        return found

    def find_first_columns(self, members: Ints) -> Ints:
        """Return (n, most): the candidates in the root, ascending; each row is padded with its last one."""
        rows = np.full(len(members), self.root)
        at, column = np.nonzero(self.find_candidates(rows, members, self._always.shape[1]))
        counts = np.bincount(at, minlength=len(members))
        ends = np.cumsum(counts)
        place = np.minimum(np.arange(counts.max(initial=0)), counts[:, None] - 1)
        found: Ints = column[np.maximum((ends - counts)[:, None] + place, 0)] if len(column) else place
        return found


def find_choice(crush: CrushMap, rule: CrushRule) -> tuple[int, str] | None:
    """Return the root and failure domain of a rule that takes one bucket and chooses OSDs below it in one
    step.

    Return None for any other rule.
    """
    steps = [step for step in rule.steps if step.op not in SETTERS and step.op != "noop"]
    if [step.op.partition("_")[0] for step in steps] not in (
        ["take", "choose", "emit"],
        ["take", "chooseleaf", "emit"],
    ):
        return None
    take, choose, _ = steps
    if take.item not in crush.buckets or (choose.op.startswith("choose_") and choose.type != "osd"):
        return None
    return take.item, choose.type


def is_forest(crush: CrushMap) -> bool:
    """Return whether each bucket has at most one parent, and each OSD is once under each root."""
    inner = [item for bucket in crush.buckets.values() for item in bucket.items if item < 0]
    if len(set(inner)) < len(inner):
        return False
    for root in crush.buckets.keys() - set(inner):
        waiting, osds = [root], list[int]()
        while waiting:
            if (bucket := crush.buckets.get(waiting.pop())) is not None:
                waiting += [item for item in bucket.items if item < 0]
                osds += [item for item in bucket.items if item >= 0]
        if len(set(osds)) < len(osds):
            return False
    return True
