"""`ClusterView`: everything a decision may look at, as one immutable snapshot of the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from predrain.actions.crush.map import CrushMap
from predrain.actions.crush.pool import Pool
from predrain.data.ids import DeviceId, HostName, OsdId, PgId

BALANCER = "mgr/balancer/active"
"""The mgr's option behind `balancer on` and `balancer off`; on by default."""
PROPOSE_INTERVAL = "paxos_propose_interval"
"""The monitors' option for the least time between two maps, in seconds; 1 by default."""


class StretchMode(StrEnum):
    """How a cluster is that stretches over two sites with a tiebreaker (`ceph mon enable_stretch_mode`)."""

    OFF = "off"
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    """A site is away, and PGs serve from the other one alone."""
    RECOVERING = "recovering"
    """The site is back, and PGs are filled there."""


@dataclass(frozen=True, slots=True)
class Osd:
    """One OSD of the map. Sizes are None when its statistics are missing (down, or a new mgr): unknown, not empty."""

    id: OsdId
    host: HostName
    rack: str | None
    device: DeviceId | None
    up: bool
    reweight: float
    """The override in [0, 1]; 0 is "out"."""
    crush_weight: float
    primary_affinity: float = 1.0
    size_bytes: int | None = None
    used_bytes: int | None = None
    device_class: str | None = None
    model: str | None = None
    """Drive model, for mass-suspicion."""
    shared_devices: tuple[DeviceId, ...] = ()
    """Devices that hold its DB or WAL, which other OSDs share: when one dies, all of them die."""
    machine: HostName | None = None
    """Where it runs, as it tells itself; `host` is its place in CRUSH, which may have another name. None: not known."""
    old_weight: float = 0.0
    """The override that the mon gives it again when it comes up, where the mon has marked it out; else 0."""

    @property
    def runs_on(self) -> HostName:
        """The host that it runs on, as far as that is known: its place in CRUSH where it has not told its machine."""
        return self.machine or self.host

    @property
    def override_when_up(self) -> float:
        """The override that holds while it is up: the mon takes it from one that is long down, and gives it again."""
        return self.reweight or self.old_weight

    @property
    def is_down_and_out(self) -> bool:
        """Whether no PG is placed on it and nothing can be."""
        return not self.up and self.reweight == 0.0


@dataclass(frozen=True, slots=True)
class Pg:
    """One PG. `up` is where CRUSH and upmaps want it, `acting` who serves it; ITEM_NONE marks a hole."""

    id: PgId
    pool: int
    states: frozenset[str]
    """`active`, `clean`, `remapped`, ... A state that is not known good is bad."""
    up: tuple[int, ...]
    acting: tuple[int, ...]
    shard_bytes: int
    """Bytes that one member holds (for EC: of one shard)."""
    objects: int = 0
    degraded_objects: int = 0
    unfound_objects: int = 0
    reported_epoch: int = 0


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A snapshot with one `as_of`. Mappings may be shared between snapshots and must not be changed."""

    as_of: datetime
    """When the statistics were taken (the dump's stamp), UTC."""
    epoch: int
    """OSD map epoch."""
    release: str
    """`pacific`, `reef`, `tentacle`, ...; a release we do not know is refused."""
    osds: Mapping[OsdId, Osd]
    pools: Mapping[int, Pool]
    pgs: Mapping[PgId, Pg]
    crush: CrushMap
    upmap_items: Mapping[PgId, tuple[tuple[int, int], ...]]
    """Standing `pg-upmap-items`: pairs (from, to)."""
    fsid: str = ""
    """By what the cluster is told from every other one; empty where it is not known."""
    has_full_upmaps: bool = False
    """Full `pg_upmap` entries stand: the walk is not to be had."""
    stretch_mode: StretchMode = StretchMode.OFF
    require_min_compat_client: str = "luminous"
    nearfull_ratio: float = 0.85
    backfillfull_ratio: float = 0.90
    full_ratio: float = 0.95
    health: str = "HEALTH_OK"
    flags: frozenset[str] = frozenset()
    """Global map flags: `noout`, `norebalance`, ..."""
    osd_flags: Mapping[OsdId, frozenset[str]] = field(default_factory=dict)
    balancer_active: bool = False
    mixed_versions: bool = False
    upgrade_running: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    """Recovery settings in the mon's config: `osd/osd_max_backfills`: `1`."""
    statistics_known: bool = True
    """False after a mgr restart, when statistics are empty or older than the map demands."""
    mgr_id: str = ""
    """Which mgr gave the statistics; another one means a restart."""
    dump_version: int = 0
    """The PG dump's version; a fall means a new mgr."""
    scheduler: str = "wpq"
    """`wpq` or `mclock_scheduler`, as the OSDs run it; `mixed` or empty where that is not known."""
    backfills_in_force: Mapping[OsdId, int] = field(default_factory=dict)
    """`local_reservations.max_allowed` as read at the OSD itself (ceph.md b); one that is missing is not verified."""
    self_heal: bool | None = None
    """`mgr/devicehealth/self_heal`: whether the mgr outs a disk for its published life expectancy; None: not known."""
    lives: Mapping[DeviceId, tuple[datetime, datetime | None]] = field(default_factory=dict)
    """Life expectancy as published in the cluster: from, to."""
    read_errors: Mapping[OsdId, tuple[str, ...]] = field(default_factory=dict)
    """What Ceph's health says of reads that failed on an OSD, for people."""
    latency_ratio: Mapping[OsdId, float] = field(default_factory=dict)
    """An OSD's latency now over its own hour before; an OSD that is missing has no signal."""
    slowest_ms: Mapping[OsdId, float] = field(default_factory=dict)
    """The longest that a single operation of our own took at an OSD within the last minute, in milliseconds."""

    @property
    def machines(self) -> frozenset[HostName]:
        """Where any OSD runs."""
        return frozenset(osd.machine for osd in self.osds.values() if osd.machine is not None)

    def hosts_of(self, device: DeviceId) -> frozenset[HostName]:
        """Hosts whose OSDs keep data, DB or WAL on the device; of OSDs that are down only where none is up. They are
        the machines that the OSDs run on, by their own word: a place in CRUSH may have another name (`stor1-ssd`)."""
        living = [osd for osd in self.osds.values() if osd.device == device or device in osd.shared_devices]
        return frozenset(osd.runs_on for osd in [one for one in living if one.up] or living)
