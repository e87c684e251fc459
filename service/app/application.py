"""Combine log, store, forecaster and controller into one application, which a caller steps or `run` repeats in
loops.

`Application` takes ports, so that one composition serves a machine (SQLite, the system's clock) and a simulation.
It takes `ServiceRoles`, so that one process can do everything, or several can share the work. Every public method
may be called from any thread, except that only one thread steps the worker.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from predrain.actions.controller.person_request import PersonRequest
from predrain.actions.core.drain_policy import Policy
from predrain.data.clock import Clock
from predrain.data.drain import Drain
from predrain.data.halt_state import Halt, halt_by_person
from predrain.data.ids import DeviceId
from predrain.data.log.log_port import Log, Record, Topic
from predrain.data.outcome import Outcome
from predrain.data.reading import Reading
from predrain.data.refusal import Refusal
from predrain.data.scorebook import Scorebook
from predrain.data.store.store_faults import StoreRefusal
from predrain.data.store.store_port import Store
from predrain.data.wire import accept_reading
from predrain.service.app.changes import ChangeFeed, ChangeKind
from predrain.service.app.demo_status import DemoStatus
from predrain.service.app.notification_snapshot import HostMismatches, build_alert_snapshot
from predrain.service.app.process_sync import StoreFollower
from predrain.service.app.retention import DroppedCounts, drop_expired_data
from predrain.service.app.roles import EVERYTHING, ServiceRoles
from predrain.service.app.scheduler import Scheduler
from predrain.service.clusters.other_clusters import OtherClusters, OverviewSource
from predrain.service.config.channels import make_message_routes
from predrain.service.config.settings import Settings
from predrain.service.config.state_directory import StateDir
from predrain.service.disk_requests.request_desk import DiskRequestDesk
from predrain.service.disk_requests.self_test_schedule import request_due_tests
from predrain.service.drains.drain_requests import NoCluster
from predrain.service.drains.halt import HaltPlace, halt_with, places_of, write_again
from predrain.service.drains.live_cluster import LiveClusterParts
from predrain.service.fleet.drain_timeline import Timelines
from predrain.service.fleet.fleet import Fleet, FleetSnapshot
from predrain.service.fleet.life_book import LifeBook
from predrain.service.forecasting import model_succession
from predrain.service.forecasting.deployed_models import DeployedModels
from predrain.service.forecasting.forecaster import Forecaster
from predrain.service.forecasting.policy_preview import PolicyPreviewer
from predrain.service.forecasting.scorer import Scorer
from predrain.service.forecasting.worker_step_result import WorkerStepResult
from predrain.service.notifications.cause import AlertSnapshot
from predrain.service.notifications.channel import Deliveries, NotificationChannel
from predrain.service.notifications.daily_digest import DailyDigest
from predrain.service.notifications.notification_memory import NoteStore
from predrain.service.notifications.notifier import ChannelState, Notifier
from predrain.service.runtime.lease_decision import LeaseRank
from predrain.service.runtime.service_lease import NotActive, ServiceLease, ServiceRole, ServiceState
from predrain.service.storage.reading_archive import ReadingArchive
from predrain.service.storage.record_sender import RecordSender
from predrain.service.storage.signing_key import find_or_make_signing_key
from predrain.service.streams.kept_announcements import read_announced
from predrain.service.streams.latency_ingest import LatencyIngest, LatencyIngestResult
from predrain.service.streams.log_recall import recall_from_log
from predrain.service.streams.outlook_announcements import Announcements

if TYPE_CHECKING:
    from predrain.service.drains.drain_control import DrainControl
    from predrain.service.forecasting.forecast_health import ForecastHealth

FLEET_SNAPSHOT = "snapshot"
COUNTED = ("accepted", "refused", "worked", "dead", "alerts")
COUNTED_LATENCIES = ("latencies", "latencies_dead", "latencies_lost", "anonymous")

Built = TypeVar("Built")


@dataclass(frozen=True, slots=True)
class ApplicationPorts:
    """The adapters that an application uses.

    `forecaster` is called once, late, since it imports heavy packages; it scores until a bundle is promoted into
    the directory `installed`. Without a `scorebook` no bundle is compared with another. `name` identifies the
    sender of log records: each process that shares a log has its own. `channels` notify people, and a `digest`
    does so once a day from the notes of the store. `other_clusters`: the services that are asked for overviews.
    `lease`: of the services that share the store; None if this one is alone.
    """

    log: Log
    store: Store
    clock: Clock
    forecaster: Callable[[], Forecaster[Any]]
    cluster: LiveClusterParts | None = None
    installed: Path | None = None
    scorebook: Scorebook | None = None
    name: str = "predrain"
    channels: Sequence[NotificationChannel] = ()
    digest: Callable[[NoteStore], DailyDigest] | None = None
    other_clusters: Sequence[OverviewSource] = ()
    lease: ServiceLease | None = None


@dataclass(frozen=True, slots=True)
class IngestResult:
    """The number of accepted readings, and the refusals of the others with their index in the request."""

    accepted: int
    refused: tuple[tuple[int, Refusal], ...] = ()


class Application:
    """One process of the service. It does everything, or the parts that its roles name."""

    def __init__(
        self,
        ports: ApplicationPorts,
        policy: Policy,
        settings: Settings,
        *,
        parts: ServiceRoles = EVERYTHING,
        demo: Callable[[], DemoStatus | None] | None = None,
    ) -> None:
        self.log, self.store, self.clock = ports.log, ports.store, ports.clock
        self.policy, self.settings, self.parts, self.demo = policy, settings, parts, demo
        self.lease = ports.lease
        self.changes, self.announcements, self.timelines = ChangeFeed(), Announcements(), Timelines()
        self.host_mismatches = HostMismatches()
        self.other_clusters = OtherClusters(ports.other_clusters, ports.clock.now())
        self.fleet = Fleet(ports.store)
        self.stale_after = timedelta(hours=2 * settings.forecast.reading_interval_hours)
        self.lives = LifeBook(ports.store, ports.clock.now(), self.stale_after)
        self.counts: dict[str, int] = dict.fromkeys((*COUNTED, *COUNTED_LATENCIES), 0)
        self.waited: timedelta | None = None
        """The time that the newest reading of the worker's last step had waited; None before its first step."""
        self._archive = ReadingArchive.from_settings(settings) if demo is None else None
        self._turning = Scheduler(self)
        self.faults = self._turning.faults
        self._sender = RecordSender(ports.name, ports.clock)
        self.latencies = LatencyIngest(ports.log, ports.store, ports.clock, self._sender)
        self.previews = PolicyPreviewer()
        self._control: DrainControl | None = None
        if ports.cluster is not None:
            from predrain.service.drains.drain_control import (
                DrainControl,  # it imports numpy, and a start without a cluster need not wait
            )

            self._control = DrainControl(
                ports.cluster, ports.store, ports.log, policy, self.fleet, self.timelines, parts.shares
            )
        self.disk_requests = DiskRequestDesk(
            ports.store,
            ports.clock,
            lambda: find_or_make_signing_key(settings.ceph, StateDir(settings.service.state).ensure_exists()),
            find_view=None if ports.cluster is None else lambda: self.fleet.view,
        )
        self.scorer = Scorer(
            ports.log,
            ports.store,
            ports.clock,
            DeployedModels(ports.forecaster, ports.installed),
            self.fleet,
            self.announcements,
            self._sender,
            ports.scorebook,
            self._note_replacement,
            settings.forecast.residence_limits,
            shared=parts.shares,
        )
        elsewhere = None if parts.acts else self.timelines
        self._following = StoreFollower(
            ports.log, ports.store, self.fleet, self.announcements, elsewhere, self.changes
        )
        notes: NoteStore = ports.store if ports.lease is None else ports.lease
        digest = ports.digest(notes) if ports.digest is not None else None
        self._teller = Notifier(
            notes, ports.channels, digest, make_message_routes(settings), confirm=self.confirm_active
        )
        self._began = ports.clock.now()
        self._halted = self.find_halt_reason()
        self._seen: tuple[int, dict[str, Any]] | None = None
        """The number of the change for which the snapshot was built last, and the values derived from that
        snapshot.
        """
        self._building = threading.Lock()
        self.taking_in = threading.Lock()
        """The thread that ingests a delivery of readings holds this lock."""
        recall_from_log(self.log, self.announcements, self.timelines)
        if not parts.scores:  # a scorer does so when it starts
            self.announcements.remember_announced(read_announced(self.store).values())

    @property
    def control(self) -> DrainControl:
        """The drain control of this process. Raises NoCluster."""
        if self._control is None:
            raise NoCluster("No cluster is configured, so nothing can be drained; forecasts go on.")
        return self._control

    @property
    def ready(self) -> bool:
        """True if the forecaster is loaded and every device's history is read back; always true if no disk is
        scored here.
        """
        return self.scorer.ready or not self.parts.scores

    @property
    def deployed_models(self) -> DeployedModels:
        """The models that score disks in this process."""
        return self.scorer.deployed_models

    @property
    def bundle_name(self) -> str | None:
        """The bundle that scores. If other processes score, the bundle of the newest outlook; None if none is
        known.
        """
        if not self.parts.scores:
            return self.derive_from_snapshot("bundle", _heard_of)
        return (
            self.deployed_models.champion.name
            if self.scorer.ready and self.deployed_models.champion
            else None
        )

    @property
    def health(self) -> ForecastHealth | None:
        """The last judgement of the forecast; None before the first judgement."""
        return self.scorer.health

    @property
    def troubles(self) -> dict[str, str]:
        """A sentence for each part that is broken although disks are scored: store, forecast upkeep, channels,
        cluster keys.
        """
        cluster = self._control.troubles if self._control is not None else {}
        damage = self.store.describe_damage()
        own = {"store": damage} if damage else {}
        others = self.other_clusters.describe_troubles(self.clock.now())
        return {**own, **self.scorer.troubles, **self._teller.troubles, **cluster, **others}

    @property
    def is_active(self) -> bool:
        """True if this service does what one of the services on the store does: it is alone, or has the lease."""
        return self.lease is None or self.lease.is_active()

    def require_active(self) -> None:
        """Raise NotActive if another service does what one of the services on the store does."""
        if self.lease is not None:
            self.lease.require_active()

    def confirm_active(self) -> None:
        """Ask the store whether this service is the active one, right before something that must be done once.

        Raises NotActive, and what the store raises.
        """
        if self.lease is not None:
            self.lease.confirm()

    @property
    def service_state(self) -> ServiceState:
        """The role of this service beside the others on the store."""
        return ServiceState(ServiceRole.ALONE) if self.lease is None else self.lease.find_state()

    def step_lease(self) -> None:
        """Renew the lease of the services, take it, or note which service has it. Raises what the store raises."""
        if self.lease is not None and self.lease.step(self._rank()):
            self.changes.notify_change(ChangeKind.STATUS)

    def _rank(self) -> LeaseRank:
        if not self.parts.acts:
            return LeaseRank.SHOWS
        lease = None if self._control is None else self._control.live.lease
        return LeaseRank.LEADS if lease is not None and lease.is_held() else LeaseRank.ACTS

    @property
    def controls_cluster(self) -> bool:
        """True if the controller runs here, and could act at its last poll."""
        acts = self.parts.acts and "controller" not in self.faults
        return acts and self._control is not None and self._control.is_running

    def describe_controller(self) -> str:
        """Return `running`, or `holding: ` with the reason, or that another process controls the cluster."""
        if self._control is None:
            return "holding: no cluster configured, forecasts only"
        if not self.parts.acts:
            halted = self.find_halt_reason()
            return f"holding: halted ({halted})" if halted else self._control.describe_remote_status()
        return self.faults.get("controller") or self._control.describe_status()

    def get_snapshot(self, change: int | None = None) -> FleetSnapshot:
        """Return the snapshot of the fleet; the same object until something changes.

        change: the number of a change about which listeners are notified next.
        """
        return self.derive_from_snapshot(FLEET_SNAPSHOT, lambda snapshot: snapshot, change)

    def derive_from_snapshot(
        self, name: str, build: Callable[[FleetSnapshot], Built], change: int | None = None
    ) -> Built:
        """Return the value that `build` makes of the snapshot. It is built once per change, for any number of
        callers.
        """
        with self._building:
            number = self.changes.number if change is None else change
            if self._seen is None or self._seen[0] < number:
                self._seen = (
                    number,
                    {
                        FLEET_SNAPSHOT: self.fleet.build_snapshot(
                            self.find_halt(), self.lives, self.clock.now()
                        )
                    },
                )
            made = self._seen[1]
            if name not in made:
                made[name] = build(made[FLEET_SNAPSHOT])
            built: Built = made[name]
            return built

    def find_derived(self, name: str) -> Any:
        """Return the value that `derive_from_snapshot` built under `name`, or None if something changed since.
        Never waits.
        """
        return seen[1].get(name) if (seen := self._seen) and seen[0] >= self.changes.number else None

    def find_halt(self) -> Halt | None:
        """Return the halt in the store or in the cluster itself, or None if nothing is halted."""
        return (
            self._control.find_halt()
            if self._control is not None
            else halt_by_person(self.store.halt_reason())
        )

    def find_halt_reason(self) -> str | None:
        """Return the reason of the halt in force, or None."""
        halt = self.find_halt()
        return None if halt is None else halt.reason

    @property
    def has_cluster(self) -> bool:
        """True if a cluster is configured, so that drains are possible."""
        return self._control is not None

    def execute_request(self, request: PersonRequest) -> Drain:
        """Execute a person's request about a drain and notify listeners. Raises NoCluster, and what the request
        raises.
        """
        drain = self.control.execute_request(request)
        self.changes.notify_change(ChangeKind.DRAINS, ChangeKind.OSDS)
        return drain

    def ingest(self, readings: Sequence[Reading]) -> IngestResult:
        """Append readings to the log, which keeps them until they are scored. Raises LogFull; then none was
        accepted.
        """
        now, accepted, refused = self.clock.now(), [], []
        for index, reading in enumerate(readings):
            try:
                accepted.append(
                    Record(reading.device, self._sender.encode_envelope(accept_reading(reading, now)))
                )
            except Refusal as refusal:
                refused.append((index, refusal))
        self.log.append(Topic.READINGS, accepted)
        self.counts["accepted"] += len(accepted)
        self.counts["refused"] += len(refused)
        self._turning.wake_worker()
        return IngestResult(len(accepted), tuple(refused))

    def halt(self, why: str | None, caller: str) -> str | None:
        """Halt everything with a reason, or lift the halt (None). Return the reason that is in force now."""
        halt_with(self._control, self.store, why, caller, self.clock.now())
        self.changes.notify_change(ChangeKind.HALT, ChangeKind.STATUS, ChangeKind.DRAINS)
        return self.find_halt_reason()

    @property
    def halt_places(self) -> tuple[HaltPlace, ...]:
        """The places that keep the halt that is in force; empty if there is none."""
        return places_of(self._control, self.store)

    def record_outcome(self, outcome: Outcome) -> None:
        """Store a statement about the end of a device."""
        self.store.add_outcome(outcome)
        self.lives.update_outcomes(self.store.outcomes())
        self.changes.notify_change(
            ChangeKind.DEVICES, ChangeKind.OSDS, ChangeKind.OUTLOOKS, ChangeKind.STATUS
        )

    def start(self) -> None:
        """Load the forecaster and read its remembered states back. Before that, readings only queue in the log."""
        self.scorer.start(None if self.parts.shares else self.fleet.get_readings())
        self.changes.notify_change(ChangeKind.STATUS)

    def adopt_promoted_models(self) -> bool:
        """Score with the bundles that are promoted now. Return whether champion or challenger changed. Only the
        worker's thread may call.
        """
        changed = self.scorer.adopt_promoted_models()
        if changed:
            self.changes.notify_change(ChangeKind.STATUS)
        return changed

    def update_forecast_health(self) -> bool:
        """Judge the forecast by the drives in service and by their outcomes. Return whether the judgement was
        possible.
        """
        judged = self.scorer.update_forecast_health()
        if judged:
            self.changes.notify_change(ChangeKind.STATUS)
        return judged

    def family_survival(self, device: DeviceId) -> tuple[float, ...] | None:
        """Return the survival curve of this device's family and age on the fixed grid, or None if it is not
        known.
        """
        return self.scorer.find_family_survival(device)

    def step_worker(self) -> WorkerStepResult:
        """Process one batch of readings from the log. Raises NotReady before `start`."""
        worked = self.scorer.step()
        self.waited = worked.waited
        self.counts["worked"] += worked.taken
        self.counts["dead"] += worked.dead
        self.counts["alerts"] += worked.alerts
        if worked.taken or worked.moved:
            alerts = (ChangeKind.ALERTS,) if worked.alerts else ()
            self.changes.notify_change(
                ChangeKind.OSDS, ChangeKind.OUTLOOKS, ChangeKind.DEVICES, ChangeKind.STATUS, *alerts
            )
        return worked

    def step_latencies(self) -> LatencyIngestResult:
        """Process one batch of the hosts' latencies from the log."""
        kept = self.latencies.step()
        self.counts["latencies"] += kept.summaries
        self.counts["latencies_dead"] += kept.dead
        self.counts["latencies_lost"] += kept.lost
        return kept

    def step_others(self) -> None:
        """Apply what other processes stored since the last step."""
        self._following.step()
        self.notice_halt()

    def step_other_clusters(self) -> None:
        """Ask the services of other clusters for their overviews."""
        if self.other_clusters.ask_all(self.clock.now()):
            self.changes.notify_change(ChangeKind.STATUS)

    def build_alert_snapshot(self) -> AlertSnapshot:
        """Build the snapshot from which notifications are made."""
        return build_alert_snapshot(self, self._began)

    def step_telling(self) -> None:
        """Send the notifications that are due, as long as this service is the active one."""
        with suppress(NotActive):
            self._teller.send_notifications(self.build_alert_snapshot())

    @property
    def deliveries(self) -> Mapping[str, Deliveries]:
        """The deliveries of each channel, counted by this process."""
        return self._teller.deliveries

    @property
    def channel_states(self) -> tuple[ChannelState, ...]:
        """The channels of this process, each with its route, deliveries and trouble."""
        return self._teller.states

    def send_test_message(self, channel: str, caller: str) -> None:
        """Send a test message by a channel. Raises KeyError if there is none, NotDelivered, PartlyDelivered."""
        self._teller.send_test(channel, self.clock.now(), f"{caller} asked for a test")

    @property
    def has_channels(self) -> bool:
        """True if any notification channel is configured."""
        return bool(self._teller.deliveries)

    def step_disk_requests(self) -> None:
        """End the overdue requests about disks, and request the self-tests that the schedule has due."""
        self.disk_requests.end_overdue()
        table, now = self.settings.self_tests, self.clock.now()
        if table.short_days is not None or table.long_days is not None:
            request_due_tests(self.store, self.disk_requests, self.get_snapshot(), table, now)

    def step_controller(self) -> None:
        """Run one tick of the controller; nothing without a cluster.

        A controller without a lease in the cluster, as beside the mgr executor, only observes while its service is the
        standby.
        """
        if self._control is None:
            return
        if self._control.live.lease is None and not self.is_active:
            self._control.poll_cluster(self.clock.now())
            return
        if self.parts.shares:
            deployment = model_succession.find_last_deployment(self.store)
            self._note_replacement(deployment.at if deployment and deployment.seen else None)
        if self._control.run_tick(self.clock.now()):
            self.changes.notify_change(ChangeKind.DRAINS, ChangeKind.OSDS, ChangeKind.STATUS)

    def notice_halt(self) -> None:
        """Notify listeners if the halt changed, since a person may set it past the service (in the store, in the
        cluster).

        A halt that only the memory of this process holds is written to the store as soon as the store accepts it.
        """
        write_again(self.store)
        halted = self.find_halt_reason()
        if halted != self._halted:
            self._halted = halted
            self.changes.notify_change(ChangeKind.HALT, ChangeKind.STATUS, ChangeKind.DRAINS)

    def apply_retention(self, *, tidying: bool = True) -> DroppedCounts:
        """Drop what is older than the settings keep. Rows of the store are dropped only if `tidying`."""
        store = self.store if tidying else None
        dropped = drop_expired_data(
            self.log,
            store,
            self.settings.retention,
            self.clock.now(),
            self.scorer.scorebook,
            self._archive,
        )
        if dropped.rows or dropped.records:
            structlog.get_logger().info("dropped what is old", rows=dropped.rows, records=dropped.records)
        return dropped

    def run(self, *, scoring: bool = True) -> None:
        """Start the loops; `stop` ends them. Without `scoring` only the controller works."""
        self._turning.run(scoring=scoring)

    def stop(self, seconds: float = 1.5) -> None:
        """End the loops, disconnect the listeners of the change feed, and give the lease of the services back."""
        self._turning.stop(seconds)
        if self.lease is not None:
            with suppress(StoreRefusal):  # the lease then runs out
                self.lease.release()

    def _note_replacement(self, since: datetime | None) -> None:
        if self._control is not None:
            self._control.new_bundle(since)


def _heard_of(snapshot: FleetSnapshot) -> str | None:
    by_model = (one for one in snapshot.outlooks.values() if one.bundle is not None)
    newest = max(by_model, key=lambda one: one.as_of, default=None)
    return newest.bundle if newest is not None else None
