"""The monitor: commands that change the map, answers that get lost, upmap items that vanish, and the view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import cast

from predrain.actions.cluster.cluster_port import (
    Balancer,
    ClusterUnreachable,
    Command,
    CommandResult,
    CrushReweight,
    DeviceLight,
    PrimaryAffinity,
    PublishLife,
    RemoveUpmap,
    Reweight,
    Servers,
    SetFlag,
    SetOption,
    SetUpmap,
    WithdrawLife,
)
from predrain.actions.cluster.cluster_view import BALANCER, PROPOSE_INTERVAL, ClusterView, Osd
from predrain.actions.crush.crush_reweight import fixed_crush_weight
from predrain.actions.crush.crush_rules import FULL_WEIGHT
from predrain.actions.simulator.balancer import compute_balancer_upmaps
from predrain.actions.simulator.cluster_spec import ClusterSpec, OsdSpec
from predrain.actions.simulator.devicehealth import DeviceHealth
from predrain.actions.simulator.event_queue import Timeline
from predrain.actions.simulator.simulated_mgr import ReportingMgr
from predrain.actions.simulator.simulated_osdmap import OsdMap, fixed_reweight
from predrain.actions.simulator.simulated_pg import PlacementGroup
from predrain.data.ids import OsdId, PgId

FLAGS = frozenset(
    {"pause", "noup", "nodown", "noout", "noin", "nobackfill", "norebalance", "norecover", "noscrub"}
)
_THROTTLES = frozenset(
    {
        "osd_max_backfills",
        "osd_recovery_max_active",
        "osd_recovery_max_active_hdd",
        "osd_recovery_max_active_ssd",
    }
)
_OVERRIDE = "osd_mclock_override_recovery_settings"
_OPTIONS = _THROTTLES | {
    "osd_recovery_op_priority",
    "osd_recovery_sleep",
    "osd_recovery_sleep_hdd",
    "osd_mclock_profile",
    PROPOSE_INTERVAL,
    _OVERRIDE,
}
_MISPLACED_LIMIT = 0.05

Remap = Callable[[Iterable[int]], None]


class Mon:
    """The monitor. It carries out commands on the map, reports the PGs to place again, and shows the cluster."""

    def __init__(
        self,
        spec: ClusterSpec,
        osdmap: OsdMap,
        mgr: ReportingMgr,
        timeline: Timeline,
        remap: Remap,
        review: Callable[[], None],
        pgs: Mapping[int, PlacementGroup],
        devicehealth: DeviceHealth,
    ) -> None:
        """remap: called with PGs that may have new places. review: called when flags or throttles changed."""
        self._spec, self._osdmap, self._mgr, self._timeline = spec, osdmap, mgr, timeline
        self._remap, self._review, self._pgs = remap, review, pgs
        self._settings = dict(spec.settings)
        self._devicehealth = devicehealth
        self._balancer = spec.balancer
        self._lost_answers: list[bool] = []
        self._dropped_upmaps = 0
        self._to_drop: set[PgId] = set()
        self._checking = self._balancing = False
        self._osds: dict[OsdId, Osd] = {}
        self._seen: tuple[int, int] = (-1, -1)
        self._used: Mapping[OsdId, int] = {}
        self._backfills: tuple[tuple[int, int], Mapping[OsdId, int]] = ((0, 0), {})
        self._changes = 0
        if self._balancer:
            self.map_changed()

    # ---- commands

    def lose_answers(self, count: int, *, carried_out: bool) -> None:
        self._lost_answers += [carried_out] * count

    def drop_upmaps(self, count: int) -> None:
        self._dropped_upmaps += count

    def apply(self, command: Command) -> CommandResult:
        """Carry out one command. Raises ClusterUnreachable if its answer is lost."""
        if self._lost_answers:
            if self._lost_answers.pop(0):
                self._carry_out(command)
            raise ClusterUnreachable("The monitors gave no answer within the deadline.")
        return self._carry_out(command)

    def _carry_out(self, command: Command) -> CommandResult:
        match command:
            case SetUpmap(pg, pairs, acting):
                self._hold(pg, acting)
                text = self._set_upmap(pg, pairs)
                self._hold(pg, ())
            case RemoveUpmap(pg, acting):
                self._hold(pg, acting)
                text = self._remove_upmap(pg)
                self._hold(pg, ())
            case Reweight(osd, weight, acting):
                text = self._serve_on(acting, lambda: self._reweight(osd, weight))
            case CrushReweight(osd, weight, acting):
                text = self._serve_on(acting, lambda: self._crush_reweight(osd, weight))
            case PrimaryAffinity(osd, affinity):
                text = self._primary_affinity(osd, affinity)
            case SetFlag(flag, on):
                text = self._set_flag(flag, on)
            case SetOption(name, value, section):
                text = self._set_option(section, name, value)
            case Balancer(on):
                self._balancer = on is not False
                self._settings.pop(f"mgr/{BALANCER}", None)
                if on is not None:
                    self._settings[f"mgr/{BALANCER}"] = "true" if on else "false"
                self._wake_balancer()
                text = f"balancer {'on' if self._balancer else 'off'}"
            case PublishLife(device, start, end):
                text = self._devicehealth.publish(device, start, end)
            case WithdrawLife(device):
                text = self._devicehealth.withdraw(device)
            case DeviceLight():
                text = "Error ENOENT: No orchestrator configured (try `ceph orch set backend`)"
        return CommandResult(ok=not text.startswith("Error"), text=text, epoch=self._osdmap.epoch)

    def _set_upmap(self, pg: PgId, pairs: tuple[tuple[int, int], ...]) -> str:
        if pg not in self._osdmap.index:
            return f"Error ENOENT: pg '{pg}' does not exist"
        unknown = [osd for pair in pairs for osd in pair if osd not in self._osdmap.reweights]
        if unknown:
            return f"Error ENOENT: osd.{unknown[0]} does not exist"
        if not pairs or any(source == target for source, target in pairs):
            return "Error EINVAL: osd pairs must be different OSDs, at least one pair"
        if self._dropped_upmaps:
            self._dropped_upmaps -= 1
            self._to_drop.add(pg)
        self._remap(self._osdmap.set_upmap_items(pg, pairs))
        return f"set {pg} pg_upmap_items mapping to [{','.join(f'{a}->{b}' for a, b in pairs)}]"

    def _hold(self, pg: PgId, acting: tuple[int, ...]) -> None:
        """Apply `osd pg-temp` in the same map, so that the PG's serving OSDs are known before it peers."""
        if (index := self._osdmap.index.get(pg)) is not None:
            self._pgs[index].held = acting

    def _serve_on(self, servers: Servers, change: Callable[[], str]) -> str:
        """Apply a weight change with `osd pg-temp` for every PG that it moves."""
        for pg, acting in servers:
            self._hold(pg, acting)
        text = change()
        for pg, _ in servers:
            self._hold(pg, ())
        return text

    def _remove_upmap(self, pg: PgId) -> str:
        if pg not in self._osdmap.index:
            return f"Error ENOENT: pg '{pg}' does not exist"
        self._remap(self._osdmap.set_upmap_items(pg, None))
        return f"clear {pg} pg_upmap_items mapping"

    def _reweight(self, osd: OsdId, weight: float) -> str:
        if osd not in self._osdmap.reweights:
            return f"Error ENOENT: osd.{osd} does not exist"
        if not 0.0 <= weight <= 1.0:
            return "Error EINVAL: weight must be in [0, 1]"
        self._remap(self._osdmap.set_reweight(osd, fixed_reweight(weight)))
        return f"reweighted osd.{osd} to {weight:g} ({fixed_reweight(weight):x})"

    def _crush_reweight(self, osd: OsdId, weight: float) -> str:
        if osd not in self._osdmap.reweights:
            return f"Error ENOENT: device 'osd.{osd}' does not appear in the crush map"
        if weight < 0:
            return "Error EINVAL: weight must be at least 0"
        self._remap(self._osdmap.set_crush_weight(osd, fixed_crush_weight(weight)))
        return f"reweighted item id {osd} name 'osd.{osd}' to {weight:g} in crush map"

    def _primary_affinity(self, osd: OsdId, affinity: float) -> str:
        if osd not in self._osdmap.reweights:
            return f"Error ENOENT: osd.{osd} does not exist"
        if not 0.0 <= affinity <= 1.0:
            return "Error EINVAL: primary affinity must be in [0, 1]"
        self._remap(self._osdmap.set_affinity(osd, affinity))
        return f"set osd.{osd} primary-affinity to {affinity:g}"

    def _set_flag(self, flag: str, on: bool) -> str:
        if flag not in FLAGS:
            return f"Error EINVAL: invalid flag {flag}"
        self._osdmap.epoch += 1
        flags = self._osdmap.flags
        self._osdmap.flags = flags | {flag} if on else flags - {flag}
        self._review()
        return f"{flag} is {'set' if on else 'unset'}"

    def _set_option(self, section: str, name: str, value: str | None) -> str:
        if name not in _OPTIONS:
            return f"Error EINVAL: unrecognized config option '{name}'"
        key = f"{section}/{name}"
        if value is None:
            self._settings.pop(key, None)
        elif not self._ignored(name):
            self._settings[key] = value
        self._review()
        return ""

    def _ignored(self, name: str) -> bool:
        """Return whether the mon drops an option: under mClock it drops a throttle unless the override was
        set before.
        """
        return (
            self._spec.scheduler == "mclock"
            and name in _THROTTLES
            and (self._spec.release == "pacific" or self._settings.get(f"osd/{_OVERRIDE}") != "true")
        )

    def in_force(self) -> tuple[int, float]:
        """Return (backfills, recoveries active at once) that OSDs obey now."""
        if self._ignored("osd_max_backfills"):
            return (1000, 1000.0) if self._spec.release == "pacific" else (1, 3.0)
        backfills = int(self._settings.get("osd/osd_max_backfills", 1))
        active = float(self._settings.get("osd/osd_recovery_max_active", 0)) or 3.0
        return max(0, backfills), active

    # ---- what the map does by itself

    def osd_changed(self) -> None:
        """Record that an OSD came, left or has a new disk."""
        self._changes += 1

    def map_changed(self) -> None:
        """Schedule the mon's check of the upmap items, and the balancer."""
        if not self._checking and self._osdmap.upmaps:
            self._checking = True
            self._timeline.schedule_after(self._spec.physics.upmap_check_seconds, self._check_upmaps)
        self._wake_balancer()

    def _check_upmaps(self) -> None:
        self._checking = False
        to_drop, self._to_drop = self._to_drop, set()
        touched = self._osdmap.clean_upmaps(to_drop)
        if touched:
            self._remap(touched)

    def _wake_balancer(self) -> None:
        if self._balancer and not self._balancing:
            self._balancing = True
            self._timeline.schedule_after(self._spec.physics.balancer_seconds, self._balance)

    def _balance(self) -> None:
        self._balancing = False
        if not self._balancer:
            return
        unclean = sum(not pg.is_clean() for pg in self._pgs.values())
        if unclean > _MISPLACED_LIMIT * len(self._pgs) or any(
            pg.is_degraded() or pg.peering for pg in self._pgs.values()
        ):
            self._wake_balancer()
            return
        for pg, pairs in compute_balancer_upmaps(
            self._osdmap, ((pg.index, pg.up) for pg in self._pgs.values())
        ):
            self._remap(self._osdmap.set_upmap_items(pg, pairs))

    # ---- the view

    def view(
        self,
        stamp: datetime,
        osds: Mapping[int, OsdSpec],
        used: Mapping[OsdId, int],
        ratios: Mapping[OsdId, float],
    ) -> ClusterView:
        """Return a snapshot of the cluster. Raises ClusterUnreachable while the mgr hangs."""
        if self._mgr.is_blocked:
            raise ClusterUnreachable("The mgr does not answer; another one is taking over.")
        osdmap, spec = self._osdmap, self._spec
        self._refresh_osds(osds, used)
        return ClusterView(
            as_of=stamp,
            epoch=osdmap.epoch,
            fsid=spec.fsid,
            release=spec.release,
            osds=self._osds,
            pools=osdmap.pools,
            pgs=self._mgr.list_pgs(),
            crush=osdmap.crush,
            upmap_items=dict(osdmap.upmaps),
            nearfull_ratio=spec.nearfull_ratio,
            backfillfull_ratio=spec.backfillfull_ratio,
            full_ratio=spec.full_ratio,
            health=self._health(),
            flags=osdmap.flags,
            balancer_active=self._balancer,
            settings=dict(self._settings),
            statistics_known=not self._mgr.is_empty,
            mgr_id=self._mgr.id,
            dump_version=self._mgr.version,
            scheduler="mclock_scheduler" if spec.scheduler == "mclock" else spec.scheduler,
            backfills_in_force=self._list_backfills() if spec.reservations_read else {},
            latency_ratio=ratios,
            self_heal=self._devicehealth.self_heal,
            lives=self._devicehealth.lives,
        )

    def _list_backfills(self) -> Mapping[OsdId, int]:
        known = self._osdmap.osds_version, self.in_force()[0]
        if self._backfills[0] != known:
            self._backfills = known, {OsdId(osd): known[1] for osd in sorted(self._osdmap.up)}
        return self._backfills[1]

    def _refresh_osds(self, osds: Mapping[int, OsdSpec], used: Mapping[OsdId, int]) -> None:
        """Build the OSDs again whose part of the map, disk or fullness changed; a snapshot may be shared."""
        seen = (self._osdmap.osds_version, self._changes + self._mgr.is_empty)
        if seen != self._seen:
            self._osds = {cast("OsdId", osd): self._build_osd(osd, disk, used) for osd, disk in osds.items()}
        elif used is not self._used:
            filled = [osd for osd, size in used.items() if size != self._used[osd]]
            self._osds = {**self._osds, **{osd: self._build_osd(osd, osds[osd], used) for osd in filled}}
        self._seen, self._used = seen, used

    def _build_osd(self, number: int, disk: OsdSpec, used: Mapping[OsdId, int]) -> Osd:
        osdmap, osd = self._osdmap, OsdId(number)
        # `osd df` shows 0 kB for an OSD that is down or out (seen on Pacific).
        told = osd in osdmap.up and osdmap.reweights[osd] and not self._mgr.is_empty
        return Osd(
            id=osd,
            host=disk.host,
            rack=disk.rack,
            device=disk.device,
            up=osd in osdmap.up,
            reweight=osdmap.reweights[osd] / FULL_WEIGHT,
            crush_weight=osdmap.crush_weight(osd) / FULL_WEIGHT,
            primary_affinity=osdmap.affinities.get(osd, 1.0),
            size_bytes=disk.size_bytes if told else None,
            used_bytes=used[osd] if told else None,
            device_class=disk.device_class,
            model=disk.model,
            shared_devices=disk.shared_devices,
            machine=disk.host,
            old_weight=osdmap.old_weights.get(osd, 0) / FULL_WEIGHT,
        )

    def _health(self) -> str:
        fills = [
            osd.used_bytes / osd.size_bytes
            for osd in self._osds.values()
            if osd.used_bytes and osd.size_bytes
        ]
        if fills and max(fills) >= self._spec.full_ratio:
            return "HEALTH_ERR"
        worried = self._mgr.has_unhealthy_pgs or self._osdmap.flags or len(self._osdmap.up) < len(self._osds)
        if worried or (fills and max(fills) >= self._spec.nearfull_ratio):
            return "HEALTH_WARN"
        return "HEALTH_OK"
