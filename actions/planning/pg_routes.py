"""The route of each PG of the suspect: its place on the final map, or a less full legal place if that one is
full.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from predrain.actions.cluster.cluster_view import ClusterView, Pg
from predrain.actions.core.capacity import OsdCapacity
from predrain.actions.crush.crush_map import ITEM_NONE
from predrain.actions.crush.upmap_check import UpmapCheck, find_upmap_check
from predrain.actions.placement.failure_domains import (
    Domains,
    Fates,
    apply_upmap_pairs,
    find_crowded_device,
    find_failure_domains,
    find_shared_devices,
    pairs_for,
)
from predrain.actions.placement.what_if import Placement, compute_up_sets
from predrain.data.drain import Move
from predrain.data.ids import OsdId, PgId
from predrain.data.plan_refusal import PlanRefusal, PlanRefusalKind


@dataclass(frozen=True, slots=True)
class PgRoute:
    """The final place of one PG and the moves to it; `problem`: why it cannot leave."""

    pg: PgId
    moves: tuple[Move, ...]
    problem: PlanRefusal | None = None
    shares: str = ""
    """The reason why members end on OSDs of one DB or WAL device: no other place was left."""


def find_pg_routes(
    view: ClusterView,
    ordered: list[Pg],
    final: Placement,
    leaving: frozenset[OsdId],
    out: frozenset[OsdId],
    space: OsdCapacity,
    avoided: frozenset[OsdId] = frozenset(),
) -> list[PgRoute]:
    """Find one route for each PG, in the given order.

    Each route is promised in `space` before the next one is sought. OSDs in `avoided` are no targets.
    """
    raw = compute_up_sets(view, (), [pg.id for pg in ordered], with_upmaps=False)
    pools = [view.pools[id_] for id_ in {pg.pool for pg in ordered}]
    regions = {pool.id: find_failure_domains(view.crush, pool) for pool in pools}
    checks = {pool.id: find_upmap_check(view.crush, pool) for pool in pools}
    shared = find_shared_devices(view)
    found = []
    for pg in ordered:
        way = _Way(
            view, pg, regions[pg.pool], checks[pg.pool], raw[pg.id], leaving, out, space, shared, avoided
        )
        route = way.find_route(final[pg.id])
        for move in route.moves:
            space.promise(move.target, move.bytes)
        found.append(route)
    return found


@dataclass(frozen=True, slots=True)
class _Way:
    """The search for the place of one PG."""

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

    def find_route(self, want: tuple[int, ...]) -> PgRoute:
        """Return CRUSH's own place if it is legal, not too full and possible by upmap items; else the least
        full other one.
        """
        moves = moves_between(self.pg, want, self.leaving)
        may = self._pinnable(want) and all(
            move.target not in self.avoided and self.space.fits(move.target, move.bytes) for move in moves
        )
        together = find_crowded_device(self.shared, self.pg.up, want)
        if may and together is None:
            return PgRoute(self.pg.id, moves)
        other = self._elsewhere()
        if other:
            return PgRoute(self.pg.id, other)
        if may and together is not None:
            device, members = together
            told = f"{members} members of PG {self.pg.id} end on OSDs of {device}, which die together"
            left = len(set(want)) - members
            if left < self.view.pools[self.pg.pool].min_size:
                few = PlanRefusal(
                    PlanRefusalKind.SHARED_DEVICE, pg=self.pg.id, name=device, size=members, others=left
                )
                return PgRoute(self.pg.id, (), few)
            return PgRoute(self.pg.id, moves, shares=told)
        return PgRoute(self.pg.id, (), self._find_problem(want, moves))

    def _pinnable(self, want: tuple[int, ...]) -> bool:
        ordered = self.view.pools[self.pg.pool].erasure
        pairs = pairs_for(self.raw, want, self.view.upmap_items.get(self.pg.id, ()), ordered=ordered)
        legal = self.region.is_legal(want) and self.check.keeps_upmap(want)
        return legal and pairs is not None and set(apply_upmap_pairs(self.raw, pairs)) == set(want)

    def _elsewhere(self) -> tuple[Move, ...]:
        """Return the least full legal target for each of the suspect's shards; empty unless there is one for
        all.
        """
        if not self.region.parted:
            return ()
        now = self.pg.up
        moves: list[Move] = []
        for source in (OsdId(osd) for osd in self.pg.up if osd in self.leaving):
            for target in self._candidates(source, now):
                want = tuple(target if osd == source else osd for osd in now)
                last = not any(osd in self.leaving for osd in want)
                if not last or (
                    self._pinnable(want) and find_crowded_device(self.shared, self.pg.up, want) is None
                ):
                    moves.append(Move(self.pg.id, source, target, self.pg.shard_bytes))
                    now = want
                    break
            else:
                return ()
        return tuple(moves)

    def _candidates(self, source: OsdId, now: tuple[int, ...]) -> Iterator[OsdId]:
        """Yield OSDs that may take the shard of `source`, least full first: same root, class and upper
        branch.
        """
        size = self.pg.shard_bytes
        kind = self.view.osds[source].device_class
        able: list[tuple[float, OsdId]] = []
        for id_ in self.region.list_substitutes(now, source):
            osd = self.view.osds.get(OsdId(id_))
            if osd is None or id_ in self.out or id_ in self.avoided:
                continue
            if not osd.up or osd.reweight <= 0 or osd.crush_weight <= 0 or osd.device_class != kind:
                continue
            after = self.space.fullness(osd.id, size)
            if after is not None and after <= self.space.limit:
                able.append((after, osd.id))
        yield from (id_ for _, id_ in sorted(able))

    def _find_problem(self, want: tuple[int, ...], moves: tuple[Move, ...]) -> PlanRefusal:
        pg = self.pg.id
        fills = [(self.space.fullness(move.target, move.bytes), move.target) for move in moves]
        if any(fill is None for fill, _ in fills):
            return PlanRefusal(PlanRefusalKind.NO_TARGET_WITH_SIZES, pg=pg)
        over = [(fill, target) for fill, target in fills if fill is not None and fill > self.space.limit]
        if over:
            fill, target = max(over)
            return refuse_full_target(PlanRefusalKind.NO_LESS_FULL_TARGET, target, fill, self.space.limit)
        if left_out := [move.target for move in moves if move.target in self.avoided]:
            return PlanRefusal(PlanRefusalKind.TARGET_AVOIDED, osd=left_out[0], pg=pg)
        if self.region.is_legal(want) and not self.check.keeps_upmap(want):
            return PlanRefusal(PlanRefusalKind.UPMAP_NOT_KEPT, pg=pg)
        return PlanRefusal(PlanRefusalKind.NO_LEGAL_TARGET, pg=pg, members=want)


def refuse_full_target(kind: PlanRefusalKind, osd: OsdId, fill: float, limit: float) -> PlanRefusal:
    """Return the refusal of a target that would be fuller than the limit; both are in [0, 1]."""
    return PlanRefusal(kind, osd=osd, percent=round(100 * fill), limit_percent=round(100 * limit))


def moves_between(pg: Pg, want: tuple[int, ...], leaving: Collection[int]) -> tuple[Move, ...]:
    """Return the shards that change their OSD between `up` and `want`, the suspect's own first."""
    gone = sorted((osd for osd in pg.up if osd not in want), key=lambda osd: osd not in leaving)
    come = [osd for osd in want if osd not in pg.up and osd != ITEM_NONE]
    if len(want) == len(pg.up):
        beside = {old: new for old, new in zip(pg.up, want, strict=True) if old in gone and new in come}
        if len(beside) == len(gone):
            return tuple(Move(pg.id, OsdId(old), OsdId(beside[old]), pg.shard_bytes) for old in gone)
    return tuple(
        Move(pg.id, OsdId(old), OsdId(new), pg.shard_bytes) for old, new in zip(gone, come, strict=False)
    )
