"""What a simulated cluster is made of: disks in hosts in racks, pools, and the physics they obey."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from predrain.actions.crush.map import Bucket, CrushMap, CrushRule, RuleStep
from predrain.actions.crush.pool import Pool
from predrain.data.ids import DeviceId, HostName, OsdId, PgId

TIB = 1 << 40


@dataclass(frozen=True, slots=True)
class OsdSpec:
    """One OSD on one disk."""

    id: OsdId
    host: HostName
    rack: str | None
    size_bytes: int
    device: DeviceId | None = None
    model: str | None = None
    device_class: str = "hdd"
    shared_devices: tuple[DeviceId, ...] = ()
    """What holds its DB and WAL, beside those of other OSDs."""


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """A pool and its data. `shard_bytes` is the mean that one member of a PG holds."""

    pool: Pool
    shard_bytes: int
    spread: float = 0.03
    """Standard deviation of the log of a PG's bytes."""
    object_bytes: int = 4 << 20
    data_shards: int = 1
    """Shards of a PG without which it is lost: k of an erasure code, 1 copy otherwise."""
    young: bool = False
    """Younger than its PG logs: a new member is filled from the log, which Ceph shows as degraded."""


@dataclass(frozen=True, slots=True)
class Physics:
    """Rates and delays of 7,200 rpm disks with co-located journals, and what real clusters were seen to do.

    A PG peers for up to two seconds and clients feel a sudden death for four, statistics lag the map by 3.8 to 5.4 s,
    the mon drops bad pins within two seconds, an OSD that is down is marked out after ten minutes, and clients of
    co-located clusters lose 9.8 % of their IOPS while one disk's data is rebuilt.
    """

    peering_seconds: tuple[float, float] = (0.5, 1.1)
    """One round of the mon."""
    asking_peering_seconds: tuple[float, float] = (0.6, 2.2)
    """Where a member has nothing yet, so that the PG first asks the mon who goes on serving: two rounds."""
    unnoticed_seconds: tuple[float, float] = (1.5, 2.5)
    """From a daemon's sudden end until the mons know: clients wait for it as for a PG that peers."""
    report_seconds: tuple[float, float] = (3.8, 5.4)
    statistics_period_seconds: float = 5.0
    pin_check_seconds: float = 2.0
    down_out_seconds: float = 600.0
    balancer_seconds: float = 60.0
    mgr_blocked_seconds: float = 4.0
    mgr_empty_seconds: float = 10.0
    disk_bytes_per_second: float = 60e6
    """What a disk gives to all its backfills together, beside its clients."""
    stream_bytes_per_second: float = 40e6
    """What one backfill takes at most at `osd_recovery_max_active` 3."""
    log_recovery_seconds: float = 2.0
    missed_write_share: float = 0.02
    """Seconds of log recovery for each second that a member was away."""
    client_iops: float = 10_000.0
    latency_floor_ms: float = 1.87
    latency_tail_ms: float = 2.2
    """Latency of a quiet disk is floor + an exponential with this mean: p50 3.4 ms, p99 12 ms."""
    latency_per_stream: float = 0.07
    """Walking one PG at a time took p99 from 14 to 15 ms; a backfill that heals weighs twice that."""


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """A whole cluster at its start: everything up, in and clean."""

    name: str
    osds: tuple[OsdSpec, ...]
    pools: tuple[PoolSpec, ...]
    crush: CrushMap
    upmap_items: Mapping[PgId, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    release: str = "reef"
    fsid: str = "00000000-0000-4000-8000-000000000000"
    scheduler: str = "wpq"
    """`wpq` obeys the recovery throttles; `mclock` ignores them until the override is set first, on Pacific always;
    anything else stands for what is not known."""
    reservations_read: bool = True
    """Whether somebody with the right to it reads at the OSDs what is in force."""
    balancer: bool = False
    self_heal: bool = True
    """`mgr/devicehealth/self_heal`, on by default in every release."""
    settings: Mapping[str, str] = field(default_factory=dict)
    nearfull_ratio: float = 0.85
    backfillfull_ratio: float = 0.90
    full_ratio: float = 0.95
    physics: Physics = Physics()

    def with_devices(self, devices: Mapping[OsdId, tuple[DeviceId, str]]) -> ClusterSpec:
        """The same cluster with these disks (id and drive model) in its slots."""
        plugged = tuple(
            replace(osd, device=devices[osd.id][0], model=devices[osd.id][1]) if osd.id in devices else osd
            for osd in self.osds
        )
        return replace(self, osds=plugged)


def crush_weight(size_bytes: float) -> int:
    """A disk's CRUSH weight: TiB in 16.16 fixed point."""
    return round(size_bytes / TIB * 0x10000)


def crush_tree(
    osds: Sequence[OsdSpec],
    rules: Mapping[int, CrushRule] | None = None,
    scale: Mapping[OsdId, float] | None = None,
) -> CrushMap:
    """root > racks (where named) > hosts > OSDs, straw2; rule 0 spreads copies by host, rule 1 shards.

    scale: what an OSD's CRUSH weight is of its size, where that is not 1.
    """
    scale = scale or {}
    by_host: dict[tuple[str | None, HostName], list[OsdSpec]] = {}
    for osd in osds:
        by_host.setdefault((osd.rack, osd.host), []).append(osd)
    buckets: dict[int, Bucket] = {}
    tops: dict[str | None, list[int]] = {}
    for number, ((rack, host), members) in enumerate(by_host.items()):
        host_id = -2 - number
        weights = tuple(crush_weight(osd.size_bytes * scale.get(osd.id, 1.0)) for osd in members)
        buckets[host_id] = Bucket(host_id, host, "host", tuple(osd.id for osd in members), weights)
        tops.setdefault(rack, []).append(host_id)
    top: list[int] = []
    for number, (rack, hosts) in enumerate(tops.items()):
        if rack is None:
            top += hosts
            continue
        rack_id = -2 - len(by_host) - number
        weights = tuple(sum(buckets[host].weights) for host in hosts)
        buckets[rack_id] = Bucket(rack_id, rack, "rack", tuple(hosts), weights)
        top.append(rack_id)
    buckets[-1] = Bucket(-1, "default", "root", tuple(top), tuple(sum(buckets[b].weights) for b in top))
    classes = {int(osd.id): osd.device_class for osd in osds}
    return CrushMap(buckets, dict(rules or DEFAULT_RULES), classes=classes)


DEFAULT_RULES: Mapping[int, CrushRule] = {
    0: CrushRule(
        0,
        "replicated_rule",
        (RuleStep("take", item=-1), RuleStep("chooseleaf_firstn", type="host"), RuleStep("emit")),
    ),
    1: CrushRule(
        1,
        "erasure_rule",
        (
            RuleStep("set_chooseleaf_tries", item=5),
            RuleStep("set_choose_tries", item=100),
            RuleStep("take", item=-1),
            RuleStep("chooseleaf_indep", type="host"),
            RuleStep("emit"),
        ),
    ),
}
