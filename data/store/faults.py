"""What can be wrong with a store, as sentences with the cure; those of PostgreSQL are in data.store.postgres_errors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final, TypeVar

import structlog
from sqlalchemy.exc import DBAPIError

from predrain.data.refusal import Refusal
from predrain.data.sqlite_file import SqliteFault, fault
from predrain.data.wire.shape import Misshapen

T = TypeVar("T")
Raw = TypeVar("Raw", bound=Hashable)
"""What a row keeps: a document, or columns of which a value is made."""

UNREADABLE: Final = (Misshapen, TypeError, ValueError, OverflowError)
"""What reading a damaged document raises: its bytes are no document, or no bytes at all."""


class StoreRefusal(Refusal):
    """It is the store that something is wrong with, and not what was to be saved."""


class StoreUnreadable(StoreRefusal):
    """It is damaged, is no store, or was written by a newer predrain."""


class StoreFull(StoreRefusal):
    """It cannot take more; what was saved before is safe."""


class StoreBusy(StoreRefusal):
    """Others have held it, or it has worked, for too long; nothing was changed."""


class StoreAway(StoreRefusal):
    """Its server does not answer. What was being saved may or may not be there: it is safe to save it again."""


class StoreDenied(StoreRefusal):
    """Its server lets nobody in with these words, or not far enough."""


class StoreOutdated(StoreRefusal):
    """It has the tables of an older predrain, or none yet, and somebody has to bring it up."""


def describe_damage(name: str, why: object) -> str:
    """The sentence about a store whose file is damaged, with the cure."""
    return (
        f"the store {name} is damaged or no store ({why}): bring it back from a backup (`predrain restore`), or move it"
        " away: the next start says how to start anew"
    )


@contextmanager
def explained(name: str) -> Iterator[None]:
    """SQLite's errors about the store `name` as sentences; other errors pass as they are."""
    try:
        yield
    except DBAPIError as error:
        wrong = fault(error.orig)
        if wrong is SqliteFault.NO_ROOM:
            raise StoreFull(
                f"the store {name} cannot be written ({error.orig}): make room on its disk or make it"
                " writable; what was saved before is safe"
            ) from error
        if wrong is SqliteFault.HELD:
            raise StoreBusy(
                f"the store {name} has been held by another process for too long ({error.orig}): see which"
                " with `fuser`, and try again; nothing was changed"
            ) from error
        if wrong is SqliteFault.BROKEN:
            raise StoreUnreadable(describe_damage(name, error.orig)) from error
        raise


class SetAside:
    """Rows of one store whose documents cannot be read: each is passed over where it is met, and reported.

    A damaged row costs what it held and nothing else. Safe between threads.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = Lock()
        self._found: dict[str, dict[int, str]] = {}
        """By table: why each document cannot be read, by the document's hash."""

    def read_all(
        self, table: str, raws: Iterable[Raw], read: Callable[[Raw], T], *, whole: bool = False
    ) -> tuple[T, ...]:
        """The values of all documents that can be read, in their order. `whole`: these are all rows of the table."""
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
        """The value of one document, or None where it cannot be read."""
        found = self.read_all(table, (raw,), read)
        return found[0] if found else None

    def count(self, table: str) -> int:
        """How many rows of `table` are known to be unreadable."""
        with self._lock:
            return len(self._found.get(table, ()))

    def describe(self) -> str | None:
        """A sentence about all such rows with the cure, or None where there are none."""
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
                "a row cannot be read", store=self._name, table=table, why=damaged[one]
            )
