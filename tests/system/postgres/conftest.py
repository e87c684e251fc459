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
    """Yield the URL of an empty store. The server thaws after a test that froze it."""
    server.start()
    url = server.url(server.database())
    migrate_postgres_store(url)
    yield url
    server.freeze(False)
