"""`predrain demo`: the world with an application that acts, served on loopback, and the world without one."""

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

from predrain.actions.core.drain_policy import Mode, Policy
from predrain.actions.simulator import ClusterSpec
from predrain.actions.simulator.worlds import build_world
from predrain.data.clock import SystemClock
from predrain.data.history import EPOCH
from predrain.data.log.memory_log import MemoryLog
from predrain.data.refusal import Refusal
from predrain.data.scorebook import Scorebook
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.access import tokens
from predrain.service.app.application import Application, ApplicationPorts
from predrain.service.app.changes import ChangeKind
from predrain.service.app.demo_status import DemoRow, DemoStatus
from predrain.service.config.settings import Settings
from predrain.service.config.state_directory import StateDir
from predrain.service.demo.demo_clock import DemoPace
from predrain.service.demo.demo_counts import DemoLedger, build_result_table
from predrain.service.demo.demo_fleet import DemoFleet, read_histories
from predrain.service.demo.demo_world import LOOK, Calendar, DemoWorld
from predrain.service.drains.live_cluster import LiveClusterParts
from predrain.service.http.server import Server, bind_listening_socket, url_of
from predrain.service.processes.up import forecaster_of

FLEET = Path(__file__).resolve().parents[2] / "data" / "fleets" / "demo.parquet"
WARM_UP = timedelta(days=21)
REMEMBERED = timedelta(days=120)
"""The history before the first day that is read, as far as the histories have it."""
WATCH_DAYS = 5
"""Days between two judgements of the forecast for the page; a service on a real clock judges every 6 h."""
NOTE = (
    "Every disk lives the real life of an ST4000DM000 of 2018 that the bundle has never seen; more of them "
    "die than in a fleet of this size. About 4 in 10 real failures show no sign first: those cannot be foretold."
)


@dataclass(frozen=True, slots=True)
class Demo:
    """The parameters of a demo."""

    cluster: str = "cisco"
    seed: int = 8
    histories: tuple[Path, ...] = (FLEET,)
    bundle: Path | None = None
    start: date | None = None
    """First day shown; None: 21 days after the histories begin."""
    days: int | None = None
    """Days to show; None: to the end of the histories."""
    mode: Mode = Mode.ACT
    seconds_per_day: float | None = 1.0
    """None runs as fast as possible."""
    note: str = NOTE

    def build_demo_world(self) -> tuple[DemoWorld, date]:
        """Build the world; return it and the day on which the histories begin. The same demo gives the same
        world.
        """
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

    def build_policy(self, tick: timedelta) -> Policy:
        """Return the policy as shipped, except for two times: tick_seconds is the tick of the demo's world, on which
        plans base their times, and a view is recent until the next poll, `LOOK` later while nothing moves.
        """
        return replace(
            Policy(),
            mode=self.mode,
            tick_seconds=tick.total_seconds(),
            view_age_max=LOOK,
        )

    def spec(self) -> ClusterSpec:
        """Build the simulated cluster. Raises UnknownWorld."""
        return build_world(self.cluster, self.seed)


@dataclass(frozen=True, slots=True)
class DaySummary:
    """The counts after one simulated day."""

    day: int
    days: int
    date: date
    drains: int
    failed: int
    drained: int


def without_predrain(demo: Demo) -> DemoLedger:
    """Run the same seed without predrain."""
    world_, _ = demo.build_demo_world()
    for _ in world_.run_days(None):
        pass
    return finish_run_counts(world_)


def finish_run_counts(world_: DemoWorld) -> DemoLedger:
    """Return the counts of a run, with the cluster's own count of rebuilt bytes."""
    world_.ledger.rebuilt_bytes = world_.cluster.recovered_bytes
    return world_.ledger


def run_demo(
    demo: Demo,
    settings: Settings,
    *,
    served: bool,
    tell: Callable[[str], None],
    day_over: Callable[[DaySummary], None],
    table_stands: Callable[[tuple[DemoRow, ...]], None],
) -> None:
    """Run to the end of the calendar.

    With `served` the page answers meanwhile, and afterwards until Ctrl-C. Commands find it by the state directory
    of `settings`, which holds only its address and a token. Raises obstacles (a taken port, too few drives, a
    corrupt bundle) as a Refusal, before the start.
    """
    with ExitStack() as closing:
        listener = closing.enter_context(bind_listening_socket(settings.service)) if served else None
        tell(f"making the cluster {demo.cluster} and reading the lives of its disks")
        world_, first = demo.build_demo_world()
        unwatched = UnprotectedRun(demo)
        note = demo.note
        if (times := world_.fleet.shown_most) > 1:
            note += (
                " The cluster has more slots than there are drives: each drive is shown up to "
                f"{times} times, on other days."
            )
        status = DemoStatus(0, world_.calendar.days, demo.seed, demo.seconds_per_day or 0.0, note)
        box = [status]
        store = SqliteStore(":memory:")
        closing.callback(store.close)
        scorebook = _open_scorebook(closing) if served else None
        forecaster, cluster = forecaster_of(demo.bundle), LiveClusterParts(world_.cluster)
        ports = ApplicationPorts(MemoryLog(), store, world_.clock, forecaster, cluster, scorebook=scorebook)
        application = Application(ports, demo.build_policy(world_.tick), settings, demo=lambda: box[0])
        closing.callback(application.stop)
        application.control.observer.begin_acting()
        world_.warm_up(application, max(first, world_.calendar.start - REMEMBERED))
        if listener is not None:
            closing.callback(_serve_page(application, listener, closing, tell))
        application.start()
        pace = DemoPace(demo.seconds_per_day)
        for day in world_.run_days(application, pace.wait):
            box[0] = replace(status, day=day)
            day_over(_summarize_day(day, world_, application))
            if served and day % WATCH_DAYS == 0:
                application.update_forecast_health()
        rows = build_result_table(finish_run_counts(world_), unwatched.wait_for_result())
        box[0] = replace(box[0], rows=rows)
        application.changes.notify_change(ChangeKind.STATUS)
        table_stands(rows)
        if served:
            tell("the page stays until Ctrl-C")
            threading.Event().wait()


def _open_scorebook(closing: ExitStack) -> Scorebook:
    folder = closing.enter_context(TemporaryDirectory(prefix="predrain-demo-"))
    scorebook = Scorebook(Path(folder) / "scorebook.sqlite")
    closing.callback(scorebook.close)
    return scorebook


class UnprotectedRun:
    """The world without predrain, run in a process of its own, which dies with this one."""

    def __init__(self, demo: Demo) -> None:
        context = get_context("spawn")
        self._receiver, sender = context.Pipe(duplex=False)
        self._process = context.Process(target=_send_without, args=(demo, sender), daemon=True)
        self._process.start()
        sender.close()

    def wait_for_result(self) -> DemoLedger:
        """Return the counts of the run. Raises UnprotectedRunFailed."""
        try:
            ledger = self._receiver.recv()
        except EOFError:
            raise UnprotectedRunFailed(
                "the run without predrain ended without a result; its own message stands above"
            ) from None
        assert isinstance(ledger, DemoLedger)
        return ledger


class UnprotectedRunFailed(Refusal):
    """The run without predrain failed."""


def _send_without(demo: Demo, sender: Connection) -> None:
    sender.send(without_predrain(demo))


def _serve_page(
    application: Application, listener: socket.socket, closing: ExitStack, tell: Callable[[str], None]
) -> Callable[[], None]:
    """Answer on `listener` in a thread; return a function that stops it."""
    once = tokens.new_token()
    state = closing.enter_context(StateDir(application.settings.service.state))
    caller = tokens.Caller("demo", frozenset({tokens.Scope.READ, tokens.Scope.ACT}))
    known = tokens.load_admin_tokens(state.token).with_token(once, caller)
    url = url_of(listener, application.settings.service)

    def started() -> None:
        state.url.write_text(url + "\n")
        tell(f"the page: {url}/#token={once}")

    return Server(application, known, listener, started=started, people=SystemClock()).serve_aside()


def _summarize_day(day: int, world_: DemoWorld, application: Application) -> DaySummary:
    drains = [
        drain
        for drain in application.store.drains()
        if drain.state.value in ("preparing", "draining", "holding")
    ]
    shown = world_.calendar.start + timedelta(days=day - 1)
    ledger = world_.ledger
    return DaySummary(day, world_.calendar.days, shown, len(drains), len(ledger.deaths), len(ledger.emptied))
