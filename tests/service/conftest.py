"""A house on real files with the bundle that ships, and the same house over real HTTP on a free port."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from predrain.actions.cluster.port import Cluster
from predrain.actions.core.policy import Policy
from predrain.data.ids import DeviceId, HostName
from predrain.data.log.port import Log
from predrain.data.log.sqlite import SqliteLog
from predrain.data.reading import Attribute, Counters, Identity, Protocol, Reading, Smart
from predrain.data.store.sqlite import SqliteStore
from predrain.service.application import House, Ports
from predrain.service.http_server import Server, bind, url_of
from predrain.service.live_cluster import Live
from predrain.service.notifications.channel import NotificationChannel
from predrain.service.notifications.daily import Daily
from predrain.service.notifications.notes import Notes
from predrain.service.scoring.bundled import BundledForecaster
from predrain.service.settings import ServiceTable, Settings
from predrain.service.state_directory import StateDir
from predrain.service.tokens import Caller, Scope, Tokens, gather

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


def envelope(house: House, reading: Reading) -> dict[str, Any]:
    """A reading as a collector would post it."""
    sealed: dict[str, Any] = json.loads(house._sender.seal(reading))
    return sealed


@pytest.fixture(scope="session")
def forecaster() -> BundledForecaster:
    """The bundle that ships; it is pure, so that all tests share it."""
    return BundledForecaster.load()


@dataclass
class Place:
    """What a house stands on, so that a test can make another one on the same files."""

    state: StateDir
    clock: SetClock
    forecaster: BundledForecaster
    settings: Settings
    policy: Policy

    def house(
        self,
        *,
        log: Log | None = None,
        cluster: Cluster | None = None,
        channels: Sequence[NotificationChannel] = (),
        digest: Callable[[Notes], Daily] | None = None,
    ) -> House:
        """A house as a start of the service makes it."""
        ports = Ports(
            log or SqliteLog(self.state.log),
            SqliteStore(self.state.store),
            self.clock,
            lambda: self.forecaster,
            Live(cluster) if cluster is not None else None,
            channels=channels,
            digest=digest,
        )
        return House(ports, self.policy, self.settings)


@pytest.fixture
def place(tmp_path: Path, forecaster: BundledForecaster) -> Place:
    settings = Settings(service=ServiceTable(port=0, state=tmp_path / "state"))
    return Place(StateDir(tmp_path / "state").make(), SetClock(), forecaster, settings, Policy())


@pytest.fixture
def house(place: Place) -> Iterator[House]:
    """Loaded and idle: a test steps it."""
    made = place.house()
    made.start()
    yield made
    shut(made)


def shut(house: House) -> None:
    """Stop a house and let go of its files."""
    house.stop()
    house.log.close()
    house.store.close()


Serve = Callable[[House], "Site"]


@dataclass
class Site:
    """A house over HTTP."""

    house: House
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
    """Serves a house with a real server on a free port."""
    stops: list[Callable[[], None]] = []

    def serving(house: House) -> Site:
        listener = bind(house.settings.service)
        tokens = gather(place.state.token).adding(
            INGEST_TOKEN, Caller("collectors", frozenset({Scope.INGEST}))
        )
        up = threading.Event()
        stop = Server(house, tokens, listener, started=up.set).serve_aside()
        assert up.wait(10)
        client = httpx2.Client(base_url=url_of(listener, house.settings.service), timeout=20)
        stops.extend((client.close, stop, listener.close))
        return Site(house, client, tokens, place.state.token.read_text().strip())

    with place.state.alone():
        yield serving
    for stop in stops:
        stop()


@pytest.fixture
def site(house: House, serve: Serve) -> Site:
    return serve(house)


def with_service(place: Place, **changed: Any) -> Place:
    """The same place with other settings of `[service]`."""
    service = place.settings.service.model_copy(update=changed)
    return replace(place, settings=place.settings.model_copy(update={"service": service}))
