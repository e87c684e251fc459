"""Commands that work beside a service reach what the service stands on: Kafka and PostgreSQL where it does."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from predrain.data.log.kafka import Broker, KafkaLog, TopicShape, ensure_topics
from predrain.data.log.log_port import Delivered, Record, Topic
from predrain.data.store.postgres_store import PostgresStore
from predrain.data.wire import DeadLetter, encode_envelope
from predrain.service.cli import main
from tests.service.conftest import NOON
from tests.system.kafka.broker import Broker as KafkaServer

pytestmark = [pytest.mark.system, pytest.mark.slow]


def test_a_halt_said_with_the_service_down_stands_in_the_shared_store(database: str, tmp_path: Path) -> None:
    config = tmp_path / "predrain.toml"
    config.write_text(f'[service]\nstate = "{tmp_path}"\n[store]\nurl = "{database}"\n')
    store = PostgresStore(database)
    assert main(["halt", "--reason", "smoke in row 4", "--config", str(config)]) == 3
    assert store.halt_reason() == "smoke in row 4"
    assert main(["unhalt", "--config", str(config)]) == 3
    assert store.halt_reason() is None
    assert not (tmp_path / "store.sqlite").exists()
    store.close()


def test_dead_letters_are_listed_and_sent_again_over_kafka(
    kafka: KafkaServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broker = Broker((kafka.address(),), prefix="beside.")
    ensure_topics(broker, dict.fromkeys(Topic, TopicShape(3, timedelta(days=1))), replicas=1, in_sync=1)
    config = tmp_path / "predrain.toml"
    config.write_text(
        f'[service]\nstate = "{tmp_path}"\n[kafka]\nbootstrap_servers = ["{kafka.address()}"]\nprefix = "beside."\n'
    )
    log = KafkaLog(broker)
    for partition in (0, 1):
        torn = Delivered(5, f"disk-{partition}", b"torn", partition)
        letter = DeadLetter.from_delivered(Topic.READINGS, torn, "no envelope", NOON)
        sealed = encode_envelope(letter, producer="worker", sequence=partition, sent_at=NOON)
        log.append(Topic.DEAD_LETTERS, [Record(torn.key, sealed)])
    assert main(["deadletter", "list", "--config", str(config)]) == 0
    told = capsys.readouterr().out
    assert "disk-0" in told
    assert "disk-1" in told
    assert main(["deadletter", "replay", "--config", str(config)]) == 0
    assert sorted(one.key for one in log.read_newest(Topic.READINGS, 10)) == ["disk-0", "disk-1"]
    log.close()
