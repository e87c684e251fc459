"""Building blocks of worlds: rows of disks, trees with device classes, weights that even out fullness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from predrain.actions.crush.crush_map import Bucket, CrushMap, CrushRule, RuleStep
from predrain.actions.crush.pg_placement import place_pgs
from predrain.actions.crush.pool import Pool
from predrain.actions.simulator.cluster_spec import DEFAULT_RULES, OsdSpec, crush_tree
from predrain.data.ids import DeviceId, HostName, OsdId

TB = 10**12
GB = 10**9
_ROUNDS = 8


def build_osd_specs(hosts: int, per_host: int, size_bytes: int, racks: int = 0) -> tuple[OsdSpec, ...]:
    """Return `hosts` x `per_host` equal disks, numbered host by host; hosts are in `racks` equal racks, or in
    none.
    """
    return tuple(
        OsdSpec(
            id=OsdId(host * per_host + slot),
            host=HostName(f"stor-{host + 1:02d}"),
            rack=f"rack-{host * racks // hosts + 1}" if racks else None,
            size_bytes=size_bytes,
        )
        for host in range(hosts)
        for slot in range(per_host)
    )


def assign_drive_model(osds: Sequence[OsdSpec], model: str) -> tuple[OsdSpec, ...]:
    """Return the same disks with a drive model and a device id of Ceph's form."""
    return tuple(
        replace(osd, model=model, device=DeviceId(f"{model.replace(' ', '_')}_{osd.id:05d}")) for osd in osds
    )


def assign_shared_devices(osds: Sequence[OsdSpec], model: str, of: int) -> tuple[OsdSpec, ...]:
    """Return the same disks with the DB and WAL of every `of` disks of a host, in order, on one flash device."""
    seen: dict[HostName, int] = {}
    shared = []
    for osd in osds:
        place_ = seen.get(osd.host, 0)
        seen[osd.host] = place_ + 1
        flash = DeviceId(f"{model.replace(' ', '_')}_{osd.host}-{place_ // of + 1}")
        shared.append(replace(osd, shared_devices=(flash,)))
    return tuple(shared)


def class_tree(osds: Sequence[OsdSpec], copies: Mapping[int, str], shards: Mapping[int, str]) -> CrushMap:
    """Return `crush_tree` with a shadow tree for each device class, as Ceph keeps them.

    copies, shards: rule id -> device class that the rule takes, for replicated and for erasure-coded pools.
    """
    whole = crush_tree(osds)
    of = {int(osd.id): osd.device_class for osd in osds}
    buckets, rules = dict(whole.buckets), dict(whole.rules)
    roots: dict[str, int] = {}
    for class_ in sorted(set(of.values())):
        shadow: dict[int, int] = {}
        for id_, bucket in sorted(whole.buckets.items()):
            kept = [
                (item, weight)
                for item, weight in zip(bucket.items, bucket.weights, strict=True)
                if item < 0 or of[item] == class_
            ]
            shadow[id_] = min(buckets) - 1
            name = f"{bucket.name}~{class_}"
            buckets[shadow[id_]] = Bucket(shadow[id_], name, bucket.type, *_split_items_weights(kept))
        for id_ in (id_ for id_ in shadow if whole.buckets[id_].type != "host"):
            above = buckets[shadow[id_]]
            items = tuple(shadow[item] for item in above.items)
            buckets[shadow[id_]] = replace(above, items=items)
        _sum_bucket_weights(buckets, shadow[-1])
        roots[class_] = shadow[-1]
    for base, wanted in ((0, copies), (1, shards)):
        for rule, class_ in wanted.items():
            steps = tuple(
                RuleStep("take", item=roots[class_]) if step.op == "take" else step
                for step in DEFAULT_RULES[base].steps
            )
            rules[rule] = CrushRule(rule, f"{DEFAULT_RULES[base].name}_{class_}", steps)
    return replace(whole, buckets=buckets, rules=rules)


def build_levelled_tree(osds: tuple[OsdSpec, ...], pool: Pool, most: int) -> CrushMap:
    """Return a tree that chooses no OSD for more than `most` PGs: OSDs above lose CRUSH weight until that
    holds.

    After a fixed number of rounds a tree that still exceeds `most` is returned.
    """
    scale: dict[OsdId, float] = {}
    everything_in = {osd.id: 1.0 for osd in osds}
    for _ in range(_ROUNDS):
        crush = crush_tree(osds, scale=scale)
        placed = place_pgs(crush, {pool.id: pool}, everything_in, {})
        held = np.bincount([osd for up in placed.values() for osd in up], minlength=len(osds))
        over = [osd.id for osd in osds if held[osd.id] > most]
        if not over:
            return crush
        for osd in over:
            scale[osd] = scale.get(osd, 1.0) * (most - 1) / float(held[osd])
    return crush_tree(osds, scale=scale)


def _split_items_weights(pairs: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(item for item, _ in pairs), tuple(weight for _, weight in pairs)


def _sum_bucket_weights(buckets: dict[int, Bucket], id_: int) -> int:
    """Set the sums of all buckets below, from the leaves up, and return the bucket's own sum."""
    bucket = buckets[id_]
    weights = tuple(
        _sum_bucket_weights(buckets, item) if item < 0 else weight
        for item, weight in zip(bucket.items, bucket.weights, strict=True)
    )
    buckets[id_] = replace(bucket, weights=weights)
    return sum(weights)
