"""The store's formats, up and down, on both databases, from copies that their own predrain wrote."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import zstandard
from sqlalchemy import Connection, Engine, create_engine, event, inspect, text

from predrain.data.ids import ClusterId, HostName, OsdId
from predrain.data.latency_windows import LatencyWindows
from predrain.data.outlook import Status
from predrain.data.reading import Logs, OsdDevice, Role, Smart
from predrain.data.store import documents, migrations, store_schema
from predrain.data.store.documents import decompress_document
from predrain.data.store.migrations import rewriting
from predrain.data.store.postgres_store import PostgresStore, migrate_postgres_store, read_postgres_version
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_faults import (
    NoStoreBackup,
    StoreFull,
    StoreOutdated,
    StoreUnreadable,
)
from predrain.data.store.store_port import Store
from predrain.data.wire import wire_bodies
from tests.data.store import written
from tests.system.postgres.server import Server

HERE = Path(__file__).parent
VERSIONS = range(1, store_schema.VERSION + 1)
FSID = ClusterId("00000000-0000-4000-8000-000000000000")
STORED = sorted(int(path.stem[1:]) for path in HERE.glob("v*.sql"))


def _old_file(folder: Path, version: int) -> Path:
    """A store as the predrain of that version left it."""
    path = folder / f"v{version}.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((HERE / f"v{version}.sql").read_text())
    return path


class Place:
    """A database in which stores of any version can be made."""

    def __init__(self, address: str, opened: Callable[[], Store]) -> None:
        self._address, self.opened = address, opened

    def engine(self) -> Engine:
        """SQLAlchemy's way in, in transactions that hold DDL, too."""
        engine = create_engine(self._address)
        if engine.dialect.name == "sqlite":
            event.listen(engine, "connect", lambda raw, _: setattr(raw, "isolation_level", None))
            event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
        return engine

    def do(self, work: Callable[[Connection], Any]) -> Any:
        """Do the work in one transaction, and return its result."""
        engine = self.engine()
        try:
            with engine.begin() as connection:
                return work(connection)
        finally:
            engine.dispose()

    def migrate(self, to: int) -> None:
        """Up or down."""
        self.do(lambda connection: migrations.migrate_store_version(connection, to))


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.system)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        yield Place(f"sqlite:///{tmp_path / 'store.db'}", lambda: SqliteStore(tmp_path / "store.db"))
        return
    server: Server = request.getfixturevalue("server")
    url = server.url(server.database())
    yield Place(url.replace("postgresql:", "postgresql+psycopg:"), lambda: PostgresStore(url))


def _tables(connection: Connection) -> dict[str, Any]:
    """Everything that makes up the tables of a database."""
    look = inspect(connection)
    return {
        name: (
            [{**column, "type": str(column["type"])} for column in look.get_columns(name)],
            look.get_pk_constraint(name),
            sorted(map(str, look.get_indexes(name))),
            sorted(map(str, look.get_unique_constraints(name))),
        )
        for name in sorted(look.get_table_names())
    }


@pytest.mark.parametrize("version", STORED)
def test_an_old_file_is_brought_up_when_it_is_opened_and_keeps_all_it_holds(
    tmp_path: Path, version: int
) -> None:
    path = _old_file(tmp_path, version)
    before = path.read_bytes()
    for _ in range(2):
        store = SqliteStore(path)
        written.assert_whole(
            store,
            checkpoint=version > 1,
            life_changes=version > 6,
            events=version > 7,
            outlook_events=version > 8,
        )
        store.close()
    if version == store_schema.VERSION:
        assert not Path(f"{path}.v{version}").exists(), "nothing was migrated, so nothing had to be copied"
        return
    with closing(sqlite3.connect(f"{path}.v{version}")) as copy:
        mark = (
            "version FROM schema_version" if version < 3 else "CAST(version_num AS INT) FROM alembic_version"
        )
        assert copy.execute(f"SELECT {mark}").fetchall() == [(version,)]
        assert copy.execute("SELECT count(*) FROM readings").fetchall() == [(4,)]
    assert path.read_bytes() != before


def test_every_version_of_the_tables_is_kept_as_a_file() -> None:
    assert [*VERSIONS] == STORED, (
        "dump a store of this version that `written.fill` filled, while its code is here"
    )


def test_an_old_file_that_cannot_be_copied_is_left_as_it_is(tmp_path: Path) -> None:
    path = _old_file(tmp_path, 2)
    Path(f"{path}.v2.part").mkdir()
    with pytest.raises(StoreFull, match=r"cannot be copied before .* from version 2 .*nothing was changed"):
        SqliteStore(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT version FROM schema_version").fetchall() == [(2,)]
    Path(f"{path}.v2.part").rmdir()
    store = SqliteStore(path)
    written.assert_whole(store, checkpoint=True, life_changes=False, events=False, outlook_events=False)
    store.close()


def test_new_tables_and_migrated_ones_are_the_same(place: Place) -> None:
    place.do(store_schema.metadata.create_all)
    fresh = place.do(_tables)
    place.do(store_schema.metadata.drop_all)
    for to in VERSIONS:
        place.migrate(to)
    assert place.do(_tables) == fresh


@pytest.mark.parametrize("to", [0, *VERSIONS])
def test_every_way_down_and_up_again_ends_where_it_began(place: Place, to: int) -> None:
    place.migrate(to)
    before = place.do(_tables)
    place.migrate(store_schema.VERSION)
    assert place.do(migrations.version_of) == store_schema.VERSION
    place.migrate(to)
    after = place.do(_tables)
    assert place.do(migrations.version_of) == to
    for tables in (before, after):
        tables.pop("alembic_version")  # alembic leaves it empty
    assert after == before


@pytest.mark.slow
def test_the_contents_of_a_store_survive_the_migrations_down_and_up(place: Place) -> None:
    place.migrate(store_schema.VERSION)
    store = place.opened()
    written.fill(store)
    store.close()
    for down in range(store_schema.VERSION - 1, 0, -1):
        checkpoint = down > 1
        place.migrate(down)
        place.migrate(store_schema.VERSION)
        store = place.opened()
        written.assert_whole(
            store, checkpoint=checkpoint, life_changes=down > 6, events=down > 7, outlook_events=down > 8
        )
        store.close()


def test_on_the_way_down_outlooks_lose_the_severity_that_they_hold(place: Place) -> None:
    place.migrate(store_schema.VERSION)
    store = place.opened()
    fallen = replace(written.OUTLOOKS[0], held=Status.BAD)
    store.save_outlooks([fallen, written.OUTLOOKS[1]])
    store.close()
    place.migrate(6)
    documents = place.do(lambda c: c.execute(text("SELECT document FROM outlooks")).scalars().all())
    assert not any("held" in json.loads(decompress_document(raw)) for raw in documents)
    place.migrate(store_schema.VERSION)
    store = place.opened()
    assert store.outlooks(written.DEVICE) == written.BARE_OUTLOOKS
    store.close()


def test_on_the_way_down_readings_lose_what_the_older_predrain_would_refuse(place: Place) -> None:
    place.migrate(store_schema.VERSION)
    store = place.opened()
    first = written.READINGS[0]
    assert isinstance(first.seen, Smart)
    logged = replace(first.seen, logs=Logs(failed_self_tests=2))
    seated = replace(first, seen=logged, osd_devices=(OsdDevice(OsdId(3), Role.DB),), kernel_errors=7)
    store.add_readings([seated, *written.READINGS[1:]])
    window = replace(written.LATENCIES[0], backfills_max=1, recovering=True)
    store.add_latency(LatencyWindows.from_summaries([window]))
    store.close()
    place.migrate(2)
    documents = place.do(lambda c: c.execute(text("SELECT document FROM readings")).scalars().all())
    (latency,) = place.do(lambda c: c.execute(text("SELECT document FROM latency")).scalars().all())
    assert not any({"seats", "kernel_errors"} & json.loads(zlib.decompress(raw)).keys() for raw in documents)
    assert not {"backfills_max", "recovering"} & json.loads(latency).keys()
    place.migrate(store_schema.VERSION)
    store = place.opened()
    assert store.readings(written.DEVICE) == written.READINGS
    assert store.read_latency_summaries(3, written.NOON) == (written.LATENCIES[0],)
    store.close()


def test_rows_of_before_are_of_the_cluster_to_which_the_store_is_bound(place: Place) -> None:
    place.migrate(store_schema.VERSION)
    store = place.opened()
    written.fill(store)
    store.close()
    place.migrate(9)
    bind = text("INSERT INTO notes (room, name, document) VALUES ('cluster', 'fsid', :fsid)")
    place.do(lambda connection: connection.execute(bind, {"fsid": FSID.encode()}))
    place.migrate(store_schema.VERSION)
    store = place.opened()
    assert store.get_cluster() == FSID
    assert store.latency_hosts() == ("ceph-1",)
    assert store.read_latency_summaries(3, written.NOON) == tuple(
        replace(one, cluster=FSID) for one in written.LATENCIES
    )
    assert store.read_life_changes(osd=OsdId(5)) == (written.LIFE_CHANGE,)
    assert store.drains() == (written.DRAIN,)
    assert written.OSD_DOWN in store.read_cluster_events()
    store.close()


def test_on_the_way_down_from_version_10_only_the_own_cluster_is_left(place: Place) -> None:
    """Version 9 would take osd.3 of another cluster for osd.3 of its own."""
    place.migrate(store_schema.VERSION)
    store = place.opened()
    store.bind_cluster(FSID)
    written.fill(store)
    other = ClusterId("11111111-1111-4111-8111-111111111111")
    store.add_latency(
        LatencyWindows.from_summaries([replace(written.LATENCIES[0], cluster=other, operations=1)])
    )
    store.close()
    place.migrate(9)
    kept = place.do(lambda c: c.execute(text("SELECT count(*) FROM host_latency")).scalar_one())
    assert kept == len(written.LATENCIES)
    place.migrate(store_schema.VERSION)
    store = place.opened()
    assert store.read_latency_summaries(3, written.NOON, other) == ()
    assert len(store.read_latency_summaries(3, written.NOON)) == len(written.LATENCIES)
    store.close()


def test_on_the_way_down_from_version_11_documents_lose_their_dictionary(place: Place) -> None:
    """Version 10 knows no dictionary."""
    place.migrate(store_schema.VERSION)
    store = place.opened()
    written.fill(store)
    store.close()
    place.migrate(10)
    for table in ("readings", "latest_readings", "outlooks", "latest_outlooks"):
        rows = place.do(
            lambda c, table=table: c.execute(text(f"SELECT document FROM {table}")).scalars().all()
        )
        assert rows
        assert {zstandard.get_frame_parameters(row).dict_id for row in rows} == {documents.NO_DICTIONARY}


def test_an_upgrade_to_version_11_leaves_the_rows_as_they_are_and_reads_them(tmp_path: Path) -> None:
    path = _old_file(tmp_path, 10)
    question = "SELECT document FROM outlooks ORDER BY as_of"
    with closing(sqlite3.connect(path)) as connection:
        before = connection.execute(question).fetchall()
    store = SqliteStore(path)
    assert store.outlooks(written.DEVICE) == written.OUTLOOKS, "with their curves, as they were written"
    store.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(question).fetchall() == before


def read_newest_outlooks(connection: Connection) -> list[bytes]:
    return [bytes(raw) for raw in connection.execute(text("SELECT document FROM latest_outlooks")).scalars()]


def test_on_the_way_down_from_version_12_curves_become_digits(place: Place) -> None:
    """Version 11 reads a curve in the JSON of the outlook only."""
    place.migrate(store_schema.VERSION)
    store = place.opened()
    written.fill(store)
    store.close()
    (kept,) = place.do(read_newest_outlooks)
    assert documents.split_curve(kept)[1] == written.OUTLOOKS[-1].survival
    place.migrate(11)
    (kept,) = place.do(read_newest_outlooks)
    assert zstandard.get_frame_parameters(kept).dict_id == documents.NEWEST_DICTIONARY
    assert wire_bodies.OUTLOOK.read(decompress_document(kept)) == written.OUTLOOKS[-1]


def test_an_upgrade_to_version_12_leaves_a_curve_as_digits_until_the_next_outlook(tmp_path: Path) -> None:
    path = _old_file(tmp_path, 11)
    question = "SELECT document FROM latest_outlooks"
    with closing(sqlite3.connect(path)) as connection:
        before = connection.execute(question).fetchall()
    next_one = replace(written.OUTLOOKS[-1], as_of=written.NOON + timedelta(days=1))
    store = SqliteStore(path)
    assert store.latest_outlooks() == {written.DEVICE: written.OUTLOOKS[-1]}
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(question).fetchall() == before
    store.save_outlooks([next_one])
    assert store.latest_outlooks() == {written.DEVICE: next_one}
    store.close()
    with closing(sqlite3.connect(path)) as connection:
        assert len(connection.execute(question).fetchone()[0]) < len(before[0][0])


def test_latencies_come_together_by_host_and_apart_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages that end within a host's windows; an OSD that moved, one merged, one that came late beside it."""
    monkeypatch.setattr(rewriting, "_PAGE", 7)
    place.migrate(store_schema.VERSION)
    told = [
        replace(written.LATENCIES[n % 3], osd=OsdId(osd), host=HostName(f"ceph-{osd % 2 if osd else n}"))
        for osd in range(5)
        for n in range(3)
    ]
    store = place.opened()
    store.add_latency(LatencyWindows.from_summaries(told))
    store.merge_old_latencies(written.NOON + timedelta(minutes=1))
    store.add_latency(LatencyWindows.from_summaries(told[:5]))
    before = {osd: store.read_latency_summaries(osd, written.NOON) for osd in range(5)}
    store.close()
    for _ in range(2):
        place.migrate(4)
        place.migrate(store_schema.VERSION)
    store = place.opened()
    assert {osd: store.read_latency_summaries(osd, written.NOON) for osd in range(5)} == before
    assert store.latency_hosts() == ("ceph-0", "ceph-1", "ceph-2")
    store.close()


@pytest.mark.slow
def test_many_pages_of_latencies_are_all_packed(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """More rows than are taken at once, keys that end a page in the midst of an OSD."""
    place.migrate(2)
    rows = [
        {"osd": osd, "start": n * 60_000_000, "document": json.dumps(
            {"osd": osd, "host": "h", "window_start": "1970-01-01T00:00:00Z", "window_seconds": 60, "operations": n}
        ).encode()}
        for osd in range(7) for n in range(1500)
    ]  # fmt: skip
    fill = text("INSERT INTO latency VALUES (:osd, :start, :document)")
    place.do(lambda connection: connection.execute(fill, rows))
    place.migrate(store_schema.VERSION)
    store = place.opened()
    for osd in range(7):
        assert [
            one.operations for one in store.read_latency_summaries(osd, store_schema.from_microseconds(0))
        ] == list(range(1500))
    store.close()


@pytest.mark.system
def test_a_database_is_brought_up_by_the_command_only(server: Server) -> None:
    url = server.url(server.database())
    with pytest.raises(StoreOutdated, match=r"has no tables yet .*predrain store migrate"):
        PostgresStore(url)
    assert read_postgres_version(url) == 0
    assert migrate_postgres_store(url, 2) == (0, 2)
    with pytest.raises(
        StoreOutdated,
        match=rf"has version 2 .*works with version {store_schema.VERSION}: .*predrain store migrate",
    ):
        PostgresStore(url)
    with pytest.raises(NoStoreBackup, match=r"has version 2, .*pg_dump .*--backed-up.*nothing was changed"):
        migrate_postgres_store(url)
    assert read_postgres_version(url) == 2
    assert migrate_postgres_store(url, backed_up=True) == (2, store_schema.VERSION)
    assert migrate_postgres_store(url) == (store_schema.VERSION, store_schema.VERSION)
    PostgresStore(url).close()


@pytest.mark.system
def test_a_database_of_a_newer_predrain_is_left_alone(server: Server) -> None:
    name = server.database()
    url = server.url(name)
    migrate_postgres_store(url)
    newer = store_schema.VERSION + 1
    server.run(f"UPDATE alembic_version SET version_num = '{newer:04}'", name)
    for attempt in (lambda: PostgresStore(url), lambda: migrate_postgres_store(url)):
        with pytest.raises(
            StoreUnreadable, match=f"has version {newer} and this predrain knows {store_schema.VERSION}: "
        ):
            attempt()
    assert read_postgres_version(url) == newer
