"""The figures of a plan: what each target receives, how full it gets, how long it takes and what bounds that.

Source of the rates: `Policy.move_bytes_per_second`, `disk_bytes_per_second` and `host_bytes_per_second`. Data moves as
long as the longest bound; what moves nothing comes after it: the override's rungs, and CRUSH weight 0.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.capacity import OsdCapacity, waiting, when_done
from predrain.actions.core.cost_assessment import weigh_one
from predrain.actions.core.messages import describe_estimate, describe_limit
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.core.verdicts import count
from predrain.actions.placement.what_if import placed
from predrain.actions.planning.diff import in_units
from predrain.data.drain import (
    AFTER,
    AFTER_OVERRIDE,
    AFTER_WEIGHT,
    Bound,
    Drain,
    Mechanic,
    Move,
    Plan,
    Target,
)
from predrain.data.ids import OsdId, PgId
from predrain.data.outlook import GRID_DAYS, Outlook

SUREST = 0.999
"""A chance to live on is never told as certain: above this it is only told to be above."""
_LOOKS, _LOOKS_AN_OSD = 4, 2
"""Looks that nothing starts in: to begin, hold the balancer, give it back, verify; to see each OSD's last PGs arrive,
and it empty.
"""
_REPORTS = 2
"""Periods of the statistics until PGs that were moved are seen at rest."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What is to be done, before its figures."""

    mechanic: Mechanic
    why: str
    moves: tuple[Move, ...] = ()
    refusals: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    stirred: tuple[PgId, ...] = ()
    tail_pgs: int = 0
    """PGs of others that are pinned where they are when the CRUSH weight goes to 0 at the end."""


def sealed(
    view: ClusterView, drain: Drain, policy: Policy, context: Context, draft: Draft, space: OsdCapacity
) -> Plan:
    """The plan with its figures. `space` holds every promise, this plan's among them."""
    leaving = frozenset(drain.osds)
    targets = _targets(view, draft.moves, space)
    refusals = draft.refusals
    fullest = next((target for target in targets if target.after is not None), None)
    if fullest is not None and fullest.after is not None and fullest.after > space.limit and not refusals:
        refusals = (f"osd.{fullest.osd} would be {fullest.after:.0%} full, {describe_limit(space.limit)}.",)
    awaited = _list_awaited_targets(view, draft.moves) - waiting(view, drain)
    unknown = [target.osd for target in targets if target.after is None and target.osd in awaited]
    if unknown:
        refusals = (*refusals, f"osd.{unknown[0]} reports no sizes; its room is not known.")
    bounds = _bounds(view, leaving, draft.moves, targets, policy)
    after = _after(view, leaving, draft, policy)
    hours = max((bound.hours for bound in bounds), default=0.0) + sum(bound.hours for bound in after)
    bounds = (*bounds, *after)
    lives = survival(context.outlooks.get(drain.device) if drain.device else None, hours)
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
        cluster_after=when_done(view, drain, context.draining()),
        eta_hours=hours,
        bottleneck=bounds[0].name if bounds else "nothing to move",
        refusals=tuple(dict.fromkeys(refusals)),
        targets=targets,
        bounds=bounds,
        ticks=math.ceil(hours * 3600 / policy.tick_seconds),
        rejected=draft.rejected,
        stirred=draft.stirred,
        survives=lives,
    )


def _list_awaited_targets(view: ClusterView, moves: tuple[Move, ...]) -> frozenset[OsdId]:
    """OSDs that are still to be sent data: of a PG that has left its source there is nothing more to decide."""
    return frozenset(
        move.target for move in moves if (pg := view.pgs.get(move.pg)) is None or move.source in pg.up
    )


def _after(view: ClusterView, leaving: frozenset[OsdId], draft: Draft, policy: Policy) -> tuple[Bound, ...]:
    """What still has to be done when no data is left, one after the other."""
    if not draft.moves:
        return ()
    looks = _LOOKS + _LOOKS_AN_OSD * len({move.source for move in draft.moves} & leaving)
    found = [Bound(f"{AFTER}{looks} looks to begin and to end", looks * policy.tick_seconds / 3600)]
    if draft.mechanic in (Mechanic.UPMAP_WALK, Mechanic.REBUILD):
        turned = _turned(view, leaving, draft.moves)
        hours = sum(steps_seconds(pgs, policy) for pgs in turned.values()) / 3600
        found.append(Bound(f"{AFTER_OVERRIDE}: {count(turned.total(), 'PG')} peer once more", hours))
    tail = steps_seconds(draft.tail_pgs, policy) / 3600
    found.append(Bound(f"{AFTER_WEIGHT}: {count(draft.tail_pgs, 'PG')} pinned where they are", tail))
    return tuple(bound for bound in found if bound.hours)


def _turned(view: ClusterView, leaving: frozenset[OsdId], moves: tuple[Move, ...]) -> Counter[OsdId]:
    """How many PGs of each OSD its override turns: CRUSH's choice without it is not, place by place, where a pin
    put them.
    """
    routes: dict[PgId, dict[int, int]] = {}
    for move in moves:
        routes.setdefault(move.pg, {})[int(move.source)] = int(move.target)
    final = placed(view, leaving, routes)
    turned: Counter[OsdId] = Counter()
    for id_, way in routes.items():
        pinned = tuple(way.get(osd, osd) for osd in view.pgs[id_].up)
        turned.update(osd for osd in leaving if osd in way and final.get(id_, pinned) != pinned)
    return turned


def _targets(view: ClusterView, moves: tuple[Move, ...], space: OsdCapacity) -> tuple[Target, ...]:
    load: Counter[OsdId] = Counter()
    pgs: Counter[OsdId] = Counter()
    for move in moves:
        load[move.target] += move.bytes
        pgs[move.target] += 1
    now = OsdCapacity(view, space.limit, {})
    found = [Target(osd, pgs[osd], load[osd], now.fullness(osd), space.fullness(osd)) for osd in load]
    return tuple(sorted(found, key=lambda t: (t.after is None, -(t.after or 0.0), t.osd)))


def way_back(view: ClusterView, drain: Drain, policy: Policy) -> float:
    """Hours that all of a drain's data takes to come back: what went to many comes to few, so it takes longer."""
    moves = (
        tuple(Move(move.pg, move.target, move.source, move.bytes) for move in drain.plan.moves)
        if drain.plan
        else ()
    )
    targets = _targets(view, moves, OsdCapacity(view, 1.0, {}))
    bounds = _bounds(view, frozenset(drain.osds), moves, targets, policy)
    return max((bound.hours for bound in bounds), default=0.0)


def _bounds(
    view: ClusterView,
    leaving: frozenset[OsdId],
    moves: tuple[Move, ...],
    targets: tuple[Target, ...],
    policy: Policy,
) -> tuple[Bound, ...]:
    """Everything that takes at least so long, the longest first."""
    if not moves:
        return ()
    disk, wire, rate = (
        policy.disk_bytes_per_second,
        policy.host_bytes_per_second,
        policy.move_bytes_per_second,
    )
    total = sum(move.bytes for move in moves)
    reads = _reads(view, moves)
    reader = max(reads, key=lambda osd: (reads[osd], -osd), default=None)
    led = _led(view, moves)
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
            f"osd.{sought.osd}, which receives {count(sought.pgs, 'PG')}, {policy.per_target_max} on their way at once",
            _steps(sought.pgs, policy.per_target_max, policy),
        ),
        Bound(
            f"osd.{busiest.osd}, which receives {in_units(busiest.bytes)} at {rate / 1e6:.0f} MB/s",
            busiest.bytes / rate,
        ),
    ]
    if reader is not None:
        bounds.append(
            Bound(
                f"osd.{reader}, which reads {in_units(reads[reader])} at {disk / 1e6:.0f} MB/s",
                reads[reader] / disk,
            )
        )
    if leader is not None:
        bounds.append(
            Bound(
                f"osd.{leader}, which leads PGs of {in_units(led[leader])} and fills one at a time at "
                f"{rate / 1e6:.0f} MB/s",
                led[leader] / rate,
            )
        )
    if host is not None:
        bounds.append(
            Bound(
                f"the network of {host}, {in_units(hosts[host])} at {wire / 1e6:.0f} MB/s",
                hosts[host] / wire,
            )
        )
    if any(osd in view.latency_ratio for osd in leaving):
        many = policy.in_flight_max
        bounds.append(Bound(f"{many} PGs in flight at {rate / 1e6:.0f} MB/s each", total / rate / many))
        pgs = len({move.pg for move in moves})
        peering = _steps(
            pgs, policy.peering_max, policy, _REPORTS + 1
        )  # those that arrive meanwhile peer, too
        bounds.append(Bound(f"{policy.peering_max} PGs peering at once", peering))
    else:
        bounds.append(Bound("one PG at a time, for want of a latency signal", _one_by_one(moves, policy)))
    share = policy.open_share
    return tuple(
        sorted((Bound(b.name, b.hours / 3600 / share) for b in bounds), key=lambda bound: -bound.hours)
    )


def _reads(view: ClusterView, moves: tuple[Move, ...]) -> Counter[OsdId]:
    """Bytes that each OSD reads: a copy comes from the PG's primary, a shard from who holds it."""
    reads: Counter[OsdId] = Counter()
    for move in moves:
        pg = view.pgs.get(move.pg)
        primary = next((osd for osd in pg.acting if osd in view.osds), None) if pg else None
        copied = pg is not None and not view.pools[pg.pool].erasure
        reads[OsdId(primary) if copied and primary is not None else move.source] += move.bytes
    return reads


def _led(view: ClusterView, moves: tuple[Move, ...]) -> Counter[OsdId]:
    """Bytes that go to one place each of the PGs that each OSD leads: with one backfill allowed, it lets one PG of
    them fill at a time.
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
    """How long starting so many PGs takes: a few a step, and each step waits until statistics have caught up."""
    return _steps(pgs, policy.peering_max, policy)


def _steps(pgs: int, at_once: int, policy: Policy, reports: int = _REPORTS) -> float:
    return math.ceil(pgs / at_once) * _whole_ticks(reports * policy.statistics_seconds, policy)


def _one_by_one(moves: tuple[Move, ...], policy: Policy) -> float:
    each: Counter[PgId] = Counter()
    for move in moves:
        each[move.pg] += move.bytes
    settling = _REPORTS * policy.statistics_seconds
    return sum(_whole_ticks(size / policy.move_bytes_per_second + settling, policy) for size in each.values())


def _whole_ticks(seconds: float, policy: Policy) -> float:
    return math.ceil(seconds / policy.tick_seconds) * policy.tick_seconds


def survival(outlook: Outlook | None, hours: float) -> float | None:
    """Chance that the device still lives after `hours`, read from its survival curve; None without one."""
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


def unplaceable(view: ClusterView, drain: Drain, why: str) -> Plan:
    """The plan of a drain whose placements are not known; `why` is a whole sentence. What an earlier plan moved stays
    in it: the way back is paced by that.
    """
    if drain.plan is not None:
        return replace(drain.plan, refusals=(why,))
    after = when_done(view, drain)
    nothing = "no placement is known, so nothing is planned"
    return Plan(Mechanic.OVERRIDE_LADDER, nothing, view.epoch, (), None, None, after, None, "unknown", (why,))
