"""Figures of the page over 50,000 OSDs whose disks are read every hour, in Debian's Chromium and for a plain reader.

The service runs in a process of its own. Its fleet is in memory: readings and outlooks of some hundred real disks over
and over. Each turn renews four disks, as if a collector had sent them and a worker had judged them. So
the service's processor time is that of the answers, without scoring.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from predrain.data.clock import SystemClock
from predrain.data.log.log_port import Record, Topic
from predrain.data.log.memory_log import MemoryLog
from predrain.data.outlook import Outlook
from predrain.data.reading import Reading
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.app.application import Application
from predrain.service.app.changes import ChangeKind
from predrain.service.fleet.fleet import Fleet
from predrain.service.forecasting.worker import ScoringWorker
from predrain.service.storage.record_sender import RecordSender
from predrain.service.streams.outlook_announcements import Announcements
from tests.bench.figure import Figure, Work
from tests.bench.fleet_view import build_view
from tests.bench.loading import Service
from tests.bench.painting import browse, open_page, visit
from tests.bench.readers import Readers
from tests.bench.stage import drives, quantile, reading

DISKS, A_POST, SAMPLES = 50_000, 4, 600
HOUR_SECONDS = 3_600.0
READER_SECONDS, FRAMES_SECONDS, VISITS = 60.0, 60.0, 5
DRAWN = """
window.inked = null; window.frames = [];
const seen = (list) => { for (const one of list.getEntries()) frames.push([one.startTime, one.duration]); };
new PerformanceObserver(seen).observe({ type: "long-animation-frame", buffered: true });
let last = null;
for (const name of ["fillRect", "fillText", "fill", "stroke"]) {
  const draw = CanvasRenderingContext2D.prototype[name];
  CanvasRenderingContext2D.prototype[name] = function (...given) {
    last = performance.now();
    return draw.apply(this, given);
  };
}
const look = () => { if (last !== null && performance.now() > last + 300) inked = last; else setTimeout(look, 50); };
look();
"""
"""The picture is there with the last stroke after which none comes for 300 ms. Reading the canvas itself would stop the
page for longer than a frame.
"""
MOST_KILOBYTES, FIRST_SECONDS, FRAME_SECONDS = 1_000, 1.5, 0.1


def follow(*, tears: bool) -> Work:
    """The bytes of one reader in a minute, once it has the whole list.

    tears: it requests the whole list again whenever the list changed between two pages of it, as the page once did.
    """
    with serve_large_fleet() as service:
        readers = Readers(service.address, parses=True, tears=tears)
        asyncio.run(
            readers.read(1, 20.0, lambda: None)
        )  # the first list, and rows written for the first time
        readers = Readers(service.address, parses=True, tears=tears)
        spent = service.burnt()
        asyncio.run(readers.read(1, READER_SECONDS, lambda: None))
        spent = service.burnt() - spent
    later = readers.sizes[1:]
    note = (
        f"first list {readers.sizes[0].packed / 1e6:.1f} MB packed, {readers.sizes[0].plain / 1e6:.0f} MB of JSON; "
        f"then {len(later)} rounds, the largest {max((one.plain for one in later), default=0) / 1e3:,.0f} kB of JSON, "
        f"{sum(one.whole for one in later)} of the whole list, {sum(one.plain for one in later) / 1e6:.1f} MB of JSON; "
        f"{100 * spent / READER_SECONDS:.0f} % of a processor in the service; {readers.failed} failed"
    )
    return Work(sum(one.packed for one in later) / 1000, READER_SECONDS, spent, note)


def picture() -> Work:
    """From the address to the first picture, half of the visits, each with nothing cached."""
    with serve_large_fleet() as service, browse() as browser:
        taken = []
        for _visit in range(VISITS):
            page = open_page(browser, DRAWN)
            visit(page, service)
            taken.append(float(page.evaluate("inked")) / 1000)
            page.context.close()
    return Work(1, quantile(taken, 0.5), note=f"fastest {min(taken):.2f} s, slowest {max(taken):.2f} s")


def fetched() -> Work:
    """The browser fetches and parses the first page of the list, and draws nothing."""
    with serve_large_fleet() as service, browse() as browser:
        taken = []
        for _visit in range(VISITS):
            page = browser.new_context().new_page()
            page.goto(f"http://{service.address}/healthz")
            took = page.evaluate("""async () => {
                const began = performance.now();
                await (await fetch("/api/v1/osds")).json();
                return performance.now() - began; }""")
            taken.append(float(took) / 1000)
            page.context.close()
    return Work(1, quantile(taken, 0.5))


def frame(disks: int) -> Work:
    """The longest frame of a minute of hourly readings, from the visit on."""
    with serve_large_fleet(disks) as service, browse() as browser:
        page = open_page(browser, DRAWN)
        visit(page, service)
        first = float(page.evaluate("performance.now()"))
        page.wait_for_timeout(FRAMES_SECONDS * 1_000)
        frames = [(at, took) for at, took in page.evaluate("frames")]
    early = max((took for at, took in frames if at <= first), default=0.0)
    late = [took for at, took in frames if at > first]
    note = f"until the first picture {early:.0f} ms; {len(late)} frames over 50 ms in {FRAMES_SECONDS:.0f} s after it"
    return Work(1, max([early, *late, 50.0]) / 1000, note=note)


@contextmanager
def serve_large_fleet(disks: int = DISKS) -> Iterator[Service]:
    """A service of so many disks, each renewed once an hour, ended with the context."""
    with tempfile.TemporaryDirectory(prefix="predrain-bench-") as folder:
        command = [sys.executable, "-m", "tests.bench.large_fleet", folder, str(disks)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                yield Service(process, Path(folder), process.stdout.readline().strip())
            finally:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(30)
                process.kill()


@dataclass
class RenewedFleet:
    """The readings of a large fleet, and the outlooks of samples of it."""

    application: Application
    readings: Sequence[Reading]
    outlooks: Sequence[Outlook]

    def renew(self, numbers: Sequence[int], at: datetime) -> None:
        """Read these disks again at `at`, and notify listeners."""
        readings = [replace(self.readings[number], taken_at=at, received_at=at) for number in numbers]
        outlooks = [
            replace(self.outlooks[number % len(self.outlooks)], device=one.device, as_of=at)
            for number, one in zip(numbers, readings, strict=True)
        ]
        self.application.fleet.update_newest(readings, outlooks)
        self.application.changes.notify_change(
            ChangeKind.OSDS, ChangeKind.OUTLOOKS, ChangeKind.DEVICES, ChangeKind.STATUS
        )

    def renew_hourly(self, over: threading.Event) -> None:
        """Renew the disks of one post after the other, all within an hour, until `over`."""
        posts = len(self.readings) // A_POST
        turn = 0
        while not over.wait(HOUR_SECONDS / posts):
            first = turn % posts * A_POST
            self.renew(range(first, first + A_POST), datetime.now(UTC))
            turn += 1


def judge_samples(readings: Sequence[Reading]) -> list[Outlook]:
    """Return the outlooks of readings of different disks, by the shipped bundle."""
    from predrain.service.forecasting.bundle_choice import BundledForecaster

    log, store, clock = MemoryLog(), SqliteStore(":memory:"), SystemClock()
    sender, fleet = RecordSender("bench", clock), Fleet(store)
    worker = ScoringWorker(log, store, clock, BundledForecaster.load(), fleet, Announcements(), sender)
    log.append(Topic.READINGS, [Record(one.device, sender.encode_envelope(one)) for one in readings])
    while worker.step().taken:
        pass
    store.close()
    judged = fleet.outlooks()
    return [judged[one.device] for one in readings]


def _serve(folder: Path, disks: int) -> None:
    """Serve until SIGTERM."""
    from predrain.service.config.settings import ServiceTable, Settings
    from predrain.service.http.server import Server, bind_listening_socket, url_of
    from predrain.service.processes.up import open_application
    from predrain.service.runtime import python_runtime

    settings = Settings(service=ServiceTable(port=0, state=folder / "state"))
    listener = bind_listening_socket(settings.service)
    address = url_of(listener, settings.service).removeprefix("http://")
    python_runtime.tune_runtime()
    now, over = datetime.now(UTC), threading.Event()
    readings = [reading(number, smart, now) for number, smart in enumerate(drives(disks))]
    with open_application(settings, lambda _: None, lambda _: None) as built:
        built.application.fleet.update_view(build_view(readings))
        fleet = RenewedFleet(built.application, readings, judge_samples(readings[:SAMPLES]))
        for first in range(0, disks, disks // 60):
            fleet.renew(
                range(first, min(disks, first + disks // 60)),
                now - timedelta(minutes=60 - 60 * first // disks),
            )
        renewing = threading.Thread(target=fleet.renew_hourly, args=(over,))

        def started() -> None:
            built.application.run(scoring=False)
            renewing.start()
            print(address, flush=True)

        Server(built.application, built.known, listener, started=started).serve_here()
        over.set()


def _within(seconds: float) -> Callable[[Work, float], bool]:
    return lambda work, _: work.seconds < seconds


FIGURES = (
    Figure(
        "page: a minute of a reader, 50,000", "kB", lambda: follow(tears=False), lambda: follow(tears=True),
        "the whole list again once it changed between pages", "under 1 MB",
        lambda work, _: work.amount < MOST_KILOBYTES, long=True,
    ),
    Figure(
        "page: first picture, 50,000", "picture", picture, fetched,
        "the first page of the list fetched, nothing drawn", "under 1.5 s", _within(FIRST_SECONDS), long=True,
    ),
    Figure(
        "page: longest frame, 50,000", "frame", lambda: frame(DISKS), lambda: frame(6_000),
        "6,000 disks", "under 100 ms", _within(FRAME_SECONDS), long=True,
    ),
)  # fmt: skip

if __name__ == "__main__":
    _serve(Path(sys.argv[1]), int(sys.argv[2]))
