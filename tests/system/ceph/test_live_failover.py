"""Two `predrain up` over one PostgreSQL control a real cluster: the active one is killed while a drain is half done.

The test prints how long the cluster was without an active service:
`CEPH_UNDER_TEST=pacific .venv/bin/pytest tests/system/ceph/test_live_failover.py -p no:xdist -s`.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from predrain.data.drain import Drain
from predrain.data.store.postgres_store import PostgresStore, migrate_postgres_store
from tests.actions.made_config_keys import SIGNING_KEY
from tests.system.ceph.minicluster import CommandError, MiniCluster
from tests.system.ceph.surviving import POOL, World, small
from tests.system.postgres.server import Server, running
from tests.system.postgres.shared_services import Service, Services, wait_until

LEASE_SECONDS = 15
IN_FLIGHT_MAX = 1
"""With a limit of one PG, a standby that begins one beside that of the killed service is seen at once."""
ANOTHER_MACHINE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
"""Processes in another namespace of process ids are, to others, those of another machine: nobody sees whether they
have ended."""
SETTINGS = """[service]
port = 0

[store]
url = "{url}"

[ceph]
conf = {conf}
name = {name}
keyring = {keyring}
python = {python}
signing_key = {signing_key}
lease_seconds = {lease_seconds}

[policy]
tick_seconds = 1
mgr_stats_period_seconds = 1
out_share_max = 0.5
in_flight_max = {in_flight_max}
"""


@pytest.fixture(scope="module")
def kept(release: str) -> Iterator[MiniCluster]:
    yield from small(release, pgs=12)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as server:
        yield server


@dataclass
class DrainObserver:
    """Polls the real cluster all the time while the drain of `osd` is under way."""

    cluster: MiniCluster
    osd: int
    most_moving: int = 0
    returned: set[str] = field(default_factory=set)
    """PGs that were mapped to the OSD after they had left it."""
    on_osd: list[tuple[float, int]] = field(default_factory=list)
    """Times of the monotonic clock, and the number of PGs that the map gave to the OSD then."""
    _left: set[str] = field(default_factory=set)
    _before: set[str] = field(default_factory=set)
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> DrainObserver:
        self._thread = threading.Thread(target=self._observe)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def count_mapped(self) -> int:
        """Return the number of PGs that the map gave to the OSD at the last poll."""
        return self.on_osd[-1][1] if self.on_osd else -1

    def find_next_move(self, since: float) -> float | None:
        """Return the first time after `since` at which another PG had left the OSD."""
        before = [count for at, count in self.on_osd if at <= since]
        return next((at for at, count in self.on_osd if at > since and count < before[-1]), None)

    def _observe(self) -> None:
        while not self._ended.wait(0.2):
            with suppress(CommandError, RuntimeError):
                self._look(self.cluster.pgs())

    def _look(self, pgs: list[dict[str, Any]]) -> None:
        mapped = {pg["pgid"] for pg in pgs if self.osd in pg["up"]}
        self.returned |= mapped & self._left
        self._left |= self._before - mapped
        self._before = mapped
        self.most_moving = max(self.most_moving, sum(set(pg["up"]) != set(pg["acting"]) for pg in pgs))
        self.on_osd.append((time.monotonic(), len(mapped)))


@dataclass
class Writer:
    """A client that writes one object after another, each until the cluster acknowledges it, and keeps checksums."""

    cluster: MiniCluster
    written: dict[str, str]
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Writer:
        self._thread = threading.Thread(target=self._write)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _write(self) -> None:
        number, acknowledged = len(self.written), True
        while not (acknowledged and self._ended.wait(0.3)):
            # A write that was not acknowledged may be done or not: as a client does, it writes the object again.
            acknowledged = False
            with suppress(CommandError):
                self.written |= self.cluster.write(POOL, objects=1, start=number)
                number, acknowledged = number + 1, True


@dataclass
class Controlled:
    """Two services that share a store and control the cluster."""

    world: World
    url: str
    services: Services

    def find_drain(self, found: str) -> Drain:
        store = PostgresStore(self.url)
        try:
            drain = store.drain(found)
            assert drain is not None
            return drain
        finally:
            store.close()


@pytest.fixture
def controlled(world: World, server: Server, tmp_path: Path) -> Iterator[Controlled]:
    least = world.cluster.least()
    key = tmp_path / "signing_key"
    key.touch(mode=0o600)
    key.write_text(f"{SIGNING_KEY}\n")
    url = server.url(server.database())
    migrate_postgres_store(url)
    given = {
        "conf": least.conf,
        "name": least.name,
        "keyring": least.keyring,
        "python": list(least.interpreter),
        "signing_key": str(key),
    }
    settings = SETTINGS.format(
        url=url,
        lease_seconds=LEASE_SECONDS,
        in_flight_max=IN_FLIGHT_MAX,
        **{name: json.dumps(value) for name, value in given.items()},
    )
    made = Controlled(world, url, Services(tmp_path, settings))
    yield made
    made.services.end()


def acts(service: Service) -> bool:
    """Return True if the service says that its controller acts on drains."""
    with suppress(httpx2.TransportError):
        return bool(service.get("status")["acting"]["place"] == "here")
    return False


def wait_for_roles(services: Services) -> tuple[Service, Service]:
    """Return the service that acts and the one that stands by, as soon as both say so.

    The one that began first can be the standby: on a busy machine its lease can end before it renews it.
    """
    found: list[Service] = []

    def find_roles() -> bool:
        places = {service.get("status")["acting"]["place"]: service for service in services.begun}
        found[:] = [places[place] for place in ("here", "elsewhere") if place in places]
        return len(found) == 2 and found[0].is_active()

    wait_until(find_roles, "one service acts, and the other one stands by")
    return found[0], found[1]


def begin_drain(service: Service, osd: int) -> str:
    """A drain, requested and approved over REST; returns its id."""
    proposed = service.client.post("/api/v1/drains", json={"target": f"osd.{osd}", "reason": "test"})
    assert proposed.status_code == 201, proposed.text
    drain = proposed.json()
    path = f"/api/v1/drains/{drain['id']}/approve"
    approved = service.client.post(path, headers={"If-Match": drain["etag"]})
    assert approved.status_code == 200, approved.text
    return str(drain["id"])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("osd", "within"), [(0, ()), (1, ANOTHER_MACHINE)], ids=["same machine", "another machine"]
)
def test_the_standby_goes_on_with_a_drain_that_is_half_done_when_the_active_service_is_killed(
    controlled: Controlled, osd: int, within: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    world = controlled.world
    for name in ("first", "second"):
        controlled.services.begin(name, within)
    active, standby = wait_for_roles(controlled.services)
    wait_until(lambda: active.get("status")["epoch"], "the active one has seen the cluster")
    with DrainObserver(world.cluster, osd) as seen, Writer(world.cluster, world.written):
        wait_until(lambda: seen.count_mapped() > 0, "the cluster is polled")
        whole = seen.count_mapped()
        drain = begin_drain(active, osd)
        wait_until(lambda: seen.count_mapped() <= whole / 2, "half of the drain", pause=0.02)
        moved = active.get(f"drains/{drain}")["progress"]["moved_pgs"]
        assert 0 < moved < whole
        killed = time.monotonic()
        active.process.kill()
        taken = wait_until(standby.is_active, "the standby is the active one", pause=0.02)
        wait_until(lambda: acts(standby), "the standby acts", pause=0.02)
        acting = time.monotonic() - killed
        assert standby.get(f"drains/{drain}")["progress"]["moved_pgs"] >= moved
        wait_until(lambda: standby.get(f"drains/{drain}")["state"] == "verified", "the drain ends")
    assert seen.returned == set()
    assert seen.most_moving == IN_FLIGHT_MAX
    world.check_drained(controlled.find_drain(drain))
    next_move = seen.find_next_move(killed)
    assert next_move is not None
    print(
        f"\n{request.node.callspec.id}: killed at {moved} of {whole} PGs; the standby is the active one after "
        f"{taken:.1f} s, acts on drains after {acting:.1f} s, and moves the next PG after {next_move - killed:.1f} s"
    )
    assert standby.client.post(f"/api/v1/drains/{drain}/cancel").status_code == 200
    wait_until(lambda: standby.get(f"drains/{drain}")["state"] == "cancelled", "everything is put back")
    world.cluster.wait_clean()
    assert world.map() == world.before
    assert world.cluster.find_wrong_objects(POOL, world.written) == {}
