"""A PostgreSQL that stands still, is far behind a dead wire or only busy: nobody waits for ever, nothing is lost."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
import structlog
from sqlalchemy import Connection, text

from predrain.data.ids import DeviceId, HostName
from predrain.data.reading import Counters, Identity, Protocol, Reading, Smart
from predrain.data.store import postgres_store, postgres_timeouts
from predrain.data.store.postgres_store import PostgresDatabase, PostgresStore, migrate_postgres_store
from predrain.data.store.store_faults import StoreAway, StoreBusy, StoreDenied
from predrain.service.runtime.periodic_threads import PeriodicThreads
from tests.deadlines import idle_seconds
from tests.processes import freeze_process, thaw_process
from tests.system.postgres.server import Server

pytestmark = pytest.mark.system

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DEVICE = DeviceId("ATA_ST4000_1")
SMART = Smart(Protocol.ATA, Identity(model="ST4000"), True, Counters(pending=0))
STILL = r"does not answer \(.*no sign of life for 1 s.*|does not answer \(.*connection timeout expired"


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds instead of half a minute."""
    monkeypatch.setattr(postgres_timeouts, "SILENT_SECONDS", 1)
    monkeypatch.setattr(postgres_store, "CONNECT_SECONDS", 3)


def _reading(number: int) -> Reading:
    at = NOON + timedelta(minutes=number)
    return Reading(DEVICE, HostName("ceph-1"), at, at, SMART)


def test_a_server_that_stands_still_is_told_of_and_found_again_when_it_goes_on(
    server: Server, url: str
) -> None:
    with closing(PostgresStore(url)) as store:
        store.add_readings([_reading(0)])
        server.freeze(True)
        for ask in (store.latest_readings, lambda: store.add_readings([_reading(1)])):
            with pytest.raises(StoreAway, match=STILL):
                ask()
        server.freeze(False)
        store.add_readings([_reading(1)])
        assert store.readings(DEVICE) == (_reading(0), _reading(1))


def test_a_commit_whose_answer_never_came_has_one_effect(server: Server, url: str) -> None:
    """Its last words reach the server, which is frozen before it hears them."""
    with closing(PostgresDatabase(url)) as database, closing(PostgresStore(url)) as store:
        store.add_readings([_reading(0)])
        turns: list[int] = []

        def work(connection: Connection) -> None:
            connection.execute(text("INSERT INTO halt VALUES (1, 'x') ON CONFLICT DO NOTHING"))
            turns.append(len(turns))
            if len(turns) == 1:
                server.freeze(True)
                threading.Timer(2.0, server.freeze, [False]).start()

        database.write(work)
        assert turns[0] == 0
        assert store.halt_reason() == "x"
        assert server.ask("SELECT count(*) FROM halt", url) == 1


def test_a_backend_that_stands_alone_is_given_up_after_the_longest_that_a_statement_may_take(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_store, "STATEMENT_SECONDS", 2)
    monkeypatch.setattr(postgres_store, "GRACE_SECONDS", 1)
    with closing(PostgresDatabase(url)) as database:
        pid = database.read(lambda one: one.execute(text("SELECT pg_backend_pid()")).scalar_one())
        freeze_process(pid)
        try:  # the second turn is on another backend
            assert database.read(lambda one: one.execute(text("SELECT 7")).scalar_one()) == 7
        finally:
            thaw_process(pid)


def test_a_read_waits_for_a_server_that_is_only_busy(url: str) -> None:
    with closing(PostgresDatabase(url)) as database:
        slow = text("SELECT 7 FROM pg_sleep(4)")
        assert database.read(lambda one: one.execute(slow).scalar_one()) == 7


def test_a_long_migration_is_waited_for_beyond_what_a_statement_may_take(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_store, "STATEMENT_SECONDS", 1)
    monkeypatch.setattr(postgres_store, "GRACE_SECONDS", 0)
    server.start()
    database = postgres_store._Server(server.url(server.database()), statement_seconds=0)
    with closing(database):
        assert (
            database.run_in_transaction(
                lambda one: one.execute(text("SELECT 7 FROM pg_sleep(4)")).scalar_one()
            )
            == 7
        )
    bounded = postgres_store._Server(server.url(server.database()), statement_seconds=1)
    with closing(bounded), pytest.raises(StoreBusy, match="statement timeout"):
        bounded.run_in_transaction(lambda one: one.execute(text("SELECT 7 FROM pg_sleep(4)")).scalar_one())


def test_a_migration_says_so_when_its_server_stands_still(server: Server, url: str) -> None:
    server.freeze(True)
    with pytest.raises(StoreAway, match=STILL):
        migrate_postgres_store(url)


def test_a_wire_that_swallows_all_is_told_of(server: Server, url: str) -> None:
    with closing(Wire(server.port)) as wire:
        far = url.replace(str(server.port), str(wire.port))
        with closing(PostgresStore(far)) as store:
            store.add_readings([_reading(0)])
            wire.dead = True
            with pytest.raises(StoreAway, match=STILL):
                store.add_readings([_reading(1)])
            wire.dead = False
            store.add_readings([_reading(1)])
            assert store.readings(DEVICE) == (_reading(0), _reading(1))


def test_a_password_that_changed_is_told_at_the_next_connection_and_taken_when_it_is_right_again(
    server: Server, url: str
) -> None:
    server.run("DROP ROLE IF EXISTS wary")
    server.run("CREATE ROLE wary LOGIN PASSWORD 'old' SUPERUSER")
    with closing(PostgresStore(url.replace("postgres@", "wary:old@"))) as store:
        store.add_readings([_reading(0)])
        server.run("ALTER ROLE wary PASSWORD 'new'")
        server.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'wary'")
        with pytest.raises(StoreDenied, match="correct it in the URL"):
            store.latest_readings()
        server.run("ALTER ROLE wary PASSWORD 'old'")
        assert store.readings(DEVICE) == (_reading(0),)


def test_a_loop_tells_once_that_its_server_stands_still_and_goes_on_by_itself(
    server: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("predrain.service.runtime.periodic_threads.FAULT_SECONDS", 0.1)
    loops, kept = PeriodicThreads(lambda: None), 0
    with closing(PostgresStore(url)) as store, structlog.testing.capture_logs() as told:

        def step() -> None:
            nonlocal kept
            store.add_readings([_reading(kept)])
            kept += 1

        loops.start_loop("worker", step)
        until(lambda: kept > 3)
        server.freeze(True)
        until(lambda: "worker" in loops.faults)
        time.sleep(0.3)
        server.freeze(False)
        before = kept
        until(lambda: kept > before + 3)
        assert loops.faults == {}
        loops.request_stop()
        loops.join(60.0)
        assert len(store.readings(DEVICE)) == kept
    assert "does not answer" in told[0]["reason"]
    assert len({one["reason"] for one in told}) == len(told)


def test_the_probe_takes_any_answer_for_a_sign_of_life(server: Server, url: str) -> None:
    """A server that is full is not one that stands still."""
    held = []
    with closing(PostgresDatabase(url)) as database:
        database.read(lambda one: one.execute(text("SELECT 1")).scalar_one())
        try:
            while True:
                held.append(psycopg.connect(server.conninfo("postgres")))
        except psycopg.OperationalError:
            pass
        slow = text("SELECT 7 FROM pg_sleep(3)")
        assert database.read(lambda one: one.execute(slow).scalar_one()) == 7
        for one in held:
            one.close()


def until(done: Callable[[], bool]) -> None:
    end = idle_seconds() + 120
    while not done():
        assert idle_seconds() < end
        time.sleep(0.02)


class Wire:
    """Carries bytes to a port of this machine and back, until it is dead: then it takes them and carries none."""

    def __init__(self, port: int) -> None:
        self.dead = False
        self._to = port
        self._ours = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._ours.getsockname()[1]
        self._open = [self._ours]
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        for one in self._open:
            hang_up(one)

    def _listen(self) -> None:
        while True:
            try:
                near, _ = self._ours.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._to))
            self._open += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        lost = False
        try:
            while data := one.recv(65536):
                lost = lost or self.dead
                if not lost:
                    other.sendall(data)
        except OSError:
            pass
        hang_up(other)


def hang_up(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
