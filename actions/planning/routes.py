"""Where each PG of the suspect goes: the place of the final map, or a less full legal one where that is full."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from predrain.actions.cluster.view import ClusterView, Pg
from predrain.actions.core.capacity import OsdCapacity
from predrain.actions.core.messages import describe_limit
from predrain.actions.crush.map import ITEM_NONE
from predrain.actions.placement.failure_domains import (
    Domains,
    UpmapCheck,
    applied,
    domains,
    find_upmap_check,
    pairs_for,
)
from predrain.actions.placement.shared_failure import Fates, crowded, fates
from predrain.actions.placement.what_if import Placement, placed
from predrain.data.drain import Move
from predrain.data.ids import OsdId, PgId


@dataclass(frozen=True, slots=True)
class Route:
    """Where one PG ends, and by which moves; `problem` when it cannot leave."""

    pg: PgId
    moves: tuple[Move, ...]
    problem: str = ""
    shares: str = ""
    """Why members of it end on OSDs of one DB or WAL device: no place was left where they do not."""


def routes(
    view: ClusterView,
    ordered: list[Pg],
    final: Placement,
    leaving: frozenset[OsdId],
    out: frozenset[OsdId],
    space: OsdCapacity,
    avoided: frozenset[OsdId] = frozenset(),
) -> list[Route]:
    """One route a PG, in the order given; what each takes is promised in `space` before the next is sought. Nothing
    goes to OSDs that are `avoided`.
    """
    raw = placed(view, (), [pg.id for pg in ordered], pinned=False)
    pools = [view.pools[id_] for id_ in {pg.pool for pg in ordered}]
    regions = {pool.id: domains(view.crush, pool) for pool in pools}
    checks = {pool.id: find_upmap_check(view.crush, pool) for pool in pools}
    shared = fates(view)
    found = []
    for pg in ordered:
        way = _Way(
            view, pg, regions[pg.pool], checks[pg.pool], raw[pg.id], leaving, out, space, shared, avoided
        )
        route = way.route(final[pg.id])
        for move in route.moves:
            space.promise(move.target, move.bytes)
        found.append(route)
    return found


@dataclass(frozen=True, slots=True)
class _Way:
    """One PG looking for its place."""

    view: ClusterView
    pg: Pg
    region: Domains
    check: UpmapCheck
    raw: tuple[int, ...]
    leaving: frozenset[OsdId]
    out: frozenset[OsdId]
    space: OsdCapacity
    shared: Fates
    avoided: frozenset[OsdId]

    def route(self, want: tuple[int, ...]) -> Route:
        """CRUSH's own place when it is legal, has room and can be pinned; else the least full other one."""
        moves = moves_between(self.pg, want, self.leaving)
        may = self._pinnable(want) and all(
            move.target not in self.avoided and self.space.fits(move.target, move.bytes) for move in moves
        )
        together = crowded(self.shared, self.pg.up, want)
        if may and together is None:
            return Route(self.pg.id, moves)
        other = self._elsewhere()
        if other:
            return Route(self.pg.id, other)
        if may and together is not None:
            device, members = together
            told = f"{members} members of PG {self.pg.id} end on OSDs of {device}, which die together"
            left = len(set(want)) - members
            if left < self.view.pools[self.pg.pool].min_size:
                return Route(self.pg.id, (), f"{told}, and it would not serve from the {left} others.")
            return Route(self.pg.id, moves, shares=told)
        return Route(self.pg.id, (), self._no_room(want, moves))

    def _pinnable(self, want: tuple[int, ...]) -> bool:
        ordered = self.view.pools[self.pg.pool].erasure
        pairs = pairs_for(self.raw, want, self.view.upmap_items.get(self.pg.id, ()), ordered=ordered)
        legal = self.region.legal(want) and self.check.keeps_upmap(want)
        return legal and pairs is not None and set(applied(self.raw, pairs)) == set(want)

    def _elsewhere(self) -> tuple[Move, ...]:
        """The least full legal target for each of the suspect's shards; empty unless there is one for all."""
        if not self.region.parted:
            return ()
        now = self.pg.up
        moves: list[Move] = []
        for source in (OsdId(osd) for osd in self.pg.up if osd in self.leaving):
            for target in self._candidates(source, now):
                want = tuple(target if osd == source else osd for osd in now)
                last = not any(osd in self.leaving for osd in want)
                if not last or (self._pinnable(want) and crowded(self.shared, self.pg.up, want) is None):
                    moves.append(Move(self.pg.id, source, target, self.pg.shard_bytes))
                    now = want
                    break
            else:
                return ()
        return tuple(moves)

    def _candidates(self, source: OsdId, now: tuple[int, ...]) -> Iterator[OsdId]:
        """OSDs that may take the shard of `source`, the least full first: same root, class and upper branch."""
        size = self.pg.shard_bytes
        kind = self.view.osds[source].device_class
        able: list[tuple[float, OsdId]] = []
        for id_ in self.region.instead(now, source):
            osd = self.view.osds.get(OsdId(id_))
            if osd is None or id_ in self.out or id_ in self.avoided:
                continue
            if not osd.up or osd.reweight <= 0 or osd.crush_weight <= 0 or osd.device_class != kind:
                continue
            after = self.space.fullness(osd.id, size)
            if after is not None and after <= self.space.limit:
                able.append((after, osd.id))
        yield from (id_ for _, id_ in sorted(able))

    def _no_room(self, want: tuple[int, ...], moves: tuple[Move, ...]) -> str:
        fills = [(self.space.fullness(move.target, move.bytes), move.target) for move in moves]
        if any(fill is None for fill, _ in fills):
            return f"PG {self.pg.id} has no legal target that reports its size."
        over = [(fill, target) for fill, target in fills if fill is not None and fill > self.space.limit]
        if over:
            fill, target = max(over)
            limit = self.space.limit
            would = f"osd.{target} would be {fill:.0%} full, {describe_limit(limit)}"
            return f"{would}; no less full legal target is left."
        if left_out := [move.target for move in moves if move.target in self.avoided]:
            return f"osd.{left_out[0]} is left out as a target, and PG {self.pg.id} has no other legal one."
        if self.region.legal(want) and not self.check.keeps_upmap(want):
            return (
                f"The mon keeps no upmap of PG {self.pg.id}, since the CRUSH rule of its pool chooses buckets of "
                "several types in a row (CrushWrapper::verify_upmap). The plan needs upmaps: give the pool another "
                "rule, or empty the OSD by hand with `ceph osd reweight`."
            )
        return f"PG {self.pg.id} cannot be pinned to {list(want)}, and no other legal target is left."


def moves_between(pg: Pg, want: tuple[int, ...], leaving: Collection[int]) -> tuple[Move, ...]:
    """Shards that change hands between `up` and `want`, the suspect's own first."""
    gone = sorted((osd for osd in pg.up if osd not in want), key=lambda osd: osd not in leaving)
    come = [osd for osd in want if osd not in pg.up and osd != ITEM_NONE]
    if len(want) == len(pg.up):
        beside = {old: new for old, new in zip(pg.up, want, strict=True) if old in gone and new in come}
        if len(beside) == len(gone):
            return tuple(Move(pg.id, OsdId(old), OsdId(beside[old]), pg.shard_bytes) for old in gone)
    return tuple(
        Move(pg.id, OsdId(old), OsdId(new), pg.shard_bytes) for old, new in zip(gone, come, strict=False)
    )
