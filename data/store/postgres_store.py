"""The store in PostgreSQL: many services and workers at once, on any machine."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, TypeVar

from psycopg.types.array import ListBinaryDumper
from sqlalchemy import (
    URL,
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Select,
    String,
    Subquery,
    Table,
    and_,
    any_,
    bindparam,
    cast,
    create_engine,
    event,
    func,
    literal,
    literal_column,
    make_url,
    select,
    text,
    true,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from predrain.data.store import store_schema
from predrain.data.store.database import Conflict, KeyRange
from predrain.data.store.postgres_arrays import ServerType, declare_array, pack_array, register_packed_arrays
from predrain.data.store.postgres_errors import is_transient_error, raise_postgres_refusals
from predrain.data.store.postgres_timeouts import CONNECT_SECONDS, SILENT_SECONDS, WatchedConnection
from predrain.data.store.sql_store import SqlStore
from predrain.data.store.store_faults import (
    NoStoreBackup,
    StoreDenied,
    StoreOutdated,
    StoreUnreadable,
    UnreadableRows,
)
from predrain.data.store.table_upkeep import COUNTED

T = TypeVar("T")

SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
OLDEST = 15
"""Major version of the oldest supported server: older ones are not tested."""
STATEMENT_SECONDS = 60
GRACE_SECONDS = 15
"""Seconds after the server's own timeout at which the client gives a statement up."""


class PostgresStore(SqlStore):
    """`data.store.store_port.Store` in the database that `url` names (`postgresql://USER@HOST:PORT/DATABASE`).

    The password comes from the URL, from PGPASSFILE or from `~/.pgpass`, as with PostgreSQL's own tools, and is never
    printed. Raises StoreOutdated unless the database has the format of this version (`migrate_postgres_store` migrates
    it), and otherwise the errors of data.store.store_faults.
    """

    def __init__(self, url: str) -> None:
        super().__init__(PostgresDatabase(url))


class PostgresDatabase:
    """`data.store.database.Database` on a server.

    Work that failed because the server went away, or because two writers conflicted, is done once more. Every wait is
    bounded: for a connection (10 s), a statement or a lock (60 s), a machine that is gone (20 s), and a server that
    hangs (data.store.postgres_timeouts: 30 s).
    """

    def __init__(self, url: str) -> None:
        self._server = _Server(url, STATEMENT_SECONDS)
        self.name = self._server.name
        self.set_aside = UnreadableRows(self.name)
        try:
            self.read(self._check)
        except BaseException:
            self.close()
            raise

    def insert(self, table: Table) -> postgresql.Insert:
        """Return an INSERT that may say what to do about a key that exists already."""
        return postgresql.insert(table)

    def insert_many(
        self,
        connection: Connection,
        table: Table,
        rows: Sequence[Mapping[str, Any]],
        conflict: Conflict,
    ) -> int:
        """Write many rows as one statement with an array for each column: a third of the work of single statements."""
        columns = {one.name: pack_array(one.type, [row[one.name] for row in rows]) for one in table.columns}
        statement = _build_bulk_insert(table, conflict)
        return connection.execute(statement, columns, execution_options=COUNTED).rowcount

    def is_any_of(self, column: Column[str], values: Collection[str]) -> ColumnElement[bool]:
        """Return the condition that the column holds one of `values`, as one array: single words would be parsed each
        time.
        """
        return column == any_(declare_array(None, column.type, pack_array(column.type, list(values))))

    def contains_bytes(self, column: Column[bytes], part: bytes) -> ColumnElement[bool]:
        """Return the condition that the column's value contains `part`."""
        return func.position(literal(part, column.type).op("IN")(column)) > 0

    def list_ranges(self, ranges: Sequence[KeyRange]) -> Select[str, int, int]:
        """Return a query that answers the ranges, which are three arrays."""
        keys = bindparam(None, [one.key for one in ranges], type_=postgresql.ARRAY(String))
        begins = bindparam(None, [one.begin for one in ranges], type_=postgresql.ARRAY(BigInteger))
        ends = bindparam(None, [one.end for one in ranges], type_=postgresql.ARRAY(BigInteger))
        return select(
            func.unnest(keys).label("of"), func.unnest(begins).label("begin"), func.unnest(ends).label("end")
        )

    def rows_in_ranges(self, table: Table, key: str, time: str, ranges: Select[str, int, int]) -> Subquery:
        """Return the rows of the ranges, by one look into the index for each.

        The order inside keeps the planner from a plain join, for which it would read the whole table.
        """
        return self._select_in_ranges(table, key, time, ranges, list(table.columns)).subquery()

    def delete_ranges(
        self, connection: Connection, table: Table, key: str, time: str, ranges: Select[str, int, int]
    ) -> int:
        """Delete the rows of the ranges by their places in the table, which are read as an array; return how many."""
        place: ColumnElement[Any] = literal_column(f"{table.name}.ctid", ServerType("tid"))
        old = self._select_in_ranges(table, key, time, ranges, [place.label("place")])
        places = func.array(old.scalar_subquery(), type_=postgresql.ARRAY(ServerType("tid")))
        return connection.execute(table.delete().where(place == any_(places))).rowcount

    def _select_in_ranges(
        self,
        table: Table,
        key: str,
        time: str,
        ranges: Select[str, int, int],
        columns: Sequence[ColumnElement[Any]],
    ) -> Select[*tuple[Any, ...]]:
        of, begin, end = (asked := ranges.subquery()).c
        mine = (
            select(*columns)
            .where(table.c[key] == of, table.c[time] >= begin, table.c[time] < end)
            .correlate(asked)
            .order_by(table.c[time])
            .lateral()
        )
        return select(*mine.c).select_from(asked.join(mine, true()))

    def read(self, work: Callable[[Connection], T]) -> T:
        """Return the result of `work`. It is called twice if the server went away meanwhile."""
        return self._server.run_in_transaction(work)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction; it is called twice if the server went away meanwhile."""
        return self._server.run_in_transaction(work)

    def read_transaction_number(self, connection: Connection) -> int:
        """Return the server's own number of the transaction. Lower ones may commit later."""
        return int(connection.execute(text("SELECT pg_current_xact_id()::text")).scalar_one())

    def read_commit_mark(self, connection: Connection) -> str:
        """Return the server's snapshot: `first:next:others`, where transactions from `first` on may be in progress."""
        return str(connection.execute(text("SELECT pg_current_snapshot()::text")).scalar_one())

    def is_committed_between(self, written: ColumnElement[int], before: str, now: str) -> ColumnElement[bool]:
        """Return the condition that `now` sees the transaction and `before` does not; true if the server was set back
        since.

        A number that is not reached yet is of another server, from which the tables were copied.
        """
        first, following = int(before.split(":")[0]), int(now.split(":")[1])
        if following < int(before.split(":")[1]):
            return true()
        number = cast(cast(written, String), ServerType("xid8"))

        def seen(mark: str) -> ColumnElement[bool]:
            return func.pg_visible_in_snapshot(number, cast(mark, ServerType("pg_snapshot")))

        # The first two use the index; alone they would report twice the transactions that ran during the
        # previous poll.
        return and_(written >= first, written < following, seen(now), ~seen(before))

    @contextmanager
    def try_lock_task(self, task: str) -> Iterator[bool]:
        """Yield whether no other process does `task` as long as the block runs.

        The lock ends with its connection. The server may notice that late, so the block releases the lock at its end.
        """
        with self._server.session() as connection:
            asked = text("SELECT pg_try_advisory_lock(:key)")
            mine = connection.execute(asked, {"key": _compute_lock_key(task)}).scalar_one()
            connection.commit()  # the lock is the session's, and an open transaction would keep dead rows
            try:
                yield mine
            finally:
                with suppress(SQLAlchemyError):  # the block's work is done
                    connection.execute(text("SELECT pg_advisory_unlock_all()"))
                    connection.commit()

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    def _check(self, connection: Connection) -> None:
        from predrain.data.store import migrations

        held = migrations.version_of(connection)
        if held > store_schema.VERSION:
            raise StoreUnreadable(
                f"the store {self.name} has version {held} and this predrain knows {store_schema.VERSION}:"
                " update predrain"
            )
        if held < store_schema.VERSION:
            has = f"has version {held}" if held else "has no tables yet"
            raise StoreOutdated(
                f"the store {self.name} {has} and this predrain works with version {store_schema.VERSION}: stop"
                " what else uses it, and run `predrain store migrate`"
            )


def read_postgres_version(url: str) -> int:
    """Return the version of the store in a database, 0 if there is none yet. Raises as PostgresStore does."""
    from predrain.data.store import migrations

    server = _Server(url, STATEMENT_SECONDS)
    try:
        return server.run_in_transaction(migrations.version_of)
    finally:
        server.close()


def migrate_postgres_store(
    url: str, to: int = store_schema.VERSION, *, backed_up: bool = False
) -> tuple[int, int]:
    """Migrate a database's store to version `to`, in one transaction; return the versions before and after.

    backed_up: a person says that there is a dump of the database as it is. A new store needs none.

    If several processes migrate at once, one does it, and the others find it done. Raises NoStoreBackup, with nothing
    changed, if the store has tables and no backup; StoreUnreadable if the store is newer than this predrain; and as
    PostgresStore does.
    """
    from predrain.data.store import migrations
    from predrain.data.store.migration_progress import MigrationProgress

    server = _Server(url, statement_seconds=0)

    def work(connection: Connection) -> int:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _compute_lock_key("migrate")})
        held = migrations.version_of(connection)
        if held > store_schema.VERSION:
            raise StoreUnreadable(
                f"the store {server.name} has version {held} and this predrain knows {store_schema.VERSION}:"
                " update predrain"
            )
        if held not in (0, to) and not backed_up:
            raise NoStoreBackup(
                f"the store {server.name} has version {held}, and predrain makes no copy of a database before it is"
                f" brought to version {to}: run `pg_dump --format=custom --file=predrain-v{held}.dump` on it, and then"
                " `predrain store migrate --backed-up`; nothing was changed"
            )
        if held != to:
            with MigrationProgress(server.name, held, to) as progress:
                migrations.migrate_store_version(connection, to, progress.note_version)
        return held

    try:
        return server.run_in_transaction(work), to
    finally:
        server.close()


@cache
def _build_bulk_insert(table: Table, conflict: Conflict) -> Any:
    """Build the statement that writes rows given as an array for each column, once for each table and rule."""
    names = [one.name for one in table.columns]
    arrays = [func.unnest(declare_array(one.name, one.type)) for one in table.columns]
    return conflict.settle(postgresql.insert(table).from_select(names, select(*arrays)))


class _Server:
    """Connections to one database, and the reaction when they break."""

    def __init__(self, url: str, statement_seconds: int) -> None:
        where = _parse_store_url(url)
        self.name = (
            f"{where.host or 'localhost'}:{where.port or 5432}/{where.database or where.username or ''}"
        )
        # The server would compile a question about hundreds of devices for 0.6 s, which then takes 10 ms.
        limit = f"-c jit=off -c statement_timeout={statement_seconds * 1000} -c lock_timeout={STATEMENT_SECONDS * 1000}"
        self._engine = create_engine(
            where,
            pool_size=5,
            max_overflow=15,
            pool_timeout=STATEMENT_SECONDS,
            connect_args={
                "connect_timeout": CONNECT_SECONDS,
                "options": f"{limit} -c idle_in_transaction_session_timeout={STATEMENT_SECONDS * 1000}",
                "keepalives_idle": SILENT_SECONDS // 2,
                "keepalives_interval": SILENT_SECONDS // 4,
                "keepalives_count": 2,
                "tcp_user_timeout": SILENT_SECONDS * 1000,
                "application_name": "predrain",
            },
        )
        event.listen(self._engine, "connect", _in_binary)
        longest = statement_seconds + GRACE_SECONDS if statement_seconds else None
        event.listen(
            self._engine,
            "do_connect",
            lambda _dialect, _record, _words, how: WatchedConnection.connect_watched(how, longest),
        )

    def run_in_transaction(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a transaction, and once more if the error was transient."""
        with raise_postgres_refusals(self.name):
            try:
                return self._once(work)
            except DBAPIError as error:
                if not is_transient_error(error):
                    raise
            return self._once(work)

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """Yield a connection of one's own, closed when the block ends."""
        with raise_postgres_refusals(self.name), self._engine.connect() as connection:
            connection.detach()
            yield connection

    def _once(self, work: Callable[[Connection], T]) -> T:
        with self._engine.connect() as connection, connection.begin():
            _new_enough(self.name, connection)
            return work(connection)

    def close(self) -> None:
        self._engine.dispose()


def _in_binary(connection: Any, _record: Any) -> None:
    # Without this the driver writes arrays as text, and documents in them at twice the length.
    connection.adapters.register_dumper(list, ListBinaryDumper)
    register_packed_arrays(connection)


def _parse_store_url(url: str) -> URL:
    try:
        where = make_url(url)
    except (ArgumentError, ValueError):
        where = None
    if where is None or where.drivername not in SCHEMES:
        # The URL may hold a password.
        raise StoreDenied(
            "the store's URL cannot be read: write postgresql://USER@HOST:PORT/DATABASE"
        ) from None
    return where.set(drivername="postgresql+psycopg")


def _new_enough(name: str, connection: Connection) -> None:
    found: Any = connection.dialect.server_version_info
    if found is not None and found[0] < OLDEST:
        told = ".".join(map(str, found))
        raise StoreDenied(
            f"the server of the store {name} is PostgreSQL {told}; predrain needs {OLDEST} or later: update the server"
        )


def _compute_lock_key(task: str) -> int:
    """Return predrain's number for a task, because advisory locks are numbers."""
    return (0x70726472 << 32) | zlib.crc32(task.encode())
