"""What can be wrong with a store, as sentences with the cure; those of PostgreSQL are in data.store.complaints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from data.refusal import Refusal
from data.sqlite_file import Fault, fault
from data.wire.shape import Misshapen


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


@contextmanager
def explained(name: str) -> Iterator[None]:
    """SQLite's errors about the store `name` as sentences; other errors pass as they are."""
    try:
        yield
    except DBAPIError as error:
        wrong = fault(error.orig)
        if wrong is Fault.NO_ROOM:
            raise StoreFull(
                f"the store {name} cannot be written ({error.orig}): make room on its disk or make it"
                " writable; what was saved before is safe"
            ) from error
        if wrong is Fault.HELD:
            raise StoreBusy(
                f"the store {name} has been held by another process for too long ({error.orig}): see which"
                " with `fuser`, and try again; nothing was changed"
            ) from error
        if wrong is Fault.BROKEN:
            raise StoreUnreadable(
                f"the store {name} is damaged or no store ({error.orig}): bring it back from a backup, or"
                " move it away and start again"
            ) from error
        raise


@contextmanager
def legible(name: str, what: str) -> Iterator[None]:
    """A document that cannot be read is damage, too."""
    try:
        yield
    except Misshapen as error:
        raise StoreUnreadable(
            f"the store {name} holds a document in {what} that cannot be read ({error}): bring the store back"
            " from a backup, or move it away and start again"
        ) from error
