"""A plan: where every PG of the suspect goes, in which order, by which mechanic and why, computed before
anything moves.

The final map is CRUSH's own, with the override of the suspect (and of everything else that drains) at 0; so
only the suspect's PGs change. A target that would pass its limit gives way to a less full legal one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from actions.cluster.view import ClusterView, Pg
from actions.context import Context
from actions.crush.map import ITEM_NONE
from actions.crush.place import place
from actions.guards.verdict import count
from actions.policy import Policy
from actions.risk import by_risk
from actions.space import Room, cluster_after, promised_by_others, room
from actions.survey import whole
from actions.topology import Domains, domains, pairs_for, with_crush_weight
from data.drain import Drain, Mechanic, Move, Plan
from data.ids import OsdId, PgId

Placement = Mapping[PgId, tuple[int, ...]]

_OLD_CLIENTS = frozenset(
    {
        "argonaut",
        "bobtail",
        "cuttlefish",
        "dumpling",
        "emperor",
        "firefly",
        "giant",
        "hammer",
        "infernalis",
        "jewel",
        "kraken",
    }
)


def placed(
    view: ClusterView,
    out: Collection[OsdId],
    only: Collection[PgId],
    *,
    pinned: bool = True,
    weights: Mapping[OsdId, float] | None = None,
) -> dict[PgId, tuple[int, ...]]:
    """`up` of `only` as the view's map would make it with `out` at override 0 (and `weights` in force)."""
    if not only:
        return {}
    reweights = {osd.id: osd.reweight for osd in view.osds.values()}
    reweights.update(weights or {})
    reweights.update(dict.fromkeys(out, 0.0))
    down = frozenset(osd.id for osd in view.osds.values() if not osd.up)
    return place(
        view.crush,
        view.pools,
        reweights,
        view.upmap_items if pinned else {},
        down if pinned else frozenset(),
        only,
    )


def fingerprint(view: ClusterView, drain: Drain, draining: frozenset[OsdId]) -> int:
    """Changes whenever the map under a plan does, except by what drains themselves set."""
    leaving = draining | set(drain.osds)
    osds = tuple(
        (
            osd.id,
            osd.up,
            0.0 if osd.id in leaving else osd.reweight,
            0.0 if osd.id in leaving else osd.crush_weight,
        )
        for osd in view.osds.values()
    )
    pools = tuple((pool.id, pool.pg_num, pool.size, pool.rule) for pool in view.pools.values())
    return hash((osds, pools, leaving, view.has_full_upmaps, view.crush.has_choose_args, can_upmap(view)))


def can_upmap(view: ClusterView) -> bool:
    """Whether clients and map allow `pg-upmap-items` (never set by us)."""
    return (
        view.require_min_compat_client not in _OLD_CLIENTS
        and not view.crush.has_choose_args
        and not view.has_full_upmaps
    )


@dataclass(frozen=True, slots=True)
class _Route:
    """Where one PG ends, and by which moves; `problem` when it cannot leave."""

    pg: PgId
    moves: tuple[Move, ...]
    problem: str = ""


def plan(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Plan:
    """The plan of a drain that has not begun, or of what is left of one: moves already made stay at
    its head.
    """
    leaving = frozenset(drain.osds)
    out = leaving | context.draining()
    on_it = [pg for pg in view.pgs.values() if any(osd in leaving for osd in pg.up)]
    ordered = by_risk(view, on_it, leaving, context.outlooks)
    only = [pg.id for pg in ordered]
    space = room(context.survey, policy, promised_by_others(context, view, drain))
    if view.crush.has_choose_args:
        return _unplaceable(view, leaving, "the map has choose_args, which are not computed here")
    final = placed(view, out, only)
    homeless = [pg.id for pg in ordered if not whole(final[pg.id], view.pools[pg.pool].size)]
    if homeless:
        return _inside_host(view, drain, policy, context, homeless)
    if can_upmap(view):
        routes = _walk(view, ordered, final, leaving, out, space)
        mechanic = Mechanic.UPMAP_WALK
        why = "each PG goes straight to its final place and peers once, a few at a time; nothing else moves"
    else:
        routes = [_Route(pg.id, _moves(pg, final[pg.id], leaving)) for pg in ordered]
        for move in (move for route in routes for move in route.moves):
            space.promise(move.target, move.bytes)
        mechanic = Mechanic.OVERRIDE_LADDER
        why = f"upmaps are not to be had ({_why_no_upmap(view)}); rungs of the override move a few PGs each"
    done = _begun(view, drain)
    refusals = [route.problem for route in routes if route.problem]
    return _sealed(
        view, policy, mechanic, why, (*done, *(m for r in routes for m in r.moves)), space, leaving, refusals
    )


def _walk(
    view: ClusterView,
    ordered: list[Pg],
    final: Placement,
    leaving: frozenset[OsdId],
    out: frozenset[OsdId],
    space: Room,
) -> list[_Route]:
    raw = placed(view, (), [pg.id for pg in ordered], pinned=False)
    regions = {pool.id: domains(view.crush, view.crush.rules[pool.rule]) for pool in view.pools.values()}
    routes = []
    for pg in ordered:
        erasure = view.pools[pg.pool].erasure
        region = regions[pg.pool]
        want = final[pg.id]
        standing = view.upmap_items.get(pg.id, ())
        moves = _moves(pg, want, leaving)
        reachable = pairs_for(raw[pg.id], want, standing, ordered=erasure) is not None
        if not reachable or not region.legal(want) or not all(space.fits(m.target, m.bytes) for m in moves):
            moves = _elsewhere(pg, region, leaving, out, space, view)
            if not moves:
                routes.append(_Route(pg.id, (), _no_room(pg, want, leaving, space)))
                continue
        for move in moves:
            space.promise(move.target, move.bytes)
        routes.append(_Route(pg.id, moves))
    return routes


def _moves(pg: Pg, want: tuple[int, ...], leaving: Collection[int]) -> tuple[Move, ...]:
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


def _elsewhere(
    pg: Pg, region: Domains, leaving: frozenset[OsdId], out: frozenset[OsdId], space: Room, view: ClusterView
) -> tuple[Move, ...]:
    """The least full legal target for the suspect's shard of a PG; empty when there is none within
    the limit.
    """
    sources = [osd for osd in pg.up if osd in leaving]
    if not region.single or len(sources) != 1:
        return ()
    source = sources[0]
    taken = {region.leaf.get(osd) for osd in pg.up if osd != source}
    best: tuple[float, int] | None = None
    for target, leaf in region.leaf.items():
        found = view.osds.get(OsdId(target))
        if leaf in taken or target in out or target in pg.up or found is None:
            continue
        if not found.up or found.reweight <= 0 or found.crush_weight <= 0:
            continue
        if region.branch[target] != region.branch[source]:
            continue
        after = space.fullness(OsdId(target), pg.shard_bytes)
        if after is not None and after <= space.limit and (best is None or (after, target) < best):
            best = (after, target)
    return (Move(pg.id, OsdId(source), OsdId(best[1]), pg.shard_bytes),) if best else ()


def _no_room(pg: Pg, want: tuple[int, ...], leaving: Collection[int], space: Room) -> str:
    first = next(iter(_moves(pg, want, leaving)), None)
    fill = space.fullness(first.target, first.bytes) if first else None
    if first is None or fill is None:
        return f"PG {pg.id} has no legal target that reports its size."
    over = f"osd.{first.target} would be {fill:.0%} full, limit {space.limit:.0%}"
    return f"{over}, and no less full legal target is left."


def _inside_host(
    view: ClusterView, drain: Drain, policy: Policy, context: Context, homeless: list[PgId]
) -> Plan:
    """Override 0 leaves CRUSH without a choice (k+m = hosts): CRUSH weight 0 may still find room in
    the same host.
    """
    leaving = frozenset(drain.osds)
    pool = view.pools[view.pgs[homeless[0]].pool]
    reason = (
        f"At override 0 {count(len(homeless), 'PG')} of pool {pool.name} would end without {pool.size} "
        f"distinct places ({pool.size} shards, no spare failure domain)"
    )
    crush = view.crush
    for osd in drain.osds:
        crush = with_crush_weight(crush, osd, 0.0)
    reweights = {osd.id: osd.reweight for osd in view.osds.values()}
    final = place(crush, view.pools, reweights, view.upmap_items)
    space = room(context.survey, policy, promised_by_others(context, view, drain))
    moves: list[Move] = []
    refusals: list[str] = []
    for pg in by_risk(view, view.pgs.values(), leaving, context.outlooks):
        want = final[pg.id]
        size = view.pools[pg.pool].size
        if not whole(want, size) or leaving & set(want):
            refusals = [f"{reason}; CRUSH weight 0 does not help (PG {pg.id}). It cannot be emptied."]
            break
        if set(want) != set(pg.up) or (view.pools[pg.pool].erasure and want != pg.up):
            moves.extend(_moves(pg, want, leaving))
    for move in moves:
        space.promise(move.target, move.bytes)
    why = f"{reason}; by CRUSH weight the data stays inside the host"
    done = _begun(view, drain)
    return _sealed(view, policy, Mechanic.CRUSH_LADDER, why, (*done, *moves), space, leaving, refusals)


def _begun(view: ClusterView, drain: Drain) -> tuple[Move, ...]:
    """Moves of the old plan that are made or under way; they stay in the count."""
    if drain.plan is None:
        return ()
    return tuple(
        m for m in drain.plan.moves if (pg := view.pgs.get(m.pg)) is not None and m.source not in pg.up
    )


def _sealed(
    view: ClusterView,
    policy: Policy,
    mechanic: Mechanic,
    why: str,
    moves: tuple[Move, ...],
    space: Room,
    leaving: frozenset[OsdId],
    refusals: list[str],
) -> Plan:
    """The plan with its figures: fullest target, cluster, ETA and what bounds it."""
    load: dict[OsdId, int] = {}
    for move in moves:
        load[move.target] = load.get(move.target, 0) + move.bytes
    fills = {osd: fill for osd in load if (fill := space.fullness(osd)) is not None}
    fullest = max(fills, key=lambda osd: (fills[osd], osd), default=None)
    if fullest is not None and fills[fullest] > space.limit and not refusals:
        refusals = [f"osd.{fullest} would be {fills[fullest]:.0%} full, limit {space.limit:.0%}."]
    unknown = sorted(osd for osd in load if osd not in fills)
    if unknown:
        refusals = [*refusals, f"osd.{unknown[0]} reports no sizes; its room is not known."]
    rate = policy.move_bytes_per_second
    total = sum(load.values())
    by_budget = total / rate / policy.in_flight_max
    busiest = max(load, key=lambda osd: (load[osd], osd), default=None)
    by_target = load[busiest] / rate if busiest is not None else 0.0
    by_ticks = len({move.pg for move in moves}) / policy.peering_max * policy.tick_seconds
    slowest = max(by_budget, by_target, by_ticks)
    if busiest is not None and slowest == by_target:
        bottleneck = f"osd.{busiest}, which receives {load[busiest] / 2**30:.0f} GiB"
    elif slowest == by_ticks:
        bottleneck = f"{policy.peering_max} PGs peering at once"
    else:
        bottleneck = f"{policy.in_flight_max} PGs in flight at {rate / 1e6:.0f} MB/s each"
    return Plan(
        mechanic=mechanic,
        why=why,
        epoch=view.epoch,
        moves=moves,
        fullest_osd=fullest,
        fullest_after=fills[fullest] if fullest is not None else None,
        cluster_after=cluster_after(view, leaving),
        eta_hours=slowest / 3600,
        bottleneck=bottleneck if moves else "nothing to move",
        refusals=tuple(dict.fromkeys(refusals)),
    )


def _unplaceable(view: ClusterView, leaving: frozenset[OsdId], why: str) -> Plan:
    sentence = f"The final map cannot be computed: {why}."
    after = cluster_after(view, leaving)
    return Plan(
        Mechanic.OVERRIDE_LADDER, why, view.epoch, (), None, None, after, None, "unknown", (sentence,)
    )


def _why_no_upmap(view: ClusterView) -> str:
    if view.has_full_upmaps:
        return "full pg_upmap entries stand"
    return f"require_min_compat_client is {view.require_min_compat_client}"


def unlike(old: Plan | None, new: Plan) -> bool:
    """Whether a new plan differs in what it does from the old one."""
    return old is None or replace(old, epoch=new.epoch) != new
