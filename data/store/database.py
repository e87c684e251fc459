"""The base of a store: transactions in one database, and the few things in which databases differ."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from sqlalchemy import Column, ColumnElement, Connection, Select, Subquery, Table
from sqlalchemy.dialects import postgresql, sqlite

from predrain.data.store.store_faults import UnreadableRows

T = TypeVar("T")

EARLIEST: Final = -(1 << 63)
LATEST: Final = (1 << 63) - 1
"""The first and the last number of a BIGINT, in which times are kept."""

Insert = postgresql.Insert | sqlite.Insert
"""Both have `on_conflict_do_nothing`, `on_conflict_do_update` and `excluded`."""


class KeyRange(NamedTuple):
    """The rows of one key, such as a device, whose time is in [begin, end)."""

    key: str
    begin: int = EARLIEST
    end: int = LATEST


@dataclass(frozen=True, slots=True)
class Conflict:
    """The rule of an INSERT for a row whose key exists: the columns `fresh` are written over it, or the row stays.

    Equal values make one statement, which a database prepares once.
    """

    keys: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()
    later: str | None = None
    """The column that must have grown for the row to be written over; None: it always is."""
    again: bool = False
    """True if the row is written over also if that column is equal."""

    def settle(self, insert: Any) -> Any:
        """Return the INSERT (`Database.insert`) with this rule."""
        if not self.fresh:
            return insert.on_conflict_do_nothing()
        where = None
        if self.later is not None:
            new, kept = insert.excluded[self.later], insert.table.c[self.later]
            where = new >= kept if self.again else new > kept
        set_ = {name: insert.excluded[name] for name in self.fresh}
        return insert.on_conflict_do_update(index_elements=self.keys, set_=set_, where=where)


KEPT: Final = Conflict()
"""The row that exists stays as it is."""


class Database(Protocol):
    """A database that is open, in this predrain's format. Errors are raised as in data.store.store_faults."""

    @property
    def name(self) -> str:
        """The name that people know; never with a password."""
        ...

    @property
    def set_aside(self) -> UnreadableRows:
        """Rows that were found to be unreadable."""
        ...

    def insert(self, table: Table) -> Insert:
        """Return an INSERT that may say what to do about a key that exists already."""
        ...

    def insert_many(
        self,
        connection: Connection,
        table: Table,
        rows: Sequence[Mapping[str, Any]],
        conflict: Conflict,
    ) -> int:
        """Write many rows, in their order, each with every column; return how many were written.

        No two rows may have one key, unless the second is to be ignored.
        """
        ...

    def is_any_of(self, column: Column[str], values: Collection[str]) -> ColumnElement[bool]:
        """Return the condition that the column holds one of `values`, of which there may be thousands."""
        ...

    def contains_bytes(self, column: Column[bytes], part: bytes) -> ColumnElement[bool]:
        """Return the condition that the column's value contains `part`."""
        ...

    def list_ranges(self, ranges: Sequence[KeyRange]) -> Select[str, int, int]:
        """Return a query that answers the ranges as rows: key, begin, end."""
        ...

    def rows_in_ranges(self, table: Table, key: str, time: str, ranges: Select[str, int, int]) -> Subquery:
        """Return the rows whose column `key` has the key of a range, and `time` is in it: the table's columns.

        The index is read at each range and nowhere else, even if the planner knows nothing of the table.
        """
        ...

    def delete_ranges(
        self,
        connection: Connection,
        table: Table,
        key: str,
        time: str,
        ranges: Select[str, int, int],
    ) -> int:
        """Delete the rows that `rows_in_ranges` returns, by one statement; return how many."""
        ...

    def read(self, work: Callable[[Connection], T]) -> T:
        """Return the result of `work`, which may be called twice."""
        ...

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction: durable when this returns, undone when it raises.

        `work` may be called twice, and the first call may have taken effect all the same: it must be idempotent.
        """
        ...

    def read_transaction_number(self, connection: Connection) -> int:
        """Return the number of the transaction in which `connection` writes; its rows in followed tables carry it."""
        ...

    def read_commit_mark(self, connection: Connection) -> str:
        """Return a mark of the transactions that have committed by now."""
        ...

    def is_committed_between(self, written: ColumnElement[int], before: str, now: str) -> ColumnElement[bool]:
        """Return the condition that the transaction `written` had committed by the mark `now` and not by `before`.

        The condition is always true if the database has gone back to an older state since `before`.
        """
        ...

    def try_lock_task(self, task: str) -> AbstractContextManager[bool]:
        """Yield whether no other process does `task` as long as the block runs."""
        ...

    def close(self) -> None:
        """Close files and sockets."""
        ...
