"""Figures of the page in Debian's Chromium, over `predrain up` as it ships, with 450 and 6,000 disks.

The browser, the service and the program that sends readings share this machine. A picture is there when the map's
canvas has ink. A frame is a long animation frame of the browser. Every visit is a browser context of its own, with
nothing cached.
"""

from __future__ import annotations

import gzip
import http.client
import json
import threading
import time
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from playwright.sync_api import Browser, Page

from predrain.data.clock import SystemClock
from predrain.data.reading import Reading, Unreadable
from predrain.service.rest.page_files import DIST
from predrain.service.storage.record_sender import RecordSender
from tests.bench.figure import Figure, MissingInput, Work
from tests.bench.loading import Hosts, Service, serving
from tests.bench.stage import NOW, drives, quantile, reading

VISITS, STREAM_SECONDS, IDLE_SECONDS, TURNS = 7, 20.0, 40.0, 20
WEIGHT_KB, FIRST_SECONDS, FRAME_MS = 250, 1.0, 100.0
WATCH = """
window.inked = null; window.frames = []; window.changed = null;
const seen = (list) => { for (const one of list.getEntries()) frames.push([one.startTime, one.duration]); };
new PerformanceObserver(seen).observe({ type: "long-animation-frame", buffered: true });
const ink = () => {
  const sheet = document.querySelector(".map canvas");
  if (!sheet || sheet.width < 300) return null;
  const pixels = new Uint32Array(sheet.getContext("2d").getImageData(0, 0, sheet.width, sheet.height).data.buffer);
  let sum = 0;
  for (const pixel of pixels) sum = (sum * 31 + pixel) | 0;
  return sum;
};
let blank = null;
const first = () => {
  const sum = ink();
  if (sum !== null && sum !== 0) inked = performance.now(); else requestAnimationFrame(first);
};
requestAnimationFrame(first);
window.await_change = () => {
  const before = ink(); window.changed = null;
  const look = () => { if (ink() !== before) changed = Date.now(); else requestAnimationFrame(look); };
  requestAnimationFrame(look);
};
"""


def weight() -> Work:
    """Measure the packed bytes of the page's own files that the first visit loads, in kB."""
    with serving(450) as service, browse() as browser:
        page = open_page(browser)
        sizes: list[int] = []
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        kinds: dict[str, bool] = {}
        session.on(
            "Network.responseReceived",
            lambda told: kinds.update({told["requestId"]: "/api/" not in told["response"]["url"]}),
        )
        session.on(
            "Network.loadingFinished",
            lambda told: (
                sizes.append(int(told["encodedDataLength"])) if kinds.get(told["requestId"]) else None
            ),
        )
        visit(page, service)
        page.wait_for_load_state("load")
    return Work(sum(sizes) / 1000, 1.0, note=f"{len(sizes)} files, headers included")


def unpacked() -> Work:
    """The same files as they lie there."""
    files = [file for file in DIST.rglob("*") if file.is_file()]
    packed = sum(len(gzip.compress(file.read_bytes(), 9)) for file in files)
    return Work(
        sum(file.stat().st_size for file in files) / 1000, 1.0, note=f"gzip -9: {packed / 1000:.0f} kB"
    )


def pictured(devices: int) -> Work:
    """From the address to the first picture, half of the visits."""
    with _told(devices) as (service, _), browse() as browser:
        taken = []
        for _visit in range(VISITS):
            page = open_page(browser)
            visit(page, service)
            taken.append(float(page.evaluate("inked")) / 1000)
            page.context.close()
    note = f"fastest {min(taken):.2f} s, slowest {max(taken):.2f} s"
    return Work(1, quantile(taken, 0.5), note=note)


def fetched(devices: int) -> Work:
    """The browser fetches and parses the same list of OSDs, and draws nothing."""
    with _told(devices) as (service, _), browse() as browser:
        taken = []
        for _visit in range(VISITS):
            page = browser.new_context().new_page()
            page.goto(f"http://{service.address}/healthz")
            taken.append(
                float(
                    page.evaluate("""async () => {
                const began = performance.now();
                await (await fetch("/api/v1/osds")).json();
                return performance.now() - began; }""")
                )
                / 1000
            )
            page.context.close()
    return Work(1, quantile(taken, 0.5))


def streamed(a_second: int) -> Work:
    """The longest frame while so many readings a second come in, once the first picture stands."""
    with _told(6_000) as (service, hosts), browse() as browser:
        page = open_page(browser)
        visit(page, service)
        page.wait_for_timeout(3_000)
        since = float(page.evaluate("performance.now()"))
        sending = threading.Thread(target=hosts.send, args=(STREAM_SECONDS, a_second))
        before, began = service.worked(), time.monotonic()
        if a_second:
            sending.start()
        page.wait_for_timeout(STREAM_SECONDS * 1_000)
        rate = (service.worked() - before) / (time.monotonic() - began)
        frames = [took for at, took in page.evaluate("frames") if at > since]
        if a_second:
            sending.join()
    note = (
        f"{len(frames)} frames over 50 ms in {STREAM_SECONDS:.0f} s; {rate:,.0f} readings/s judged meanwhile"
    )
    return Work(1, max(frames, default=50.0) / 1000, note=note)


def painted() -> Work:
    """From the answer to a reading that was stored to the map that shows it, half of the readings."""
    with _told(6_000) as (service, _), browse() as browser:
        page = open_page(browser)
        visit(page, service, "fleet?by=age")  # a disk that cannot be read tells no age
        page.wait_for_timeout(3_000)
        taken = []
        for turn in range(TURNS):
            page.evaluate("await_change()")
            stored = _unreadable(service, turn)
            page.wait_for_function("() => changed !== null")
            taken.append(float(page.evaluate("changed")) / 1000 - stored)
            page.wait_for_timeout(1_500)
    return Work(1, quantile(taken, 0.5), note=f"slowest of {TURNS}: {max(taken):.2f} s")


def listed() -> Work:
    """The same until `GET osds` says so, asked again and again."""
    with _told(6_000) as (service, _):
        taken = []
        for turn in range(TURNS):
            stored = _unreadable(service, turn)
            connection = http.client.HTTPConnection(service.address, timeout=60)
            while (
                json.loads(gzip.decompress(service.ask(connection, "/api/v1/osds")))["items"][turn][
                    "unreadable"
                ]
                is None
            ):
                pass
            taken.append(time.time() - stored)
    return Work(1, quantile(taken, 0.5), note=f"slowest of {TURNS}: {max(taken):.2f} s")


def idle() -> Work:
    """Measure the traffic of an open page where nothing happens: kB in IDLE_SECONDS, headers included."""
    with _told(6_000) as (service, _), browse() as browser:
        page = open_page(browser)
        visit(page, service)
        page.wait_for_timeout(5_000)
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        loaded: dict[str, int] = defaultdict(int)

        def received(told: dict[str, Any]) -> None:  # of the event stream, which never ends
            loaded[told["requestId"]] += int(told["encodedDataLength"])

        def ended(told: dict[str, Any]) -> None:
            loaded[told["requestId"]] = int(told["encodedDataLength"])

        session.on("Network.dataReceived", received)
        session.on("Network.loadingFinished", ended)
        page.wait_for_timeout(IDLE_SECONDS * 1_000)
        total = sum(loaded.values())
    return Work(total / 1000, IDLE_SECONDS, note=f"{total / IDLE_SECONDS:,.0f} bytes/s")


def polled() -> Work:
    """A page that asks for all OSDs every ten seconds."""
    with _told(6_000) as (service, _):
        connection = http.client.HTTPConnection(service.address, timeout=60)
        size = len(service.ask(connection, "/api/v1/osds"))
    return Work(size / 1000 * IDLE_SECONDS / 10, IDLE_SECONDS, note=f"{size / 10:,.0f} bytes/s")


def _unreadable(service: Service, number: int) -> float:
    """Disk `number` can no longer be read, says its host; when that was answered, in seconds since 1970."""
    now = datetime.now(UTC)
    before = reading(number, drives(number + 1)[number], NOW)
    lost = Reading(before.device, before.host, now, now, Unreadable(now, "the device could not be opened"))
    request = urllib.request.Request(
        f"http://{service.address}/api/v1/readings",
        b"[" + RecordSender("bench", SystemClock()).encode_envelope(lost) + b"]",
        {"Authorization": f"Bearer {service.token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert json.load(answer)["accepted"] == 1
    return time.time()


@contextmanager
def _told(devices: int) -> Iterator[tuple[Service, Hosts]]:
    """A service that has judged every disk once."""
    with serving(devices) as service:
        hosts = Hosts(service.address, service.token, devices)
        hosts.once(service)
        yield service, hosts


@contextmanager
def browse() -> Iterator[Browser]:
    """Debian's Chromium. Raises MissingInput."""
    from tests.system.browsing import CHROMIUM, chromium

    if not CHROMIUM.exists():
        raise MissingInput("Chromium is not installed: apt-get install chromium")
    if not (DIST / "index.html").is_file():
        raise MissingInput("the page is not built: make setup")
    with chromium() as browser:
        yield browser


def open_page(browser: Browser, watch: str = WATCH) -> Page:
    """A page in a browser context of its own, with nothing cached, that notes its frames and its first picture."""
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    page.add_init_script(watch)
    page.set_default_timeout(120_000)
    return page


def visit(page: Page, service: Service, view: str = "fleet") -> None:
    """Open a view, and wait for the map's first picture."""
    page.goto(f"http://{service.address}/{view}")
    page.wait_for_function("() => inked !== null")


def _within(seconds: float) -> Callable[[Work, float], bool]:
    return lambda work, _: work.seconds < seconds


FIGURES = (
    Figure(
        "page: weight", "kB", weight, unpacked, "not packed", "under 250 kB", lambda work, _: work.amount < WEIGHT_KB,
    ),
    Figure(
        "page: first picture, 450", "picture", lambda: pictured(450), lambda: fetched(450),
        "the list fetched, nothing drawn", "under 1 s", _within(FIRST_SECONDS),
    ),
    Figure(
        "page: first picture, 6,000", "picture", lambda: pictured(6_000), lambda: fetched(6_000),
        "the list fetched, nothing drawn", "under 1 s", _within(FIRST_SECONDS),
    ),
    Figure(
        "page: longest frame, 500 readings/s", "frame", lambda: streamed(500), lambda: streamed(0),
        "no readings", "under 100 ms", _within(FRAME_MS / 1000),
    ),
    Figure(
        "page: reading to pixel", "reading", painted, listed, "until GET osds says it", "under 2 s", _within(2.0),
    ),
    Figure(
        "page: idle reader", "kB", idle, polled, "all OSDs every 10 s", "under 1 kB/s",
        lambda work, _: work.rate < 1,
    ),
)  # fmt: skip
