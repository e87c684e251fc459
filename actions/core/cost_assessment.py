"""Computes, for each disk of a cluster, what its drain is weighed by: bytes, rate, copies left, budget and
costs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import replace
from typing import Final

from predrain.actions.cluster.cluster_view import ClusterView, Osd, Pg
from predrain.actions.core.drain_cost import DeathCosts, DiskAtRisk, ShardGroup
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.forecast_confirmation import WeighedDisk, weigh_disk
from predrain.actions.core.forecast_history import may_pay, read_chances
from predrain.actions.core.priority import p_fail_30d
from predrain.actions.core.situation import Context, is_drain_engaged
from predrain.actions.placement.failure_domains import devices_of
from predrain.data.drain import Drain
from predrain.data.ids import DeviceId, OsdId, PgId
from predrain.data.outlook import Advice, Status

REBUILD_SHARE: Final = 7 / 30
"""The share of a 30-day chance that counts until a PG is whole again, assumed to be a week after a death."""


def with_weighed_disks(view: ClusterView, policy: Policy, context: Context) -> Context:
    """Return the context with the weighed disks: every disk whose drain could pay, and every bad one with a
    chance.
    """
    disks = find_disks_at_risk(view, policy, context)
    return replace(context, weighed=weigh_disks(disks, policy, context)) if disks else context


def find_disks_at_risk(view: ClusterView, policy: Policy, context: Context) -> dict[DeviceId, DiskAtRisk]:
    """Find the disks whose drain could pay, and the bad disks that have a chance; none while PG sizes are
    unknown.
    """
    if not view.statistics_known:
        return {}
    wanted = {
        device
        for device, outlook in context.outlooks.items()
        if outlook.p_fail_30d is not None
        and outlook.severity is not Status.UNKNOWN
        and outlook.advice is not Advice.CHECK_CABLE
        and (outlook.severity is Status.BAD or may_pay(outlook, policy))
    }
    return _assess_disks(view, wanted, policy, context) if wanted else {}


def weigh_disks(
    disks: Mapping[DeviceId, DiskAtRisk], policy: Policy, context: Context
) -> dict[DeviceId, WeighedDisk]:
    """Weigh each disk, with the evidence of its forecasts so far."""
    return {
        device: weigh_disk(disk, context.forecasts.get(device, ()), policy.confirmation_hours)
        for device, disk in disks.items()
    }


def weigh_one(
    view: ClusterView, device: DeviceId | None, policy: Policy, context: Context
) -> WeighedDisk | None:
    """Weigh the drain of one disk; None if its cost is not known."""
    if device is None:
        return None
    known = context.weighed.get(device)
    if known is not None:
        return known
    return weigh_disks(_assess_disks(view, {device}, policy, context), policy, context).get(device)


def _assess_disks(
    view: ClusterView, devices: Collection[DeviceId], policy: Policy, context: Context
) -> dict[DeviceId, DiskAtRisk]:
    stands: dict[DeviceId, list[Osd]] = {}
    for osd in view.osds.values():
        for device in devices_of(view, osd.id):
            if device in devices:
                stands.setdefault(device, []).append(osd)
    pgs = _pgs_of(view, {osd.id for osds in stands.values() for osd in osds})
    risks: dict[OsdId, float] = {}
    found: dict[DeviceId, DiskAtRisk] = {}
    for device, osds in stands.items():
        outlook = context.outlooks.get(device)
        chances = read_chances(outlook) if outlook is not None else None
        if chances is None or any(osd.used_bytes is None for osd in osds):
            continue
        members: dict[PgId, int] = {}
        for osd in osds:
            for pg in pgs.get(osd.id, ()):
                members[pg.id] = members.get(pg.id, 0) + 1
        size = sum(osd.used_bytes or 0 for osd in osds)
        costs, groups = _assess_death_impact(view, osds, members, size, policy, context, risks)
        found[device] = DiskAtRisk(
            chances,
            size,
            context.bytes_per_second or policy.backfill_bytes_per_second * policy.open_share,
            costs,
            groups,
            _bytes_ahead(view, osds, policy, context),
        )
    return found


def _pgs_of(view: ClusterView, osds: Set[OsdId]) -> Mapping[OsdId, list[Pg]]:
    """Return the PGs that each of `osds` serves."""
    found: dict[OsdId, list[Pg]] = {}
    for pg in view.pgs.values() if osds else ():
        if osds.isdisjoint(pg.acting):  # almost every PG: one call of C for each
            continue
        for member in pg.acting:
            if member in osds:
                found.setdefault(OsdId(member), []).append(pg)
    return found


def _assess_death_impact(
    view: ClusterView,
    osds: Collection[Osd],
    members: Mapping[PgId, int],
    size: int,
    policy: Policy,
    context: Context,
    risks: dict[OsdId, float],
) -> tuple[DeathCosts, tuple[ShardGroup, ...]]:
    """Compute the mean cost of a byte, and what the disk's death would leave of its PGs.

    members: how many members of each PG the disk holds; two OSDs may share the disk. Copies are counted by
    the pool's size, so a copy that is missing for the moment does not count as gone. While it is missing, the
    guard `redundancy` holds any drain, and a restarting host must not cause proposals.
    """
    dying = {osd.id for osd in osds}
    places = [(osd.host, osd.device_class) for osd in osds]
    weights: dict[tuple[float, float], int] = {}
    by_pool: dict[int, tuple[float, float]] = {}
    groups: dict[int, tuple[int, float]] = {}
    for id_, own in members.items():
        pg = view.pgs[id_]
        pool = view.pools[pg.pool]
        held = own * pg.shard_bytes
        dear = by_pool.get(pg.pool)
        if dear is None:  # a disk has a hundred PGs of a few pools
            costs = [policy.death_costs(host, kind, pool.name) for host, kind in places]
            dear = max(c.failure_cost for c in costs), max(c.loss_cost for c in costs)
            by_pool[pg.pool] = dear
        weights[dear] = weights.get(dear, 0) + held
        spare = pool.size - own - pool.min_size
        if held and spare <= 0:
            total, endangered = groups.get(spare, (0, 0.0))
            chance = _others_chance(view, pg, dying, context, risks) if spare == 0 else 0.0
            groups[spare] = total + held, endangered + held * chance
    known = sum(weights.values())
    if not known:
        plain = [policy.death_costs(host, kind) for host, kind in places]
        return DeathCosts(max(c.failure_cost for c in plain), max(c.loss_cost for c in plain)), ()
    mean = DeathCosts(
        _mean_cost([(failure, held) for (failure, _), held in weights.items()]),
        _mean_cost([(loss, held) for (_, loss), held in weights.items()]),
    )
    # The PGs' bytes come from the pool's statistics; the disk's bytes come from the OSD.
    scale = size / known
    return mean, tuple(
        ShardGroup(round(held * scale), spare, endangered / held)
        for spare, (held, endangered) in groups.items()
    )


def _mean_cost(weights: Collection[tuple[float, int]]) -> float:
    """Return the mean cost by bytes, clamped to the range of its inputs."""
    costs = [cost for cost, _ in weights]
    mean = sum(cost * held for cost, held in weights) / sum(held for _, held in weights)
    return min(max(mean, min(costs)), max(costs))


def _others_chance(
    view: ClusterView, pg: Pg, dying: Collection[OsdId], context: Context, risks: dict[OsdId, float]
) -> float:
    """Return the chance that another member of the PG fails before the PG is whole again."""
    alive = 1.0
    for member in pg.acting:
        osd = OsdId(member)
        if osd in dying or osd not in view.osds:
            continue
        if osd not in risks:
            risks[osd] = p_fail_30d(view, osd, context.outlooks)
        alive *= 1.0 - min(1.0, risks[osd] * REBUILD_SHARE)
    return 1.0 - alive


def _bytes_ahead(view: ClusterView, osds: Collection[Osd], policy: Policy, context: Context) -> int:
    """Return the bytes that must still move before the drain budget has a free place.

    Of the drains that use up the budget of the disk's host, rack or cluster, the one that ends first counts.
    """
    mine = {osd.id for osd in osds}
    busy = [
        drain
        for drain in context.drains
        if is_drain_engaged(drain) and drain.intent.moves_data and mine.isdisjoint(drain.osds)
    ]
    hosts, racks = {osd.host for osd in osds}, {osd.rack for osd in osds} - {None}
    scopes = (
        (policy.drains_per_host, [drain for drain in busy if _stands_in(view, drain, hosts=hosts)]),
        (policy.drains_per_rack, [drain for drain in busy if _stands_in(view, drain, racks=racks)]),
        (policy.drains_per_cluster, busy),
    )
    return max(
        (min(map(_bytes_left, drains)) for limit, drains in scopes if drains and len(drains) >= limit),
        default=0,
    )


def _stands_in(
    view: ClusterView, drain: Drain, hosts: Collection[str] = (), racks: Collection[str | None] = ()
) -> bool:
    return any(
        view.osds[osd].host in hosts or view.osds[osd].rack in racks for osd in drain.osds if osd in view.osds
    )


def _bytes_left(drain: Drain) -> int:
    return max(0, drain.progress.planned_bytes - drain.progress.moved_bytes)
