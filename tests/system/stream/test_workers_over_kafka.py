"""`predrain work` over a real Kafka and a real PostgreSQL: workers killed and added arrive where one alone arrives."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.kafka.broker import Broker as KafkaServer
from tests.system.stream.trial import tried

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(900)]
DRIVES, DAYS = 1_000, 4


def test_workers_killed_and_added_while_it_runs_store_what_one_alone_stores(
    kafka: KafkaServer, database: str, tmp_path: Path
) -> None:
    found = tried(kafka, database, tmp_path, DRIVES, DAYS)
    assert found.readings == DRIVES * DAYS
    assert found.unlike == {}
    alone, together = found.told
    assert alone
    assert together == alone
    assert found.exits == [0, 0, 0, 0]
