"""The disks of a cluster as their drains are weighed: bytes, pace, copies left, budget and costs, from what is seen."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import replace
from typing import Final

from predrain.actions.cluster.view import ClusterView, Osd, Pg
from predrain.actions.core.drain_cost import DeathCosts, DiskAtRisk, ShardGroup
from predrain.actions.core.forecast_confirmation import WeighedDisk, weigh_disk
from predrain.actions.core.forecast_history import may_pay, read_chances
from predrain.actions.core.policy import Policy
from predrain.actions.core.priority import p_fail_30d
from predrain.actions.core.situation import Context, engaged
from predrain.actions.placement.shared_failure import devices_of
from predrain.data.drain import Drain
from predrain.data.ids import DeviceId, OsdId, PgId
from predrain.data.outlook import Advice, Status

REBUILD_SHARE: Final = 7 / 30
"""A PG is taken to be whole again within a week of a death: the share of a 30 days' chance that counts until then."""


def with_weighed_disks(view: ClusterView, policy: Policy, context: Context) -> Context:
    """The context with every disk weighed whose drain could pay, and every bad one that has a chance."""
    disks = find_disks_at_risk(view, policy, context)
    return replace(context, weighed=weigh_disks(disks, policy, context)) if disks else context


def find_disks_at_risk(view: ClusterView, policy: Policy, context: Context) -> dict[DeviceId, DiskAtRisk]:
    """The disks whose drain could pay, and the bad ones that have a chance; none while the PGs' sizes are unknown."""
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
    return _assess(view, wanted, policy, context) if wanted else {}


def weigh_disks(
    disks: Mapping[DeviceId, DiskAtRisk], policy: Policy, context: Context
) -> dict[DeviceId, WeighedDisk]:
    """Each disk weighed, with what its forecasts so far bear out."""
    return {
        device: weigh_disk(disk, context.forecasts.get(device, ()), policy.trust_hours)
        for device, disk in disks.items()
    }


def weigh_one(
    view: ClusterView, device: DeviceId | None, policy: Policy, context: Context
) -> WeighedDisk | None:
    """What the drain of one disk costs; None where that is not known."""
    if device is None:
        return None
    known = context.weighed.get(device)
    if known is not None:
        return known
    return weigh_disks(_assess(view, {device}, policy, context), policy, context).get(device)


def _assess(
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
        costs, groups = _stakes(view, osds, members, size, policy, context, risks)
        found[device] = DiskAtRisk(
            chances,
            size,
            context.bytes_per_second or policy.move_bytes_per_second * policy.open_share,
            costs,
            groups,
            _bytes_ahead(view, osds, policy, context),
        )
    return found


def _pgs_of(view: ClusterView, osds: Set[OsdId]) -> Mapping[OsdId, list[Pg]]:
    """PGs that each of `osds` serves."""
    found: dict[OsdId, list[Pg]] = {}
    for pg in view.pgs.values() if osds else ():
        if osds.isdisjoint(pg.acting):  # almost every PG: one call of C for each
            continue
        for member in pg.acting:
            if member in osds:
                found.setdefault(OsdId(member), []).append(pg)
    return found


def _stakes(
    view: ClusterView,
    osds: Collection[Osd],
    members: Mapping[PgId, int],
    size: int,
    policy: Policy,
    context: Context,
    risks: dict[OsdId, float],
) -> tuple[DeathCosts, tuple[ShardGroup, ...]]:
    """What a byte costs on average, and what the disk's death would leave of its PGs.

    members: how many members of each of its PGs the disk holds; two OSDs may share it.
    Copies are counted by the pool's size: one that is missing for the moment is not counted as gone. While it is, the
    guard `redundancy` holds any drain, and a host that restarts must not make proposals.
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
    # PGs tell of their bytes by the pool's statistics; what the disk holds of them is told by the OSD.
    scale = size / known
    return mean, tuple(
        ShardGroup(round(held * scale), spare, endangered / held)
        for spare, (held, endangered) in groups.items()
    )


def _mean_cost(weights: Collection[tuple[float, int]]) -> float:
    """The mean by bytes, never beyond what it is a mean of."""
    costs = [cost for cost, _ in weights]
    mean = sum(cost * held for cost, held in weights) / sum(held for _, held in weights)
    return min(max(mean, min(costs)), max(costs))


def _others_chance(
    view: ClusterView, pg: Pg, dying: Collection[OsdId], context: Context, risks: dict[OsdId, float]
) -> float:
    """The chance that another member of the PG fails before the PG is whole again."""
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
    """What must still be moved before the budget has a place: of the drains that fill its host, rack or cluster the one
    that ends first.
    """
    mine = {osd.id for osd in osds}
    busy = [
        drain
        for drain in context.drains
        if engaged(drain) and drain.intent.moves_data and mine.isdisjoint(drain.osds)
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
