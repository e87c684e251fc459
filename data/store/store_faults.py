"""The faults of a store, as sentences with the cure; those of PostgreSQL are in data.store.postgres_errors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final, TypeVar

import structlog
from sqlalchemy.exc import DBAPIError

from predrain.data.refusal import Refusal
from predrain.data.sqlite_file import SqliteFault, classify_sqlite_error
from predrain.data.wire.strict_json import InvalidValue

T = TypeVar("T")
Raw = TypeVar("Raw", bound=Hashable)
"""The content of a row: a document, or columns of which a value is made."""

UNREADABLE: Final = (InvalidValue, TypeError, ValueError, OverflowError)
"""Errors from reading a damaged document: its bytes are no document, or no bytes at all."""


class StoreRefusal(Refusal):
    """Something is wrong with the store, and not with the value that was to be saved."""


class StoreUnreadable(StoreRefusal):
    """The store is damaged, is no store, or was written by a newer predrain."""


class StoreFull(StoreRefusal):
    """The store cannot take more; values saved before are safe."""


class StoreBusy(StoreRefusal):
    """Other processes have held the store, or it has worked, for too long; nothing was changed."""


class StoreAway(StoreRefusal):
    """The store's server does not answer. A value that was being saved may or may not be there; save it again."""


class StoreDenied(StoreRefusal):
    """The store's server refuses these credentials, or gives them too few rights."""


class StoreOutdated(StoreRefusal):
    """The store has the tables of an older predrain, or none yet, and an operator has to migrate it."""


class NoStoreBackup(StoreRefusal):
    """The tables of a database are to be changed, and no person has said that there is a dump of it."""


def describe_damage(name: str, why: object) -> str:
    """Return the sentence about a store whose file is damaged, with the cure."""
    return (
        f"the store {name} is damaged or no store ({why}): bring it back from a backup (`predrain restore`), or move it"
        " away: the next start says how to begin with an empty store"
    )


@contextmanager
def raise_sqlite_refusals(name: str) -> Iterator[None]:
    """Turn SQLite's errors about the store `name` into sentences; other errors pass as they are."""
    try:
        yield
    except DBAPIError as error:
        wrong = classify_sqlite_error(error.orig)
        if wrong is SqliteFault.NO_ROOM:
            raise StoreFull(
                f"the store {name} cannot be written ({error.orig}): make room on its disk or make it"
                " writable; all data saved before is safe"
            ) from error
        if wrong is SqliteFault.HELD:
            raise StoreBusy(
                f"the store {name} has been held by another process for too long ({error.orig}): see which"
                " with `fuser`, and try again; nothing was changed"
            ) from error
        if wrong is SqliteFault.BROKEN:
            raise StoreUnreadable(describe_damage(name, error.orig)) from error
        raise


class UnreadableRows:
    """Rows of one store whose documents cannot be read: each is passed over where it is found, and reported.

    A damaged row costs its own content and nothing else. Safe for several threads.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = Lock()
        self._found: dict[str, dict[int, str]] = {}
        """By table: the reason why each document cannot be read, by the document's hash."""

    def read_all(
        self, table: str, raws: Iterable[Raw], read: Callable[[Raw], T], *, whole: bool = False
    ) -> tuple[T, ...]:
        """Return the values of all readable documents, in their order. `whole`: these are all rows of the table."""
        values, damaged = [], dict[int, str]()
        for raw in raws:
            try:
                values.append(read(raw))
            except UNREADABLE as error:
                damaged[hash(raw)] = str(error)
        if damaged or whole:
            self._note(table, damaged, whole)
        return tuple(values)

    def read_one(self, table: str, raw: Raw, read: Callable[[Raw], T]) -> T | None:
        """Return the value of one document, or None if it cannot be read."""
        found = self.read_all(table, (raw,), read)
        return found[0] if found else None

    def count_unreadable_rows(self, table: str) -> int:
        """Return how many rows of `table` are known to be unreadable."""
        with self._lock:
            return len(self._found.get(table, ()))

    def describe(self) -> str | None:
        """Return a sentence about all such rows with the cure, or None if there are none."""
        with self._lock:
            counts = {table: len(rows) for table, rows in sorted(self._found.items()) if rows}
            why = next((why for rows in self._found.values() for why in rows.values()), "")
        if not counts:
            return None
        told = " and ".join(f"{count} in {table}" for table, count in counts.items())
        return (
            f"the store {self._name} holds rows that cannot be read: {told} ({why}); they are left out and the rest"
            " goes on: bring the store back from a backup to have them again"
        )

    def _note(self, table: str, damaged: dict[int, str], whole: bool) -> None:
        with self._lock:
            known = self._found.setdefault(table, {})
            fresh = damaged.keys() - known.keys()
            if whole:
                known.clear()
            known.update(damaged)
        for one in fresh:
            structlog.get_logger().error(
                "a row cannot be read", store=self._name, table=table, reason=damaged[one]
            )
