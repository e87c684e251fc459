"""The house: log, store, forecaster and controller put together; stepped by hand or run by loops.

`House` takes ports, so that one composition serves a machine (SQLite, the system's clock) and a simulation.
Every public method may be called from any thread, except that only one thread steps the worker.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from actions.cluster.port import Cluster
from actions.policy import Policy
from data.clock import Clock
from data.drain import Drain, Intent, JournalEntry
from data.ids import DeviceId
from data.log.port import Log, Record, Topic
from data.outcome import Outcome
from data.outlook import Outlook
from data.reading import Reading
from data.refusal import Refusal
from data.store.port import Store
from data.wire import accept, decode
from service.alerts import Announcements
from service.changes import Changes, Kind
from service.draining.timeline import Timelines, parse
from service.draining.wishes import NoCluster
from service.fleet import Fleet, Sight
from service.scoring import succession
from service.scoring.forecasting import Forecaster
from service.scoring.sender import Sender
from service.scoring.worker import Worked, Worker
from service.settings import Settings

if TYPE_CHECKING:
    from service.draining.control import Control

MEMORY = "memory"
"""The log's group under which a start reads what it once told: announcements and drains' curves."""
MEMORY_LIMIT = 50_000
IDLE_SECONDS = 1.0
FAULT_SECONDS = 5.0

Built = TypeVar("Built")


class NotReady(Refusal):
    """The forecaster is not loaded yet."""


@dataclass(frozen=True, slots=True)
class Ports:
    """What a house stands on. `forecaster` is called once, late, since it imports heavy packages."""

    log: Log
    store: Store
    clock: Clock
    forecaster: Callable[[], Forecaster[Any]]
    cluster: Cluster | None = None


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
        self.faults: dict[str, str] = {}
        """What is broken now, by loop: a sentence."""
        self._sender = Sender("predrain", ports.clock)
        self._load = ports.forecaster
        self._worker: Worker[Any] | None = None
        self._forecaster: Forecaster[Any] | None = None
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
        self._stopping, self._arrived = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []
        self._recall()

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
        return self._forecaster.name if self._forecaster else None

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
        forecaster = self._load()
        worker = Worker(
            self.log, self.store, self.clock, forecaster, self.fleet, self.announcements, self._sender
        )
        devices = worker.rebuild()
        if self._control is not None:
            self._control.new_bundle(succession.since(self.log, forecaster.fingerprint, self.clock.now()))
        self._forecaster, self._worker = forecaster, worker
        structlog.get_logger().info("scoring", bundle=forecaster.name, devices=devices)
        self.changes.tell(Kind.STATUS)

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

    def run(self) -> None:
        """Start the loops; `stop` ends them."""
        loops = [("worker", self._work)]
        if self._control is not None:
            loops.append(("controller", self._tick))
        for name, loop in loops:
            thread = threading.Thread(target=self._holding_up, args=(name, loop), name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self, seconds: float = 1.5) -> None:
        """End the loops, let listeners go. A thread that is late is left: all it does is resumable."""
        self._stopping.set()
        self._arrived.set()
        self.changes.close()
        deadline = monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - monotonic()))

    def _recall(self) -> None:
        """Read back what earlier processes announced and how their drains ran."""
        for record_ in self.log.read(Topic.OUTLOOKS, MEMORY, MEMORY_LIMIT):
            try:
                self.announcements.take(self.announcements.news([decode(record_.value, Outlook).body]))
            except Refusal as refusal:
                structlog.get_logger().warning("an announcement cannot be read", why=str(refusal))
        for record_ in self.log.read(Topic.ACTIONS, MEMORY, MEMORY_LIMIT):
            if record_.key == succession.KEY:
                continue
            try:
                self.timelines.take([parse(record_)])
            except Refusal as refusal:
                structlog.get_logger().warning("a drain's sample cannot be read", why=str(refusal))

    def _work(self) -> None:
        if self._worker is None:
            self.start()
        self._arrived.clear()
        self._notice_halt()
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
        self._stopping.wait(self.policy.tick_seconds)

    def _holding_up(self, name: str, loop: Callable[[], None]) -> None:
        """Repeat `loop` until the house stops; what goes wrong is told and tried again."""
        while not self._stopping.is_set():
            try:
                loop()
                if self.faults.pop(name, None):
                    self.changes.tell(Kind.STATUS)
            except Exception as error:  # noqa: BLE001  (a loop outlives every fault)
                told = (
                    str(error)
                    if isinstance(error, Refusal)
                    else f"unexpected {type(error).__name__}: {error}"
                )
                if self.faults.get(name) != told:
                    structlog.get_logger().error(
                        f"{name} failed", why=told, exc_info=not isinstance(error, Refusal)
                    )
                self.faults[name] = told
                self.changes.tell(Kind.STATUS)
                self._stopping.wait(FAULT_SECONDS)
