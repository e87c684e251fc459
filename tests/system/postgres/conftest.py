"""A real PostgreSQL of the file's own, running and awake before each test, with an empty store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from predrain.data.store.postgres_store import migrate_postgres_store
from tests.system.postgres.server import Server, running


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    """Of a store without anything in it; whatever a test froze thaws after it."""
    server.start()
    url = server.url(server.database())
    migrate_postgres_store(url)
    yield url
    server.freeze(False)
