"""The effect of `ceph osd crush reweight` on a map with its weight-sets, and the bounds of several such maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from predrain.actions.crush.crush_map import Bucket, ChooseArg, ChooseArgs, CrushMap

Row = tuple[int, ...]
_GRAIN = 0x10000


def fixed_crush_weight(weight: float) -> int:
    """Return a CRUSH weight as the mon stores it: a 32-bit float to 16.16 fixed point, truncated. Source:
    CrushWrapper::adjust_item_weightf; recorded on Pacific.
    """
    return int(np.float32(weight) * np.float32(_GRAIN))


def with_crush_weight(crush: CrushMap, osd: int, weight: float) -> CrushMap:
    """Return the map after `osd crush reweight`: the item's weight in every bucket that holds it, and all
    sums above it.

    Every weight-set gets the new weight at every position, as the mon does by default
    (`osd_crush_update_weight_set`). The values that a balancer had put there are lost, for the OSD and for
    the sums above every bucket.
    """
    grain = fixed_crush_weight(weight)
    buckets = _reweigh_buckets(crush.buckets, osd, grain)
    sets = {key: _reweigh_set(args, buckets, osd, grain) for key, args in crush.choose_args.items()}
    return replace(crush, buckets=buckets, choose_args=sets)


def _reweigh_buckets(before: Mapping[int, Bucket], osd: int, grain: int) -> dict[int, Bucket]:
    buckets = dict(before)
    changed = {osd: grain}
    while changed:
        above: dict[int, int] = {}
        for id_, bucket in buckets.items():
            if changed.keys() & set(bucket.items):
                weights = tuple(
                    changed.get(item, old) for item, old in zip(bucket.items, bucket.weights, strict=True)
                )
                if weights != bucket.weights:
                    buckets[id_] = replace(bucket, weights=weights)
                    above[id_] = sum(weights)
        changed = above
    return buckets


def _reweigh_set(args: ChooseArgs, buckets: Mapping[int, Bucket], osd: int, grain: int) -> ChooseArgs:
    """Return one set after the change. Source: crushtool and a mon, both 16.2.15, on maps of every kind.

    If any bucket has weights in the set, buckets without weights get their own weights first. Then the entry
    of every bucket in the buckets above it becomes the sum of its items. This also happens if the OSD is not
    below the bucket and the entry had another value.
    """
    positions = max((len(arg.weight_set) for arg in args.values()), default=0)
    if not positions:
        return args
    rows: dict[int, list[Row]] = {}

    def settle(id_: int) -> list[int]:
        """Return the sums of a bucket, one for each position, and store its weights in `rows`."""
        if id_ not in rows:
            bucket = buckets[id_]
            weight_set = args.get(id_, ChooseArg()).weight_set or (bucket.weights,) * positions
            sums = {item: settle(item) for item in bucket.items if item in buckets}
            sums[osd] = [grain] * positions
            rows[id_] = [
                tuple(
                    sums[item][at] if item in sums else old
                    for item, old in zip(bucket.items, weight_set[min(at, len(weight_set) - 1)], strict=True)
                )
                for at in range(positions)
            ]
        return [sum(row) for row in rows[id_]]

    for id_ in buckets:
        settle(id_)
    return {id_: ChooseArg(tuple(rows[id_]), args.get(id_, ChooseArg()).ids) for id_ in buckets}


def without_osd(crush: CrushMap, osd: int) -> CrushMap:
    """Return the map without an OSD of weight 0, as `osd purge` leaves it."""

    def left(row: Row, items: Row) -> Row:
        return tuple(value for value, item in zip(row, items, strict=True) if item != osd) if row else row

    holders = {id_: bucket for id_, bucket in crush.buckets.items() if osd in bucket.items}
    buckets = {
        id_: replace(
            bucket, items=left(bucket.items, bucket.items), weights=left(bucket.weights, bucket.items)
        )
        for id_, bucket in holders.items()
    }
    sets = {
        key: {
            id_: ChooseArg(
                tuple(left(row, holders[id_].items) for row in arg.weight_set),
                left(arg.ids, holders[id_].items),
            )
            if id_ in holders
            else arg
            for id_, arg in args.items()
        }
        for key, args in crush.choose_args.items()
    }
    return replace(crush, buckets={**crush.buckets, **buckets}, choose_args=sets)


def find_bounds(maps: Sequence[CrushMap]) -> tuple[CrushMap, CrushMap]:
    """Return the maps with the lowest and with the highest weight of each item in any of `maps`.

    The maps must differ only in weights.
    """
    return _merge_maps(maps, min), _merge_maps(maps, max)


def _merge_maps(maps: Sequence[CrushMap], pick: Callable[..., int]) -> CrushMap:
    first = maps[0]
    buckets = {
        id_: replace(bucket, weights=_merge_rows([each.buckets[id_].weights for each in maps], pick))
        for id_, bucket in first.buckets.items()
    }
    sets = {
        key: _merge_set([(each, each.choose_args[key]) for each in maps], pick) for key in first.choose_args
    }
    return replace(first, buckets=buckets, choose_args=sets)


def _merge_set(sets: Sequence[tuple[CrushMap, ChooseArgs]], pick: Callable[..., int]) -> ChooseArgs:
    found: dict[int, ChooseArg] = {}
    for id_ in dict.fromkeys(id_ for _, args in sets for id_ in args):
        each = [args.get(id_, ChooseArg()) for _, args in sets]
        most = max(len(arg.weight_set) for arg in each)
        if not most:
            found[id_] = each[0]
            continue
        rows = [
            arg.weight_set or (crush.buckets[id_].weights,)
            for arg, (crush, _) in zip(each, sets, strict=True)
        ]
        merged = tuple(
            _merge_rows([row[min(position, len(row) - 1)] for row in rows], pick) for position in range(most)
        )
        found[id_] = ChooseArg(merged, max((arg.ids for arg in each), key=len))
    return found


def _merge_rows(rows: Sequence[Row], pick: Callable[..., int]) -> Row:
    return rows[0] if all(row == rows[0] for row in rows) else tuple(map(pick, *rows))
