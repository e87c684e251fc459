"""The store in PostgreSQL: many services and workers at once, on any machine."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from psycopg.types.array import ListBinaryDumper
from sqlalchemy import (
    URL,
    Column,
    ColumnElement,
    Connection,
    String,
    Table,
    and_,
    any_,
    bindparam,
    cast,
    create_engine,
    event,
    func,
    make_url,
    select,
    text,
    true,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.types import UserDefinedType

from predrain.data.store import schema
from predrain.data.store.faults import SetAside, StoreDenied, StoreOutdated, StoreUnreadable
from predrain.data.store.postgres_errors import complained, passing
from predrain.data.store.sql import SqlStore
from predrain.data.store.timeouts import CONNECT_SECONDS, SILENT_SECONDS, WatchedConnection
from predrain.data.store.upkeep import COUNTED

T = TypeVar("T")

SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
OLDEST = 15
"""Major version of the oldest server that is taken: older ones are tested by nobody."""
STATEMENT_SECONDS = 60
GRACE_SECONDS = 15
"""How much later than the server itself we give a statement up."""


class PostgresStore(SqlStore):
    """`data.store.port.Store` in the database that `url` names (`postgresql://USER@HOST:PORT/DATABASE`).

    The password comes from the URL, from PGPASSFILE or from `~/.pgpass`, as with PostgreSQL's own tools, and is never
    printed. Raises StoreOutdated unless the database has this predrain's format (`migrated` brings it there), and
    else what data.store.faults tells.
    """

    def __init__(self, url: str) -> None:
        super().__init__(PostgresDatabase(url))


class PostgresDatabase:
    """`data.store.database.Database` on a server.

    What failed since the server went away, or since two writers stood in each other's way, is done once more. Nothing
    waits for ever: not a connection (10 s), not a statement or a lock (60 s), not a machine that is gone (20 s), not a
    server that stands still (data.store.timeouts: 30 s).
    """

    def __init__(self, url: str) -> None:
        self._server = _Server(url, STATEMENT_SECONDS)
        self.name = self._server.name
        self.set_aside = SetAside(self.name)
        try:
            self.read(self._check)
        except BaseException:
            self.close()
            raise

    def insert(self, table: Table) -> postgresql.Insert:
        """An INSERT that may say what to do about a key that is there already."""
        return postgresql.insert(table)

    def put(
        self,
        connection: Connection,
        table: Table,
        rows: Sequence[Mapping[str, Any]],
        conflict: Callable[[Any], Any],
    ) -> int:
        """Write many rows, as one statement with an array a column: a third of the work of as many statements."""
        arrays = [func.unnest(bindparam(one.name, type_=postgresql.ARRAY(one.type))) for one in table.columns]
        insert = postgresql.insert(table).from_select([one.name for one in table.columns], select(*arrays))
        columns = {one.name: [row[one.name] for row in rows] for one in table.columns}
        return connection.execute(conflict(insert), columns, execution_options=COUNTED).rowcount

    def among(self, column: Column[str], values: Collection[str]) -> ColumnElement[bool]:
        """Whether the column holds one of `values`: one array, where a word each would be parsed every time."""
        return column == any_(bindparam(None, list(values), type_=postgresql.ARRAY(column.type)))

    def read(self, work: Callable[[Connection], T]) -> T:
        """What `work` finds. It is called twice when the server went away meanwhile."""
        return self._server.do(work)

    def write(self, work: Callable[[Connection], T]) -> T:
        """`work` in one transaction; called twice when the server went away meanwhile."""
        return self._server.do(work)

    def number(self, connection: Connection) -> int:
        """The server's own number of the transaction. Lower ones may commit later."""
        return int(connection.execute(text("SELECT pg_current_xact_id()::text")).scalar_one())

    def mark(self, connection: Connection) -> str:
        """The server's snapshot: `first:next:others`, where transactions from `first` on may be under way."""
        return str(connection.execute(text("SELECT pg_current_snapshot()::text")).scalar_one())

    def between(self, written: ColumnElement[int], before: str, now: str) -> ColumnElement[bool]:
        """Whether `now` sees the transaction and `before` does not; true on a server that was set back since.

        A number that is not reached yet is of another server, from which the tables were brought here.
        """
        first, following = int(before.split(":")[0]), int(now.split(":")[1])
        if following < int(before.split(":")[1]):
            return true()
        number = cast(cast(written, String), _Servers("xid8"))

        def seen(mark: str) -> ColumnElement[bool]:
            return func.pg_visible_in_snapshot(number, cast(mark, _Servers("pg_snapshot")))

        # The first two are what the index answers; alone they would tell twice what ran beside the look before.
        return and_(written >= first, written < following, seen(now), ~seen(before))

    @contextmanager
    def alone(self, task: str) -> Iterator[bool]:
        """Whether no other process does `task` as long as the block runs: by a lock that ends with its connection. The
        server may notice that late, so the block gives it back at its end.
        """
        with self._server.session() as connection:
            asked = text("SELECT pg_try_advisory_lock(:key)")
            mine = connection.execute(asked, {"key": _key(task)}).scalar_one()
            connection.commit()  # the lock is the session's, and a transaction left open would keep dead rows
            try:
                yield mine
            finally:
                with suppress(SQLAlchemyError):  # what the block did is done
                    connection.execute(text("SELECT pg_advisory_unlock_all()"))
                    connection.commit()

    def close(self) -> None:
        """Let go of the connections."""
        self._server.close()

    def _check(self, connection: Connection) -> None:
        from predrain.data.store import migrations

        held = migrations.version_of(connection)
        if held > schema.VERSION:
            raise StoreUnreadable(
                f"the store {self.name} has version {held} and this predrain knows {schema.VERSION}: update predrain"
            )
        if held < schema.VERSION:
            has = f"has version {held}" if held else "has no tables yet"
            raise StoreOutdated(
                f"the store {self.name} {has} and this predrain works with version {schema.VERSION}: stop what else"
                " uses it, and run `predrain store migrate`"
            )


def version(url: str) -> int:
    """The version of the store in a database, 0 when there is none yet. Raises as PostgresStore does."""
    from predrain.data.store import migrations

    server = _Server(url, STATEMENT_SECONDS)
    try:
        return server.do(migrations.version_of)
    finally:
        server.close()


def migrated(url: str, to: int = schema.VERSION) -> tuple[int, int]:
    """Bring a database's store to version `to`, in one transaction; returns the versions before and after.

    Of several who do so at once one does it, and the others find it done. Raises StoreUnreadable when the store is
    newer than this predrain, and as PostgresStore does.
    """
    from predrain.data.store import migrations

    server = _Server(url, statement_seconds=0)

    def work(connection: Connection) -> int:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _key("migrate")})
        held = migrations.version_of(connection)
        if held > schema.VERSION:
            raise StoreUnreadable(
                f"the store {server.name} has version {held} and this predrain knows {schema.VERSION}: update predrain"
            )
        if held != to:
            migrations.migrate(connection, to)
        return held

    try:
        return server.do(work), to
    finally:
        server.close()


class _Servers(UserDefinedType[Any]):
    """A type that only this server knows."""

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **_: Any) -> str:
        return self.name


class _Server:
    """Connections to one database, and what is done when they break."""

    def __init__(self, url: str, statement_seconds: int) -> None:
        where = _parsed(url)
        self.name = (
            f"{where.host or 'localhost'}:{where.port or 5432}/{where.database or where.username or ''}"
        )
        limit = f"-c statement_timeout={statement_seconds * 1000} -c lock_timeout={STATEMENT_SECONDS * 1000}"
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
            lambda _dialect, _record, _words, how: WatchedConnection.to(how, longest),
        )

    def do(self, work: Callable[[Connection], T]) -> T:
        """`work` in a transaction, and once more when what stopped it may have passed."""
        with complained(self.name):
            try:
                return self._once(work)
            except DBAPIError as error:
                if not passing(error):
                    raise
            return self._once(work)

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """A connection of one's own, closed when the block ends."""
        with complained(self.name), self._engine.connect() as connection:
            connection.detach()
            yield connection

    def _once(self, work: Callable[[Connection], T]) -> T:
        with self._engine.connect() as connection, connection.begin():
            _new_enough(self.name, connection)
            return work(connection)

    def close(self) -> None:
        self._engine.dispose()


def _in_binary(connection: Any, _record: Any) -> None:
    # The driver writes arrays as text unless it is told otherwise, and documents in it twice as long.
    connection.adapters.register_dumper(list, ListBinaryDumper)


def _parsed(url: str) -> URL:
    try:
        where = make_url(url)
    except (ArgumentError, ValueError):
        where = None
    if where is None or where.drivername not in SCHEMES:
        # What was given may hold a password.
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


def _key(task: str) -> int:
    """Advisory locks are numbers; these are predrain's."""
    return (0x70726472 << 32) | zlib.crc32(task.encode())
