"""The pieces of work that are traced: a request that saves a drain, the way to the first upmap, and one reading's way.

All run on one service: the application with its SQLite files, the bundle that ships and the real controller, over a
simulated cluster; requests come through the ASGI application of the service, in the process of the measurement.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2

from predrain.actions.cluster.cluster_port import Command, CommandResult, SetUpmap
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.drain_policy import Policy
from predrain.actions.simulator import SimulatedCluster
from predrain.data.reading import Reading
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.wire import accept_reading
from predrain.features.drive_state import DriveState
from predrain.service.access.tokens import load_admin_tokens
from predrain.service.app.application import Application
from predrain.service.config.settings import ServiceTable, Settings
from predrain.service.config.state_directory import StateDir
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.rest import drain_routes
from predrain.service.rest.reading_routes import _parse_reading as read_item
from predrain.service.rest.rest_app import create_app
from tests.measure.tracing import FunctionTrace, recording
from tests.service.conftest import Place, SetClock, shut
from tests.service.test_drains import ClusterClock, seated

SAMPLE = Path(__file__).parents[1] / "data" / "smart" / "samples" / "ata-055.json"
"""The file with smartctl's output for a hard disk whose family the bundle knows."""
HOST = "stor-01"
FIRST_LOOKS = 5
"""Ticks before a person asks for a drain, so that the service has seen its cluster."""
MOST_TICKS = 100
TICK_SECONDS = 10.0
DAYS = 8
"""Daily readings of the drive: with so many the bundle forecasts it."""


class NoUpmap(Exception):
    """The approved drain sent no upmap in `MOST_TICKS` ticks."""


class NothingTraced(Exception):
    """A request did not pass the two functions between which it is recorded."""


class ObservedCluster:
    """The simulated cluster; what it does is not recorded, and the first upmap ends the recording."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self.trace: FunctionTrace | None = None
        self.upmaps = 0

    def view(self) -> ClusterView:
        return self._cluster.view()

    def apply(self, command: Command) -> CommandResult:
        if isinstance(command, SetUpmap):
            self.upmaps += 1
            if self.trace is not None:
                self.trace.is_on = False
        return self._cluster.apply(command)


@dataclass(frozen=True, slots=True)
class MeasuredService:
    """A service over a simulated cluster, and its state directory."""

    application: Application
    cluster: SimulatedCluster
    observed: ObservedCluster
    state: StateDir

    def tick(self, times: int = 1) -> None:
        """Let the cluster's time pass, and let the controller look and act."""
        for _ in range(times):
            self.cluster.advance(TICK_SECONDS)
            self.application.step_controller()


@contextmanager
def running_service(folder: Path, forecaster: BundledForecaster) -> Iterator[MeasuredService]:
    """Start a service whose files are in `folder`, and stop it."""
    cluster = seated()
    observed = ObservedCluster(cluster)
    state = StateDir(folder / "state").ensure_exists()
    settings = Settings(service=ServiceTable(port=0, state=folder / "state"))
    place = Place(state, SetClock(), forecaster, settings, Policy())
    application = replace(place, clock=ClusterClock(cluster)).application(cluster=observed)  # type: ignore[arg-type]
    application.start()
    try:
        yield MeasuredService(application, cluster, observed, state)
    finally:
        shut(application)


def trace_drain(service: MeasuredService) -> tuple[FunctionTrace, FunctionTrace, FunctionTrace]:
    """Trace a drain's proposal, its approval and the way to its first upmap, each by itself.

    The first two begin with the route's function and end when the store has saved the drain. The third holds all that
    the service does in its ticks after the approval, until the controller hands the first upmap to the cluster.
    """
    saved = SqliteStore.save_drain.__code__
    proposal = FunctionTrace(begins_at=drain_routes.propose_drain.__code__, ends_at=saved)
    approval = FunctionTrace(begins_at=drain_routes.approve_drain_plan.__code__, ends_at=saved)
    service.tick(FIRST_LOOKS)
    wanted = {"target": "osd.0", "reason": "noisy"}
    drain = _record_request(service, proposal, "/api/v1/drains", json=wanted)
    approve = f"/api/v1/drains/{drain['id']}/approve"
    _record_request(service, approval, approve, headers={"If-Match": drain["etag"]})
    upmap = FunctionTrace()
    service.observed.trace = upmap
    with recording(upmap):
        upmap.is_on = True
        for _ in range(MOST_TICKS):
            service.tick()
            if service.observed.upmaps:
                return proposal, approval, upmap
    raise NoUpmap(f"no upmap in {MOST_TICKS} ticks")


def _record_request(service: MeasuredService, trace: FunctionTrace, path: str, **sent: Any) -> dict[str, Any]:
    """Send one request, and return the body of its answer. Raises NothingTraced.

    Each request has an event loop of its own, so that the threads which answer it start while it is recorded.
    """
    with recording(trace):
        answer = asyncio.run(_post(service, path, **sent))
    answer.raise_for_status()
    if not trace.is_over:
        raise NothingTraced(f"POST {path} did not go from the route's function to the store")
    body: dict[str, Any] = answer.json()
    return body


async def _post(
    service: MeasuredService, path: str, *, json: Any = None, headers: Mapping[str, str] | None = None
) -> httpx2.Response:
    app = create_app(service.application, load_admin_tokens(service.state.token))
    transport = httpx2.ASGITransport(app, client=("127.0.0.1", 40_000))
    acting = {"Authorization": f"Bearer {service.state.token.read_text().strip()}", **(headers or {})}
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return await client.post(path, json=json, headers=acting)


def trace_reading(service: MeasuredService, forecaster: BundledForecaster) -> FunctionTrace:
    """Trace what makes an outlook of the JSON text of smartctl, in the order of the service: the document becomes a
    reading, the reading is accepted and folded into the drive's state, and the state is forecast.

    The daily readings before it are folded outside the trace. Log and store are left out: they keep what passes, and
    need none of it.
    """
    trace = FunctionTrace()
    text = SAMPLE.read_bytes()
    now = service.application.clock.now()
    first = accept_reading(read_item(service.application, text, HOST), now)
    state = forecaster.fold(None, list(_list_earlier_readings(first)))
    with recording(trace):
        trace.is_on = True
        _forecast_text(service.application, forecaster, text, state, now)
        trace.is_on = False
    return trace


def _list_earlier_readings(reading: Reading) -> Iterator[Reading]:
    for day in range(DAYS, 0, -1):
        taken_at = reading.taken_at - timedelta(days=day)
        yield replace(reading, taken_at=taken_at, received_at=taken_at)


def _forecast_text(
    application: Application, forecaster: BundledForecaster, text: bytes, state: DriveState, now: datetime
) -> None:
    reading = accept_reading(read_item(application, text, HOST), now)
    after = forecaster.fold(state, [reading])
    (outlook,) = forecaster.compute_outlooks([after], reading.taken_at, {})
    assert outlook.source.startswith("model:"), outlook.source
