"""CRUSH's rules over many PGs at once: take, choose, chooseleaf (firstn and indep, straw2), emit.

Every row of an array is one PG. A descent picks, level by level, the longest straw in each row's own bucket.
A row that collides or meets an OSD that is out tries again with another `r`, as `crush_do_rule` does (Weil et
al. 2006, "CRUSH: Controlled, Scalable, Decentralized Placement of Replicated Data"; Ceph's mapper.c for
retries).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from predrain.actions.crush.crush_hash import hash_two_words
from predrain.actions.crush.crush_map import COMPAT_SET, ITEM_NONE, CrushMap, CrushRule, RuleStep, Tunables
from predrain.actions.crush.straw2 import Ints, StrawTable
from predrain.data.messages import describe_plan_refusal
from predrain.data.plan_refusal import PlanRefusal, PlanRefusalKind
from predrain.data.refusal import Refusal

_AT_LEAST_ONCE = frozenset({"choose_tries", "chooseleaf_tries"})


@dataclass(frozen=True, slots=True)
class ChooseTries:
    """The values for the next choose step; the names are those of the steps that set them, without `set_`."""

    choose_tries: int
    chooseleaf_tries: int
    """0 means one try with `chooseleaf_descend_once` or indep, else `choose_tries`."""
    choose_local_tries: int
    choose_local_fallback_tries: int
    chooseleaf_vary_r: int
    chooseleaf_stable: int

    @property
    def has_local_retries(self) -> bool:
        """Return whether firstn tries again within a bucket before a new descent, as before Bobtail."""
        return self.choose_local_tries > 0 or self.choose_local_fallback_tries > 0

    def apply_step(self, step: RuleStep) -> ChooseTries:
        """Return the values after a `set_` step. A value that mapper.c ignores changes nothing."""
        name = step.op.removeprefix("set_")
        least = 1 if name in _AT_LEAST_ONCE else 0
        return replace(self, **{name: step.item}) if step.item >= least else self


def retries_of(tunables: Tunables) -> ChooseTries:
    """Return the values at the start of a rule; `choose_total_tries` counts retries, so one try is added."""
    return ChooseTries(
        choose_tries=tunables.choose_total_tries + 1,
        chooseleaf_tries=0,
        choose_local_tries=tunables.choose_local_tries,
        choose_local_fallback_tries=tunables.choose_local_fallback_tries,
        chooseleaf_vary_r=tunables.chooseleaf_vary_r,
        chooseleaf_stable=tunables.chooseleaf_stable,
    )


SETTERS = frozenset(f"set_{name}" for name in ChooseTries.__slots__)
"""The steps that `ChooseTries.apply_step` knows."""


_Ints = npt.NDArray[np.int64]


class PaddedItemLists:
    """Lists of items. `items`: (rows, most), ITEM_NONE behind each row's last. `lengths`: (rows,).

    An ITEM_NONE within the length is a hole that keeps its place, as in `w`, `o` and `result` of mapper.c.
    """

    def __init__(self, rows: int, most: int) -> None:
        self.items: _Ints = np.full((rows, most), ITEM_NONE, dtype=np.int64)
        self.lengths: _Ints = np.zeros(rows, dtype=np.int64)

    @property
    def capacity_left(self) -> _Ints:
        """Return (rows,): how many more items each row takes."""
        left: _Ints = self.items.shape[1] - self.lengths
        return left

    @property
    def columns(self) -> list[_Ints]:
        """Return the first item of each row, then the second, up to the length of the longest row."""
        return list(self.items[:, : self.lengths.max(initial=0)].T)

    def extend(self, found: _Ints, counts: _Ints) -> None:
        """Append to each row the first `counts` (rows,) items of its row in `found`, as far as there is
        space.
        """
        counts = np.minimum(counts, self.capacity_left)
        row, column = np.nonzero(np.arange(found.shape[1]) < counts[:, None])
        self.items[row, self.lengths[row] + column] = found[row, column]
        self.lengths += counts


__all__ = ["FULL_WEIGHT", "CannotPlace", "Chooser", "Ints"]

Bools = npt.NDArray[np.bool_]

FULL_WEIGHT = 0x10000
"""An override reweight of 1.0 in 16.16 fixed point."""

_UNDEFINED = -(1 << 40)
_CHUNK = 1 << 17


class CannotPlace(Refusal):
    """The map uses a feature that this code does not compute; a placement would be a guess.

    `refusal`: the feature, for plans.
    """

    def __init__(self, refusal: PlanRefusal) -> None:
        self.refusal = refusal
        super().__init__(describe_plan_refusal(refusal))


class Chooser:
    """One CRUSH map with the override weights of its OSDs, ready to place rows of PGs."""

    _drawn_ahead = 1024
    """The number of tries that are drawn together beyond the necessary ones; the ones that count are known
    afterwards.
    """

    def __init__(self, crush: CrushMap, reweights: Mapping[int, int]) -> None:
        """reweights: 16.16 override of each OSD; an OSD that is not named does not exist and is out."""
        self._crush = crush
        self._tunables = crush.tunables
        self._rows_of = {bucket: row for row, bucket in enumerate(crush.buckets)}
        self._buckets = crush.buckets
        buckets = list(crush.buckets.values())
        self._has_legacy = any(bucket.algorithm != "straw2" for bucket in buckets)
        self._tables: dict[int | None, StrawTable] = {}
        self._use_straws_of(COMPAT_SET)
        self._sizes, self._items = self._straws.sizes, self._straws.items
        self._types = np.array([bucket.type for bucket in buckets])
        lowest = -min((bucket for bucket in crush.buckets), default=-1)
        self._row_by_negative = np.full(lowest + 1, -1, dtype=np.int64)
        for bucket_id, row in self._rows_of.items():
            self._row_by_negative[-bucket_id] = row
        osds = max((*reweights, *self._items.ravel().tolist(), 0))
        self._reweights = np.zeros(osds + 1, dtype=np.int64)
        for osd, weight in reweights.items():
            self._reweights[osd] = weight

    def place(self, rule: CrushRule, seeds: Ints, size: int, pool: int = COMPAT_SET) -> Ints:
        """Compute the raw placement: (n,) placement seeds -> (n, size) OSDs.

        firstn rules fill from the left and pad with ITEM_NONE; indep rules keep positions. pool: the id of
        the pool, which may have its own weight-set; otherwise the compat weight-set applies. Raises
        CannotPlace if the rule takes buckets other than straw2, or has a step that is not computed.
        """
        if self._has_legacy:
            self._refuse_legacy([step.item for step in rule.steps if step.op == "take"])
        self._use_straws_of(pool)
        results = [
            self._run(rule, seeds[at : at + self._chunk], size) for at in range(0, len(seeds), self._chunk)
        ]
        return np.concatenate(results) if results else np.empty((0, size), dtype=np.int64)

    @property
    def _chunk(self) -> int:
        return max(256, _CHUNK // self._items.shape[1])

    def _use_straws_of(self, pool: int) -> None:
        """Use the weights of a pool for the next placement."""
        args = self._crush.find_choose_args(pool)
        key = None if args is None else pool if pool in self._crush.choose_args else COMPAT_SET
        if key not in self._tables:
            self._tables[key] = StrawTable(self._buckets, args)
        self._straws = self._tables[key]

    def _refuse_legacy(self, reached: list[int]) -> None:
        while reached:
            bucket = self._buckets.get(reached.pop())
            if bucket is None:
                continue
            if bucket.algorithm != "straw2":
                raise CannotPlace(
                    PlanRefusal(PlanRefusalKind.BUCKET_ALGORITHM, name=bucket.name, step=bucket.algorithm)
                )
            reached += bucket.items

    def _run(self, rule: CrushRule, seeds: Ints, size: int) -> Ints:
        retries = retries_of(self._tunables)
        working, emitted = PaddedItemLists(len(seeds), size), PaddedItemLists(len(seeds), size)
        for step in rule.steps:
            if step.op == "take":
                working = PaddedItemLists(len(seeds), size)
                working.extend(np.full((len(seeds), 1), step.item), np.ones_like(seeds))
            elif step.op in SETTERS:
                retries = retries.apply_step(step)
            elif step.op in {"choose_firstn", "chooseleaf_firstn"} and retries.has_local_retries:
                raise CannotPlace(PlanRefusal(PlanRefusalKind.LOCAL_RETRIES, name=rule.name))
            elif step.op in {"choose_firstn", "chooseleaf_firstn", "choose_indep", "chooseleaf_indep"}:
                working = self._choose(step, working, seeds, size, retries)
            elif step.op == "emit":
                emitted.extend(working.items, working.lengths)
                working = PaddedItemLists(len(seeds), size)
            elif step.op != "noop":
                raise CannotPlace(PlanRefusal(PlanRefusalKind.RULE_STEP, name=rule.name, step=step.op))
        return emitted.items

    def _choose(
        self, step: RuleStep, working: PaddedItemLists, seeds: Ints, size: int, retries: ChooseTries
    ) -> PaddedItemLists:
        wanted = step.num if step.num > 0 else size + step.num
        leaf = step.op.startswith("chooseleaf")
        chosen = PaddedItemLists(len(seeds), size)
        for start in working.columns if wanted > 0 else ():
            choose = self._firstn if step.op.endswith("firstn") else self._indep
            chosen.extend(*choose(start, chosen.capacity_left, seeds, wanted, step.type, retries, leaf))
        return chosen

    def _firstn(
        self, start: Ints, room: Ints, seeds: Ints, wanted: int, kind: str, retries: ChooseTries, leaf: bool
    ) -> tuple[Ints, Ints]:
        """Choose each of `wanted` items in turn, at most `room`. Return (items, how many of each row count).

        An item that cannot be found is left out, and the next one takes its place. A `start` that is no
        bucket gives nothing.
        """
        rows, most = len(seeds), min(wanted, int(room.max(initial=0)))
        chosen = np.full((rows, most), ITEM_NONE, dtype=np.int64)
        leaves = np.full((rows, most), ITEM_NONE, dtype=np.int64)
        filled = np.zeros(rows, dtype=np.int64)
        vary, stable = retries.chooseleaf_vary_r, retries.chooseleaf_stable
        tries = retries.choose_tries
        leaf_tries = retries.chooseleaf_tries or (1 if self._tunables.chooseleaf_descend_once else tries)
        for replica in range(wanted):
            is_open = (start < 0) & (filled < room)
            first = ahead = 0
            while (first := first + ahead) < tries and len(at := np.flatnonzero(is_open)):
                ahead = self._count_tries(first, tries, len(at))
                r = replica + first + np.arange(ahead)
                row, r = np.repeat(at, ahead), np.tile(r, len(at))
                base = (r >> (vary - 1) if vary else np.zeros_like(r)) + (0 if stable else filled[row])
                position = filled[row] if self._straws.positions > 1 else None
                item, osd, dead = (
                    drawn.reshape(len(at), ahead)
                    for drawn in self._draw(
                        start[row],
                        seeds[row],
                        r,
                        kind,
                        leaf,
                        base,
                        1,
                        leaf_tries,
                        chosen[row],
                        leaves[row],
                        position,
                        position,
                    )
                )
                viable = osd != ITEM_NONE
                # A row takes its first viable draw. A draw that can never reach the wanted type ends the
                # row's tries.
                decided = viable | dead
                pick = decided.argmax(axis=1)
                good = viable[np.arange(len(at)), pick]
                taken = at[good]
                chosen[taken, filled[taken]] = item[good, pick[good]]
                leaves[taken, filled[taken]] = osd[good, pick[good]]
                filled[taken] += 1
                is_open[at[decided.any(axis=1)]] = False
        return leaves if leaf else chosen, filled

    def _indep(
        self, start: Ints, room: Ints, seeds: Ints, wanted: int, kind: str, retries: ChooseTries, leaf: bool
    ) -> tuple[Ints, Ints]:
        """Choose all positions side by side, at most `room`. Return (items, how many of each row count).

        A position that cannot be filled stays ITEM_NONE (a hole). A `start` that is no bucket gives no
        position.
        """
        tries, leaf_tries = retries.choose_tries, retries.chooseleaf_tries or 1
        counts = np.where(start < 0, np.minimum(wanted, room), 0)
        count = int(counts.max(initial=0))
        chosen = np.where(np.arange(count) < counts[:, None], _UNDEFINED, ITEM_NONE)
        leaves = chosen.copy()
        first = ahead = 0
        while (first := first + ahead) < tries and (chosen == _UNDEFINED).any():
            row, place = np.nonzero(chosen == _UNDEFINED)
            ahead = self._count_tries(first, tries, len(row))
            r = (place[:, None] + wanted * (first + np.arange(ahead))).ravel()
            each = np.repeat(row, ahead)
            base = np.repeat(place, ahead) + r
            # mapper.c descends with the weights of the step's first position, and below a bucket with the
            # shard's own.
            own = np.repeat(place, ahead) if self._straws.positions > 1 else None
            item, osd, dead = (
                drawn.reshape(len(row), ahead)
                for drawn in self._draw(
                    start[each],
                    seeds[each],
                    r,
                    kind,
                    leaf,
                    base,
                    wanted,
                    leaf_tries,
                    chosen[each],
                    leaf_position=own,
                )
            )
            viable = osd != ITEM_NONE
            # chooseleaf of type osd notes its OSD before it checks whether it is out, so one that is out may
            # stay.
            noted = item if leaf and kind == "osd" else osd
            decided = dead | (noted != ITEM_NONE)
            for attempt in np.flatnonzero(decided.any(axis=0)).tolist():
                waiting = decided[:, attempt] & (chosen[row, place] == _UNDEFINED)
                if not waiting.any():
                    if (chosen[row, place] != _UNDEFINED).all():
                        break
                    continue
                for position in np.unique(place[waiting]).tolist():
                    here = np.flatnonzero((place == position) & waiting)
                    here = here[chosen[row[here], position] == _UNDEFINED]
                    lost = here[dead[here, attempt]]
                    chosen[row[lost], position] = leaves[row[lost], position] = ITEM_NONE
                    here = here[noted[here, attempt] != ITEM_NONE]
                    fresh = ~(chosen[row[here]] == item[here, attempt][:, None]).any(axis=1)
                    here = here[fresh]
                    leaves[row[here], position] = noted[here, attempt]
                    here = here[viable[here, attempt]]
                    chosen[row[here], position] = item[here, attempt]
        result = leaves if leaf else chosen
        result[result == _UNDEFINED] = ITEM_NONE
        return result, counts

    def _draw(
        self,
        start: Ints,
        seeds: Ints,
        r: Ints,
        kind: str,
        leaf: bool,
        base: Ints,
        step: int,
        leaf_tries: int,
        taken: Ints,
        taken_leaves: Ints | None = None,
        position: Ints | None = None,
        leaf_position: Ints | None = None,
    ) -> tuple[Ints, Ints, Bools]:
        """Make one try for each row. Return (item of `kind`, result or ITEM_NONE, rows that never find one).

        The result is the item itself, or with `leaf` an OSD under it that takes the row. base, step: the `r`
        of the tries for that OSD. taken: items that the row already has, which give nothing. taken_leaves:
        OSDs that firstn passes over, since two items may share an OSD; indep does not pass over them.
        position, leaf_position: the positions whose weights apply on the way to the item and to the OSD under
        it.
        """
        item, dead = self._descend(start, seeds, r, kind, position)
        fresh = (item != ITEM_NONE) & ~(taken == item[:, None]).any(axis=1)
        if kind == "osd":
            fresh[fresh] = ~self._is_out(item[fresh], seeds[fresh])
        given = np.full(len(item), ITEM_NONE, dtype=np.int64)
        if leaf and kind != "osd":
            avoided = None if taken_leaves is None else taken_leaves[fresh]
            within = None if leaf_position is None else leaf_position[fresh]
            given[fresh] = self._leaf(
                item[fresh], seeds[fresh], base[fresh], step, leaf_tries, avoided, within
            )
        else:
            given[fresh] = item[fresh]
        return item, given, dead

    def _leaf(
        self,
        bucket: Ints,
        seeds: Ints,
        base: Ints,
        step: int,
        tries: int,
        avoided: Ints | None,
        position: Ints | None,
    ) -> Ints:
        """Return one OSD under each row's bucket that is in and not `avoided`; ITEM_NONE if the tries ran
        out.
        """
        found = np.full(len(bucket), ITEM_NONE, dtype=np.int64)
        open_rows = np.arange(len(bucket))
        for failed in range(tries):
            if not len(open_rows):
                break
            item, dead = self._descend(
                bucket[open_rows],
                seeds[open_rows],
                base[open_rows] + step * failed,
                "osd",
                None if position is None else position[open_rows],
            )
            good = item != ITEM_NONE
            good[good] = ~self._is_out(item[good], seeds[open_rows[good]])
            if avoided is not None:
                good &= ~(avoided[open_rows] == item[:, None]).any(axis=1)
            found[open_rows[good]] = item[good]
            open_rows = open_rows[~good & ~dead]
        return found

    def _descend(
        self, start: Ints, seeds: Ints, r: Ints, kind: str, position: Ints | None
    ) -> tuple[Ints, Bools]:
        """Descend from each row's bucket to an item of `kind`. Return (item or ITEM_NONE, rows that never
        find one).
        """
        at = start.copy()
        found = np.full(len(start), ITEM_NONE, dtype=np.int64)
        dead = np.zeros(len(start), dtype=np.bool_)
        walking = np.arange(len(start))
        while len(walking):
            rows = self._row_by_negative[-at[walking]]
            walking, rows = walking[self._sizes[rows] > 0], rows[self._sizes[rows] > 0]
            if not len(walking):
                break
            here = None if position is None else position[walking]
            item = self._straw2(rows, seeds[walking], r[walking], here)
            is_osd = item >= 0
            if kind == "osd":
                arrived, lost = is_osd, np.zeros_like(is_osd)
            else:
                types = self._types[self._row_by_negative[np.where(is_osd, 0, -item)]]
                arrived = ~is_osd & (types == kind)
                lost = is_osd
            found[walking[arrived]] = item[arrived]
            dead[walking[lost]] = True
            at[walking] = item
            walking = walking[~arrived & ~lost]
        return found, dead

    def _straw2(self, rows: Ints, seeds: Ints, r: Ints, position: Ints | None) -> Ints:
        """Return the item with the longest straw in each row's bucket; ties and all-zero weights go to the
        first item.
        """
        items, cost, _ = self._straws.draw(rows, seeds, r, position)
        best: Ints = items[np.arange(len(rows)), cost.argmin(axis=1)]
        return best

    def _is_out(self, osds: Ints, seeds: Ints) -> Bools:
        """Return whether the override reweight turns each OSD away for each seed."""
        weight = self._reweights[osds]
        drawn = hash_two_words(seeds.astype(np.uint32), osds.astype(np.uint32)) & np.uint32(0xFFFF)
        out: Bools = (weight < FULL_WEIGHT) & (drawn.astype(np.int64) >= weight)
        return out

    def _count_tries(self, first: int, tries: int, rows: int) -> int:
        """Return how many tries to draw at once: one while many rows are open, many for the few that are hard
        to place.
        """
        return 1 if first == 0 else max(1, min(tries - first, self._drawn_ahead // rows))
