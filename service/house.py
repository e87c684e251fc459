"""The house: log, store, forecaster and controller put together; stepped by hand or run by loops.

`House` takes ports, so that one composition serves a machine (SQLite, the system's clock) and a simulation.
Every public method may be called from any thread, except that only one thread steps the worker.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from actions.cluster.port import Cluster
from actions.policy import Policy
from data.clock import Clock
from data.drain import Drain, Intent, JournalEntry
from data.ids import DeviceId
from data.log.port import Log, Record, Topic
from data.outcome import Outcome
from data.reading import Reading
from data.refusal import Refusal
from data.scorebook import Scorebook
from data.store.port import Store
from data.wire import accept
from service.alerts import Announcements
from service.changes import Changes, Kind
from service.draining.timeline import Timelines
from service.draining.wishes import NoCluster
from service.fleet import Fleet, Sight
from service.loops import Loops
from service.memory import recall
from service.retention import Dropped, drop
from service.scoring import succession
from service.scoring.forecasting import Forecaster
from service.scoring.lineup import Lineup
from service.scoring.sender import Sender
from service.scoring.shadow import Shadow
from service.scoring.worker import Worked, Worker
from service.settings import Settings

if TYPE_CHECKING:
    from service.draining.control import Control
    from service.scoring.watch import Health

IDLE_SECONDS = 1.0
WATCH_SECONDS = 6 * 3_600.0
DAY_SECONDS = 86_400.0

Built = TypeVar("Built")


class NotReady(Refusal):
    """The forecaster is not loaded yet."""


@dataclass(frozen=True, slots=True)
class Ports:
    """What a house stands on. `forecaster` is called once, late, since it imports heavy packages; it scores until a
    bundle is promoted into the folder `installed`. Without a `scorebook` no bundle is compared with another."""

    log: Log
    store: Store
    clock: Clock
    forecaster: Callable[[], Forecaster[Any]]
    cluster: Cluster | None = None
    installed: Path | None = None
    scorebook: Scorebook | None = None


@dataclass(frozen=True, slots=True)
class DemoRow:
    """One line of the demo's closing table."""

    what: str
    with_predrain: str | float | None
    without: str | float | None


@dataclass(frozen=True, slots=True)
class DemoStatus:
    """How far a demo is; `rows` stay empty until its table stands."""

    day: int
    days: int
    seed: int
    seconds_per_day: float
    note: str
    rows: tuple[DemoRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Ingested:
    """How many readings were accepted, and why the others were not, by their place in the request."""

    accepted: int
    refused: tuple[tuple[int, str], ...] = ()


class House:
    """Everything in one process."""

    def __init__(
        self,
        ports: Ports,
        policy: Policy,
        settings: Settings,
        *,
        demo: Callable[[], DemoStatus | None] | None = None,
    ) -> None:
        self.log, self.store, self.clock = ports.log, ports.store, ports.clock
        self.policy, self.settings, self.demo = policy, settings, demo
        self.changes, self.announcements, self.timelines = Changes(), Announcements(), Timelines()
        self.fleet = Fleet(ports.store)
        self.stale_after = timedelta(hours=2 * settings.forecast.reading_interval_hours)
        self.counts = {"accepted": 0, "refused": 0, "worked": 0, "dead": 0, "alerts": 0}
        self._loops = Loops(lambda: self.changes.tell(Kind.STATUS))
        self.faults = self._loops.faults
        self._sender = Sender("predrain", ports.clock)
        self.lineup, self.scorebook = Lineup(ports.forecaster, ports.installed), ports.scorebook
        self.health: Health | None = None
        self._shadow = Shadow(ports.scorebook) if ports.scorebook is not None else None
        self._unwatched: str | None = None
        self._scoring: tuple[Forecaster[Any] | None, Forecaster[Any] | None] = (None, None)
        self._worker: Worker[Any] | None = None
        self._control: Control | None = None
        if ports.cluster is not None:
            from service.draining.control import (
                Control,  # with numpy, which a start without a cluster does not wait for
            )

            self._control = Control(ports.cluster, ports.store, ports.log, policy, self.fleet, self.timelines)
        self._seen: tuple[int, Sight] | None = None
        self._derived: dict[str, Any] = {}
        self._halted = ports.store.halt_reason()
        self._building = threading.Lock()
        self._arrived = threading.Event()
        recall(self.log, self.announcements, self.timelines)

    @property
    def control(self) -> Control:
        """Who drains. Raises NoCluster."""
        if self._control is None:
            raise NoCluster("No cluster is configured, so nothing can be drained; forecasts go on.")
        return self._control

    @property
    def ready(self) -> bool:
        """Whether the forecaster is loaded and every device's history read back."""
        return self._worker is not None

    @property
    def bundle_name(self) -> str | None:
        """The bundle that scores; None while it is not loaded."""
        return self.lineup.champion.name if self._worker and self.lineup.champion else None

    @property
    def troubles(self) -> dict[str, str]:
        """What is wrong with the forecast's own upkeep, by part, while disks are scored all the same."""
        told = {
            "bundle": self.lineup.trouble,
            "scorebook": self._shadow.trouble if self._shadow else None,
            "watch": self._unwatched,
        }
        return {part: why for part, why in told.items() if why is not None}

    def controlling(self) -> str:
        """`running`, or `holding: ` and why."""
        if self._control is None:
            return "holding: no cluster configured, forecasts only"
        return self.faults.get("controller") or self._control.says()

    def sight(self) -> Sight:
        """Everything known now; the same object until something changes."""
        return self.derived("sight", lambda sight: sight)

    def derived(self, name: str, build: Callable[[Sight], Built]) -> Built:
        """What `build` makes of the sight, made once a change however many ask for it."""
        with self._building:
            number = self.changes.number
            if self._seen is None or self._seen[0] != number:
                self._seen = (number, self.fleet.sight())
                self._derived.clear()
            if name not in self._derived:
                self._derived[name] = build(self._seen[1])
            built: Built = self._derived[name]
            return built

    @property
    def has_cluster(self) -> bool:
        """Whether drains are possible at all."""
        return self._control is not None

    def ask(self, wish: Callable[[Control, datetime], Drain]) -> Drain:
        """A person's wish about a drain, told to who listens. Raises NoCluster, and what the wish raises."""
        drain = wish(self.control, self.clock.now())
        self.changes.tell(Kind.DRAINS, Kind.OSDS)
        return drain

    def propose(self, target: str, caller: str, reason: str, intent: Intent) -> Drain:
        """A person's drain of `osd.N` or of a device, to be approved."""
        return self.ask(lambda control, now: control.propose(target, caller, reason, intent, now))

    def ingest(self, readings: Sequence[Reading]) -> Ingested:
        """Accept readings into the log, where they are never lost. Raises LogFull; then none was accepted."""
        now, accepted, refused = self.clock.now(), [], []
        for index, reading in enumerate(readings):
            try:
                accepted.append(Record(reading.device, self._sender.seal(accept(reading, now))))
            except Refusal as refusal:
                refused.append((index, str(refusal)))
        self.log.append(Topic.READINGS, accepted)
        self.counts["accepted"] += len(accepted)
        self.counts["refused"] += len(refused)
        self._arrived.set()
        return Ingested(len(accepted), tuple(refused))

    def halt(self, why: str | None, caller: str) -> str | None:
        """Halt everything with a reason, or lift the halt (None); returns the reason that stands now."""
        self.store.set_halt(why)
        decided = f"halt: {why}" if why else "lift the halt"
        self.store.add_journal([JournalEntry("halt", self.clock.now(), "", decided, caller=caller)])
        structlog.get_logger().warning("halted" if why else "halt lifted", why=why, caller=caller)
        self.changes.tell(Kind.HALT, Kind.STATUS, Kind.DRAINS)
        return self.store.halt_reason()

    def conclude(self, outcome: Outcome) -> None:
        """Keep a statement about a device's end."""
        self.store.add_outcome(outcome)
        self.changes.tell(Kind.DEVICES)

    def start(self) -> None:
        """Load the forecaster and read back what is remembered; until then readings only queue in the log."""
        self.lineup.follow()
        champion = self.lineup.champion
        assert champion is not None
        worker = Worker(
            self.log,
            self.store,
            self.clock,
            champion,
            self.fleet,
            self.announcements,
            self._sender,
            self._shadow,
        )
        devices = worker.rebuild()
        self._reign(champion)
        self._worker = worker
        structlog.get_logger().info("scoring", bundle=champion.name, devices=devices)
        self.changes.tell(Kind.STATUS)

    def follow(self) -> bool:
        """Score with what is promoted now; returns whether champion or challenger changed. For the worker's thread."""
        if self._worker is None:
            return False
        self.lineup.follow()
        champion = self.lineup.champion
        if champion is None or self._scoring == (champion, self.lineup.challenger):
            return False
        self._reign(champion)
        self._worker.succeed(champion)
        shadowed = self.lineup.challenger.name if self.lineup.challenger else None
        structlog.get_logger().info("scoring", bundle=champion.name, challenger=shadowed)
        self.changes.tell(Kind.STATUS)
        return True

    def watch(self) -> None:
        """Judge the forecast by the drives in service and by what became of drives."""
        from service.scoring.watch import look

        worker, champion = self._worker, self.lineup.champion
        if worker is None or champion is None:
            return
        try:
            found = look(
                champion,
                self.lineup.challenger,
                worker.states(),
                self.scorebook,
                self.store,
                self.clock.now(),
            )
        except Refusal as refusal:
            self._unwatched = str(refusal)
            return
        self.health, self._unwatched = found.after(self.health), None
        self.changes.tell(Kind.STATUS)

    def _reign(self, champion: Forecaster[Any]) -> None:
        """Write a new champion down before its first outlook, so that no proposal rests on it too soon."""
        began = succession.since(self.store, champion.fingerprint, self.clock.now())
        if self._control is not None:
            self._control.new_bundle(began)
        if self._shadow is not None:
            self._shadow.champion, self._shadow.challenger = champion.fingerprint, self.lineup.challenger
        self._scoring = champion, self.lineup.challenger

    def family_survival(self, device: DeviceId) -> tuple[float, ...] | None:
        """How long drives of this device's family and age live, on the fixed grid; None where that is not known."""
        return self._worker.family(device) if self._worker else None

    def step_worker(self) -> Worked:
        """Take one batch from the log. Raises NotReady before `start`."""
        if self._worker is None:
            raise NotReady("The forecaster is not loaded yet; ask again in a few seconds.")
        worked = self._worker.step()
        self.counts["worked"] += worked.taken
        self.counts["dead"] += worked.dead
        self.counts["alerts"] += worked.alerts
        if worked.taken:
            alerts = (Kind.ALERTS,) if worked.alerts else ()
            self.changes.tell(Kind.OSDS, Kind.OUTLOOKS, Kind.DEVICES, Kind.STATUS, *alerts)
        return worked

    def step_controller(self) -> None:
        """Look at the cluster once and do what may be done; nothing without a cluster."""
        if self._control is not None and self._control.step(self.clock.now()):
            self.changes.tell(Kind.DRAINS, Kind.OSDS, Kind.STATUS)

    def retain(self) -> Dropped:
        """Drop what is older than the settings keep."""
        dropped = drop(self.log, self.store, self.settings.retention, self.clock.now(), self.scorebook)
        if dropped.rows or dropped.records:
            structlog.get_logger().info("dropped what is old", rows=dropped.rows, records=dropped.records)
        return dropped

    def run(self) -> None:
        """Start the loops; `stop` ends them."""
        self._loops.begin("worker", self._work)
        self._loops.begin("retention", self._daily)
        self._loops.begin("watch", self._watching)
        if self._control is not None:
            self._loops.begin("controller", self._tick)

    def stop(self, seconds: float = 1.5) -> None:
        """End the loops, let listeners go."""
        self._loops.end()
        self._arrived.set()
        self.changes.close()
        self._loops.join(seconds)

    def _work(self) -> None:
        if self._worker is None:
            self.start()
        self._arrived.clear()
        self._notice_halt()
        self.follow()
        if not self.step_worker().taken:
            self._arrived.wait(IDLE_SECONDS)

    def _notice_halt(self) -> None:
        """`predrain halt` may write the store directly (the service was down); listeners learn it here."""
        halted = self.store.halt_reason()
        if halted != self._halted:
            self._halted = halted
            self.changes.tell(Kind.HALT, Kind.STATUS, Kind.DRAINS)

    def _tick(self) -> None:
        self.step_controller()
        self._loops.wait(self.policy.tick_seconds)

    def _watching(self) -> None:
        self.watch()
        self._loops.wait(WATCH_SECONDS if self.ready else IDLE_SECONDS)

    def _daily(self) -> None:
        self.retain()
        self._loops.wait(DAY_SECONDS)
