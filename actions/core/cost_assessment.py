"""Computes, for each disk of a cluster, what its drain is weighed by: bytes, rate, copies left, budget and
costs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Final

from predrain.actions.cluster.cluster_view import ClusterView, Osd, Pg
from predrain.actions.cluster.osd_layout import find_osd_layout
from predrain.actions.cluster.pg_index import find_pg_index
from predrain.actions.core.drain_cost import ChanceCurve, DeathCosts, DiskAtRisk, ShardGroup
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.forecast_confirmation import WeighedDisk, weigh_disk
from predrain.actions.core.forecast_history import may_pay, read_chances
from predrain.actions.core.outlook_index import OutlookIndex, find_outlook_index
from predrain.actions.core.priority import list_risks
from predrain.actions.core.situation import Context, is_drain_engaged
from predrain.actions.crush.pool import Pool
from predrain.data.drain import Drain
from predrain.data.identity_memo import LatestResults, remember_results
from predrain.data.ids import DeviceId, HostName, OsdId, PgId
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
    wanted = _list_candidates(find_outlook_index(context.outlooks), policy)
    return _assess_disks(view, wanted, policy, context) if wanted else {}


@remember_results(limit=2)
def _list_candidates(index: OutlookIndex, policy: Policy) -> frozenset[DeviceId]:
    return frozenset(
        device
        for device, outlook in index.outlooks.items()
        if outlook.p_fail_30d is not None
        and outlook.severity is not Status.UNKNOWN
        and outlook.advice is not Advice.CHECK_CABLE
        and (outlook.severity is Status.BAD or may_pay(outlook, policy))
    )


def weigh_disks(
    disks: Mapping[DeviceId, DiskAtRisk], policy: Policy, context: Context
) -> dict[DeviceId, WeighedDisk]:
    """Weigh each disk, with the evidence of its forecasts so far."""
    found: dict[DeviceId, WeighedDisk] = {}
    for device, disk in disks.items():
        inputs = disk, context.forecasts.get(device, ()), policy.confirmation_hours
        found[device] = _WEIGHED.find(device, inputs, partial(weigh_disk, *inputs))
    return found


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
    pace = context.bytes_per_second or policy.backfill_bytes_per_second * policy.open_share
    busy, index = _list_busy_drains(view, context.drains), find_pg_index(view.pgs)
    spare, risks = _find_least_spare(view.pools), list_risks(view, context.outlooks)
    found: dict[DeviceId, DiskAtRisk] = {}
    for device, ids in find_osd_layout(view.osds).osds_by_device.items():
        if device not in devices:
            continue
        osds = tuple(view.osds[id_] for id_ in ids)
        outlook = context.outlooks.get(device)
        chances = read_chances(outlook) if outlook is not None else None
        if chances is None or any(osd.used_bytes is None for osd in osds):
            continue
        pgs = tuple(index.list_pgs(id_) for id_ in ids)
        # Only a PG that is left with exactly `min_size` members depends on what the others are forecast.
        others = risks if spare <= len(ids) else {}
        inputs = chances, osds, pgs, view.pools, policy, others, pace, _bytes_ahead(osds, busy, policy)
        found[device] = _DISKS.find(device, inputs, partial(_build_disk, *inputs))
    return found


def _build_disk(
    chances: ChanceCurve,
    osds: tuple[Osd, ...],
    pgs: tuple[tuple[Pg, ...], ...],
    pools: Mapping[int, Pool],
    policy: Policy,
    risks: Mapping[OsdId, float],
    pace: float,
    bytes_ahead: int,
) -> DiskAtRisk:
    ids = tuple(osd.id for osd in osds)
    places = tuple((osd.host, osd.device_class) for osd in osds)
    inputs = ids, pgs, places, pools, policy, risks
    impact = _IMPACTS.find(ids, inputs, partial(_compute_death_impact, *inputs))
    size = sum(osd.used_bytes or 0 for osd in osds)
    return DiskAtRisk(chances, size, pace, impact.costs, impact.scale_groups(size), bytes_ahead)


@dataclass(frozen=True, slots=True)
class DeathImpact:
    """The cost of a disk's death by the byte, and the PGs that it would leave with few members.

    Bytes are those of the PGs' statistics.
    """

    costs: DeathCosts
    """The mean costs of a byte."""
    pg_bytes: int
    groups: tuple[tuple[int, int, float], ...]
    """(spare, bytes, endangered bytes) of the PGs that would have `spare` members above `min_size`, 0 or less."""

    def scale_groups(self, size: int) -> tuple[ShardGroup, ...]:
        """Return the groups of a disk with `size` bytes on it."""
        # The PGs' bytes come from the pool's statistics; the disk's bytes come from the OSD.
        scale = size / self.pg_bytes if self.pg_bytes else 0.0
        return tuple(
            ShardGroup(round(held * scale), spare, endangered / held)
            for spare, held, endangered in self.groups
        )


_IMPACTS: Final = LatestResults[tuple[OsdId, ...], DeathImpact](limit=1 << 14)
_DISKS: Final = LatestResults[DeviceId, DiskAtRisk](limit=1 << 14)
_WEIGHED: Final = LatestResults[DeviceId, WeighedDisk](limit=1 << 14)


def _compute_death_impact(
    ids: tuple[OsdId, ...],
    pgs: tuple[tuple[Pg, ...], ...],
    places: tuple[tuple[HostName, str | None], ...],
    pools: Mapping[int, Pool],
    policy: Policy,
    risks: Mapping[OsdId, float],
) -> DeathImpact:
    """Compute the mean cost of a byte, and what the disk's death would leave of its PGs.

    Two OSDs may share the disk, which then holds two members of a PG. Copies are counted by the pool's size,
    so a copy that is missing for the moment does not count as gone. While it is missing, the guard
    `redundancy` holds any drain, and a restarting host must not cause proposals.
    """
    by_id: dict[PgId, Pg] = {}
    members: dict[PgId, int] = {}
    for id_, named in zip(ids, pgs, strict=True):
        for pg in named:
            if own := pg.acting.count(id_):
                by_id[pg.id] = pg
                members[pg.id] = members.get(pg.id, 0) + own
    weights: dict[tuple[float, float], int] = {}
    by_pool: dict[int, tuple[float, float]] = {}
    groups: dict[int, tuple[int, float]] = {}
    dying = set(ids)
    for pg_id, own in members.items():
        pg = by_id[pg_id]
        pool = pools[pg.pool]
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
            chance = _others_chance(pg, dying, risks) if spare == 0 else 0.0
            groups[spare] = total + held, endangered + held * chance
    known = sum(weights.values())
    if not known:
        plain = [policy.death_costs(host, kind) for host, kind in places]
        cost = DeathCosts(max(c.failure_cost for c in plain), max(c.loss_cost for c in plain))
        return DeathImpact(cost, 0, ())
    mean = DeathCosts(
        _mean_cost([(failure, held) for (failure, _), held in weights.items()]),
        _mean_cost([(loss, held) for (_, loss), held in weights.items()]),
    )
    return DeathImpact(mean, known, tuple((spare, *group) for spare, group in groups.items()))


@remember_results(limit=2)
def _find_least_spare(pools: Mapping[int, Pool]) -> float:
    """Return the fewest members above `min_size` of the pools that have any; infinity without such a pool.

    A disk with as many OSDs can leave a PG with exactly `min_size` members, and none with fewer OSDs can.
    """
    return min(
        (pool.size - pool.min_size for pool in pools.values() if pool.size > pool.min_size), default=inf
    )


def _mean_cost(weights: Collection[tuple[float, int]]) -> float:
    """Return the mean cost by bytes, clamped to the range of its inputs."""
    costs = [cost for cost, _ in weights]
    mean = sum(cost * held for cost, held in weights) / sum(held for _, held in weights)
    return min(max(mean, min(costs)), max(costs))


def _others_chance(pg: Pg, dying: Collection[OsdId], risks: Mapping[OsdId, float]) -> float:
    """Return the chance that another member of the PG fails before the PG is whole again."""
    alive = 1.0
    for member in pg.acting:
        osd = OsdId(member)
        if osd in dying or osd not in risks:
            continue
        alive *= 1.0 - min(1.0, risks[osd] * REBUILD_SHARE)
    return 1.0 - alive


@dataclass(frozen=True, slots=True)
class _BusyDrain:
    """A drain under way, by what it takes of the drain budget."""

    osds: frozenset[OsdId]
    hosts: frozenset[HostName]
    racks: frozenset[str | None]
    bytes_left: int


def _list_busy_drains(view: ClusterView, drains: Iterable[Drain]) -> list[_BusyDrain]:
    found = []
    for drain in drains:
        if is_drain_engaged(drain) and drain.intent.moves_data:
            osds = [view.osds[osd] for osd in drain.osds if osd in view.osds]
            left = max(0, drain.progress.planned_bytes - drain.progress.moved_bytes)
            found.append(
                _BusyDrain(
                    frozenset(drain.osds),
                    frozenset(osd.host for osd in osds),
                    frozenset(osd.rack for osd in osds) - {None},
                    left,
                )
            )
    return found


def _bytes_ahead(osds: Sequence[Osd], busy: Sequence[_BusyDrain], policy: Policy) -> int:
    """Return the bytes that must still move before the drain budget has a free place.

    Of the drains that use up the budget of the disk's host, rack or cluster, the one that ends first counts.
    """
    mine, hosts, racks = {osd.id for osd in osds}, {osd.host for osd in osds}, {osd.rack for osd in osds}
    others = [drain for drain in busy if mine.isdisjoint(drain.osds)]
    scopes = (
        (policy.drains_per_host, [drain for drain in others if not hosts.isdisjoint(drain.hosts)]),
        (policy.drains_per_rack, [drain for drain in others if not racks.isdisjoint(drain.racks)]),
        (policy.drains_per_cluster, others),
    )
    return max(
        (
            min(drain.bytes_left for drain in drains)
            for limit, drains in scopes
            if drains and len(drains) >= limit
        ),
        default=0,
    )
