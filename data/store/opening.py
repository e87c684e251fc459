"""Opens the store that somebody names: a file, or a database by its URL."""

from __future__ import annotations

from pathlib import Path

from predrain.data.store.port import Store
from predrain.data.store.sqlite import SqliteStore


def open_store(place: str | Path) -> Store:
    """The store at `place`: a URL (it holds `://`), or a file, made when it is not there. Raises data.store.faults."""
    if isinstance(place, str) and "://" in place:
        from predrain.data.store.postgres import (
            PostgresStore,
        )  # with psycopg, which an embedded start does not wait for

        return PostgresStore(place)
    return SqliteStore(place)
