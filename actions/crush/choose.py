"""CRUSH's rules over many PGs at once: take, choose, chooseleaf (firstn and indep, straw2), emit.

Every row of an array is one PG. A descent picks, level by level, the longest straw in each row's own
bucket; a row that collides or meets an OSD that is out tries again with another `r`, as `crush_do_rule`
does (Weil et al. 2006, "CRUSH: Controlled, Scalable, Decentralized Placement of Replicated Data"; Ceph's
mapper.c for retries).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from predrain.actions.crush.hashing import hash2
from predrain.actions.crush.lists import Lists
from predrain.actions.crush.map import COMPAT_SET, ITEM_NONE, CrushMap, CrushRule, RuleStep
from predrain.actions.crush.retries import SETTERS, Retries, retries_of
from predrain.actions.crush.straws import Ints, StrawTable
from predrain.data.refusal import Refusal

__all__ = ["FULL_WEIGHT", "CannotPlace", "Chooser", "Ints"]

Bools = npt.NDArray[np.bool_]

FULL_WEIGHT = 0x10000
"""An override reweight of 1.0 in 16.16 fixed point."""

_UNDEFINED = -(1 << 40)
_CHUNK = 1 << 17

_CURES = {"straw": "convert it (ceph osd crush set-all-straw-buckets-to-straw2, which moves some data)"}
_CURE = (
    "move its items to a new straw2 bucket (ceph osd crush add-bucket, ceph osd crush move, which moves data)"
)


class CannotPlace(Refusal):
    """The map uses something that this CRUSH does not compute; a placement would be a guess."""


class Chooser:
    """One CRUSH map, with the override weights of its OSDs, ready to place rows of PGs."""

    _drawn_ahead = 1024
    """How many tries to draw together beyond those that must be; which of them count is known afterwards."""

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
        """Raw placement: (n,) placement seeds -> (n, size) OSDs.

        firstn rules fill from the left and pad with ITEM_NONE; indep rules keep positions.
        pool: the id of the pool, which may have a weight-set of its own; without one the compat weight-set holds.
        Raises CannotPlace where the rule takes buckets other than straw2, or has a step that is not computed.
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
        """Make the weights that hold for a pool those of the next placement."""
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
                    f"Bucket {bucket.name} uses {bucket.algorithm}; only straw2 is computed, so neither a walk by "
                    f"upmap nor a ladder by override reweight can be planned here: "
                    f"{_CURES.get(bucket.algorithm, _CURE)}, or drain by hand."
                )
            reached += bucket.items

    def _run(self, rule: CrushRule, seeds: Ints, size: int) -> Ints:
        retries = retries_of(self._tunables)
        working, emitted = Lists(len(seeds), size), Lists(len(seeds), size)
        for step in rule.steps:
            if step.op == "take":
                working = Lists(len(seeds), size)
                working.extend(np.full((len(seeds), 1), step.item), np.ones_like(seeds))
            elif step.op in SETTERS:
                retries = retries.after(step)
            elif step.op in {"choose_firstn", "chooseleaf_firstn"} and retries.local:
                raise CannotPlace(
                    f"Rule {rule.name} retries locally (choose_local_tries, choose_local_fallback_tries), which is "
                    f"not computed; set newer tunables (ceph osd crush tunables jewel), or take such steps out of it."
                )
            elif step.op in {"choose_firstn", "chooseleaf_firstn", "choose_indep", "chooseleaf_indep"}:
                working = self._choose(step, working, seeds, size, retries)
            elif step.op == "emit":
                emitted.extend(working.items, working.lengths)
                working = Lists(len(seeds), size)
            elif step.op != "noop":
                named = "multi-step retries (MSR)" if "msr" in step.op else f"a step {step.op!r}"
                raise CannotPlace(
                    f"Rule {rule.name} has {named}, which is not computed; "
                    f"give its pools a rule without it (ceph osd pool set POOL crush_rule), or drain by hand."
                )
        return emitted.items

    def _choose(self, step: RuleStep, working: Lists, seeds: Ints, size: int, retries: Retries) -> Lists:
        wanted = step.num if step.num > 0 else size + step.num
        leaf = step.op.startswith("chooseleaf")
        chosen = Lists(len(seeds), size)
        for start in working.columns if wanted > 0 else ():
            choose = self._firstn if step.op.endswith("firstn") else self._indep
            chosen.extend(*choose(start, chosen.room, seeds, wanted, step.type, retries, leaf))
        return chosen

    def _firstn(
        self, start: Ints, room: Ints, seeds: Ints, wanted: int, kind: str, retries: Retries, leaf: bool
    ) -> tuple[Ints, Ints]:
        """Each of `wanted` in turn, no more than there is `room` for: (items, how many of each row count).

        What cannot be had is left out and the next takes its place. A `start` that is no bucket gives nothing.
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
                # A row takes its first viable draw; a draw that can never end where it should ends its tries.
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
        self, start: Ints, room: Ints, seeds: Ints, wanted: int, kind: str, retries: Retries, leaf: bool
    ) -> tuple[Ints, Ints]:
        """All positions side by side, as many as there is `room` for: (items, how many of each row count).

        A position that cannot be filled stays ITEM_NONE (a hole). A `start` that is no bucket gives no position.
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
            # mapper.c descends with the weights of the step's first position, and below a bucket with the shard's own.
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
            # chooseleaf of type osd notes its OSD before it asks whether it is out: one that is out may stay.
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
        """One try of each row: (item of `kind`, what it gives or ITEM_NONE, rows that never find one).

        What it gives is the item itself, or with `leaf` an OSD under it that takes the row; `base` and `step`
        are the `r` of the tries for that OSD. An item that the row has among its `taken` gives nothing. Two items
        may share an OSD: firstn passes over its `taken_leaves`, indep does not. `position` and `leaf_position` are
        those whose weights hold on the way to the item and to the OSD under it.
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
        """One OSD under each row's bucket that is in and not `avoided`; ITEM_NONE where the tries ran out."""
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
        """From each row's bucket down to an item of `kind`: (item or ITEM_NONE, rows that never find one)."""
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
        """The item with the longest straw in each row's bucket; ties and all-zero weights go to the first."""
        items, cost, _ = self._straws.draw(rows, seeds, r, position)
        best: Ints = items[np.arange(len(rows)), cost.argmin(axis=1)]
        return best

    def _is_out(self, osds: Ints, seeds: Ints) -> Bools:
        """Whether the override reweight turns each OSD away for each seed."""
        weight = self._reweights[osds]
        drawn = hash2(seeds.astype(np.uint32), osds.astype(np.uint32)) & np.uint32(0xFFFF)
        out: Bools = (weight < FULL_WEIGHT) & (drawn.astype(np.int64) >= weight)
        return out

    def _count_tries(self, first: int, tries: int, rows: int) -> int:
        """How many tries to draw at once: one while many rows are open, many for the few hard to place."""
        return 1 if first == 0 else max(1, min(tries - first, self._drawn_ahead // rows))
