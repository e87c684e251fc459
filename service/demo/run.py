"""`predrain demo`: the world with a house that watches, served on loopback, and the world without one."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import date, timedelta
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

from predrain.actions.core.policy import Mode, Policy
from predrain.actions.simulator import ClusterSpec
from predrain.actions.simulator.worlds import world
from predrain.data.clock import SystemClock
from predrain.data.history import EPOCH
from predrain.data.log.memory import MemoryLog
from predrain.data.refusal import Refusal
from predrain.data.scorebook import Scorebook
from predrain.data.store.sqlite import SqliteStore
from predrain.service import tokens
from predrain.service.application import House, Ports
from predrain.service.changes import ChangeKind
from predrain.service.demo.clock import DemoPace
from predrain.service.demo.fleet import DemoFleet, read_histories
from predrain.service.demo.ledger import DemoLedger, table
from predrain.service.demo.world import TICK, Calendar, DemoWorld
from predrain.service.demo_status import DemoRow, DemoStatus
from predrain.service.http_server import Server, bind, url_of
from predrain.service.live_cluster import Live
from predrain.service.settings import Settings
from predrain.service.state_directory import StateDir
from predrain.service.up import forecaster_of

FLEET = Path(__file__).resolve().parents[2] / "data" / "fleets" / "demo.parquet"
WARM_UP = timedelta(days=21)
REMEMBERED = timedelta(days=120)
"""How much history before the first day is read in, where the histories have it."""
WATCH_DAYS = 5
"""The page asks how the forecast fares; a service on a real clock looks every six hours."""
NOTE = (
    "Every disk lives the real life of an ST4000DM000 of 2018 that the bundle has never seen; more of them "
    "die than in a fleet of this size. About 4 in 10 real failures show no sign first: those cannot be foretold."
)


@dataclass(frozen=True, slots=True)
class Demo:
    """What to show."""

    cluster: str = "cisco"
    seed: int = 8
    histories: tuple[Path, ...] = (FLEET,)
    bundle: Path | None = None
    start: date | None = None
    """First day shown; 21 days after the histories begin when None."""
    days: int | None = None
    """Days to show; to the end of the histories when None."""
    mode: Mode = Mode.ACT
    seconds_per_day: float | None = 1.0
    """None runs as fast as it can."""
    note: str = NOTE

    def build(self) -> tuple[DemoWorld, date]:
        """The world and the day on which the histories begin. The same for the same demo."""
        spec = self.spec()
        known = read_histories(self.histories)
        first = EPOCH + timedelta(days=int(known.history.day.min()))
        last = EPOCH + timedelta(days=int(known.spans.last.max()))
        start = self.start or first + WARM_UP
        end = last + timedelta(days=1)
        if self.days is not None:
            end = min(end, start + timedelta(days=self.days))
        disks = [osd.id for osd in spec.osds if osd.device_class == "hdd"]
        fleet = DemoFleet(known, disks, self.seed, start)
        return DemoWorld(spec, fleet, Calendar(start, end), self.seed), first

    @property
    def policy(self) -> Policy:
        """As it ships, but for how often the demo's controller looks: plans tell their time by that."""
        return replace(Policy(), mode=self.mode, tick_seconds=TICK.total_seconds())

    def spec(self) -> ClusterSpec:
        """The simulated cluster. Raises UnknownWorld."""
        return world(self.cluster, self.seed)


@dataclass(frozen=True, slots=True)
class DayTold:
    """One simulated day is over."""

    day: int
    days: int
    date: date
    drains: int
    failed: int
    drained: int


def without_predrain(demo: Demo) -> DemoLedger:
    """The same seed with nobody watching."""
    world_, _ = demo.build()
    for _ in world_.days(None):
        pass
    return closed(world_)


def closed(world_: DemoWorld) -> DemoLedger:
    """The ledger with the cluster's own count of rebuilt bytes."""
    world_.ledger.rebuilt_bytes = world_.cluster.recovered_bytes
    return world_.ledger


def run(
    demo: Demo,
    settings: Settings,
    *,
    served: bool,
    tell: Callable[[str], None],
    day_over: Callable[[DayTold], None],
    table_stands: Callable[[tuple[DemoRow, ...]], None],
) -> None:
    """Run to the end of the calendar. With `served` the page answers meanwhile, and on until Ctrl-C, and commands
    find it by the state directory of `settings`, where nothing but its address and a token is kept.

    Raises what is in the way (a taken port, too few drives, a corrupt bundle) as a Refusal, before it starts.
    """
    with ExitStack() as closing:
        listener = closing.enter_context(bind(settings.service)) if served else None
        tell(f"making the cluster {demo.cluster} and reading the lives of its disks")
        world_, first = demo.build()
        unwatched = Beside(demo)
        note = demo.note
        if (times := world_.fleet.shown_most) > 1:
            note += f" The cluster has more slots than there are drives: a living one is shown up to {times} times."
        status = DemoStatus(0, world_.calendar.days, demo.seed, demo.seconds_per_day or 0.0, note)
        box = [status]
        store = SqliteStore(":memory:")
        closing.callback(store.close)
        scorebook = _scorebook(closing) if served else None
        forecaster, cluster = forecaster_of(demo.bundle), Live(world_.cluster)
        ports = Ports(MemoryLog(), store, world_.clock, forecaster, cluster, scorebook=scorebook)
        house = House(ports, demo.policy, settings, demo=lambda: box[0])
        closing.callback(house.stop)
        house.control.observer.begin_acting()
        world_.warm_up(house, max(first, world_.calendar.start - REMEMBERED))
        if listener is not None:
            closing.callback(_serve(house, listener, closing, tell))
        house.start()
        pace = DemoPace(demo.seconds_per_day)
        for day in world_.days(house, pace.wait):
            box[0] = replace(status, day=day)
            day_over(_told(day, world_, house))
            if served and day % WATCH_DAYS == 0:
                house.watch()
        rows = table(closed(world_), unwatched.ledger())
        box[0] = replace(box[0], rows=rows)
        house.changes.tell(ChangeKind.STATUS)
        table_stands(rows)
        if served:
            tell("the page stays until Ctrl-C")
            threading.Event().wait()


def _scorebook(closing: ExitStack) -> Scorebook:
    folder = closing.enter_context(TemporaryDirectory(prefix="predrain-demo-"))
    scorebook = Scorebook(Path(folder) / "scorebook.sqlite")
    closing.callback(scorebook.close)
    return scorebook


class Beside:
    """The world without predrain, run in a process of its own; it dies with this one."""

    def __init__(self, demo: Demo) -> None:
        context = get_context("spawn")
        self._receiver, sender = context.Pipe(duplex=False)
        self._process = context.Process(target=_send_without, args=(demo, sender), daemon=True)
        self._process.start()
        sender.close()

    def ledger(self) -> DemoLedger:
        """What came of it. Raises BesideFailed."""
        try:
            ledger = self._receiver.recv()
        except EOFError:
            raise BesideFailed(
                "the run without predrain ended without a result; its own message stands above"
            ) from None
        assert isinstance(ledger, DemoLedger)
        return ledger


class BesideFailed(Refusal):
    """The run without predrain broke."""


def _send_without(demo: Demo, sender: Connection) -> None:
    sender.send(without_predrain(demo))


def _serve(
    house: House, listener: socket.socket, closing: ExitStack, tell: Callable[[str], None]
) -> Callable[[], None]:
    """Answer on `listener` in a thread; returns what stops it."""
    once = tokens.new_token()
    state = closing.enter_context(StateDir(house.settings.service.state))
    caller = tokens.Caller("demo", frozenset({tokens.Scope.READ, tokens.Scope.ACT}))
    known = tokens.gather(state.token).adding(once, caller)
    url = url_of(listener, house.settings.service)

    def started() -> None:
        state.url.write_text(url + "\n")
        tell(f"the page: {url}/#token={once}")

    return Server(house, known, listener, started=started, people=SystemClock()).serve_aside()


def _told(day: int, world_: DemoWorld, house: House) -> DayTold:
    drains = [
        drain for drain in house.store.drains() if drain.state.value in ("preparing", "draining", "holding")
    ]
    shown = world_.calendar.start + timedelta(days=day - 1)
    ledger = world_.ledger
    return DayTold(day, world_.calendar.days, shown, len(drains), len(ledger.deaths), len(ledger.emptied))
