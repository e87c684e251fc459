"""A store on a PostgreSQL that goes away: what was said to be saved is there, and nobody waits for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from predrain.data.drain import Drain, DrainState, Intent, JournalEntry
from predrain.data.ids import DeviceId, HostName
from predrain.data.reading import Counters, Identity, Protocol, Reading, Smart
from predrain.data.store import store_schema
from predrain.data.store.postgres_store import PostgresStore, migrate_postgres_store
from predrain.data.store.store_faults import StoreAway
from predrain.data.store.store_port import RevisionConflict
from tests.system.postgres.server import Server

pytestmark = pytest.mark.system

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DEVICE = DeviceId("ATA_ST4000_1")
SMART = Smart(Protocol.ATA, Identity(model="ST4000"), True, Counters(pending=0))
DRAIN = Drain("d-1", None, (), DrainState.DRAINING, Intent.REPLACE, "me", "why", NOON, NOON)


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(url)
    yield store
    store.close()


def _reading(number: int, device: str = DEVICE) -> Reading:
    at = NOON + timedelta(minutes=number)
    return Reading(DeviceId(device), HostName("ceph-1"), at, at, SMART)


@pytest.mark.core
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_after_a_restart_of_the_server_the_next_call_works(
    server: Server, store: PostgresStore, how: str
) -> None:
    store.add_readings([_reading(0)])
    getattr(server, how)()
    server.start()
    assert store.add_readings([_reading(1)]) == 1
    assert store.readings(DEVICE) == (_reading(0), _reading(1))


def test_while_the_server_is_away_every_call_says_so_and_the_first_after_it_works(
    server: Server, store: PostgresStore
) -> None:
    store.save_drain(DRAIN)
    server.stop()
    for ask in (store.drains, store.latest_readings, lambda: store.add_readings([_reading(0)])):
        with pytest.raises(StoreAway, match=r"does not answer .*refused.* see that the server runs"):
            ask()
    server.start()
    assert store.drain("d-1") == DRAIN


def test_the_store_holds_exactly_the_readings_and_journal_entries_saved_between_kills_of_the_server(
    server: Server, url: str, store: PostgresStore
) -> None:
    saved: list[Reading] = []
    over = threading.Event()

    def save() -> None:
        mine = PostgresStore(url)
        for number in range(10**9):
            if over.is_set():
                break
            reading = _reading(number)
            while True:
                try:
                    mine.add_readings([reading])
                    mine.add_journal([JournalEntry("d-1", reading.taken_at, "", f"line {number}")])
                    break
                except StoreAway:
                    time.sleep(0.02)
            saved.append(reading)
        mine.close()

    worker = threading.Thread(target=save)
    worker.start()
    for kill in range(3):
        count = len(saved)
        while len(saved) < count + 20 and worker.is_alive():
            time.sleep(0.005)
        server.kill()
        server.start()
        assert len(store.readings(DEVICE)) >= count, f"after kill {kill}"
    over.set()
    worker.join(60)
    assert store.readings(DEVICE) == tuple(saved)
    assert [line.decided for line in store.journal("d-1")] == [f"line {n}" for n in range(len(saved))]


def test_a_transaction_that_waits_in_a_dying_server_is_done_again_on_the_next_one(
    server: Server, url: str, store: PostgresStore
) -> None:
    """Its session is ended by the administrator in the midst of it; nobody notices."""
    import psycopg

    database = url.rsplit("/", 1)[1]
    store.add_readings([_reading(0)])
    with psycopg.connect(server.conninfo(database)) as blocker:
        blocker.execute("LOCK TABLE readings IN ACCESS EXCLUSIVE MODE")
        done: list[int] = []
        waiting = threading.Thread(target=lambda: done.append(store.add_readings([_reading(1)])))
        waiting.start()
        while not server.ask(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'",
            url,
        ):
            time.sleep(0.02)
        blocker.rollback()
        waiting.join(60)
    assert done == [1]
    assert store.readings(DEVICE) == (_reading(0), _reading(1))


def test_one_of_many_services_that_save_the_same_revision_wins(url: str) -> None:
    stores = [PostgresStore(url) for _ in range(6)]
    won: list[tuple[int, int]] = []
    together = threading.Barrier(len(stores))

    def save(name: int) -> None:
        for revision in range(1, 21):
            together.wait()
            try:
                stores[name].save_drain(replace(DRAIN, revision=revision, asked_by=str(name)))
                won.append((revision, name))
            except RevisionConflict:
                pass

    threads = [threading.Thread(target=save, args=(name,)) for name in range(len(stores))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(revision for revision, _ in won) == list(range(1, 21))
    last = stores[0].drain("d-1")
    assert last is not None
    assert (last.revision, int(last.asked_by)) in won
    for store in stores:
        store.close()


def test_workers_that_keep_the_same_drives_in_other_orders_do_not_stop_each_other(
    server: Server, url: str
) -> None:
    stores = [PostgresStore(url) for _ in range(4)]
    new: list[int] = []

    def keep(name: int) -> None:
        for turn in range(15):
            batch = [_reading(turn, f"dev-{n}") for n in range(40)]
            new.append(stores[name].add_readings(batch if name % 2 else batch[::-1]))

    threads = [threading.Thread(target=keep, args=(name,)) for name in range(len(stores))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(new) == 60
    assert sum(new) == 15 * 40
    assert {one.taken_at for one in stores[0].latest_readings().values()} == {_reading(14).taken_at}
    for store in stores:
        store.close()
    assert server.ask("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()", url) == 0


def test_of_many_that_bring_a_database_up_at_once_one_does_it(server: Server) -> None:
    server.start()
    url = server.url(server.database())
    before: list[int] = []
    threads = [
        threading.Thread(target=lambda: before.append(migrate_postgres_store(url)[0])) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(before) == [0, *[store_schema.VERSION] * 3]


def test_a_task_is_one_service_s_at_a_time_and_free_again_when_its_server_has_gone(
    server: Server, url: str, store: PostgresStore
) -> None:
    other = PostgresStore(url)
    with (
        store.try_lock_task("retention") as mine,
        other.try_lock_task("retention") as theirs,
        other.try_lock_task("export") as else_,
    ):
        assert (mine, theirs, else_) == (True, False, True)
    with store.try_lock_task("retention") as mine:
        server.kill()
        server.start()
        with other.try_lock_task("retention") as theirs:
            assert (mine, theirs) == (True, True)
    other.close()
