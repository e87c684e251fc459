"""A real Kafka and a real PostgreSQL beside each other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from predrain.data.store.postgres_store import migrate_postgres_store
from tests.system.kafka.broker import Broker as KafkaServer
from tests.system.kafka.broker import running_broker
from tests.system.postgres.server import Server, running


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    with running_broker(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture
def database(postgres: Server) -> str:
    """One with an empty store."""
    url = postgres.url(postgres.database())
    migrate_postgres_store(url)
    return url
