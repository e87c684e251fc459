"""The errors of PostgreSQL and of the connection to it, as sentences with the cure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DataError, DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnection

from predrain.data.refusal import Refusal
from predrain.data.store.store_faults import (
    StoreAway,
    StoreBusy,
    StoreDenied,
    StoreFull,
    StoreOutdated,
    StoreUnreadable,
)

_AGAIN = ("40001", "40P01", "57P01", "57P02", "57P03")
"""Serialisation failure, deadlock; server shut down by an administrator, by a crash, or not up yet."""

_BY_STATE: tuple[tuple[str, type[Refusal], str], ...] = (
    ("53100", StoreFull, "make room on the server's disk; all data saved before is safe"),
    ("53300", StoreBusy, "raise max_connections there, or run fewer services"),
    ("53", StoreFull, "give the server more of it; all data saved before is safe"),
    (
        "25006",
        StoreFull,
        "name the primary, not a standby, and see that default_transaction_read_only is off",
    ),
    (
        "57014",
        StoreBusy,
        "see in pg_stat_activity what keeps the server busy, and try again; nothing was changed",
    ),
    ("55P03", StoreBusy, "see in pg_locks who holds it, and try again; nothing was changed"),
    ("40", StoreBusy, "try again; nothing was changed"),
    ("25P03", StoreBusy, "try again; nothing was changed"),
    ("42501", StoreDenied, "grant the user its tables, or name their owner"),
    ("28", StoreDenied, "correct the user, or its password in the URL or in ~/.pgpass"),
    ("3D000", StoreDenied, "make it with `createdb`, or name another one"),
    ("42P01", StoreOutdated, "run `predrain store migrate`"),
    ("42703", StoreOutdated, "run `predrain store migrate`"),
    ("XX", StoreUnreadable, "bring the database back from a backup"),
    ("58", StoreFull, "look after the server's disk"),
)
"""SQLSTATE or its class, in the order in which they are tried."""

# A connection that fails has no SQLSTATE, only libpq's words.
_BY_WORDS: tuple[tuple[str, type[Refusal], str], ...] = (
    (
        "password",
        StoreDenied,
        "correct it in the URL or in ~/.pgpass (PGPASSFILE), which only its owner may read",
    ),
    ("pg_hba.conf", StoreDenied, "let this host and user in by the server's pg_hba.conf"),
    ('role "', StoreDenied, "make the user with `createuser`, or name another one"),
    ('database "', StoreDenied, "make it with `createdb`, or name another one"),
    ("too many", StoreBusy, "raise max_connections there, or run fewer services"),
    ("reserved for", StoreBusy, "raise max_connections there, or run fewer services"),
)


def is_transient_error(error: DBAPIError) -> bool:
    """Return whether the same may succeed at once on a new connection or in a new transaction."""
    return error.connection_invalidated or _find_sqlstate(error) in _AGAIN


@contextmanager
def raise_postgres_refusals(name: str) -> Iterator[None]:
    """Turn PostgreSQL's errors about the store `name` into Refusals; errors of the statements pass as they are."""
    try:
        yield
    except NoConnection as error:
        raise StoreBusy(f"the store {name} has no connection free for too long: try again") from error
    except DBAPIError as error:
        refusal = _build_refusal(name, error)
        if refusal is None:
            raise
        raise refusal from error


def _build_refusal(name: str, error: DBAPIError) -> Refusal | None:
    state, said = _find_sqlstate(error), _describe_postgres_error(error)
    if isinstance(error, DataError):
        return StoreUnreadable(
            f"the store {name} cannot hold what was to be saved ({said}): correct it; nothing was changed"
        )
    if state is None or state.startswith("08") or state in _AGAIN[2:] or error.connection_invalidated:
        for words, kind, cure in _BY_WORDS:
            if words in said:
                return kind(f"the store {name} lets nobody in ({said}): {cure}")
        return StoreAway(
            f"the store {name} does not answer ({said}): see that the server runs and can be reached from here"
        )
    for beginning, kind, cure in _BY_STATE:
        if state.startswith(beginning):
            return kind(f"the store {name} refuses ({said}): {cure}")
    return None


def _find_sqlstate(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)


def _describe_postgres_error(error: DBAPIError) -> str:
    lines = [line.strip() for line in str(error.orig).splitlines() if line.strip()]
    return lines[0].rsplit(" failed: ", 1)[-1][:300] if lines else type(error.orig).__name__
