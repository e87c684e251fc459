"""`ClusterView`: all data on which a decision may rest, as one immutable snapshot of the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from predrain.actions.crush.crush_map import CrushMap
from predrain.actions.crush.pool import Pool
from predrain.data.ids import ClusterId, DeviceId, HostName, OsdId, PgId

BALANCER = "mgr/balancer/active"
"""The mgr's option behind `balancer on` and `balancer off`; on by default."""
PROPOSE_INTERVAL = "paxos_propose_interval"
"""The monitors' option for the least time between two maps, in seconds; 1 s by default."""


class StretchMode(StrEnum):
    """The state of a cluster that stretches over two sites with a tiebreaker (`ceph mon enable_stretch_mode`)."""

    OFF = "off"
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    """A site is unavailable, and PGs are served from the other one alone."""
    RECOVERING = "recovering"
    """The site is back, and its PGs are being filled."""


@dataclass(frozen=True, slots=True)
class Osd:
    """One OSD of the map. A size is None if the statistics lack it (OSD down, or a new mgr): unknown, not empty."""

    id: OsdId
    host: HostName
    rack: str | None
    device: DeviceId | None
    up: bool
    reweight: float
    """The override in [0, 1]; 0 means "out"."""
    crush_weight: float
    primary_affinity: float = 1.0
    size_bytes: int | None = None
    used_bytes: int | None = None
    device_class: str | None = None
    model: str | None = None
    """The drive model, which the mass-suspicion check uses."""
    shared_devices: tuple[DeviceId, ...] = ()
    """Devices that hold the OSD's DB or WAL and that other OSDs share: if such a device fails, all of
    these OSDs fail.
    """
    machine: HostName | None = None
    """The host on which the OSD runs, as it reports itself. `host` is its place in CRUSH, which may have another name.
    None: unknown.
    """
    device_name: str | None = None
    """The kernel's name of the data device on `machine`, such as `sdb`, when the OSD started; None: unknown."""
    old_weight: float = 0.0
    """If the mon has marked the OSD out: the override that the mon restores when the OSD comes up; else 0."""

    @property
    def runs_on(self) -> HostName:
        """Return the host on which the OSD runs, or its place in CRUSH if it has not reported its machine."""
        return self.machine or self.host

    @property
    def override_when_up(self) -> float:
        """Return the override that holds while the OSD is up. The mon sets it to 0 if the OSD is down for long, and
        restores it.
        """
        return self.reweight or self.old_weight

    @property
    def is_down_and_out(self) -> bool:
        """Return whether the OSD is down and out, so that no PG is or can be placed on it."""
        return not self.up and self.reweight == 0.0


@dataclass(frozen=True, slots=True)
class Pg:
    """One PG. `up` is the set that CRUSH and upmap items want, `acting` the set that serves; ITEM_NONE marks a hole."""

    id: PgId
    pool: int
    states: frozenset[str]
    """`active`, `clean`, `remapped`, ... A state that is not known to be good counts as bad."""
    up: tuple[int, ...]
    acting: tuple[int, ...]
    shard_bytes: int
    """Size of one member in B (for EC: of one shard)."""
    objects: int = 0
    degraded_objects: int = 0
    unfound_objects: int = 0
    reported_epoch: int = 0


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A snapshot with one `as_of`. Mappings may be shared between snapshots and must not be changed."""

    as_of: datetime
    """The time of the statistics (the dump's stamp), in UTC."""
    epoch: int
    """OSD map epoch."""
    release: str
    """`pacific`, `reef`, `tentacle`, ...; an unknown release is refused."""
    osds: Mapping[OsdId, Osd]
    pools: Mapping[int, Pool]
    pgs: Mapping[PgId, Pg]
    crush: CrushMap
    upmap_items: Mapping[PgId, tuple[tuple[int, int], ...]]
    """The `pg-upmap-items` in the map: pairs (from, to)."""
    fsid: ClusterId | None = None
    """The id that distinguishes the cluster from every other one; None if it is unknown."""
    has_full_upmaps: bool = False
    """True if the map has full `pg_upmap` entries: a drain by upmap items (walk) is then not possible."""
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
    """False after a mgr restart, when statistics are empty or older than the map."""
    mgr_id: str = ""
    """The mgr that gave the statistics; a change means a restart."""
    dump_version: int = 0
    """The PG dump's version; a lower one than before means a new mgr."""
    scheduler: str = "wpq"
    """The scheduler that the OSDs run: `wpq` or `mclock_scheduler`; `mixed`, or empty if it is unknown."""
    backfills_in_force: Mapping[OsdId, int] = field(default_factory=dict)
    """`local_reservations.max_allowed` as read at the OSD itself (ceph.md b). For a missing OSD the value is not
    verified.
    """
    self_heal: bool | None = None
    """`mgr/devicehealth/self_heal`: whether the mgr outs a disk for its published life expectancy; None: unknown."""
    lives: Mapping[DeviceId, tuple[datetime, datetime | None]] = field(default_factory=dict)
    """Life expectancies as published in the cluster: from, to."""
    read_errors: Mapping[OsdId, tuple[str, ...]] = field(default_factory=dict)
    """Messages of Ceph's health about failed reads of an OSD, for people."""
    latency_ratio: Mapping[OsdId, float] = field(default_factory=dict)
    """An OSD's present latency over its own hour before. An OSD that is missing has no signal."""
    slowest_ms: Mapping[OsdId, float] = field(default_factory=dict)
    """The longest single probe operation at each OSD within the last minute, in ms."""

    @property
    def machines(self) -> frozenset[HostName]:
        """Return the hosts on which OSDs run, as far as OSDs reported them."""
        return frozenset(osd.machine for osd in self.osds.values() if osd.machine is not None)

    def hosts_of(self, device: DeviceId) -> frozenset[HostName]:
        """Return the hosts whose OSDs keep data, DB or WAL on the device. OSDs that are down count only if none is up.

        The hosts are the machines that the OSDs report, because a place in CRUSH may have another name (`stor1-ssd`).
        """
        living = [osd for osd in self.osds.values() if osd.device == device or device in osd.shared_devices]
        return frozenset(osd.runs_on for osd in [one for one in living if one.up] or living)
