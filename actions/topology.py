"""Failure domains of a CRUSH rule, and what `pg-upmap-items` makes of a raw mapping.

Pure functions over `CrushMap`; placement itself is `actions.crush.place`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from actions.crush.map import ITEM_NONE, CrushMap, Rule

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Domains:
    """Where a rule may put a shard: each OSD under the rule's `take`, with what must stay as it is when
    one moves.

    `leaf` is the bucket of the rule's last type (two shards may not share it); `branch` are the buckets of
    types chosen before (a rule of two racks times two hosts: a shard that stays in its rack is always legal).
    """

    leaf: dict[int, int]
    branch: dict[int, tuple[int, ...]]
    single: bool
    """One `take` only; with several, no other target is sought than the one CRUSH gives."""

    def legal(self, members: Iterable[int]) -> bool:
        """No hole, and no two members in one failure domain."""
        places = [self.leaf.get(osd) for osd in members]
        return None not in places and len(set(places)) == len(places)


def domains(crush: CrushMap, rule: Rule) -> Domains:
    """The failure domains of `rule`, from one walk down the tree under each of its `take`s."""
    leaf: dict[int, int] = {}
    branch: dict[int, tuple[int, ...]] = {}
    types = [step.type for step in rule.steps if step.op.startswith("choose")]
    takes = [step.item for step in rule.steps if step.op == "take"]
    last, before = (types[-1], types[:-1]) if types else ("osd", [])
    if last == "osd" and before:
        last, before = before[-1], before[:-1]
    for take in takes:
        stack: list[tuple[int, int | None, tuple[int, ...]]] = [(take, None, ())]
        while stack:
            item, domain, above = stack.pop()
            if item >= 0:
                leaf[item] = item if last == "osd" or domain is None else domain
                branch[item] = above
                continue
            bucket = crush.buckets[item]
            if bucket.type == last:
                domain = item
            if bucket.type in before:
                above = (*above, item)
            stack.extend((child, domain, above) for child in bucket.items)
    return Domains(leaf, branch, single=len(takes) == 1)


def with_crush_weight(crush: CrushMap, osd: int, weight: float) -> CrushMap:
    """The map after `osd crush reweight`: the item in every bucket that holds it, and all sums above it."""
    grain = round(weight * 65536)
    buckets = dict(crush.buckets)
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
    return replace(crush, buckets=buckets)


def applied(raw: tuple[int, ...], pairs: Pairs) -> tuple[int, ...]:
    """`up` as the map makes it of a raw mapping: each pair replaces its first, unless its second is
    there already.
    """
    members = list(raw)
    for old, new in pairs:
        if old in members and new not in members:
            members[members.index(old)] = new
    return tuple(members)


def pairs_for(raw: tuple[int, ...], want: tuple[int, ...], standing: Pairs, *, ordered: bool) -> Pairs | None:
    """The whole list of pairs that turns `raw` into `want`; None when upmaps cannot express it.

    Standing pairs that still serve are kept first. `ordered` (erasure pools): each position must come out
    right; otherwise the set is enough, and each leaver is paired with a comer.
    """
    if ordered:
        pairs = [
            (old, new)
            for old, new in zip(raw, want, strict=True)
            if old != new and ITEM_NONE not in (old, new)
        ]
        return tuple(pairs) if applied(raw, tuple(pairs)) == want else None
    leavers = [osd for osd in raw if osd not in want]
    comers = [osd for osd in want if osd not in raw]
    if len(leavers) != len(comers) or ITEM_NONE in leavers or ITEM_NONE in comers:
        return None
    kept = [(old, new) for old, new in standing if old in leavers and new in comers]
    gone, come = {old for old, _ in kept}, {new for _, new in kept}
    fresh = zip((x for x in leavers if x not in gone), (y for y in comers if y not in come), strict=True)
    return (*kept, *fresh)
