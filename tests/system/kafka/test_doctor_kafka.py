"""The doctor's findings about a real Kafka that answers, refuses a password, is away, has no topics, or has readings
that wait.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from predrain.data.clock import SystemClock
from predrain.data.log.kafka import Broker, KafkaLog
from predrain.data.log.log_port import Record, Topic
from predrain.data.refusal import Refusal
from predrain.service.cli.shared_options import StateAddress
from predrain.service.cli.topics_commands import create_topics_command
from predrain.service.config.settings import load_settings
from predrain.service.doctor.finding import Finding
from predrain.service.doctor.remote_checks import check_kafka
from tests.ports import hold_port
from tests.system.kafka.broker import PASSWORD, USER
from tests.system.kafka.broker import Broker as Process


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "predrain.toml"


def settings(file: Path, addresses: list[str], **more: str) -> Path:
    """Settings with a prefix of their own."""
    words = {"prefix": f"{uuid.uuid4().hex[:8]}.", **more}
    lines = [f"{key} = '{value}'" for key, value in words.items()]
    file.write_text(
        "\n".join(
            [
                "[kafka]",
                f"bootstrap_servers = {addresses}",
                "replication_factor = 1",
                "min_insync_replicas = 1",
                *lines,
            ]
        )
    )
    return file


def told(file: Path) -> dict[str, Finding]:
    return {one.what: one for one in check_kafka(load_settings(file, {}), SystemClock())}


def test_a_broker_that_is_there_is_well_and_missing_topics_have_a_cure(broker: Process, file: Path) -> None:
    found = told(settings(file, [broker.address()]))
    assert found[f"kafka {broker.address()}"].state == "ok"
    assert found["kafka topics"].state == "wrong"
    assert found["kafka topics"].told.endswith("run predrain topics create")


def test_each_broker_has_a_line_and_one_that_is_away_is_told(broker: Process, file: Path) -> None:
    port = hold_port()
    found = told(settings(file, [f"127.0.0.1:{port}", broker.address()]))
    assert found[f"kafka 127.0.0.1:{port}"].state == "wrong"
    assert "start it, or correct bootstrap_servers" in found[f"kafka 127.0.0.1:{port}"].told
    assert found[f"kafka {broker.address()}"].state == "ok"
    assert set(told(settings(file, [f"127.0.0.1:{port}"]))) == {f"kafka 127.0.0.1:{port}"}


@pytest.mark.parametrize(("password", "state"), [(PASSWORD, "ok"), ("another", "wrong")])
def test_a_password_that_is_refused_is_told(
    broker: Process, file: Path, tmp_path: Path, password: str, state: str
) -> None:
    (tmp_path / "password").write_text(password)
    scram = {
        "security": "scram",
        "user": USER,
        "password_file": str(tmp_path / "password"),
        "ca": str(broker.ca),
    }
    found = told(settings(file, [broker.address("SCRAM")], **scram))[f"kafka {broker.address('SCRAM')}"]
    assert found.state == state
    assert state == "ok" or "correct user and password" in found.told


def test_records_that_wait_are_counted_and_what_is_done_is_not(broker: Process, file: Path) -> None:
    settings(file, [broker.address()])
    assert create_topics_command(where=StateAddress(config=file)) == 0
    assert told(file)["kafka worker"].told.startswith("0 records")
    log = KafkaLog(load_settings(file, {}).kafka.make_broker())
    log.append(Topic.READINGS, [Record(f"disk-{n}", b"reading") for n in range(30)])
    found = told(file)
    assert found["kafka worker"].told.startswith("30 records of readings")
    assert found["clock, Kafka"].state == "ok"
    done = 0
    while done < 30:
        some = log.read(Topic.READINGS, "worker", 10)
        log.commit(Topic.READINGS, "worker", some)
        done += len(some)
    log.close()
    assert told(file)["kafka worker"].told.startswith("0 records of readings")


def test_an_address_that_is_none_is_a_sentence(file: Path) -> None:
    settings(file, ["nowhere"])
    with pytest.raises(Refusal, match="write it as host:port"):
        Broker(("nowhere",)).parse_addresses()
    assert "write it as host:port in bootstrap_servers" in told(file)["kafka nowhere"].told
