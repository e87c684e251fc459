"""The house: log, store, forecaster and controller put together; stepped by hand or run by loops.

`House` takes ports, so that one composition serves a machine (SQLite, the system's clock) and a simulation, and
`ServiceRoles`, so that it serves one process that does everything and several that share the work.
Every public method may be called from any thread, except that only one thread steps the worker.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from predrain.actions.core.policy import Policy
from predrain.data.clock import Clock
from predrain.data.drain import Drain, Intent
from predrain.data.ids import DeviceId
from predrain.data.log.port import Log, Record, Topic
from predrain.data.outcome import Outcome
from predrain.data.reading import Reading
from predrain.data.refusal import Refusal
from predrain.data.scorebook import Scorebook
from predrain.data.store.port import Store
from predrain.data.wire import accept
from predrain.service.changes import ChangeKind, Changes
from predrain.service.demo_status import DemoStatus
from predrain.service.drains.drain_requests import NoCluster
from predrain.service.drains.timeline import Timelines
from predrain.service.fleet import Fleet, FleetSnapshot
from predrain.service.halt import HaltPlace, halt_with, places_of, write_again
from predrain.service.latency_ingest import LatencyIngest, LatencyIngestResult
from predrain.service.lifecycle.book import LifeBook
from predrain.service.live_cluster import Live
from predrain.service.log_recall import recall
from predrain.service.notifications.cause import Scene
from predrain.service.notifications.channel import Deliveries, NotificationChannel
from predrain.service.notifications.daily import Daily
from predrain.service.notifications.notes import Notes
from predrain.service.notifications.notifier import Teller
from predrain.service.notifications.snapshot import Misnamed, scene_of
from predrain.service.outlook_announcements import Announcements
from predrain.service.policy_preview import PolicyPreviewer
from predrain.service.process_sync import Following
from predrain.service.retention import Dropped, drop
from predrain.service.roles import EVERYTHING, ServiceRoles
from predrain.service.scheduler import Turning
from predrain.service.scoring import succession
from predrain.service.scoring.deployed_models import Lineup
from predrain.service.scoring.forecasting import Forecaster
from predrain.service.scoring.scorer import Scorer
from predrain.service.scoring.sender import Sender
from predrain.service.scoring.worked import Worked
from predrain.service.settings import Settings

if TYPE_CHECKING:
    from predrain.service.drains.control import Control
    from predrain.service.scoring.watch import Health

MODEL = "model:"
SIGHT = "sight"
COUNTED = ("accepted", "refused", "worked", "dead", "alerts")
COUNTED_LATENCIES = ("latencies", "latencies_dead", "latencies_lost", "anonymous")

Built = TypeVar("Built")


@dataclass(frozen=True, slots=True)
class Ports:
    """What a house stands on. `forecaster` is called once, late, since it imports heavy packages; it scores until a
    bundle is promoted into the folder `installed`. Without a `scorebook` no bundle is compared with another. `name`
    stands on what is sent: processes that share a log have one each. People are told by `channels`, and once a day by
    a `digest`, which is given the store."""

    log: Log
    store: Store
    clock: Clock
    forecaster: Callable[[], Forecaster[Any]]
    cluster: Live | None = None
    installed: Path | None = None
    scorebook: Scorebook | None = None
    name: str = "predrain"
    channels: Sequence[NotificationChannel] = ()
    digest: Callable[[Notes], Daily] | None = None


@dataclass(frozen=True, slots=True)
class IngestResult:
    """How many readings were accepted, and why the others were not, by their place in the request."""

    accepted: int
    refused: tuple[tuple[int, Refusal], ...] = ()


class House:
    """One process of the service: everything, or the parts that it is given."""

    def __init__(
        self,
        ports: Ports,
        policy: Policy,
        settings: Settings,
        *,
        parts: ServiceRoles = EVERYTHING,
        demo: Callable[[], DemoStatus | None] | None = None,
    ) -> None:
        self.log, self.store, self.clock = ports.log, ports.store, ports.clock
        self.policy, self.settings, self.parts, self.demo = policy, settings, parts, demo
        self.changes, self.announcements, self.timelines = Changes(), Announcements(), Timelines()
        self.misnamed = Misnamed()
        self.fleet = Fleet(ports.store)
        self.stale_after = timedelta(hours=2 * settings.forecast.reading_interval_hours)
        self.lives = LifeBook(ports.store, ports.clock.now(), self.stale_after)
        self.counts: dict[str, int] = dict.fromkeys((*COUNTED, *COUNTED_LATENCIES), 0)
        self.waited: timedelta | None = None
        """How long what the worker judged last had waited; None before its first step."""
        self._turning = Turning(self)
        self.faults = self._turning.faults
        self._sender = Sender(ports.name, ports.clock)
        self.latencies = LatencyIngest(ports.log, ports.store, ports.clock, self._sender)
        self.previews = PolicyPreviewer()
        self._control: Control | None = None
        if ports.cluster is not None:
            from predrain.service.drains.control import Control  # with numpy: a start without need not wait

            self._control = Control(
                ports.cluster, ports.store, ports.log, policy, self.fleet, self.timelines, parts.shares
            )
        self.scorer = Scorer(
            ports.log,
            ports.store,
            ports.clock,
            Lineup(ports.forecaster, ports.installed),
            self.fleet,
            self.announcements,
            self._sender,
            ports.scorebook,
            self._reigns,
            settings.forecast.residence_limits,
            shared=parts.shares,
        )
        elsewhere = None if parts.acts else self.timelines
        self._following = Following(
            ports.log, ports.store, self.fleet, self.announcements, elsewhere, self.changes
        )
        digest = ports.digest(ports.store) if ports.digest is not None else None
        self._teller, self._began = Teller(ports.store, ports.channels, digest), ports.clock.now()
        self._halted = self.halted()
        self._seen: tuple[int, dict[str, Any]] | None = None
        """The number of the change that was seen last, and what was made of the sight then."""
        self._building = threading.Lock()
        self.taking_in = threading.Lock()
        """Held by the thread that takes a delivery of readings in."""
        recall(self.log, self.announcements, self.timelines)

    @property
    def control(self) -> Control:
        """Who drains. Raises NoCluster."""
        if self._control is None:
            raise NoCluster("No cluster is configured, so nothing can be drained; forecasts go on.")
        return self._control

    @property
    def ready(self) -> bool:
        """Whether the forecaster is loaded and every device's history read back, where disks are scored here."""
        return self.scorer.ready or not self.parts.scores

    @property
    def lineup(self) -> Lineup:
        """Who scores here."""
        return self.scorer.lineup

    @property
    def bundle_name(self) -> str | None:
        """The bundle that scores; of bundles that score elsewhere the one heard of last; None while none is known."""
        if not self.parts.scores:
            return self.derived("bundle", _heard_of)
        return self.lineup.champion.name if self.scorer.ready and self.lineup.champion else None

    @property
    def health(self) -> Health | None:
        """How well the forecast does; None before the first look."""
        return self.scorer.health

    @property
    def troubles(self) -> dict[str, str]:
        """What is wrong by part while disks are scored all the same: the forecast's own upkeep, channels to people."""
        cluster = self._control.troubles if self._control is not None else {}
        damage = self.store.describe_damage()
        own = {"store": damage} if damage else {}
        return {**own, **self.scorer.troubles, **self._teller.troubles, **cluster}

    def controlling(self) -> str:
        """`running`, or `holding: ` and why, or that it is elsewhere."""
        if self._control is None:
            return "holding: no cluster configured, forecasts only"
        if not self.parts.acts:
            halted = self.halted()
            return f"holding: halted ({halted})" if halted else self._control.shows()
        return self.faults.get("controller") or self._control.says()

    def sight(self, change: int | None = None) -> FleetSnapshot:
        """Everything known now; the same object until something changes. change: one that is about to be told."""
        return self.derived(SIGHT, lambda sight: sight, change)

    def derived(self, name: str, build: Callable[[FleetSnapshot], Built], change: int | None = None) -> Built:
        """What `build` makes of the sight, made once a change however many ask for it."""
        with self._building:
            number = self.changes.number if change is None else change
            if self._seen is None or self._seen[0] < number:
                self._seen = number, {SIGHT: self.fleet.sight(self.halted(), self.lives, self.clock.now())}
            made = self._seen[1]
            if name not in made:
                made[name] = build(made[SIGHT])
            built: Built = made[name]
            return built

    def made(self, name: str) -> Any:
        """What `derived` made under that name, unless something changed since; else None. Waits for nobody."""
        return seen[1].get(name) if (seen := self._seen) and seen[0] >= self.changes.number else None

    def halted(self) -> str | None:
        """Why everything stands still: halted in the store or in the cluster itself; None when it is not."""
        return self._control.halted() if self._control is not None else self.store.halt_reason()

    @property
    def has_cluster(self) -> bool:
        """Whether drains are possible at all."""
        return self._control is not None

    def ask(self, wish: Callable[[Control, datetime], Drain]) -> Drain:
        """A person's wish about a drain, told to who listens. Raises NoCluster, and what the wish raises."""
        drain = wish(self.control, self.clock.now())
        self.changes.tell(ChangeKind.DRAINS, ChangeKind.OSDS)
        return drain

    def propose(
        self, target: str, caller: str, reason: str, intent: Intent, *, spare_reads: bool = False
    ) -> Drain:
        """A person's drain of `osd.N` or of a device, to be approved."""
        return self.ask(
            lambda control, now: control.propose(target, caller, reason, intent, now, spare_reads=spare_reads)
        )

    def ingest(self, readings: Sequence[Reading]) -> IngestResult:
        """Accept readings into the log, where they are never lost. Raises LogFull; then none was accepted."""
        now, accepted, refused = self.clock.now(), [], []
        for index, reading in enumerate(readings):
            try:
                accepted.append(Record(reading.device, self._sender.seal(accept(reading, now))))
            except Refusal as refusal:
                refused.append((index, refusal))
        self.log.append(Topic.READINGS, accepted)
        self.counts["accepted"] += len(accepted)
        self.counts["refused"] += len(refused)
        self._turning.nudge()
        return IngestResult(len(accepted), tuple(refused))

    def halt(self, why: str | None, caller: str) -> str | None:
        """Halt everything with a reason, or lift the halt (None); returns the reason that stands now."""
        halt_with(self._control, self.store, why, caller, self.clock.now())
        self.changes.tell(ChangeKind.HALT, ChangeKind.STATUS, ChangeKind.DRAINS)
        return self.halted()

    @property
    def halt_places(self) -> tuple[HaltPlace, ...]:
        """Where the halt that stands is kept; empty when none stands."""
        return places_of(self._control, self.store)

    def conclude(self, outcome: Outcome) -> None:
        """Keep a statement about a device's end."""
        self.store.add_outcome(outcome)
        self.lives.hear(self.store.outcomes())
        self.changes.tell(ChangeKind.DEVICES, ChangeKind.OSDS, ChangeKind.OUTLOOKS, ChangeKind.STATUS)

    def start(self) -> None:
        """Load the forecaster and read back what is remembered; until then readings only queue in the log."""
        self.scorer.start(whole=not self.parts.shares)
        self.changes.tell(ChangeKind.STATUS)

    def follow(self) -> bool:
        """Score with what is promoted now; returns whether champion or challenger changed. For the worker's thread."""
        changed = self.scorer.follow()
        if changed:
            self.changes.tell(ChangeKind.STATUS)
        return changed

    def watch(self) -> bool:
        """Judge the forecast by the drives in service and by what became of drives; whether it could be."""
        judged = self.scorer.watch()
        if judged:
            self.changes.tell(ChangeKind.STATUS)
        return judged

    def family_survival(self, device: DeviceId) -> tuple[float, ...] | None:
        """How long drives of this device's family and age live, on the fixed grid; None where that is not known."""
        return self.scorer.family(device)

    def step_worker(self) -> Worked:
        """Take one batch from the log. Raises NotReady before `start`."""
        worked = self.scorer.step()
        self.waited = worked.waited
        self.counts["worked"] += worked.taken
        self.counts["dead"] += worked.dead
        self.counts["alerts"] += worked.alerts
        if worked.taken or worked.moved:
            alerts = (ChangeKind.ALERTS,) if worked.alerts else ()
            self.changes.tell(
                ChangeKind.OSDS, ChangeKind.OUTLOOKS, ChangeKind.DEVICES, ChangeKind.STATUS, *alerts
            )
        return worked

    def step_latencies(self) -> LatencyIngestResult:
        """Take one batch of hosts' latencies from the log."""
        kept = self.latencies.step()
        self.counts["latencies"] += kept.summaries
        self.counts["latencies_dead"] += kept.dead
        self.counts["latencies_lost"] += kept.lost
        return kept

    def step_others(self) -> None:
        """Take over what other processes stored since the last step."""
        self._following.step()
        self.notice_halt()

    def scene(self) -> Scene:
        """All of which people may have to hear."""
        return scene_of(self, self._began)

    def step_telling(self) -> None:
        """Tell people what is news."""
        self._teller.look(self.scene())

    @property
    def deliveries(self) -> Mapping[str, Deliveries]:
        """What each channel was given by this process."""
        return self._teller.deliveries

    @property
    def tells(self) -> bool:
        """Whether there is any way to tell people."""
        return bool(self._teller.deliveries)

    def step_controller(self) -> None:
        """Look at the cluster once and do what may be done; nothing without a cluster."""
        if self._control is None:
            return
        if self.parts.shares:
            reign = succession.reign(self.store)
            self._reigns(reign.at if reign and reign.seen else None)
        if self._control.step(self.clock.now()):
            self.changes.tell(ChangeKind.DRAINS, ChangeKind.OSDS, ChangeKind.STATUS)

    def notice_halt(self) -> None:
        """A halt may come past the service (into the store, into the cluster); listeners learn it here. One that only
        memory has goes into the store as soon as that takes it."""
        write_again(self.store)
        halted = self.halted()
        if halted != self._halted:
            self._halted = halted
            self.changes.tell(ChangeKind.HALT, ChangeKind.STATUS, ChangeKind.DRAINS)

    def retain(self, *, tidying: bool = True) -> Dropped:
        """Drop what is older than the settings keep; of the store only when `tidying`."""
        store = self.store if tidying else None
        dropped = drop(self.log, store, self.settings.retention, self.clock.now(), self.scorer.scorebook)
        if dropped.rows or dropped.records:
            structlog.get_logger().info("dropped what is old", rows=dropped.rows, records=dropped.records)
        return dropped

    def run(self, *, scoring: bool = True) -> None:
        """Start the loops; `stop` ends them. Without `scoring` only the controller works."""
        self._turning.run(scoring=scoring)

    def stop(self, seconds: float = 1.5) -> None:
        """End the loops, let listeners go."""
        self._turning.stop(seconds)

    def _reigns(self, since: datetime | None) -> None:
        if self._control is not None:
            self._control.new_bundle(since)


def _heard_of(sight: FleetSnapshot) -> str | None:
    by_model = (one for one in sight.outlooks.values() if one.source.startswith(MODEL))
    newest = max(by_model, key=lambda one: one.as_of, default=None)
    return newest.source.removeprefix(MODEL) if newest is not None else None
