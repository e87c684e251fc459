"""Every way in which a PostgreSQL can refuse is a sentence with the cure, and none of them tells a password."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from predrain.data.ids import HostName
from predrain.data.store import postgres_store
from predrain.data.store.postgres_store import PostgresStore
from predrain.data.store.store_faults import (
    StoreAway,
    StoreBusy,
    StoreDenied,
    StoreFull,
    StoreOutdated,
    StoreUnreadable,
)
from tests.data.store import written
from tests.system.postgres.server import Server

pytestmark = pytest.mark.system

SECRET = "correct-horse"


@pytest.fixture(scope="module")
def users(server: Server) -> None:
    server.run(f"CREATE ROLE wary LOGIN PASSWORD '{SECRET}'")
    server.run("CREATE ROLE stranger LOGIN")


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(url)
    yield store
    store.close()


def _as(url: str, who: str) -> str:
    return url.replace("postgres@", f"{who}@")


def test_a_wrong_password_is_told_and_not_repeated(url: str, users: None) -> None:
    with pytest.raises(StoreDenied, match=r"password authentication failed .*pgpass") as told:
        PostgresStore(_as(url, "wary:wrong-horse"))
    assert "wrong-horse" not in str(told.value)


def test_a_password_that_is_missing_is_told(
    url: str, users: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    with pytest.raises(StoreDenied, match=r"no password supplied.*pgpass"):
        PostgresStore(_as(url, "wary"))


def test_the_password_may_stand_in_the_password_file(
    server: Server, url: str, users: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = url.rsplit("/", 1)[1]
    server.run("GRANT ALL ON ALL TABLES IN SCHEMA public TO wary", database)
    server.run("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO wary", database)
    passwords = tmp_path / "pgpass"
    passwords.write_text(f"127.0.0.1:{server.port}:{database}:wary:{SECRET}\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    store = PostgresStore(_as(url, "wary"))
    written.fill(store)
    written.assert_whole(store)
    store.close()


@pytest.mark.parametrize(
    ("change", "kind", "sentence"),
    [
        (lambda url: _as(url, "nobody"), StoreDenied, r'role "nobody" does not exist.*createuser'),
        (lambda url: url + "_not", StoreDenied, r'database ".*_not" does not exist.*createdb'),
        (lambda url: _as(url, "stranger"), StoreDenied, r"pg_hba\.conf rejects.*pg_hba\.conf"),
        (lambda url: url.replace("127.0.0.1", "no.such.host.invalid"), StoreAway, "does not answer .*see that the"),
        (lambda url: url.replace("postgresql:", "mysql:"), StoreDenied, "write postgresql://"),
        (lambda _: f"postgresql://me:{SECRET}@h:port/x", StoreDenied, "write postgresql://"),
    ],
)  # fmt: skip
def test_a_url_that_leads_nowhere_says_what_to_do(
    url: str, users: None, change: Callable[[str], str], kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind, match=sentence) as told:
        PostgresStore(change(url))
    assert SECRET not in str(told.value)


def test_a_server_that_takes_the_connection_and_says_nothing_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postgres_store, "CONNECT_SECONDS", 2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(StoreAway, match=r"does not answer .*timeout"):
            PostgresStore(f"postgresql://me@127.0.0.1:{port}/x")


def test_an_old_server_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_store, "OLDEST", 99)
    with pytest.raises(
        StoreDenied, match=r"is PostgreSQL 1\d.*; predrain needs 99 or later: update the server"
    ):
        PostgresStore(url)


def test_a_server_that_only_reads_is_told_and_still_read(server: Server, url: str) -> None:
    server.run(f"ALTER DATABASE {url.rsplit('/', 1)[1]} SET default_transaction_read_only = on")
    store = PostgresStore(url)
    assert store.drains() == ()
    with pytest.raises(StoreFull, match=r"read-only transaction.*name the primary"):
        store.save_drain(written.DRAIN)
    store.close()


def test_a_user_who_may_not_read_the_tables_is_told(url: str, users: None) -> None:
    with pytest.raises(StoreDenied, match=r"permission denied.*grant the user"):
        PostgresStore(_as(url, f"wary:{SECRET}"))


@pytest.mark.parametrize(
    ("state", "kind", "sentence"),
    [
        ("53100", StoreFull, "make room on the server's disk; all data saved before is safe"),
        ("53200", StoreFull, "give the server more of it"),
        ("40P01", StoreBusy, "try again; nothing was changed"),
        ("58030", StoreFull, "look after the server's disk"),
        ("XX001", StoreUnreadable, "from a backup"),
    ],
)
def test_the_error_message_of_a_server_in_trouble_is_passed_on_with_the_cure(
    server: Server, url: str, state: str, kind: type[Exception], sentence: str
) -> None:
    """The server says it by a trigger, since no test may fill its disk."""
    with pytest.raises(kind, match=rf"no luck.*{sentence}"):
        _raise_in(server, url, state)


def _raise_in(server: Server, url: str, state: str) -> None:
    """Save into a table whose trigger fails with that SQLSTATE."""
    database = url.rsplit("/", 1)[1]
    server.run(
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN RAISE EXCEPTION 'no luck' USING ERRCODE = '{state}'; END $$",
        database,
    )
    server.run("CREATE TRIGGER fail BEFORE INSERT ON drains EXECUTE FUNCTION fail()", database)
    store = PostgresStore(url)
    try:
        store.save_drain(written.DRAIN)
    finally:
        assert store.drains() == ()
        store.close()


def test_a_statement_that_takes_too_long_is_given_up(
    server: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_store, "STATEMENT_SECONDS", 1)
    store = PostgresStore(url)
    with psycopg.connect(server.conninfo(url.rsplit("/", 1)[1])) as blocker:
        blocker.execute("LOCK TABLE drains IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreBusy, match=r"timeout.*try again; nothing was changed"):
            store.save_drain(written.DRAIN)
        blocker.rollback()
    store.save_drain(written.DRAIN)
    assert store.drains() == (written.DRAIN,)
    store.close()


def test_a_reading_with_a_nul_character_is_refused_and_nothing_of_its_batch_is_stored(
    store: PostgresStore,
) -> None:
    poison = replace(written.READINGS[0], device="a\x00b", host=HostName("h"))
    with pytest.raises(StoreUnreadable, match=r"0x00.*nothing was changed"):
        store.add_readings([*written.READINGS, poison])
    assert store.latest_readings() == {}


def test_tables_that_were_taken_away_are_missed_with_the_cure(
    server: Server, url: str, store: PostgresStore
) -> None:
    server.run("DROP TABLE halt", url.rsplit("/", 1)[1])
    with pytest.raises(StoreOutdated, match=r'relation "halt" does not exist.*predrain store migrate'):
        store.halt_reason()


def test_a_document_that_is_damaged_is_left_out_and_reported_with_the_cure(
    server: Server, url: str, store: PostgresStore
) -> None:
    store.add_readings(written.READINGS)
    server.run("UPDATE readings SET document = 'x'", url.rsplit("/", 1)[1])
    assert store.readings(written.DEVICE) == ()
    assert re.search(r"in readings .*cannot be unpacked .*backup", store.describe_damage() or "")


def test_more_threads_than_connections_wait_for_their_turn(store: PostgresStore) -> None:
    store.save_drain(written.DRAIN)
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(len(store.drains()))) for _ in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [1] * 60
