"""The parts of a simulated cluster: disks in hosts in racks, pools, and the physics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from predrain.actions.crush.crush_map import Bucket, CrushMap, CrushRule, RuleStep
from predrain.actions.crush.pool import Pool
from predrain.data.ids import ClusterId, DeviceId, HostName, OsdId, PgId

TIB = 1 << 40

SIMULATED_CLUSTER = ClusterId("00000000-0000-4000-8000-000000000000")


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
    """The devices that hold its DB and WAL, shared with other OSDs."""


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """A pool and its data. `shard_bytes` is the mean number of bytes that one member of a PG holds."""

    pool: Pool
    shard_bytes: int
    spread: float = 0.03
    """Standard deviation of the log of a PG's bytes."""
    object_bytes: int = 4 << 20
    data_shards: int = 1
    """Shards of a PG without which its data is lost: k of an erasure code, otherwise 1 copy."""
    young: bool = False
    """True if the pool is younger than its PG logs: a new member is filled from the log, which Ceph shows as
    degraded.
    """


@dataclass(frozen=True, slots=True)
class Physics:
    """Rates and delays of 7,200 rpm disks with co-located journals, as observed on real clusters.

    A PG peers for up to 2 s, and clients wait for 4 s after a sudden death. Statistics lag the map by 3.8 to
    5.4 s. The mon drops bad upmap items within 2 s. An OSD that is down is marked out after 10 min. Clients
    of co-located clusters lose 9.8 % of their IOPS while one disk's data is rebuilt.
    """

    peering_seconds: tuple[float, float] = (0.5, 1.1)
    """Duration of peering with one round trip to the mon."""
    asking_peering_seconds: tuple[float, float] = (0.6, 2.2)
    """Duration of peering if a member has no data yet: the PG first asks the mon for serving OSDs, in two
    round trips.
    """
    unnoticed_seconds: tuple[float, float] = (1.5, 2.5)
    """Time from a daemon's sudden end until the mons notice it. Clients wait as for a PG that peers."""
    report_seconds: tuple[float, float] = (3.8, 5.4)
    statistics_period_seconds: float = 5.0
    upmap_check_seconds: float = 2.0
    down_out_seconds: float = 600.0
    balancer_seconds: float = 60.0
    mgr_blocked_seconds: float = 4.0
    mgr_empty_seconds: float = 10.0
    disk_bytes_per_second: float = 60e6
    """The rate in bytes/s that a disk gives to all its backfills together, beside its clients."""
    stream_bytes_per_second: float = 40e6
    """The highest rate in bytes/s of one backfill at `osd_recovery_max_active` 3."""
    delete_pause_seconds: float = 5.0
    """Seconds between two batches of a PG's objects that an OSD deletes (`osd_delete_sleep_hdd`)."""
    log_recovery_seconds: float = 2.0
    missed_write_share: float = 0.02
    """Seconds of log recovery for each second that a member was away."""
    client_iops: float = 10_000.0
    latency_floor_ms: float = 1.87
    latency_tail_ms: float = 2.2
    """The latency of a quiet disk is the floor plus an exponential with this mean: p50 3.4 ms, p99 12 ms."""
    latency_per_stream: float = 0.07
    """Moving one PG at a time raised p99 from 14 to 15 ms; a backfill that restores redundancy weighs twice
    that.
    """


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """A whole cluster at its start: everything up, in and clean."""

    name: str
    osds: tuple[OsdSpec, ...]
    pools: tuple[PoolSpec, ...]
    crush: CrushMap
    upmap_items: Mapping[PgId, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    release: str = "reef"
    fsid: ClusterId = SIMULATED_CLUSTER
    scheduler: str = "wpq"
    """`wpq` obeys the recovery throttles; `mclock` ignores them until the override is set first, and on
    Pacific always. Any other value stands for an unknown scheduler.
    """
    reservations_read: bool = True
    """True if a process with the right reads the values in force at the OSDs."""
    balancer: bool = False
    self_heal: bool = True
    """`mgr/devicehealth/self_heal`, on by default in every release."""
    settings: Mapping[str, str] = field(default_factory=dict)
    nearfull_ratio: float = 0.85
    backfillfull_ratio: float = 0.90
    full_ratio: float = 0.95
    physics: Physics = Physics()

    def with_devices(self, devices: Mapping[OsdId, tuple[DeviceId, str]]) -> ClusterSpec:
        """Return the same cluster with these disks (id and drive model) in its slots."""
        plugged = tuple(
            replace(osd, device=devices[osd.id][0], model=devices[osd.id][1]) if osd.id in devices else osd
            for osd in self.osds
        )
        return replace(self, osds=plugged)


def crush_weight(size_bytes: float) -> int:
    """Return a disk's CRUSH weight: TiB in 16.16 fixed point."""
    return round(size_bytes / TIB * 0x10000)


def crush_tree(
    osds: Sequence[OsdSpec],
    rules: Mapping[int, CrushRule] | None = None,
    scale: Mapping[OsdId, float] | None = None,
) -> CrushMap:
    """Build root > racks (if named) > hosts > OSDs, straw2; rule 0 spreads copies by host, rule 1 shards.

    scale: the ratio of an OSD's CRUSH weight to its size, where it is not 1.
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
