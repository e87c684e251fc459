"""An application on real files with the bundle that ships, and the same application over real HTTP on a free port."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from predrain.actions.cluster.cluster_port import Cluster
from predrain.actions.core.drain_policy import Policy
from predrain.data.ids import DeviceId, HostName
from predrain.data.log.log_port import Log
from predrain.data.log.sqlite_log import SqliteLog
from predrain.data.reading import Attribute, Counters, Identity, Protocol, Reading, Smart
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.access.tokens import Caller, Scope, Tokens, load_admin_tokens
from predrain.service.app.application import Application, ApplicationPorts
from predrain.service.config.settings import ServiceTable, Settings
from predrain.service.config.state_directory import StateDir
from predrain.service.drains.live_cluster import LiveClusterParts
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.http.server import Server, bind_listening_socket, url_of
from predrain.service.notifications.channel import NotificationChannel
from predrain.service.notifications.daily_digest import DailyDigest
from predrain.service.notifications.notification_memory import NoteStore

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
INGEST_TOKEN = "collector-token-0123456789abcdef-0123456789"


class SetClock:
    """A clock that a test moves by hand."""

    def __init__(self, now: datetime = NOON) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


def smart_reading(
    serial: str = "Z1", at: datetime = NOON, *, pending: int = 0, passed: bool = True, hours: int = 20_000
) -> Reading:
    """An ordinary desktop drive as the collector would send it."""
    counters = Counters(
        reallocated=0, pending=pending, offline_uncorrectable=pending, reported_uncorrectable=0, crc_errors=0
    )
    raw = {5: 0, 9: hours, 187: 0, 188: 0, 193: 1000, 194: 28, 197: pending, 198: pending, 199: 0}
    seen = Smart(
        protocol=Protocol.ATA,
        identity=Identity(
            model="ST4000DM000", serial=serial, capacity_bytes=4_000_787_030_016, rotation_rpm=5900
        ),
        passed=passed,
        counters=counters,
        attributes={number: Attribute(f"smart_{number}", count) for number, count in raw.items()},
        power_on_hours=hours,
        temperature_c=28,
    )
    return Reading(DeviceId(f"ST4000DM000_{serial}"), HostName("stor-01"), at, at, seen)


def week_of(serial: str, until: datetime = NOON, **last: Any) -> list[Reading]:
    """Eight quiet daily readings, the last of them with `last`."""
    days = [smart_reading(serial, until - timedelta(days=day)) for day in range(7, 0, -1)]
    return [*days, smart_reading(serial, until, **last)]


def envelope(application: Application, reading: Reading) -> dict[str, Any]:
    """A reading as a collector would post it."""
    sealed: dict[str, Any] = json.loads(application._sender.encode_envelope(reading))
    return sealed


@pytest.fixture(scope="session")
def forecaster() -> BundledForecaster:
    """The bundle that ships; it is pure, so that all tests share it."""
    return BundledForecaster.load()


@dataclass
class Place:
    """The parts of an application that a test can use again to make another application on the same files."""

    state: StateDir
    clock: SetClock
    forecaster: BundledForecaster
    settings: Settings
    policy: Policy

    def application(
        self,
        *,
        log: Log | None = None,
        cluster: Cluster | None = None,
        channels: Sequence[NotificationChannel] = (),
        digest: Callable[[NoteStore], DailyDigest] | None = None,
    ) -> Application:
        """Return an application as a start of the service makes it."""
        ports = ApplicationPorts(
            log or SqliteLog(self.state.log),
            SqliteStore(self.state.store),
            self.clock,
            lambda: self.forecaster,
            LiveClusterParts(cluster) if cluster is not None else None,
            channels=channels,
            digest=digest,
        )
        return Application(ports, self.policy, self.settings)


@pytest.fixture
def place(tmp_path: Path, forecaster: BundledForecaster) -> Place:
    settings = Settings(service=ServiceTable(port=0, state=tmp_path / "state"))
    return Place(StateDir(tmp_path / "state").ensure_exists(), SetClock(), forecaster, settings, Policy())


@pytest.fixture
def application(place: Place) -> Iterator[Application]:
    """Loaded and idle: a test steps it."""
    made = place.application()
    made.start()
    yield made
    shut(made)


def shut(application: Application) -> None:
    """Stop an application and close its files."""
    application.stop()
    application.log.close()
    application.store.close()


Serve = Callable[[Application], "Site"]


@dataclass
class Site:
    """An application over HTTP."""

    application: Application
    client: httpx2.Client
    tokens: Tokens
    token: str

    @property
    def acting(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def ingesting(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {INGEST_TOKEN}"}


@pytest.fixture
def serve(place: Place) -> Iterator[Serve]:
    """Yield a function that serves an application with a real server on a free port."""
    stops: list[Callable[[], None]] = []

    def serving(application: Application) -> Site:
        listener = bind_listening_socket(application.settings.service)
        tokens = load_admin_tokens(place.state.token).with_token(
            INGEST_TOKEN, Caller("collectors", frozenset({Scope.INGEST}))
        )
        stop = Server(application, tokens, listener).serve_aside()
        client = httpx2.Client(base_url=url_of(listener, application.settings.service), timeout=20)
        stops.extend((client.close, stop, listener.close))
        return Site(application, client, tokens, place.state.token.read_text().strip())

    with place.state.hold_lock():
        yield serving
    for stop in stops:
        stop()


@pytest.fixture
def site(application: Application, serve: Serve) -> Site:
    return serve(application)


def with_service(place: Place, **changed: Any) -> Place:
    """The same place with other settings of `[service]`."""
    service = place.settings.service.model_copy(update=changed)
    return replace(place, settings=place.settings.model_copy(update={"service": service}))
