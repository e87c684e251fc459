"""Figures of REST: how long each view's answer takes over HTTP while devices change, and how many bytes it is.

A service in a process of its own holds a fleet of N devices under N OSDs; four times a second 250 of them say
something new. One reader on one connection asks for each view by turns, packed. The baseline is the same server with
the same bytes ready in memory.
"""

from __future__ import annotations

import gzip
import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from predrain.actions.cluster.cluster_view import ClusterView, Osd
from predrain.actions.core.drain_policy import Policy
from predrain.actions.crush.crush_map import CrushMap
from predrain.data.clock import SystemClock
from predrain.data.drain import Drain, DrainState, Intent, Mechanic, Move, Plan
from predrain.data.ids import DeviceId, HostName, OsdId, PgId
from predrain.data.log.memory_log import MemoryLog
from predrain.data.outlook import GRID_DAYS, Advice, Life, Outlook, Reason, Status, SurvivalCurve
from predrain.data.reading import Attribute, Counters, Identity, Protocol, Reading, Smart
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.app.application import Application, ApplicationPorts
from predrain.service.app.changes import ChangeKind
from predrain.service.config.settings import ServiceTable, Settings
from tests.bench.figure import Figure, Work
from tests.bench.stage import quantile

ROUNDS, CHANGED, EVERY_SECONDS = 60, 250, 0.25
FOLLOWED, GZIP = "api/v1/osds?since=AT", b"\x1f\x8b"
VIEWS = (
    "api/v1/status", "api/v1/osds", FOLLOWED, "api/v1/devices", "api/v1/devices/DEVICE",
    "api/v1/devices/DEVICE/history", "api/v1/devices/DEVICE/attributes", "api/v1/models",
    "api/v1/outlooks", "api/v1/causes", "api/v1/drains", "api/v1/alerts",
    "api/v1/forecast", "metrics",
)  # fmt: skip
AIM_SECONDS = 0.1


def answered(devices: int) -> Work:
    """Every view over and over."""
    with _serving("house", devices) as (address, process):
        connection = http.client.HTTPConnection(address, timeout=120)
        taken: dict[str, list[float]] = {view: [] for view in VIEWS}
        sizes, burnt, at = dict.fromkeys(VIEWS, 0), dict.fromkeys(VIEWS, 0.0), ""
        for round_ in range(ROUNDS + 2):  # the first two make what is then kept
            for view in VIEWS:
                path = view.replace("DEVICE", _device(devices // 2)).replace("AT", at)
                burnt_before, began = _burnt(process), time.perf_counter()
                connection.request("GET", f"/{path}", headers={"Accept-Encoding": "gzip"})
                answer = connection.getresponse()
                body = answer.read()
                seconds = time.perf_counter() - began
                assert answer.status == 200, (view, answer.status, body[:200])
                if view == FOLLOWED:
                    at = json.loads(gzip.decompress(body) if body[:2] == GZIP else body)["at"]
                sizes[view] = len(body)
                if round_ >= 2:
                    taken[view].append(seconds * 1000)
                    burnt[view] += _burnt(process) - burnt_before
        connection.close()
    p99 = quantile(taken["api/v1/devices"], 0.99) / 1000
    told = (
        f"{view.removeprefix('api/v1/').lower()} {quantile(times, 0.5):.0f}/{quantile(times, 0.99):.0f}, "
        f"{burnt[view] / ROUNDS * 1000:.0f}, {sizes[view] / 1000:.1f}"
        for view, times in taken.items()
    )
    return Work(1.0, p99, p99, f"p50/p99 ms, ms of processor, kB: {'; '.join(told)}")


def bare(devices: int) -> Work:
    """`GET devices` from a bare server of the same kind, which has the same bytes in memory, as often."""
    with _serving("house", devices) as (address, _):
        connection = http.client.HTTPConnection(address, timeout=120)
        connection.request("GET", "/api/v1/devices", headers={"Accept-Encoding": "gzip"})
        content = connection.getresponse().read()
        connection.close()
    with _serving("bytes", devices, content) as (address, _):
        connection, times = http.client.HTTPConnection(address, timeout=120), list[float]()
        for _ in range(ROUNDS):
            began = time.perf_counter()
            connection.request("GET", "/")
            connection.getresponse().read()
            times.append(time.perf_counter() - began)
        connection.close()
    p99 = quantile(times, 0.99)
    return Work(1.0, p99, p99, f"{len(content) / 1000:.1f} kB")


@contextmanager
def _serving(what: str, devices: int, content: bytes = b"") -> Iterator[tuple[str, int]]:
    """Address and process of such a server, ended with the context."""
    command = [sys.executable, "-m", "tests.bench.answering", what, str(devices)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(content)
            process.stdin.close()
            yield process.stdout.readline().decode().strip(), process.pid
        finally:
            process.terminate()


def _burnt(process: int) -> float:
    """Processor seconds of a process until now; what streams in meanwhile is among them."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _device(number: int) -> str:
    return f"ST4000DM000_Z{number:07d}"


def fleet(folder: Path, devices: int) -> Application:
    """Return an application that knows so many devices, each under an OSD, and start a thread that changes them.

    One device in forty is bad, and at most twenty of the bad devices drain.
    """
    clock, now = SystemClock(), SystemClock().now()
    store = SqliteStore(folder / "store.sqlite")
    why = Reason("pending-rose", "Pending sectors rose on 5 of the last 7 days, 0 to 48.", "pending")
    raw = {5: 0, 9: 20_000, 187: 0, 188: 0, 193: 1000, 194: 28, 197: 0, 198: 0, 199: 0}
    readings, outlooks, osds = [], [], {}
    for number in range(devices):
        name, host, sick = DeviceId(_device(number)), HostName(f"stor-{number // 45:04d}"), number % 40 == 0
        identity = Identity(model="ST4000DM000", serial=f"Z{number:07d}", capacity_bytes=4_000_787_030_016)
        counters = Counters(reallocated=0, pending=48 if sick else 0, reported_uncorrectable=0, crc_errors=0)
        attributes = {id_: Attribute(f"smart_{id_}", value) for id_, value in raw.items()}
        seen = Smart(
            Protocol.ATA, identity, True, counters=counters, attributes=attributes, power_on_hours=20_000
        )
        readings.append(Reading(name, host, now, now, seen))
        outlooks.append(
            Outlook(
                name,
                now,
                Status.BAD if sick else Status.GOOD,
                "model:default",
                (why,),
                Advice.DRAIN_NOW.sentence,
                0.1,
                0.2,
                0.31 if sick else 0.004,
                SurvivalCurve(0.999**day for day in GRID_DAYS),
                Life(9, 40, 800),
                advice=Advice.DRAIN_NOW if sick else Advice.NOTHING,
            )
        )
        osds[OsdId(number)] = Osd(
            OsdId(number), host, f"rack-{number // 900}", name, True, 1.0, 3.6,
            size_bytes=4_000_000_000_000, used_bytes=2_000_000_000_000 + number, model="ST4000DM000",
        )  # fmt: skip
    store.add_readings(readings[::50])
    for number in range(0, min(devices, 800), 40):
        moves = tuple(
            Move(PgId(f"3.{pg:x}"), OsdId(number), OsdId(number + 1 + pg % 30), 10**10) for pg in range(150)
        )
        plan = Plan(Mechanic.UPMAP_WALK, "it can", 7, moves, OsdId(3), 0.7, 0.6, 20.0)
        store.save_drain(
            Drain(
                f"osd.{number}",
                DeviceId(_device(number)),
                (OsdId(number),),
                DrainState.DRAINING,
                Intent.REPLACE,
                "bench",
                "it is bad",
                now,
                now,
                1,
                plan,
            )
        )
    settings = Settings(service=ServiceTable(port=0, state=folder))
    application = Application(ApplicationPorts(MemoryLog(), store, clock, _no_forecaster), Policy(), settings)
    application.fleet.update_newest(readings, outlooks)
    crush = CrushMap.__new__(CrushMap)  # no answer that is measured here looks into it
    application.fleet.update_view(ClusterView(now, 7, "reef", osds, {}, {}, crush, {}))

    change = partial(_change_forever, application, readings, outlooks, devices, now)
    threading.Thread(target=change, daemon=True).start()
    return application


def _change_forever(
    application: Application, readings: list[Reading], outlooks: list[Outlook], devices: int, now: datetime
) -> None:
    random_at, turn = 0, 0
    while True:
        time.sleep(EVERY_SECONDS)
        turn += 1
        chosen = [(random_at + place) % devices for place in range(min(CHANGED, devices))]
        random_at = (random_at + CHANGED) % devices
        at = now + timedelta(seconds=turn)
        application.fleet.update_newest(
            [replace(readings[one], taken_at=at) for one in chosen],
            [replace(outlooks[one], as_of=at, p_fail_30d=0.3 + turn % 7 / 100) for one in chosen],
        )
        application.changes.notify_change(
            ChangeKind.OSDS, ChangeKind.OUTLOOKS, ChangeKind.DEVICES, ChangeKind.STATUS
        )


def _told(address: str) -> None:
    print(address, flush=True)
    os.dup2(2, 1)  # nobody reads on, and a full pipe would stop us


def _no_forecaster() -> object:
    raise AssertionError("nothing is scored here")


def _serve_bytes(content: bytes) -> None:
    import socket

    import uvicorn
    from starlette.responses import Response

    listener = socket.create_server(("127.0.0.1", 0))
    _told(f"127.0.0.1:{listener.getsockname()[1]}")
    uvicorn.Server(uvicorn.Config(Response(content), log_level="warning")).run([listener])


def _serve(devices: int) -> None:
    """Serve until we are ended."""
    from predrain.service.access.tokens import load_admin_tokens
    from predrain.service.http.server import Server, bind_listening_socket, url_of

    with TemporaryDirectory(prefix="predrain-bench-") as folder:
        application = fleet(Path(folder), devices)
        listener = bind_listening_socket(application.settings.service)
        address = url_of(listener, application.settings.service).removeprefix("http://")
        server = Server(
            application, load_admin_tokens(Path(folder) / "token"), listener, started=lambda: _told(address)
        )
        server.serve_here()
        os._exit(0)


FIGURES = tuple(
    Figure(
        f"api: p99 of GET devices, {devices:,} devices", "answer", partial(answered, devices), partial(bare, devices),
        "the same bytes from memory by uvicorn", "under 100 ms" if devices <= 6_000 else "",
        lambda work, _, devices=devices: work.seconds < AIM_SECONDS or devices > 6_000, long=devices > 6_000,
    )
    for devices in (450, 6_000, 50_000)
)  # fmt: skip

if __name__ == "__main__":
    if sys.argv[1] == "bytes":
        _serve_bytes(sys.stdin.buffer.read())
    else:
        _serve(int(sys.argv[2]))
