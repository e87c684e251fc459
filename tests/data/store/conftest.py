"""Databases for the store's tests: files, memory, and a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from predrain.data.store.postgres_store import PostgresStore, migrate_postgres_store
from predrain.data.store.sqlite_store import MEMORY, SqliteStore
from predrain.data.store.store_port import Store
from tests.system.postgres.server import Server, running


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One server for all of these tests."""
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def template(server: Server) -> str:
    """A database with the newest tables, to be copied."""
    name = server.database()
    migrate_postgres_store(server.url(name))
    return name


@pytest.fixture
def url(server: Server, template: str) -> str:
    """A new database with the newest tables."""
    return server.url(server.database(template))


@pytest.fixture(
    params=["file", "memory", pytest.param("postgres", marks=[pytest.mark.system, pytest.mark.core])]
)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Yield a function that opens the same store again at each call. In memory, each call returns the same object."""
    stores: list[Store] = []

    def make() -> Store:
        if request.param == "postgres":
            stores.append(PostgresStore(address))
        elif request.param == "file" or not stores:
            stores.append(SqliteStore(tmp_path / "store.db" if request.param == "file" else MEMORY))
        return stores[-1]

    address = request.getfixturevalue("url") if request.param == "postgres" else ""
    yield make
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Callable[[], Store]) -> Store:
    """An empty store."""
    return opened()
