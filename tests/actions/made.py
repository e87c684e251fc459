"""Small clusters and drains for the tests of actions/, made on the simulator's own worlds."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.forecast_confirmation import ForecastPoint
from predrain.actions.core.forecast_history import read_chances
from predrain.actions.core.pg_survey import survey_pgs
from predrain.actions.core.situation import Context, SentMemory
from predrain.actions.crush.pool import Pool
from predrain.actions.engine.plan_building import plan_drain
from predrain.actions.simulator import SimulatedCluster
from predrain.actions.simulator.cluster_spec import ClusterSpec, PoolSpec, crush_tree
from predrain.actions.simulator.worlds import GB, build_levelled_tree, build_osd_specs, build_tiny_cluster
from predrain.data.drain import Drain, DrainState, Intent, Plan
from predrain.data.ids import DeviceId, HostName, OsdId, PgId
from predrain.data.outlook import Outlook, Reason, Status
from predrain.data.reading import Counters, Identity, Protocol, Reading, Smart
from predrain.data.store.store_port import Store

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
POLICY = Policy()


def device(osd: int) -> DeviceId:
    """The device that `tiny_spec` puts under an OSD."""
    return DeviceId(f"ACME_D100_{osd:04d}")


def tiny_spec(**changes: object) -> ClusterSpec:
    """Four hosts of three disks, with devices of one model; `changes` are fields of ClusterSpec."""
    spec = build_tiny_cluster(1)
    devices = {osd.id: (device(osd.id), "D100") for osd in spec.osds}
    return replace(spec.with_devices(devices), **changes)  # type: ignore[arg-type]


def wide_spec(
    hosts: int = 6, per_host: int = 2, racks: int = 3, pg_num: int = 64, used: float = 0.5
) -> ClusterSpec:
    """More hosts than copies, in racks."""
    osds = build_osd_specs(hosts=hosts, per_host=per_host, size_bytes=100 * GB, racks=racks)
    pool = Pool(1, "rbd", size=3, min_size=2, pg_num=pg_num, pg_num_target=pg_num, rule=0, erasure=False)
    shard = int(used * len(osds) * 100 * GB / (3 * pg_num))
    spec = ClusterSpec(
        name="wide", osds=osds, pools=(PoolSpec(pool, shard_bytes=shard),), crush=crush_tree(osds)
    )
    return spec.with_devices({osd.id: (device(osd.id), "D100") for osd in osds})


def full_spec(
    hosts: int, per_host: int, pg_num: int, used: float, most: float, racks: int = 0
) -> ClusterSpec:
    """A cluster `used` full on the whole, in which CRUSH fills no disk beyond `most`; PGs of uneven sizes."""
    spec = wide_spec(hosts, per_host, racks, pg_num, used)
    pool = replace(spec.pools[0], spread=0.15)
    crush = build_levelled_tree(spec.osds, pool.pool, most=int(most * 100 * GB / pool.shard_bytes))
    return replace(spec, name="full", pools=(pool,), crush=crush)


def ec_spec(hosts: int = 4, per_host: int = 2, k: int = 2, m: int = 1, pg_num: int = 32) -> ClusterSpec:
    """An erasure-coded pool k+m over hosts."""
    osds = build_osd_specs(hosts=hosts, per_host=per_host, size_bytes=100 * GB)
    pool = Pool(1, "archive", k + m, k + (1 if m > 1 else 0), pg_num, pg_num, rule=1, erasure=True)
    shard = int(0.3 * len(osds) * 100 * GB / ((k + m) * pg_num))
    spec = ClusterSpec(
        name="ec",
        osds=osds,
        pools=(PoolSpec(pool, shard_bytes=shard, data_shards=k),),
        crush=crush_tree(osds),
    )
    return spec.with_devices({osd.id: (device(osd.id), "D100") for osd in osds})


@cache
def calm_view() -> ClusterView:
    """A look at the tiny cluster at rest, stamped NOW."""
    return replace(SimulatedCluster(tiny_spec(), 1).view(), as_of=NOW)


def changed_pg(view: ClusterView, pg: PgId, **changes: object) -> ClusterView:
    """The view with one PG otherwise."""
    return replace(view, pgs={**view.pgs, pg: replace(view.pgs[pg], **changes)})  # type: ignore[arg-type]


def changed_osd(view: ClusterView, osd: int, **changes: object) -> ClusterView:
    """The view with one OSD otherwise."""
    id_ = OsdId(osd)
    return replace(view, osds={**view.osds, id_: replace(view.osds[id_], **changes)})  # type: ignore[arg-type]


def a_drain(osd: int = 0, state: DrainState = DrainState.DRAINING, **changes: object) -> Drain:
    """A drain of one OSD."""
    drain = Drain(
        id=f"osd.{osd}-test",
        device=device(osd),
        osds=(OsdId(osd),),
        state=state,
        intent=Intent.REPLACE,
        asked_by="operator",
        reason="test",
        created_at=NOW - timedelta(hours=1),
        updated_at=NOW - timedelta(hours=1),
        revision=1,
    )
    return replace(drain, **changes)  # type: ignore[arg-type]


def settled_memory(view: ClusterView) -> SentMemory:
    """A process that has waited long enough."""
    return SentMemory(NOW - timedelta(minutes=1), view.mgr_id, view.dump_version)


def a_context(view: ClusterView, *drains: Drain, **changes: object) -> Context:
    """Return the context of a decision at NOW: the survey of the view, the drains, and a memory of settled commands.

    `changes` replace fields of the context. Without `forecasts`, each outlook gives its own forecast points.
    """
    context = Context(survey_pgs(view), {}, drains, NOW, settled_memory(view))
    context = replace(context, **changes)  # type: ignore[arg-type]
    if context.forecasts:
        return context
    return replace(
        context, forecasts={known.device: forecast_points(known) for known in context.outlooks.values()}
    )


HOST = HostName("stor-01")


def reading_times(outlook: Outlook) -> tuple[datetime, ...]:
    """When the readings were taken that bear an outlook out, by what it says of them."""
    count = max(outlook.readings, 1)
    step = timedelta(hours=outlook.span_hours) / max(count - 1, 1)
    return tuple(outlook.as_of - step * number for number in reversed(range(count)))


def forecast_points(outlook: Outlook) -> tuple[ForecastPoint, ...]:
    """The readings that bear an outlook out, each with the outlook's chances."""
    return tuple(ForecastPoint(at, HOST, read_chances(outlook), True) for at in reading_times(outlook))


def a_reading(device: DeviceId, at: datetime, host: HostName = HOST, **counts: int) -> Reading:
    """A disk as it was read."""
    seen = Smart(Protocol.ATA, Identity(), True, Counters(**counts))
    return Reading(device, host, at, at, seen)


def keep_history(store: Store, outlook: Outlook) -> None:
    """Keep the readings that bear an outlook out, and an outlook like it of each."""
    times = reading_times(outlook)
    store.add_readings(a_reading(outlook.device, at) for at in times)
    store.save_outlooks(replace(outlook, as_of=at) for at in times)


def a_plan(view: ClusterView, drain: Drain, policy: Policy = POLICY) -> Plan:
    """The drain's plan on the view."""
    return plan_drain(view, drain, policy, a_context(view, drain))


def bad_outlook(osd: int, at: datetime = NOW, **changes: object) -> Outlook:
    """A confirmed bad outlook of an OSD's device."""
    outlook = Outlook(
        device=device(osd),
        as_of=at,
        status=Status.BAD,
        source="model:test",
        reasons=(Reason("pending-rose", "Pending sectors rose on 5 of the last 7 days, 0 to 48."),),
        prescription="Drain it.",
        p_fail_7d=0.3,
        p_fail_14d=0.4,
        p_fail_30d=0.6,
        readings=8,
        span_hours=48.0,
    )
    return replace(outlook, **changes)  # type: ignore[arg-type]
