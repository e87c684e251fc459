"""Opens a store by its name: a file, or a database by its URL."""

from __future__ import annotations

from pathlib import Path

from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_port import Store


def open_store(place: str | Path) -> Store:
    """Open the store at `place`: a URL (it holds `://`), or a file, created if it is missing.

    Raises data.store.store_faults.
    """
    if isinstance(place, str) and "://" in place:
        from predrain.data.store.postgres_store import (
            PostgresStore,
        )  # with psycopg, which an embedded start does not wait for

        return PostgresStore(place)
    return SqliteStore(place)
