"""What a store stands on: transactions in one database, and the few things in which databases differ."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from sqlalchemy import Column, ColumnElement, Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

from predrain.data.store.faults import SetAside

T = TypeVar("T")

Insert = postgresql.Insert | sqlite.Insert
"""Both know `on_conflict_do_nothing`, `on_conflict_do_update` and `excluded`."""


class Database(Protocol):
    """A database that is open, in this predrain's format. What goes wrong is raised as in data.store.faults."""

    @property
    def name(self) -> str:
        """As people know it; never with a password."""
        ...

    @property
    def set_aside(self) -> SetAside:
        """Rows that were met and cannot be read."""
        ...

    def insert(self, table: Table) -> Insert:
        """An INSERT that may say what to do about a key that is there already."""
        ...

    def put(
        self,
        connection: Connection,
        table: Table,
        rows: Sequence[Mapping[str, Any]],
        conflict: Callable[[Any], Any],
    ) -> int:
        """Write many rows, in their order, each with every column; returns how many were written.

        conflict: makes of an `insert` one that knows what to do about a key that is there. No two rows may have one
        key, but where the second is to be ignored.
        """
        ...

    def among(self, column: Column[str], values: Collection[str]) -> ColumnElement[bool]:
        """Whether the column holds one of `values`, of which there may be thousands."""
        ...

    def read(self, work: Callable[[Connection], T]) -> T:
        """What `work` finds. It may be called twice."""
        ...

    def write(self, work: Callable[[Connection], T]) -> T:
        """`work` in one transaction: durable when this returns, undone when it raises.

        It may be called twice, and the first time may have been done all the same: it must be idempotent.
        """
        ...

    def number(self, connection: Connection) -> int:
        """Of the transaction in which `connection` writes: what it writes into followed tables carries it."""
        ...

    def mark(self, connection: Connection) -> str:
        """Which transactions had committed by now."""
        ...

    def between(self, written: ColumnElement[int], before: str, now: str) -> ColumnElement[bool]:
        """Whether the transaction of that number had committed by the mark `now` and not by the mark `before`.

        Always true where the database has gone back to an older state since `before`.
        """
        ...

    def alone(self, task: str) -> AbstractContextManager[bool]:
        """Whether no other process does `task` as long as the block runs."""
        ...

    def close(self) -> None:
        """Let go of files and sockets."""
        ...
