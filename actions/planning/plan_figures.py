"""The figures of a plan: data and fullness of each target, the duration, and the limit that causes it.

Source of the rates: `Policy.backfill_bytes_per_second`, `disk_bytes_per_second` and `host_bytes_per_second`. Data
moves for as long as the longest bound. The steps that move nothing come after it: the override's steps, and
CRUSH weight 0.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.capacity import OsdCapacity, list_unstarted_fill_osds, when_done
from predrain.actions.core.cost_assessment import weigh_one
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.messages import describe_estimate
from predrain.actions.core.situation import Context
from predrain.actions.placement.what_if import compute_up_sets
from predrain.actions.planning.pg_routes import refuse_full_target
from predrain.data.drain import (
    Bound,
    BoundKind,
    Drain,
    Mechanic,
    Move,
    Plan,
    Target,
)
from predrain.data.ids import OsdId, PgId
from predrain.data.outlook import GRID_DAYS, Outlook
from predrain.data.plan_refusal import PlanRefusal, PlanRefusalKind

SUREST = 0.999
"""The highest chance of survival that is shown as a number; above it the text says only that it is higher."""
_LOOKS, _LOOKS_AN_OSD = 4, 2
"""Polls in which nothing starts: to begin, hold the balancer, give it back and verify; and for each OSD, to
see its last PGs arrive and to see it empty.
"""
_REPORTS = 2
"""Statistics periods until moved PGs are seen at rest."""


@dataclass(frozen=True, slots=True)
class PlanDraft:
    """A plan before its figures are computed."""

    mechanic: Mechanic
    why: str
    moves: tuple[Move, ...] = ()
    refusals: tuple[PlanRefusal, ...] = ()
    rejected: tuple[str, ...] = ()
    affected: tuple[PgId, ...] = ()
    tail_pgs: int = 0
    """PGs of others that upmap items keep in place when the CRUSH weight goes to 0 at the end."""


def build_plan_from_draft(
    view: ClusterView, drain: Drain, policy: Policy, context: Context, draft: PlanDraft, space: OsdCapacity
) -> Plan:
    """Return the plan with its figures. `space` holds every promise, including this plan's."""
    leaving = frozenset(drain.osds)
    targets = _build_targets(view, draft.moves, space)
    refusals = draft.refusals
    fullest = next((target for target in targets if target.after is not None), None)
    if fullest is not None and fullest.after is not None and fullest.after > space.limit and not refusals:
        kind = PlanRefusalKind.TARGET_TOO_FULL
        refusals = (refuse_full_target(kind, fullest.osd, fullest.after, space.limit),)
    awaited = _list_awaited_targets(view, draft.moves) - list_unstarted_fill_osds(view, drain)
    unknown = [target.osd for target in targets if target.after is None and target.osd in awaited]
    if unknown:
        refusals = (*refusals, PlanRefusal(PlanRefusalKind.SIZES_UNKNOWN, osd=unknown[0]))
    bounds = _compute_time_bounds(view, leaving, draft.moves, targets, policy)
    after = _list_follow_up_bounds(view, leaving, draft, policy)
    hours = max((bound.hours for bound in bounds), default=0.0) + sum(bound.hours for bound in after)
    bounds = (*bounds, *after)
    lives = compute_survival_chance(context.outlooks.get(drain.device) if drain.device else None, hours)
    why = draft.why
    if drain.intent.empties_osd:
        weighed = weigh_one(view, drain.device, policy, context)
        if weighed is not None:
            why += f"; {weighed.cost.sentence[:1].lower()}{weighed.cost.sentence[1:-1]}"
    if lives is not None:
        chance = "over 99.9%" if lives > SUREST else f"{lives:.1%}"
        why += f"; it takes {describe_estimate(hours)}, which the device outlives with a chance of {chance}"
    return Plan(
        mechanic=draft.mechanic,
        why=why,
        epoch=view.epoch,
        moves=draft.moves,
        fullest_osd=fullest.osd if fullest else None,
        fullest_after=fullest.after if fullest else None,
        cluster_after=when_done(view, drain, context.list_draining_osds()),
        eta_hours=hours,
        refusals=tuple(dict.fromkeys(refusals)),
        targets=targets,
        bounds=bounds,
        ticks=math.ceil(hours * 3600 / policy.tick_seconds),
        rejected=draft.rejected,
        affected_pgs=draft.affected,
        survives=lives,
    )


def _list_awaited_targets(view: ClusterView, moves: tuple[Move, ...]) -> frozenset[OsdId]:
    """Return OSDs that data must still be sent to; a PG that has left its source needs no more decision."""
    return frozenset(
        move.target for move in moves if (pg := view.pgs.get(move.pg)) is None or move.source in pg.up
    )


def _list_follow_up_bounds(
    view: ClusterView, leaving: frozenset[OsdId], draft: PlanDraft, policy: Policy
) -> tuple[Bound, ...]:
    """List the steps after the last data has moved, one after the other, with their durations."""
    if not draft.moves:
        return ()
    looks = _LOOKS + _LOOKS_AN_OSD * len({move.source for move in draft.moves} & leaving)
    found = [Bound(BoundKind.POLLS, looks * policy.tick_seconds / 3600, polls=looks)]
    if draft.mechanic in (Mechanic.UPMAP_WALK, Mechanic.REBUILD):
        turned = _count_repeering_pgs(view, leaving, draft.moves)
        hours = sum(steps_seconds(pgs, policy) for pgs in turned.values()) / 3600
        found.append(Bound(BoundKind.OVERRIDE_ZERO, hours, pgs=turned.total()))
    tail = steps_seconds(draft.tail_pgs, policy) / 3600
    found.append(Bound(BoundKind.WEIGHT_ZERO, tail, pgs=draft.tail_pgs))
    return tuple(bound for bound in found if bound.hours)


def _count_repeering_pgs(
    view: ClusterView, leaving: frozenset[OsdId], moves: tuple[Move, ...]
) -> Counter[OsdId]:
    """Count the PGs of each OSD that peer again when its override goes to 0.

    A PG peers again if CRUSH's choice without the OSD differs, by position, from the place of the upmap item.
    """
    routes: dict[PgId, dict[int, int]] = {}
    for move in moves:
        routes.setdefault(move.pg, {})[int(move.source)] = int(move.target)
    final = compute_up_sets(view, leaving, routes)
    turned: Counter[OsdId] = Counter()
    for id_, way in routes.items():
        mapped = tuple(way.get(osd, osd) for osd in view.pgs[id_].up)
        turned.update(osd for osd in leaving if osd in way and final.get(id_, mapped) != mapped)
    return turned


def _build_targets(view: ClusterView, moves: tuple[Move, ...], space: OsdCapacity) -> tuple[Target, ...]:
    load: Counter[OsdId] = Counter()
    pgs: Counter[OsdId] = Counter()
    for move in moves:
        load[move.target] += move.bytes
        pgs[move.target] += 1
    now = OsdCapacity(view, space.limit, {})
    found = [Target(osd, pgs[osd], load[osd], now.fullness(osd), space.fullness(osd)) for osd in load]
    return tuple(sorted(found, key=lambda t: (t.after is None, -(t.after or 0.0), t.osd)))


def way_back(view: ClusterView, drain: Drain, policy: Policy) -> float:
    """Return the hours for all of a drain's data to come back. Few OSDs receive it, so it takes longer than
    the drain.
    """
    moves = (
        tuple(Move(move.pg, move.target, move.source, move.bytes) for move in drain.plan.moves)
        if drain.plan
        else ()
    )
    targets = _build_targets(view, moves, OsdCapacity(view, 1.0, {}))
    bounds = _compute_time_bounds(view, frozenset(drain.osds), moves, targets, policy)
    return max((bound.hours for bound in bounds), default=0.0)


def _compute_time_bounds(
    view: ClusterView,
    leaving: frozenset[OsdId],
    moves: tuple[Move, ...],
    targets: tuple[Target, ...],
    policy: Policy,
) -> tuple[Bound, ...]:
    """Return every lower limit of the duration, the longest first."""
    if not moves:
        return ()
    disk, wire, rate = (
        policy.disk_bytes_per_second,
        policy.host_bytes_per_second,
        policy.backfill_bytes_per_second,
    )
    total = sum(move.bytes for move in moves)
    reads = _sum_read_bytes(view, moves)
    reader = max(reads, key=lambda osd: (reads[osd], -osd), default=None)
    led = _sum_primary_bytes(view, moves)
    leader = max(led, key=lambda osd: (led[osd], -osd), default=None)
    busiest = max(targets, key=lambda target: (target.bytes, -target.osd))
    hosts: Counter[str] = Counter()
    for osd, size in [*reads.items(), *((target.osd, target.bytes) for target in targets)]:
        if osd in view.osds:
            hosts[view.osds[osd].host] += size
    host = max(hosts, key=lambda name: (hosts[name], name), default=None)
    sought = max(targets, key=lambda target: (target.pgs, -target.osd))
    bounds = [
        Bound(
            BoundKind.TARGET_STARTS,
            _estimate_step_seconds(sought.pgs, policy.per_target_max, policy),
            osd=sought.osd,
            pgs=sought.pgs,
            at_once=policy.per_target_max,
        ),
        _bound_by_rate(BoundKind.TARGET_WRITES, busiest.bytes, rate, busiest.osd),
    ]
    if reader is not None:
        bounds.append(_bound_by_rate(BoundKind.SOURCE_READS, reads[reader], disk, reader))
    if leader is not None:
        bounds.append(_bound_by_rate(BoundKind.PRIMARY_FILLS, led[leader], rate, leader))
    if host is not None:
        bounds.append(replace(_bound_by_rate(BoundKind.HOST_NETWORK, hosts[host], wire), host=host))
    if any(osd in view.latency_ratio for osd in leaving):
        many = policy.in_flight_max
        bounds.append(Bound(BoundKind.IN_FLIGHT, total / rate / many, at_once=many, bytes_per_second=rate))
        pgs = len({move.pg for move in moves})
        peering = _estimate_step_seconds(
            pgs, policy.peering_max, policy, _REPORTS + 1
        )  # those that arrive meanwhile peer too
        bounds.append(Bound(BoundKind.PEERING, peering, at_once=policy.peering_max))
    else:
        bounds.append(Bound(BoundKind.ONE_BY_ONE, _one_by_one(moves, policy)))
    share = policy.open_share
    return tuple(
        sorted(
            (replace(bound, hours=bound.hours / 3600 / share) for bound in bounds),
            key=lambda bound: -bound.hours,
        )
    )


def _bound_by_rate(kind: BoundKind, size: int, rate: float, osd: OsdId | None = None) -> Bound:
    """Return the bound of `size` bytes at `rate` bytes/s, in seconds as all bounds before the policy's open share."""
    return Bound(kind, size / rate, osd, bytes=size, bytes_per_second=rate)


def _sum_read_bytes(view: ClusterView, moves: tuple[Move, ...]) -> Counter[OsdId]:
    """Return the bytes that each OSD reads: a copy comes from the PG's primary, a shard from its holder."""
    reads: Counter[OsdId] = Counter()
    for move in moves:
        pg = view.pgs.get(move.pg)
        primary = next((osd for osd in pg.acting if osd in view.osds), None) if pg else None
        copied = pg is not None and not view.pools[pg.pool].erasure
        reads[OsdId(primary) if copied and primary is not None else move.source] += move.bytes
    return reads


def _sum_primary_bytes(view: ClusterView, moves: tuple[Move, ...]) -> Counter[OsdId]:
    """Return, for each OSD, the bytes of one place of each PG whose primary it is.

    With one backfill allowed, a primary fills one of its PGs at a time.
    """
    each: dict[PgId, int] = {}
    for move in moves:
        each[move.pg] = max(each.get(move.pg, 0), move.bytes)
    led: Counter[OsdId] = Counter()
    for id_, size in each.items():
        pg = view.pgs.get(id_)
        primary = next((osd for osd in pg.acting if osd in view.osds), None) if pg else None
        if primary is not None:
            led[OsdId(primary)] += size
    return led


def steps_seconds(pgs: int, policy: Policy) -> float:
    """Return the seconds to start so many PGs: a few in each step, and each step waits for new statistics."""
    return _estimate_step_seconds(pgs, policy.peering_max, policy)


def _estimate_step_seconds(pgs: int, at_once: int, policy: Policy, reports: int = _REPORTS) -> float:
    return math.ceil(pgs / at_once) * _whole_ticks(reports * policy.mgr_stats_period_seconds, policy)


def _one_by_one(moves: tuple[Move, ...], policy: Policy) -> float:
    each: Counter[PgId] = Counter()
    for move in moves:
        each[move.pg] += move.bytes
    settling = _REPORTS * policy.mgr_stats_period_seconds
    return sum(
        _whole_ticks(size / policy.backfill_bytes_per_second + settling, policy) for size in each.values()
    )


def _whole_ticks(seconds: float, policy: Policy) -> float:
    return math.ceil(seconds / policy.tick_seconds) * policy.tick_seconds


def compute_survival_chance(outlook: Outlook | None, hours: float) -> float | None:
    """Return the chance that the device survives `hours`, read from its survival curve; None without a curve."""
    if outlook is None or outlook.survival is None:
        return None
    days = hours / 24
    for (left, high), (right, low) in zip(
        zip(GRID_DAYS, outlook.survival, strict=True),
        zip(GRID_DAYS[1:], outlook.survival[1:], strict=True),
        strict=False,
    ):
        if days <= right:
            return high + (low - high) * (days - left) / (right - left)
    return outlook.survival[-1]


def build_unplaceable_plan(view: ClusterView, drain: Drain, why: PlanRefusal) -> Plan:
    """Return the plan of a drain whose placements are not known.

    Moves of an earlier plan stay in it, because they set the pace of the way back.
    """
    if drain.plan is not None:
        return replace(drain.plan, refusals=(why,))
    after = when_done(view, drain)
    nothing = "no placement is known, so nothing is planned"
    return Plan(Mechanic.OVERRIDE_LADDER, nothing, view.epoch, (), None, None, after, None, (why,))
