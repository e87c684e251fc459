"""`[kafka]` becomes a broker and topics; `predrain topics` makes and shows them."""

from __future__ import annotations

import uuid
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from predrain.data.log.log_port import Topic
from predrain.service.cli.shared_options import StateAddress
from predrain.service.cli.topics_commands import NoBroker, create_topics_command, list_topics_command
from predrain.service.config.kafka_table import KafkaTable
from predrain.service.config.secret_file import NoSecret
from tests.system.kafka.broker import PASSWORD, USER
from tests.system.kafka.broker import Broker as Process


def test_every_key_is_explained() -> None:
    assert [name for name, field in KafkaTable.model_fields.items() if not field.description] == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_insync_replicas": 3, "replication_factor": 2},
        {"certificate": "client.crt"},
        {"security": "scram", "user": "predrain"},
        {"security": "ssl"},
        {"prefix": "a b"},
        {"readings_partition": 3},
    ],
)
def test_kafka_settings_that_cannot_be_meant_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        KafkaTable.model_validate({"bootstrap_servers": ["here:9092"], **wrong})


def test_every_topic_has_its_partitions_and_days() -> None:
    table = KafkaTable(readings_partitions=5, latency_days=0.5, history_days=30)
    shapes = table.make_topic_shapes()
    assert set(shapes) == set(Topic)
    assert (shapes[Topic.READINGS].partitions, shapes[Topic.LATENCY].retention) == (5, timedelta(hours=12))
    assert (shapes[Topic.ACTIONS].partitions, shapes[Topic.ACTIONS].retention) == (1, timedelta(days=30))


def test_a_password_is_read_from_its_file_without_its_line_break(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(PASSWORD + "\n")
    table = KafkaTable(bootstrap_servers=("here:1",), security="scram", user=USER, password_file=file)
    assert table.make_broker().password == PASSWORD
    file.unlink()
    with pytest.raises(NoSecret, match=r"cannot be read: No such file.*password_file of \[kafka\]"):
        table.make_broker()


def test_topics_are_listed_as_missing_then_made_then_there(
    broker: Process, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prefix, file = f"{uuid.uuid4().hex[:8]}.", tmp_path / "predrain.toml"
    written = f"[kafka]\nbootstrap_servers = ['{broker.address()}']\nprefix = '{prefix}'\n"
    written += "replication_factor = 1\nmin_insync_replicas = 1\n"
    file.write_text(written + "readings_partitions = 3\n")
    where = StateAddress(config=file)
    assert list_topics_command(where=where) == 3
    assert capsys.readouterr().err.count("is missing: predrain topics create") == len(Topic)
    assert create_topics_command(where=where) == 0
    assert f"{prefix}readings: made, partitions 3, replicas 1" in capsys.readouterr().out
    assert list_topics_command(where=where, as_json=True) == 0
    assert '"topic": "readings"' in capsys.readouterr().out
    file.write_text(written + "readings_partitions = 6\n")
    assert create_topics_command(where=where) == 3
    assert "has 3 partitions and not 6: it is left so" in capsys.readouterr().err


def test_settings_without_a_broker_are_told(tmp_path: Path) -> None:
    (tmp_path / "predrain.toml").write_text("")
    with pytest.raises(NoBroker, match=r"set bootstrap_servers of \[kafka\]"):
        list_topics_command(where=StateAddress(config=tmp_path / "predrain.toml"))
