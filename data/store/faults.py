"""What can be wrong with a store's file, as sentences with the cure."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from data.refusal import Refusal
from data.sqlite_file import Fault, fault
from data.wire.shape import Misshapen


class StoreUnreadable(Refusal):
    """The file is damaged, is no store, or was written by a newer predrain."""


class StoreFull(Refusal):
    """The file cannot take more; what was saved before is safe."""


class StoreBusy(Refusal):
    """Another process has held the file for too long; nothing was changed."""


@contextmanager
def explained(name: str) -> Iterator[None]:
    """SQLite's errors about the store `name` as sentences; other errors pass as they are."""
    try:
        yield
    except zlib.error as error:
        raise StoreUnreadable(
            f"the store {name} holds a document that cannot be unpacked ({error}): bring it back from a"
            " backup, or move it away and start again"
        ) from error
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
