"""The store in one SQLite file: durable, safe between threads, one writer at a time, readers never wait."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Table,
    and_,
    create_engine,
    event,
    func,
    inspect,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects import sqlite as dialect
from sqlalchemy.pool import QueuePool, StaticPool

from predrain.data.sqlite_file import BUSY_SECONDS, make_durable
from predrain.data.store import schema
from predrain.data.store.faults import SetAside, StoreFull, StoreUnreadable, explained
from predrain.data.store.sql import SqlStore
from predrain.data.store.upkeep import COUNTED

T = TypeVar("T")

MEMORY = ":memory:"


class SqliteStore(SqlStore):
    """`data.store.port.Store` in the file `path`, or in this process's memory (`":memory:"`).

    Several threads and processes may use one file. A file of an older predrain is brought up to this one's format
    when it is opened; before its tables are changed, the file is copied beside itself (`NAME.v2` for version 2).
    Raises StoreUnreadable, StoreFull or StoreBusy (data.store.faults).
    """

    def __init__(self, path: Path | str) -> None:
        super().__init__(SqliteDatabase(path))


class SqliteDatabase:
    """`data.store.database.Database` in a file. Every commit is flushed to the disk (WAL, synchronous=FULL)."""

    def __init__(self, path: Path | str) -> None:
        self.name = str(path)
        self.set_aside = SetAside(self.name)
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
        event.listen(self._engine, "connect", _prepare)
        event.listen(self._engine, "begin", _begin)
        try:
            self.write(self._open)
        except BaseException:
            self.close()
            raise

    def insert(self, table: Table) -> dialect.Insert:
        """An INSERT that may say what to do about a key that is there already."""
        return dialect.insert(table)

    def put(
        self,
        connection: Connection,
        table: Table,
        rows: Sequence[Mapping[str, Any]],
        conflict: Callable[[Any], Any],
    ) -> int:
        """Write many rows, one after the other; returns how many were written."""
        statement = conflict(dialect.insert(table))
        return connection.execute(statement, rows, execution_options=COUNTED).rowcount

    def among(self, column: Column[str], values: Collection[str]) -> ColumnElement[bool]:
        """Whether the column holds one of `values`."""
        return column.in_(values)

    def read(self, work: Callable[[Connection], T]) -> T:
        """What `work` finds."""
        with self._alone or nullcontext(), explained(self.name), self._engine.connect() as connection:
            return work(connection)

    def write(self, work: Callable[[Connection], T]) -> T:
        """`work` in one transaction: durable when this returns, undone when it raises."""
        with (
            self._alone or self._writer,
            explained(self.name),
            self._engine.connect() as connection,
            connection.execution_options(predrain_writes=True).begin(),
        ):
            return work(connection)

    def number(self, connection: Connection) -> int:
        """One more than the last: writers come one after the other."""
        return _last(connection) + 1

    def mark(self, connection: Connection) -> str:
        """The number of the last transaction."""
        return str(_last(connection))

    def between(self, written: ColumnElement[int], before: str, now: str) -> ColumnElement[bool]:
        """Whether that number came after `before`, and not after `now`; true when the file is an older one."""
        first, last = int(before), int(now)
        return and_(written > first, written <= last) if first <= last else true()

    def alone(self, task: str) -> AbstractContextManager[bool]:  # noqa: ARG002
        """Always: the processes that share a file are one service and its commands."""
        return nullcontext(True)

    def close(self) -> None:
        """Let go of the file."""
        self._engine.dispose()

    def _open(self, connection: Connection) -> None:
        """Make the tables of a new file, bring up an older one, refuse a file that is not ours."""
        tables = set(inspect(connection).get_table_names())
        if not tables:
            schema.metadata.create_all(connection)
            connection.execute(schema.version.insert().values(version_num=f"{schema.VERSION:04}"))
            return
        if schema.version.name in tables:
            held = connection.execute(select(schema.version.c.version_num)).scalar_one_or_none()
            if held == f"{schema.VERSION:04}":
                return
        from predrain.data.store import migrations  # with alembic, which a start does not wait for

        version = _ours(self.name, connection)
        if self._alone is None:
            _copy(Path(self.name), version)
        migrations.migrate(connection, schema.VERSION)


def _last(connection: Connection) -> int:
    each = union_all(*(select(func.max(table.c.written).label("written")) for table in schema.FOLLOWED))
    return connection.execute(select(func.max(each.subquery().c.written))).scalar_one() or 0


def _prepare(connection: Any, _record: Any) -> None:
    # The driver's own transactions begin too late for BEGIN IMMEDIATE; `_begin` takes over.
    connection.isolation_level = None
    make_durable(connection)


def _begin(connection: Connection) -> None:
    # A writer that begins as a reader may find that somebody else has written, and then cannot wait.
    writes = connection.get_execution_options().get("predrain_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def version_of_file(path: Path) -> int:
    """The version of the store in an existing file, which is left as it is. Raises as SqliteStore does."""
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": BUSY_SECONDS})
    try:
        with explained(str(path)), engine.connect() as connection:
            return _ours(str(path), connection) if inspect(connection).get_table_names() else schema.VERSION
    finally:
        engine.dispose()


def migrated_file(path: Path, to: int) -> tuple[int, int]:
    """Bring the store in an existing file to version `to`, up or down; returns the versions before and after.

    Raises as SqliteStore does. The file is copied first, as there.
    """
    from predrain.data.store import migrations

    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": BUSY_SECONDS})
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    try:
        with (
            explained(str(path)),
            engine.connect() as connection,
            connection.execution_options(predrain_writes=True).begin(),
        ):
            held = _ours(str(path), connection)
            if held != to:
                _copy(path, held)
                migrations.migrate(connection, to)
            return held, to
    finally:
        engine.dispose()


def _ours(name: str, connection: Connection) -> int:
    """The version of the store that is there. Raises StoreUnreadable for a newer one, or when there is none."""
    from predrain.data.store import migrations

    version = migrations.version_of(connection)
    if not version:
        raise StoreUnreadable(
            f"{name} is a database but not a store of predrain's: name another file or folder"
        )
    if version > schema.VERSION:
        raise StoreUnreadable(
            f"the store {name} has version {version} and this predrain knows {schema.VERSION}:"
            " update predrain, or start it with another state folder"
        )
    return version


def _copy(path: Path, version: int) -> None:
    """The file as it is, whole, beside itself. The one who calls holds it against other writers."""
    kept = path.with_name(f"{path.name}.v{version}")
    begun = kept.with_name(f"{kept.name}.part")
    try:
        begun.unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(begun)) as copy:
            source.backup(copy)
        begun.replace(kept)
    except (sqlite3.Error, OSError) as error:
        raise StoreFull(
            f"the store {path} cannot be copied before it is brought away from version {version} ({error}):"
            " make as much room beside it as it takes, and start again; nothing was changed"
        ) from error
