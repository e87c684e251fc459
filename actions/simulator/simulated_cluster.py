"""The simulated cluster: its port, its clock, its disks, and the faults that a test or a demo calls for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import cast

from predrain.actions.cluster.cluster_port import Command, CommandResult
from predrain.actions.cluster.cluster_view import ClusterView, Pg
from predrain.actions.crush.crush_rules import FULL_WEIGHT
from predrain.actions.simulator.backfill import RecoveryLimits
from predrain.actions.simulator.client_load import ClientLoad, Clients
from predrain.actions.simulator.cluster_spec import ClusterSpec, OsdSpec
from predrain.actions.simulator.devicehealth import DeviceHealth
from predrain.actions.simulator.event_queue import Timeline
from predrain.actions.simulator.pg_lifecycle import Lifecycle
from predrain.actions.simulator.simulated_mgr import ReportingMgr
from predrain.actions.simulator.simulated_mon import Mon
from predrain.actions.simulator.simulated_osdmap import OsdMap
from predrain.actions.simulator.simulated_pg import PgTruth
from predrain.actions.simulator.simulated_pools import PoolChanges
from predrain.data.ids import DeviceId, OsdId, PgId

_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ClusterTruth:
    """The real state, for external checkers. The mappings are live: read them, do not keep them."""

    pgs: Mapping[PgId, PgTruth]
    used_bytes: Mapping[OsdId, int]
    """Bytes of the PGs that an OSD has, or that are being filled."""
    deleting_bytes: Mapping[OsdId, int]
    """Bytes of PGs that have left an OSD and are not deleted yet."""
    size_bytes: Mapping[OsdId, int]
    up: frozenset[OsdId]
    dead: frozenset[OsdId]
    """OSDs whose disk has died and was not replaced."""
    lost: frozenset[PgId]
    """PGs whose data is on no disk any more."""


class SimulatedCluster:
    """A Ceph cluster in memory, deterministic for a seed. Implements `actions.cluster.cluster_port.Cluster`."""

    def __init__(self, spec: ClusterSpec, seed: int, start: datetime = _BEGINNING) -> None:
        """start: the simulation's first moment, UTC. Everything is up, in and clean."""
        self.spec, self._start = spec, start
        self._random = Random(seed)
        self._physics = spec.physics
        self._time = Timeline()
        self._osds: dict[int, OsdSpec] = {int(osd.id): osd for osd in spec.osds}
        self._dead: set[int] = set()
        self._down_since: dict[int, float] = {}
        self._down_pending_out: dict[int, float] = {}
        self.osdmap = OsdMap(spec)
        self._clients = Clients(spec.physics, list(self._osds), len(self.osdmap.pgs))
        self.life = Lifecycle(
            spec, self.osdmap, self._time, self._random, self._clients, self._limits, self._note
        )
        self._recovery = self.life.recovery
        self._mgr = ReportingMgr(self._time, spec.physics, self._random, self.osdmap.pgs, self._report)
        self.devicehealth = DeviceHealth(
            self._time, lambda: self.now, self._on, self._throw_out, self_heal=spec.self_heal
        )
        self._mon = Mon(
            spec,
            self.osdmap,
            self._mgr,
            self._time,
            self._remap,
            self._replan,
            self.life.pgs,
            self.devicehealth,
        )
        self._pools = PoolChanges(self.osdmap, self.life, self._mgr, self._time, self._remap)

    # ---- the port

    def view(self) -> ClusterView:
        """Return a view of the cluster. Raises ClusterUnreachable while a new mgr does not answer."""
        return self._mon.view(
            self._start + timedelta(seconds=self._mgr.stamp),
            self._osds,
            self.life.list_used_bytes(self._osds),
            self._ratios(),
        )

    def apply(self, command: Command) -> CommandResult:
        """Send one command. Raises ClusterUnreachable if its answer is lost."""
        return self._mon.apply(command)

    # ---- time

    @property
    def now(self) -> datetime:
        """Return the simulation's time, UTC."""
        return self._start + timedelta(seconds=self._time.now)

    def advance(self, seconds: float) -> None:
        """Advance the time; all events that are due happen."""
        self._time.run_until(self._time.now + seconds, self._clients.pass_time)

    # ---- the truth, for checkers and pages

    def truth(self) -> ClusterTruth:
        """Return the real state, independent of the dumps."""
        return ClusterTruth(
            pgs=self.life.truth,
            used_bytes={OsdId(osd): self._recovery.used[osd] for osd in self._osds},
            deleting_bytes={OsdId(osd): self.life.deletions.held_bytes[osd] for osd in self._osds},
            size_bytes={OsdId(osd): spec.size_bytes for osd, spec in self._osds.items()},
            up=frozenset(OsdId(osd) for osd in self.osdmap.up),
            dead=frozenset(OsdId(osd) for osd in self._dead),
            lost=frozenset(self.life.lost),
        )

    def take_client_load(self) -> ClientLoad:
        """Return the load that clients saw since the last call."""
        return self._clients.take_load()

    @property
    def thin_pgs(self) -> int:
        """The number of PGs that lack a copy, by the truth."""
        return len(self.life.thin)

    @property
    def moved_bytes(self) -> int:
        """Bytes copied while every former copy still existed: drains, rebalancing."""
        return self._recovery.moved_bytes

    @property
    def recovered_bytes(self) -> int:
        """Bytes copied to restore lost redundancy."""
        return self._recovery.recovered_bytes

    @property
    def backfills(self) -> int:
        """The number of PGs that are being filled now."""
        return self._recovery.count_streams()

    # ---- faults and a person's actions

    def fail_osd(self, osd: OsdId) -> None:
        """Make the disk die: its data is gone, the OSD is down now and out after `down_out_seconds`."""
        if osd in self._dead:
            return
        self._dead.add(osd)
        touched = self.life.find_held_pgs(osd)
        self.life.lose_disk(osd)
        if osd in self.osdmap.up:
            self._go_down(osd, touched, self._random.uniform(*self._physics.unnoticed_seconds))

    def stop_osd(self, osd: OsdId) -> None:
        """Stop the daemon; its disk keeps its data."""
        if osd in self.osdmap.up:
            self._go_down(osd, self.life.find_held_pgs(osd))

    def revive(self, osd: OsdId) -> None:
        """Start a stopped OSD with its data. It is in again if the mon had marked it out.

        Raises ValueError if its disk is dead; use `replace` then.
        """
        if osd in self._dead:
            raise ValueError(f"The disk of osd.{osd} is dead; replace it.")
        self._come_up(osd)

    def replace(
        self,
        osd: OsdId,
        device: DeviceId | None = None,
        model: str | None = None,
        reweight: float | None = 1.0,
    ) -> None:
        """Put a new, empty disk into the slot and start its OSD.

        reweight: the override that it gets; None keeps the present one.
        """
        if osd not in self._dead:
            self.fail_osd(osd)
        self._dead.discard(osd)
        self.osdmap.old_weights.pop(osd, None)
        spec = self._osds[osd]
        self._osds[osd] = replace(spec, device=device or spec.device, model=model or spec.model)
        self._mon.osd_changed()
        self.set_slow(osd, 1.0)
        self._come_up(osd)
        if reweight is not None:
            self._remap(self.osdmap.set_reweight(osd, int(reweight * FULL_WEIGHT)))

    def purge(self, osd: OsdId) -> None:
        """Run `osd purge`: the daemon stops, its disk is wiped, and the map no longer contains the OSD."""
        touched = self.life.find_held_pgs(osd)
        self.fail_osd(osd)
        self._dead.discard(osd)
        for known in (self._osds, self._down_since, self._down_pending_out):
            known.pop(osd, None)
        self._remap(self.osdmap.purge(osd) | touched)
        self._mon.osd_changed()

    def set_pg_num(self, pool: int, pg_num: int) -> None:
        """Run `osd pool set POOL pg_num N`: the mgr splits or merges PGs until this number is reached."""
        self._pools.set_pg_num(pool, pg_num)

    def set_crush_rule(self, pool: int, rule: int) -> None:
        """Run `osd pool set POOL crush_rule RULE`. Raises ValueError if the map has no such rule."""
        self._pools.set_rule(pool, rule)

    def set_slow(self, osd: OsdId, factor: float) -> None:
        """Make the disk answer `factor` times as slowly as a healthy one; 1 makes it healthy again."""
        self._clients.set_slow_factor(osd, factor, self._time.now)
        self._recovery.update_disk_speed(osd)

    def silence_peer(self, osd: OsdId, seconds: float) -> None:
        """Let the OSD answer no PG that peers from now on, for this long or until its daemon starts again.

        The OSD stays up, as an OSD does whose heartbeats are answered while its operations hang.
        """
        self.life.silence_peer(osd, self._time.now + seconds)

    def write_to_pool(self, pool: int, share: float) -> None:
        """Let clients write to the pool: each of its active PGs grows by this share."""
        self.life.write_to_pool(pool, share)

    def flap(self, osd: OsdId, times: int, seconds: float) -> None:
        """Stop and start the daemon `times` times, `seconds` each way, from now on."""
        for turn in range(times):
            self._time.schedule_after(2 * turn * seconds, _Flap(self, osd, up=False))
            self._time.schedule_after((2 * turn + 1) * seconds, _Flap(self, osd, up=True))

    def lose_answers(self, count: int, *, carried_out: bool) -> None:
        """Make the next `count` commands raise ClusterUnreachable; `carried_out` says whether they take
        effect.
        """
        self._mon.lose_answers(count, carried_out=carried_out)

    def drop_upmaps(self, count: int) -> None:
        """Make the next `count` upmap commands answer "set"; the items are gone two seconds later."""
        self._mon.drop_upmaps(count)

    def restart_mgr(self) -> None:
        """Restart the mgr: another one takes over, first silent for seconds, then with empty and later with
        full statistics.
        """
        self._mgr.restart()

    def freeze_statistics(self, seconds: float) -> None:
        """Stop the statistics and the dump's stamp while the map moves on."""
        self._mgr.freeze(seconds)

    def lie_clean(self, seconds: float) -> None:
        """Make the dump report `active+clean` for every PG, with fresh stamps."""
        self._mgr.start_lying(seconds)

    # ---- internals

    def _on(self, device: DeviceId) -> tuple[OsdId, ...]:
        return tuple(osd.id for osd in self._osds.values() if osd.device == device)

    def _throw_out(self, osd: OsdId) -> None:
        """Out the OSD and take its primary role in one step, as devicehealth does."""
        touched = self.osdmap.set_affinity(osd, 0.0)
        self._remap(touched | self.osdmap.set_reweight(osd, 0))

    def _report(self, index: int) -> Pg:
        return self.life.pgs[index].build_report(self.osdmap.epoch)

    def _ratios(self) -> dict[OsdId, float]:
        ratios: dict[OsdId, float] = dict.fromkeys(cast("set[OsdId]", self.osdmap.up), 1.0)
        for osd in self._clients.find_strained_osds(self._time.now):
            if osd in self.osdmap.up:
                ratios[OsdId(osd)] = self._clients.compute_latency_ratio(osd, self._time.now)
        return ratios

    def _limits(self) -> RecoveryLimits:
        backfills, active = self._mon.in_force()
        return RecoveryLimits(
            backfills=backfills,
            stream_bytes_per_second=self._physics.stream_bytes_per_second * min(2.0, active / 3),
            disk_bytes_per_second=self._physics.disk_bytes_per_second,
        )

    def _go_down(self, osd: int, touched: frozenset[int], unnoticed: float = 0.0) -> None:
        self._down_since[osd] = self._time.now
        self._remap(self.osdmap.set_up(osd, up=False) | touched, unnoticed)
        self._mon.osd_changed()

    def _await_out(self) -> None:
        """Schedule marking out each OSD that is down and in, also if it gets a weight while it is down."""
        now = self._time.now
        for osd in self._down_since:
            if self.osdmap.reweights[osd] and osd not in self._down_pending_out:
                self._down_pending_out[osd] = now
                self._time.schedule_after(self._physics.down_out_seconds, _MarkOut(self, osd, now))

    def mark_out(self, osd: int, pending_since: float) -> None:
        """Mark the OSD out after ten minutes, unless it came back. With `noout` set, the mon checks again
        later.
        """
        if self._down_pending_out.get(osd) != pending_since:
            return
        if "noout" in self.osdmap.flags:
            self._time.schedule_after(
                self._physics.statistics_period_seconds * 12, _MarkOut(self, osd, pending_since)
            )
            return
        del self._down_pending_out[osd]
        if not self.osdmap.reweights[osd]:
            return
        self._remap(self.osdmap.mark_out(osd))
        self._mon.osd_changed()

    def _come_up(self, osd: int) -> None:
        self._down_pending_out.pop(osd, None)
        since = self._down_since.pop(osd, None)
        if since is None:
            return
        away = self._time.now - since
        self.life.wake_peer(osd)
        self.life.come_back(osd, away)
        touched = self.osdmap.set_up(osd, up=True) | self.life.find_held_pgs(osd)
        if weight := self.osdmap.old_weights.get(osd, 0):
            touched |= self.osdmap.set_reweight(osd, weight)
        self._mon.osd_changed()
        self._remap(touched)

    def _remap(self, touched: Iterable[int], unnoticed: float = 0.0) -> None:
        """Recompute the places of these PGs after a change of the map."""
        self.life.remap(touched, unnoticed)
        self._await_out()
        self._mon.map_changed()

    def _note(self, index: int) -> None:
        self._mgr.queue_report(index)

    def _replan(self) -> None:
        """Recheck the streams after a change of flags or settings."""
        self._recovery.recheck_streams()


@dataclass(frozen=True, slots=True)
class _MarkOut:
    cluster: SimulatedCluster
    osd: int
    since: float

    def __call__(self) -> None:
        self.cluster.mark_out(self.osd, self.since)


@dataclass(frozen=True, slots=True)
class _Flap:
    cluster: SimulatedCluster
    osd: OsdId
    up: bool

    def __call__(self) -> None:
        if not self.up:
            self.cluster.stop_osd(self.osd)
        elif self.osd not in self.cluster.truth().dead:
            self.cluster.revive(self.osd)
