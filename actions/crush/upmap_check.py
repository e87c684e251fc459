"""The monitor's check of upmap items against the CRUSH rule of their pool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from predrain.actions.crush.crush_map import CrushMap
from predrain.actions.crush.pool import Pool


@dataclass(frozen=True, slots=True)
class RuleBranch:
    """The OSDs under one `take` of a rule, and the number of members that the rule chooses there."""

    take: int
    osds: frozenset[int]
    count: int


@dataclass(frozen=True, slots=True)
class UpmapCheck:
    """The sets of OSDs for which the mon keeps an upmap item, for the rule of one pool.

    `members`: the OSDs under the rule's `take`s, which are the `branches` in order. `limits`: for each choose
    step, the bucket of the step's type above each OSD, and how many of these buckets a set may have; None if
    each member needs a bucket of its own.

    Source: OSDMap::check_pg_upmaps, CrushWrapper::verify_upmap; recorded on Pacific for six rules.
    """

    members: frozenset[int]
    branches: tuple[RuleBranch, ...]
    limits: tuple[tuple[dict[int, int], int | None], ...]

    def keeps_upmap(self, osds: Sequence[int]) -> bool:
        """Return whether the mon keeps an upmap item after which a PG has these members (`ITEM_NONE`: no
        OSD).

        The order of the members does not count, since primary affinity and OSDs that are down change it.
        """
        return (
            self.members.issuperset(osds)
            and len(set(osds)) == len(osds)
            and self.has_buckets(osds)
            and not self._overfills_branch(osds)
        )

    def has_buckets(self, osds: Sequence[int]) -> bool:
        """Return whether the members are in as many buckets as each choose step allows."""
        for above, most in self.limits:
            buckets = [above[osd] for osd in osds if osd in above]
            if len(set(buckets)) < len(buckets) if most is None else len(set(buckets)) > most:
                return False
        return True

    def follows_branches(self, osds: Sequence[int]) -> bool:
        """Return whether each member is under the `take` of its position, as CRUSH's order has them."""
        start = 0
        for branch in self.branches:
            end = start + branch.count
            if not branch.osds.issuperset(osds[start:end]):
                return False
            start = end
        return True

    def _overfills_branch(self, osds: Sequence[int]) -> bool:
        """Return whether a `take` has more members than the rule chooses there; False if `take`s share OSDs."""
        below = {branch.take: branch.osds for branch in self.branches}
        if len(below) == 1 or len(self.members) < sum(map(len, below.values())):
            return False
        most = Counter[int]()
        for branch in self.branches:
            most[branch.take] += branch.count
        return any(len(below[take].intersection(osds)) > count for take, count in most.items())


def find_upmap_check(crush: CrushMap, pool: Pool) -> UpmapCheck:
    """Build the mon's check of upmap items for the rule of `pool`, by one walk down the tree under its
    `take`s.
    """
    limits: list[tuple[str, dict[int, int], int | None]] = []
    for step in crush.rules[pool.rule].steps:
        if step.op.startswith("choose") and step.type != "osd":
            most = step.num if step.num > 0 else pool.size + step.num
            limits.append((step.type, {}, None if step.op.startswith("chooseleaf") else most))
    branches: list[RuleBranch] = []
    for take, chosen in list_take_steps(crush, pool):
        members: set[int] = set()
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
        branches.append(RuleBranch(take, frozenset(members), prod(num for _, num in chosen)))
    everyone = frozenset(osd for branch in branches for osd in branch.osds)
    return UpmapCheck(everyone, tuple(branches), tuple((buckets, most) for _, buckets, most in limits))


def list_take_steps(crush: CrushMap, pool: Pool) -> list[tuple[int, list[tuple[str, int]]]]:
    """Return each `take` of the pool's rule, with the types chosen below it and the number of each."""
    takes: list[tuple[int, list[tuple[str, int]]]] = []
    for step in crush.rules[pool.rule].steps:
        if step.op == "take":
            takes.append((step.item, []))
        elif step.op.startswith("choose") and takes:
            takes[-1][1].append((step.type, step.num if step.num > 0 else pool.size + step.num))
    return takes
