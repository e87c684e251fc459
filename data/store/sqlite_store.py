"""The store in one SQLite file: durable, safe for several threads, one writer at a time; readers never wait."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from threading import RLock
from typing import Any, Final, TypeVar

import msgspec
from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Integer,
    Select,
    String,
    Subquery,
    Table,
    and_,
    create_engine,
    event,
    func,
    inspect,
    literal_column,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects import sqlite as dialect
from sqlalchemy.pool import QueuePool, StaticPool

from predrain.data.sqlite_file import BUSY_SECONDS, make_durable
from predrain.data.store import store_schema
from predrain.data.store.database import Conflict, KeyRange
from predrain.data.store.sql_store import SqlStore
from predrain.data.store.sqlite_upgrade import change_file_version
from predrain.data.store.store_faults import StoreUnreadable, UnreadableRows, raise_sqlite_refusals
from predrain.data.store.table_upkeep import COUNTED

T = TypeVar("T")

MEMORY = ":memory:"


class SqliteStore(SqlStore):
    """`data.store.store_port.Store` in the file `path`, or in this process's memory (`":memory:"`).

    Several threads and processes may use one file. A file of an older predrain is migrated to this one's format when
    it is opened, after a copy beside itself (data.store.sqlite_upgrade). Raises StoreUnreadable, StoreFull or StoreBusy
    (data.store.store_faults).

    keep_version: the file keeps the version that it has, and the caller uses only what that version has.
    """

    def __init__(self, path: Path | str, *, keep_version: bool = False) -> None:
        super().__init__(SqliteDatabase(path, keep_version=keep_version))


class SqliteDatabase:
    """`data.store.database.Database` in a file. Every commit is flushed to the disk (WAL, synchronous=FULL).

    keep_version: the file keeps the version that it has, and the caller uses only what that version has.
    """

    def __init__(self, path: Path | str, *, keep_version: bool = False) -> None:
        self.name = str(path)
        self.set_aside = UnreadableRows(self.name)
        # In memory there is one connection, and so one user at a time.
        self._alone = RLock() if self.name == MEMORY else None
        self._writer = RLock()
        if self._alone is None:
            try:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreUnreadable(f"the folder of the store {path} cannot be made: {error}") from error
        self._engine = create_engine(
            f"sqlite:///{self.name}",
            poolclass=QueuePool if self._alone is None else StaticPool,
            connect_args={"check_same_thread": False, "timeout": BUSY_SECONDS},
        )
        event.listen(self._engine, "connect", _prepare_connection)
        event.listen(self._engine, "begin", _begin_transaction)
        try:
            if not keep_version:
                self.write(self._open)
        except BaseException:
            self.close()
            raise

    def insert(self, table: Table) -> dialect.Insert:
        """Return an INSERT that may say what to do about a key that exists already."""
        return dialect.insert(table)

    def insert_many(
        self,
        connection: Connection,
        table: Table,
        rows: Sequence[Mapping[str, Any]],
        conflict: Conflict,
    ) -> int:
        """Write many rows, one after the other; return how many were written."""
        statement = conflict.settle(dialect.insert(table))
        return connection.execute(statement, rows, execution_options=COUNTED).rowcount

    def is_any_of(self, column: Column[str], values: Collection[str]) -> ColumnElement[bool]:
        """Return the condition that the column holds one of `values`."""
        return column.in_(values)

    def contains_bytes(self, column: Column[bytes], part: bytes) -> ColumnElement[bool]:
        """Return the condition that the column's value contains `part`."""
        return func.instr(column, part) > 0

    def list_ranges(self, ranges: Sequence[KeyRange]) -> Select[str, int, int]:
        """Return a query that answers the ranges, which are one JSON array."""
        given = func.json_each(msgspec.json.encode(ranges).decode()).table_valued("value")
        return select(
            func.json_extract(given.c.value, "$[0]", type_=String),
            func.json_extract(given.c.value, "$[1]", type_=BigInteger),
            func.json_extract(given.c.value, "$[2]", type_=BigInteger),
        )

    def rows_in_ranges(self, table: Table, key: str, time: str, ranges: Select[str, int, int]) -> Subquery:
        """Return the rows of the ranges, by a loop over them."""
        return self._select_in_ranges(table, key, time, ranges, list(table.columns)).subquery()

    def delete_ranges(
        self, connection: Connection, table: Table, key: str, time: str, ranges: Select[str, int, int]
    ) -> int:
        """Delete the rows of the ranges by their numbers in the file; return how many."""
        number: ColumnElement[int] = literal_column(f"{table.name}.rowid", Integer)
        old = self._select_in_ranges(table, key, time, ranges, [number])
        return connection.execute(table.delete().where(number.in_(old))).rowcount

    def _select_in_ranges(
        self,
        table: Table,
        key: str,
        time: str,
        ranges: Select[str, int, int],
        columns: Sequence[ColumnElement[Any]],
    ) -> Select[*tuple[Any, ...]]:
        of, begin, end = (asked := ranges.subquery()).c
        mine = and_(table.c[key] == of, table.c[time] >= begin, table.c[time] < end)
        return select(*columns).select_from(asked.join(table, mine)).correlate(None)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Return the result of `work`."""
        with (
            self._alone or nullcontext(),
            raise_sqlite_refusals(self.name),
            self._engine.connect() as connection,
        ):
            return work(connection)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction: durable when this returns, undone when it raises."""
        with (
            self._alone or self._writer,
            raise_sqlite_refusals(self.name),
            self._engine.connect() as connection,
            connection.execution_options(predrain_writes=True).begin(),
        ):
            return work(connection)

    def read_transaction_number(self, connection: Connection) -> int:
        """Return the last number plus one: writers come one after the other."""
        return _read_last_transaction(connection) + 1

    def read_commit_mark(self, connection: Connection) -> str:
        """Return the number of the last transaction."""
        return str(_read_last_transaction(connection))

    def is_committed_between(self, written: ColumnElement[int], before: str, now: str) -> ColumnElement[bool]:
        """Return the condition that `written` came after `before`, and not after `now`; true if the file is an older
        one.
        """
        first, last = int(before), int(now)
        return and_(written > first, written <= last) if first <= last else true()

    def try_lock_task(self, task: str) -> AbstractContextManager[bool]:  # noqa: ARG002
        """Return a lock that always holds: the processes that share a file are one service and its commands."""
        return nullcontext(True)

    def close(self) -> None:
        """Close the file."""
        self._engine.dispose()

    def _open(self, connection: Connection) -> None:
        """Create the tables of a new file, migrate an older one, refuse a file of another program."""
        tables = set(inspect(connection).get_table_names())
        if not tables:
            store_schema.metadata.create_all(connection)
            connection.execute(store_schema.version.insert().values(version_num=f"{store_schema.VERSION:04}"))
            return
        if _has_present_version(connection, tables):
            return
        version = _require_known_version(self.name, connection)
        change_file_version(Path(self.name), connection, version, store_schema.VERSION)


_LAST_TRANSACTION: Final = select(
    func.max(
        union_all(*(select(func.max(table.c.written).label("written")) for table in store_schema.FOLLOWED))
        .subquery()
        .c.written
    )
)


def _read_last_transaction(connection: Connection) -> int:
    return connection.execute(_LAST_TRANSACTION).scalar_one() or 0


def _prepare_connection(connection: Any, _record: Any) -> None:
    # The driver's own transactions begin too late for BEGIN IMMEDIATE; `_begin_transaction` replaces them.
    connection.isolation_level = None
    make_durable(connection)


def _begin_transaction(connection: Connection) -> None:
    # A writer that begins as a reader may find that another process has written, and then cannot wait.
    writes = connection.get_execution_options().get("predrain_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def version_of_file(path: Path) -> int:
    """Return the version of the store in an existing file, which is not changed. Raises as SqliteStore does."""
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": BUSY_SECONDS})
    try:
        with raise_sqlite_refusals(str(path)), engine.connect() as connection:
            tables = set(inspect(connection).get_table_names())
            if not tables or _has_present_version(connection, tables):
                return store_schema.VERSION
            return _require_known_version(str(path), connection)
    finally:
        engine.dispose()


def migrated_file(path: Path, to: int) -> tuple[int, int]:
    """Migrate the store in an existing file to version `to`, up or down; return the versions before and after.

    Raises as SqliteStore does. The file is copied first, as there.
    """
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": BUSY_SECONDS})
    event.listen(engine, "connect", _prepare_connection)
    event.listen(engine, "begin", _begin_transaction)
    try:
        with (
            raise_sqlite_refusals(str(path)),
            engine.connect() as connection,
            connection.execution_options(predrain_writes=True).begin(),
        ):
            held = _require_known_version(str(path), connection)
            if held != to:
                change_file_version(path, connection, held, to)
            return held, to
    finally:
        engine.dispose()


def _has_present_version(connection: Connection, tables: Collection[str]) -> bool:
    """Return whether the database, which has these tables, has this version; alembic need not be imported for that."""
    if store_schema.version.name not in tables:
        return False
    held = connection.execute(select(store_schema.version.c.version_num)).scalar_one_or_none()
    return bool(held == f"{store_schema.VERSION:04}")


def _require_known_version(name: str, connection: Connection) -> int:
    """Return the version of the store in the database. Raises StoreUnreadable for a newer one, or if there is none."""
    from predrain.data.store import migrations  # with alembic

    version = migrations.version_of(connection)
    if not version:
        raise StoreUnreadable(
            f"{name} is a database but not a store of predrain's: name another file or folder"
        )
    if version > store_schema.VERSION:
        raise StoreUnreadable(
            f"the store {name} has version {version} and this predrain knows {store_schema.VERSION}:"
            " update predrain, or start it with another state folder"
        )
    return version
