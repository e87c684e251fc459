"""Going back to the copy of a store's file that was made before its version changed (data.store.sqlite_upgrade).

The newer file is kept under the name of its own version, by a second name for the same bytes: going back takes no
space. The copy gets the file's name in one step, so that a process that is killed leaves either file there.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from predrain.data.drain import Drain, JournalEntry
from predrain.data.sqlite_file import (
    BUSY_SECONDS,
    SqliteFault,
    classify_sqlite_error,
    find_damage,
)
from predrain.data.store import audit_chain, documents, store_schema
from predrain.data.store.sqlite_store import SqliteDatabase
from predrain.data.store.sqlite_upgrade import flush_folder, name_copy, open_beside
from predrain.data.store.store_faults import StoreBusy, StoreFull, StoreUnreadable, describe_damage
from predrain.data.store.store_port import AUDIT
from predrain.data.store.store_schema import from_microseconds
from predrain.data.wire import wire_bodies
from predrain.data.wire.strict_json import InvalidValue

_NOTED_FROM: Final = 4
"""The lowest version that has notes."""
_CHAINED_FROM: Final = 6
"""The lowest version whose audit is a chain."""


@dataclass(frozen=True, slots=True)
class CountedRows:
    """Rows of one kind that only the newer file has: how many, and the newest one's time (None: there are none)."""

    count: int
    newest: datetime | None


@dataclass(frozen=True, slots=True)
class ChangedDrain:
    """A drain that the newer file holds in another revision than the copy. `before`: None if the copy has no such
    drain.
    """

    before: Drain | None
    now: Drain


@dataclass(frozen=True, slots=True)
class SinceCopy:
    """The rows of a store's file that its copy does not have.

    `audit`: lines of the audit that can be read, oldest first. `halt`: the reason of the halt that stands now.
    `drains_now`, `drains_before`: all drains of the file, and of the copy.
    """

    readings: CountedRows
    outcomes: CountedRows
    drains: tuple[ChangedDrain, ...]
    audit: tuple[JournalEntry, ...]
    halt: str | None
    drains_now: tuple[Drain, ...]
    drains_before: tuple[Drain, ...]


def find_copies(path: Path) -> dict[int, Path]:
    """Return the copies of a store's file beside it, by the version that each has by its name."""
    own = re.compile(re.escape(path.name) + r"\.v(\d+)")
    found = ((own.fullmatch(one.name), one) for one in path.absolute().parent.iterdir() if one.is_file())
    return {int(match[1]): one for match, one in found if match is not None}


def compare_with_copy(path: Path, copy: Path) -> SinceCopy:
    """Return what the file holds and the copy, of a lower version, does not. Both are read, by their keys.

    Raises StoreUnreadable, StoreBusy.
    """
    with _explained(path), closing(open_beside(path, copy)) as connection:
        before, now = _read_drains(connection, "beside"), _read_drains(connection, "main")
        changed = [
            ChangedDrain(before.get(id_), drain)
            for id_, drain in now.items()
            if id_ not in before or before[id_].revision != drain.revision
        ]
        lines = connection.execute(
            "SELECT document FROM main.journal AS m WHERE drain = ? AND NOT EXISTS"
            " (SELECT 1 FROM beside.journal AS k WHERE k.digest = m.digest) ORDER BY number",
            (AUDIT,),
        )
        audit = []
        for (document,) in lines:
            with suppress(InvalidValue):
                audit.append(wire_bodies.JOURNAL_ENTRY.read(document))
        halt = connection.execute("SELECT why FROM main.halt").fetchone()
        return SinceCopy(
            _count_rows(connection, "readings", "taken_at", ("device", "taken_at")),
            _count_rows(connection, "outcomes", "at", ("digest",)),
            tuple(changed),
            tuple(audit),
            halt[0] if halt is not None else None,
            tuple(now.values()),
            tuple(before.values()),
        )


def put_copy_in_place(path: Path, held: int, to: int, line: JournalEntry) -> Path:
    """Make the copy of version `to` the store's file. Return the name that the file of version `held` has then.

    The copy first gets `line` in its audit, the notes that name the store, and the halt that stands. No other process
    may use the file. Raises StoreUnreadable, StoreBusy, StoreFull; then the file is as it was.
    """
    copy, aside = name_copy(path, to), name_copy(path, held)
    with _explained(path):
        if (damage := find_damage(copy)) is not None:
            raise StoreUnreadable(describe_damage(str(copy), damage))
        _carry_over(path, copy, to, line)
        for one in (copy, path):
            _merge_write_ahead_log(one)
        begun = aside.with_name(f"{aside.name}.part")
        try:
            begun.unlink(missing_ok=True)
            os.link(path, begun)
            begun.replace(aside)
            begun.unlink(missing_ok=True)  # is there still if both names were of one file already
            copy.replace(path)
            flush_folder(path.absolute().parent)
        except OSError as error:
            raise StoreFull(
                f"the store {path} cannot be put aside ({error}): move {copy} to {path} yourself, with the service"
                " stopped"
            ) from error
    return aside


def _carry_over(path: Path, copy: Path, to: int, line: JournalEntry) -> None:
    """Write into the copy what must not be lost by going back to it."""
    with closing(open_beside(path, copy)) as connection, connection:
        if to >= _NOTED_FROM:
            # The log beside the store names it: without its identity a later upgrade would take it for another store.
            connection.execute(
                "INSERT OR IGNORE INTO beside.notes (room, name, document)"
                " SELECT room, name, document FROM main.notes WHERE room = 'store'"
            )
        connection.execute("INSERT OR REPLACE INTO beside.halt (id, why) SELECT id, why FROM main.halt")
    document = wire_bodies.JOURNAL_ENTRY.write(line)
    row = {
        "drain": AUDIT,
        "digest": documents.compute_document_digest(document),
        "document": document,
    }
    database = SqliteDatabase(copy, keep_version=True)

    def append(connection: Connection) -> None:
        if to >= _CHAINED_FROM:
            audit_chain.append_lines(database, connection, [row])
        else:
            connection.execute(database.insert(store_schema.journal), [row])

    try:
        database.write(append)
    finally:
        database.close()


def _merge_write_ahead_log(path: Path) -> None:
    """Make a file of SQLite one file, without a log beside it. Raises sqlite3.OperationalError if it is in use."""
    with closing(sqlite3.connect(path, timeout=BUSY_SECONDS)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE").fetchone()


def _read_drains(connection: sqlite3.Connection, of: str) -> dict[str, Drain]:
    """Return the drains of one of both files, by id. Raises StoreUnreadable: an unknown drain may be under way."""
    found = {}
    for id_, document in connection.execute(f"SELECT id, document FROM {of}.drains ORDER BY created_at"):  # noqa: S608
        try:
            found[id_] = documents.DRAIN.read(document)
        except InvalidValue as error:
            raise StoreUnreadable(
                f"drain {id_} cannot be read ({error}), so it may be under way: bring the store back from a backup"
                " (`predrain restore`)"
            ) from error
    return found


def _count_rows(connection: sqlite3.Connection, table: str, time: str, keys: tuple[str, ...]) -> CountedRows:
    same = " AND ".join(f"k.{key} = m.{key}" for key in keys)
    count, newest = connection.execute(
        f"SELECT count(*), max({time}) FROM main.{table} AS m"  # noqa: S608
        f" WHERE NOT EXISTS (SELECT 1 FROM beside.{table} AS k WHERE {same})"
    ).fetchone()
    return CountedRows(count, None if newest is None else from_microseconds(newest))


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn errors of SQLite about a store's file or its copy into sentences."""
    try:
        yield
    except sqlite3.Error as error:
        if classify_sqlite_error(error) is SqliteFault.HELD:
            raise StoreBusy(
                f"another process uses the store {path} ({error}): see which with `fuser`, and try again; nothing was"
                " changed"
            ) from error
        raise StoreUnreadable(describe_damage(str(path), error)) from error
