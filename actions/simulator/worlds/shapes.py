"""What worlds are built of: rows of disks, trees with device classes, weights that level fullness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from predrain.actions.crush.map import Bucket, CrushMap, CrushRule, RuleStep
from predrain.actions.crush.place import place
from predrain.actions.crush.pool import Pool
from predrain.actions.simulator.spec import DEFAULT_RULES, OsdSpec, crush_tree
from predrain.data.ids import DeviceId, HostName, OsdId

TB = 10**12
GB = 10**9
_ROUNDS = 8


def disks(hosts: int, per_host: int, size_bytes: int, racks: int = 0) -> tuple[OsdSpec, ...]:
    """`hosts` x `per_host` equal disks, numbered host by host; hosts in `racks` equal racks, or in none."""
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


def named(osds: Sequence[OsdSpec], model: str) -> tuple[OsdSpec, ...]:
    """The same disks with a drive model and a device id of Ceph's form."""
    return tuple(
        replace(osd, model=model, device=DeviceId(f"{model.replace(' ', '_')}_{osd.id:05d}")) for osd in osds
    )


def sharing(osds: Sequence[OsdSpec], model: str, of: int) -> tuple[OsdSpec, ...]:
    """The same disks with the DB and WAL of each `of` of a host, in their order, on one flash device."""
    seen: dict[HostName, int] = {}
    shared = []
    for osd in osds:
        place_ = seen.get(osd.host, 0)
        seen[osd.host] = place_ + 1
        flash = DeviceId(f"{model.replace(' ', '_')}_{osd.host}-{place_ // of + 1}")
        shared.append(replace(osd, shared_devices=(flash,)))
    return tuple(shared)


def class_tree(osds: Sequence[OsdSpec], copies: Mapping[int, str], shards: Mapping[int, str]) -> CrushMap:
    """`crush_tree` with a shadow tree for each device class, as Ceph keeps them.

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
            buckets[shadow[id_]] = Bucket(shadow[id_], name, bucket.type, *_columns(kept))
        for id_ in (id_ for id_ in shadow if whole.buckets[id_].type != "host"):
            above = buckets[shadow[id_]]
            items = tuple(shadow[item] for item in above.items)
            buckets[shadow[id_]] = replace(above, items=items)
        _weigh(buckets, shadow[-1])
        roots[class_] = shadow[-1]
    for base, wanted in ((0, copies), (1, shards)):
        for rule, class_ in wanted.items():
            steps = tuple(
                RuleStep("take", item=roots[class_]) if step.op == "take" else step
                for step in DEFAULT_RULES[base].steps
            )
            rules[rule] = CrushRule(rule, f"{DEFAULT_RULES[base].name}_{class_}", steps)
    return replace(whole, buckets=buckets, rules=rules)


def levelled(osds: tuple[OsdSpec, ...], pool: Pool, most: int) -> CrushMap:
    """A tree in which no OSD is chosen for more than `most` PGs: those above lose CRUSH weight until it holds."""
    scale: dict[OsdId, float] = {}
    everything_in = {osd.id: 1.0 for osd in osds}
    for _ in range(_ROUNDS):
        crush = crush_tree(osds, scale=scale)
        placed = place(crush, {pool.id: pool}, everything_in, {})
        held = np.bincount([osd for up in placed.values() for osd in up], minlength=len(osds))
        over = [osd.id for osd in osds if held[osd.id] > most]
        if not over:
            return crush
        for osd in over:
            scale[osd] = scale.get(osd, 1.0) * (most - 1) / float(held[osd])
    return crush_tree(osds, scale=scale)


def _columns(pairs: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(item for item, _ in pairs), tuple(weight for _, weight in pairs)


def _weigh(buckets: dict[int, Bucket], id_: int) -> int:
    """Sums from the leaves up; the bucket's own sum."""
    bucket = buckets[id_]
    weights = tuple(
        _weigh(buckets, item) if item < 0 else weight
        for item, weight in zip(bucket.items, bucket.weights, strict=True)
    )
    buckets[id_] = replace(bucket, weights=weights)
    return sum(weights)
