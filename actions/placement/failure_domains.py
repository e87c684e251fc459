"""Failure domains of a CRUSH rule, and what `pg-upmap-items` makes of a raw mapping.

Pure functions over `CrushMap`; placement itself is `actions.crush.place`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from predrain.actions.cluster.view import ClusterView
from predrain.actions.crush.map import ITEM_NONE, CrushMap
from predrain.actions.crush.pool import Pool

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class UpmapCheck:
    """The sets of OSDs to which the mon keeps an upmap, for the rule of one pool.

    `members`: the OSDs under the rule's `take`s. `limits`: for each choose step, the bucket of the step's type above
    each OSD, and how many of these buckets a set may have; None where each member needs a bucket of its own.

    Source: OSDMap::check_pg_upmaps, CrushWrapper::verify_upmap.
    """

    members: frozenset[int]
    limits: tuple[tuple[dict[int, int], int | None], ...]

    def keeps_upmap(self, osds: Sequence[int]) -> bool:
        """Whether the mon keeps an upmap after which a PG has these members (`ITEM_NONE`: no OSD)."""
        if not self.members.issuperset(osds) or len(set(osds)) != len(osds):
            return False
        for above, most in self.limits:
            buckets = [above[osd] for osd in osds if osd in above]
            if len(set(buckets)) < len(buckets) if most is None else len(set(buckets)) > most:
                return False
        return True


@dataclass(frozen=True, slots=True)
class Domains:
    """Where a rule may put a shard: each OSD under the rule's `take`, with what must stay as it is when
    one moves.

    `leaf` is the bucket of the rule's last type above an OSD; `share` shards may lie in one of them, and `spread` of
    them hold shards. `branch` is the `take` with the buckets of types chosen before (a rule of two racks times two
    hosts: a shard that stays in its rack is always legal; one that stays under its `take` stays in its root and device
    class).
    """

    leaf: dict[int, int]
    branch: dict[int, tuple[int, ...]]
    parted: bool
    """No OSD lies under two of the rule's `take`s; where one does, no other target is sought than CRUSH's own."""
    share: int
    spread: int
    most: dict[int, int]
    """How many members the rule puts into one branch, by the branch's `take`."""

    def legal(self, members: Sequence[int]) -> bool:
        """No hole, no OSD twice, no failure domain with more members than the rule puts there, not more domains than it
        chooses, and not more members in a branch than the rule puts there. The mon lets a branch have more
        (`UpmapCheck`); predrain does not, so that a site of a stretched cluster keeps its copies.
        """
        places = Counter(self.leaf.get(osd) for osd in members)
        if None in places:
            return False
        branches = Counter(self.branch[osd] for osd in members)
        return (
            len(set(members)) == len(members)
            and max(places.values(), default=0) <= self.share
            and len(places) <= self.spread
            and (not self.parted or all(held <= self.most[branch[0]] for branch, held in branches.items()))
        )

    def instead(self, members: Sequence[int], source: int) -> Iterator[int]:
        """OSDs that may legally take the place of `source` among `members`, in its own branch."""
        if source not in self.leaf:
            return
        others = [osd for osd in members if osd != source]
        places = Counter(self.leaf.get(osd) for osd in others)
        full = {leaf for leaf, held in places.items() if held >= self.share}
        for osd, leaf in self.leaf.items():
            if leaf in full or (leaf not in places and len(places) >= self.spread):
                continue
            if osd not in members and self.branch[osd] == self.branch[source]:
                yield osd


def domains(crush: CrushMap, pool: Pool) -> Domains:
    """The failure domains of the pool's rule, from one walk down the tree under each of its `take`s.

    OSDs that are chosen after a bucket (three hosts, then two OSDs of each) share that bucket.
    """
    leaf: dict[int, int] = {}
    branch: dict[int, tuple[int, ...]] = {}
    shares: list[int] = []
    spread, parted = pool.size, True
    takes = _takes(crush, pool)
    most: Counter[int] = Counter()
    for take, chosen in takes:
        most[take] += _count_in_branch(chosen)
    for take, chosen in dict(takes).items():
        together = len(chosen) > 1 and chosen[-1][0] == "osd"
        shares.append(chosen[-1][1] if together else 1)
        if together:
            chosen = chosen[:-1]
            if len(takes) == 1:
                spread = prod(num for _, num in chosen)
        types = [type_ for type_, _ in chosen] or ["osd"]
        last, before = types[-1], types[:-1]
        stack: list[tuple[int, int | None, tuple[int, ...]]] = [(take, None, (take,))]
        while stack:
            item, domain, above = stack.pop()
            if item >= 0:
                parted = parted and item not in leaf
                leaf[item] = item if last == "osd" or domain is None else domain
                branch[item] = above
                continue
            bucket = crush.buckets[item]
            if bucket.type == last:
                domain = item
            if bucket.type in before:
                above = (*above, item)
            stack.extend((child, domain, above) for child in bucket.items)
    return Domains(leaf, branch, parted, min(shares, default=1), spread, dict(most))


def find_upmap_check(crush: CrushMap, pool: Pool) -> UpmapCheck:
    """The mon's check of upmaps under the rule of `pool`, from one walk down the tree under its `take`s."""
    limits: list[tuple[str, dict[int, int], int | None]] = []
    for step in crush.rules[pool.rule].steps:
        if step.op.startswith("choose") and step.type != "osd":
            most = step.num if step.num > 0 else pool.size + step.num
            limits.append((step.type, {}, None if step.op.startswith("chooseleaf") else most))
    members: set[int] = set()
    for take in {take for take, _ in _takes(crush, pool)}:
        stack: list[tuple[int, dict[str, int]]] = [(take, {})]
        while stack:
            item, above = stack.pop()
            if item < 0:
                bucket = crush.buckets[item]
                stack.extend((child, {**above, bucket.type: item}) for child in bucket.items)
                continue
            members.add(item)
            for type_, buckets, _ in limits:
                if type_ in above:
                    buckets[item] = above[type_]
    return UpmapCheck(frozenset(members), tuple((buckets, most) for _, buckets, most in limits))


def _count_in_branch(chosen: list[tuple[str, int]]) -> int:
    """How many members come under one bucket of the last type but one, or under the `take` where there is none."""
    nums = [num for _, num in chosen]
    return prod(nums[-2:] if len(nums) > 1 and chosen[-1][0] == "osd" else nums[-1:])


def _takes(crush: CrushMap, pool: Pool) -> list[tuple[int, list[tuple[str, int]]]]:
    """Each `take` of the pool's rule, with the types chosen below it and how many of each."""
    takes: list[tuple[int, list[tuple[str, int]]]] = []
    for step in crush.rules[pool.rule].steps:
        if step.op == "take":
            takes.append((step.item, []))
        elif step.op.startswith("choose") and takes:
            takes[-1][1].append((step.type, step.num if step.num > 0 else pool.size + step.num))
    return takes


def has_both_osds(view: ClusterView, pair: tuple[int, int]) -> bool:
    """Whether both OSDs of a pair are in the map."""
    return all(osd in view.osds or osd == ITEM_NONE for osd in pair)


def applied(raw: tuple[int, ...], pairs: Pairs) -> tuple[int, ...]:
    """`up` as the map makes it of a raw mapping: each pair replaces its first, unless its second is
    there already.
    """
    members = list(raw)
    for old, new in pairs:
        if old in members and new not in members:
            members[members.index(old)] = new
    return tuple(members)


def comers(have: tuple[int, ...], want: tuple[int, ...], *, ordered: bool) -> tuple[int, ...]:
    """OSDs that must take in a shard to get from `have` to `want`: of an erasure pool (`ordered`) also those that hold
    another shard of the same PG already.
    """
    if ordered and len(have) == len(want):
        return tuple(new for old, new in zip(have, want, strict=True) if new not in (old, ITEM_NONE))
    return tuple(osd for osd in want if osd not in have and osd != ITEM_NONE)


def pairs_for(raw: tuple[int, ...], want: tuple[int, ...], standing: Pairs, *, ordered: bool) -> Pairs | None:
    """The whole list of pairs that turns `raw` into `want`; None when upmaps cannot express it.

    Standing pairs that still serve are kept first. `ordered` (erasure pools): each position must come out
    right, and an OSD that changes its position leaves the one before it comes to the other; otherwise the set is
    enough, and each leaver is paired with a comer.
    """
    if ordered:
        pairs = _in_turn(
            [
                (old, new)
                for old, new in zip(raw, want, strict=True)
                if old != new and ITEM_NONE not in (old, new)
            ]
        )
        return pairs if applied(raw, pairs) == want else None
    leavers = [osd for osd in raw if osd not in want]
    comers = [osd for osd in want if osd not in raw]
    if len(leavers) != len(comers) or ITEM_NONE in leavers or ITEM_NONE in comers:
        return None
    kept = [(old, new) for old, new in standing if old in leavers and new in comers]
    gone, come = {old for old, _ in kept}, {new for _, new in kept}
    fresh = zip((x for x in leavers if x not in gone), (y for y in comers if y not in come), strict=True)
    return (*kept, *fresh)


def _in_turn(pairs: list[tuple[int, int]]) -> Pairs:
    """The pairs so that each comes after the one that makes room for it; members of a ring stay as they are."""
    done: list[tuple[int, int]] = []
    while ready := [pair for pair in pairs if pair[1] not in {old for old, _ in pairs}]:
        done.extend(ready)
        pairs = [pair for pair in pairs if pair not in ready]
    return (*done, *pairs)
