"""The failure domains of a CRUSH rule, the effect of `pg-upmap-items` on a raw mapping, and OSDs that fail together
because their DB or WAL is on one shared device.

All functions are pure functions; placement itself is `actions.crush.pg_placement`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.osd_layout import find_osd_layout
from predrain.actions.crush.crush_map import ITEM_NONE, CrushMap
from predrain.actions.crush.pool import Pool
from predrain.actions.crush.upmap_check import list_take_steps
from predrain.data.drain import Drain, Move
from predrain.data.identity_memo import remember_results
from predrain.data.ids import DeviceId, OsdId, PgId

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Domains:
    """The places where a rule may put a shard: each OSD under the rule's `take`, and the buckets that a move
    must keep.

    `leaf` is the bucket of the rule's last type above an OSD. Each bucket may hold `share` shards, and
    `spread` of the buckets hold shards. `branch` is the `take` with the buckets of the types chosen before.
    For example, with a rule of two racks times two hosts, a shard that stays in its rack is always legal. A
    shard that stays under its `take` stays in its root and device class.
    """

    leaf: dict[int, int]
    branch: dict[int, tuple[int, ...]]
    parted: bool
    """True if no OSD is under two of the rule's `take`s. Otherwise only CRUSH's own target is considered."""
    share: int
    spread: int
    most: dict[int, int]
    """The number of members that the rule puts into one branch, by the branch's `take`."""

    def is_legal(self, members: Sequence[int]) -> bool:
        """Return whether the rule could have chosen these members.

        No member is missing or repeated. No failure domain and no branch has more members than the rule puts
        there, and there are no more domains than it chooses. The mon lets a bucket of a choose step have more
        (`UpmapCheck`); predrain does not, so that a rack keeps its copies.
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

    def list_substitutes(self, members: Sequence[int], source: int) -> Iterator[int]:
        """Yield OSDs that may legally replace `source` among `members`, in its own branch."""
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


@remember_results(limit=16)
def find_failure_domains(crush: CrushMap, pool: Pool) -> Domains:
    """Find the failure domains of the pool's rule, by one walk down the tree under each of its `take`s.

    OSDs that are chosen after a bucket (three hosts, then two OSDs of each) share that bucket.
    """
    leaf: dict[int, int] = {}
    branch: dict[int, tuple[int, ...]] = {}
    shares: list[int] = []
    spread, parted = pool.size, True
    takes = list_take_steps(crush, pool)
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


def _count_in_branch(chosen: list[tuple[str, int]]) -> int:
    """Return the number of members under one bucket of the last type but one, or under the `take` if there is
    none.
    """
    nums = [num for _, num in chosen]
    return prod(nums[-2:] if len(nums) > 1 and chosen[-1][0] == "osd" else nums[-1:])


def has_both_osds(view: ClusterView, pair: tuple[int, int]) -> bool:
    """Return whether both OSDs of a pair are in the map."""
    return all(osd in view.osds or osd == ITEM_NONE for osd in pair)


def apply_upmap_pairs(raw: tuple[int, ...], pairs: Pairs) -> tuple[int, ...]:
    """Return `up` as the map derives it from a raw mapping.

    Each pair replaces its first OSD by its second, unless the second is already a member.
    """
    members = list(raw)
    for old, new in pairs:
        if old in members and new not in members:
            members[members.index(old)] = new
    return tuple(members)


def list_incoming_osds(have: tuple[int, ...], want: tuple[int, ...], *, ordered: bool) -> tuple[int, ...]:
    """Return the OSDs that must receive a shard to get from `have` to `want`.

    In an erasure pool (`ordered`) an OSD that holds another shard of the same PG must receive one too.
    """
    if ordered and len(have) == len(want):
        return tuple(new for old, new in zip(have, want, strict=True) if new not in (old, ITEM_NONE))
    return tuple(osd for osd in want if osd not in have and osd != ITEM_NONE)


def pairs_for(raw: tuple[int, ...], want: tuple[int, ...], standing: Pairs, *, ordered: bool) -> Pairs | None:
    """Return the whole list of pairs that turns `raw` into `want`; None if upmap items cannot express it.

    Present pairs that still serve are kept first. ordered (erasure pools): each position must be right, and
    an OSD that changes its position leaves the old one before it enters the new one. Otherwise the set is
    enough, and each leaving OSD is paired with an incoming one.
    """
    if ordered:
        pairs = _in_turn(
            [
                (old, new)
                for old, new in zip(raw, want, strict=True)
                if old != new and ITEM_NONE not in (old, new)
            ]
        )
        return pairs if apply_upmap_pairs(raw, pairs) == want else None
    leavers = [osd for osd in raw if osd not in want]
    incoming = [osd for osd in want if osd not in raw]
    if len(leavers) != len(incoming) or ITEM_NONE in leavers or ITEM_NONE in incoming:
        return None
    kept = [(old, new) for old, new in standing if old in leavers and new in incoming]
    gone, come = {old for old, _ in kept}, {new for _, new in kept}
    fresh = zip((x for x in leavers if x not in gone), (y for y in incoming if y not in come), strict=True)
    return (*kept, *fresh)


def _in_turn(pairs: list[tuple[int, int]]) -> Pairs:
    """Order the pairs so that each comes after the pair that frees its target; pairs in a ring are left as
    they are.
    """
    done: list[tuple[int, int]] = []
    while ready := [pair for pair in pairs if pair[1] not in {old for old, _ in pairs}]:
        done.extend(ready)
        pairs = [pair for pair in pairs if pair not in ready]
    return (*done, *pairs)


Fates = Mapping[OsdId, tuple[DeviceId, ...]]


def devices_of(view: ClusterView, osd: OsdId) -> tuple[DeviceId, ...]:
    """Return every device that the OSD needs, its own first."""
    return find_osd_layout(view.osds).devices[osd]


def slot_reused(view: ClusterView, drain: Drain) -> bool:
    """Return whether another device is in the slot of the device that this drain is for."""
    if drain.device is None:
        return False
    known = [osd for id_ in drain.osds if (osd := view.osds.get(id_)) is not None]
    devices = {device for osd in known for device in devices_of(view, osd.id)}
    return bool(known) and all(osd.device is not None for osd in known) and drain.device not in devices


def list_disks_in_use(view: ClusterView, drain: Drain) -> tuple[OsdId, ...]:
    """Return OSDs of an emptied drain that are up and in on the disk that was emptied; empty for a fill."""
    if drain.device is None or not drain.intent.empties_osd:
        return ()
    known = [osd for id_ in drain.osds if (osd := view.osds.get(id_)) is not None]
    return tuple(
        osd.id for osd in known if osd.up and osd.reweight > 0.0 and drain.device in devices_of(view, osd.id)
    )


def find_shared_devices(view: ClusterView) -> Fates:
    """Return the shared devices of each OSD that has any."""
    return find_osd_layout(view.osds).shared_devices


def find_crowded_device(
    shared: Fates, now: Collection[int], want: Collection[int]
) -> tuple[DeviceId, int] | None:
    """Return a shared device under more members of `want` than of `now`, and under more than one, with the
    number.

    Return None if there is no such device.
    """
    needed = [device for osd in want if osd in shared for device in shared[OsdId(osd)]]
    if len(set(needed)) == len(needed):
        return None
    before, after = _count_device_members(shared, now), _count_device_members(shared, want)
    worse = [(members, device) for device, members in after.items() if members > max(1, before[device])]
    if not worse:
        return None
    members, device = max(worse)
    return device, members


def find_endangered_pg(view: ClusterView, moves: Iterable[Move]) -> tuple[PgId, DeviceId, int] | None:
    """Return a PG that these moves would put on one shared device so that its death leaves fewer than
    `min_size` members.
    """
    shared = find_shared_devices(view)
    if not shared:
        return None
    want: dict[PgId, tuple[int, ...]] = {}
    for move in moves:
        if move.pg in view.pgs:
            up = want.get(move.pg, view.pgs[move.pg].up)
            want[move.pg] = tuple(int(move.target) if osd == move.source else osd for osd in up)
    for id_, up in want.items():
        found = find_crowded_device(shared, view.pgs[id_].up, up)
        if found and len(set(up)) - found[1] < view.pools[view.pgs[id_].pool].min_size:
            return id_, *found
    return None


def _count_device_members(shared: Fates, members: Collection[int]) -> Counter[DeviceId]:
    return Counter(device for osd in members for device in shared.get(OsdId(osd), ()))
