"""Metrics of a real `predrain work` and a real `predrain control`, over a real Kafka and a real PostgreSQL."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest

from predrain.data.clock import SystemClock
from predrain.data.log.kafka import Broker, KafkaLog, TopicShape, ensure_topics
from predrain.data.log.log_port import Record, Topic
from predrain.service.storage.record_sender import RecordSender
from tests.deadlines import idle_seconds
from tests.service.conftest import week_of
from tests.system.kafka.broker import Broker as KafkaServer
from tests.system.stream.crew import PREDRAIN

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(600)]
PATIENCE = 240.0


@pytest.fixture
def config(kafka: KafkaServer, database: str, tmp_path: Path) -> Path:
    """Settings of both, with a log and a store of their own; the cluster that they name does not answer."""
    prefix = f"{database.rpartition('/')[2]}."
    ensure_topics(
        client(kafka, prefix), dict.fromkeys(Topic, TopicShape(3, timedelta(days=1))), replicas=1, in_sync=1
    )
    (tmp_path / "ceph.conf").write_text("[global]\nmon_host = v2:127.0.0.1:1\n")
    path = tmp_path / "predrain.toml"
    path.write_text(
        f'[service]\nstate = "{tmp_path / "state"}"\nmetrics_port = 0\n[store]\nurl = "{database}"\n'
        f'[ceph]\nconf = "{tmp_path / "ceph.conf"}"\ntimeout_seconds = 5\n'
        f'[kafka]\nbootstrap_servers = ["{kafka.address()}"]\nprefix = "{prefix}"\n'
        "replication_factor = 1\nmin_insync_replicas = 1\n"
    )
    return path


def prefix_of(config: Path) -> str:
    (found,) = re.findall(r'prefix = "(.+)"', config.read_text())
    return str(found)


def client(kafka: KafkaServer, prefix: str) -> Broker:
    return Broker((kafka.address(),), prefix=prefix)


@contextmanager
def running(command: str, config: Path) -> Iterator[Callable[[], str]]:
    """Run a process, and yield a function that returns the metrics that the process has for Prometheus.

    A signal ends the process in order.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREDRAIN_")}
    path = config.with_name(f"{command}.txt")
    with path.open("wb") as said:
        process = subprocess.Popen([PREDRAIN, command, "--config", config], stderr=said, env=environment)

    def address() -> list[str]:
        assert process.poll() is None, path.read_text()
        return re.findall(r"(?m)^metrics are at (\S+)$", path.read_text())

    try:
        (url,) = until(address)
        yield lambda: httpx2.get(url, timeout=60).text
        process.terminate()
        assert process.wait(60) == 0
        assert "Traceback" not in path.read_text()
    finally:
        process.kill()
        process.wait()


def until(asked: Callable[[], list[str]]) -> list[str]:
    end = idle_seconds() + PATIENCE
    while not (found := asked()):
        assert idle_seconds() < end, "it does not come to that"
        time.sleep(0.2)
    return found


def test_a_worker_tells_what_it_took_from_the_log(kafka: KafkaServer, config: Path) -> None:
    log, sender = KafkaLog(client(kafka, prefix_of(config))), RecordSender("host", SystemClock())
    readings = week_of("A", datetime.now(UTC))
    with running("work", config) as told:
        log.append(Topic.READINGS, [Record(one.device, sender.encode_envelope(one)) for one in readings])
        log.close()
        until(lambda: re.findall(rf"(?m)^predrain_readings_processed_total {len(readings)}\.0$", told()))
        for series in (
            "predrain_ready 1.0",
            "predrain_readings_dead_lettered_total 0.0",
            "predrain_latency_batches_dead_lettered_total 0.0",
            "predrain_store_up 1.0",
            'predrain_fault{part="worker"} 0.0',
            'predrain_fault{part="bundle"} 0.0',
        ):
            assert f"{series}\n" in told()


def test_a_controller_that_its_cluster_does_not_answer_tells_that_it_decides_nothing(config: Path) -> None:
    with running("control", config) as told:
        until(lambda: re.findall(r"(?m)^predrain_controller_running 0\.0$", told()))
        for series in (
            "predrain_held_drains 0.0",
            'predrain_drains{state="failed"} 0.0',
            "predrain_store_up 1.0",
            'predrain_fault{part="retention"} 0.0',
        ):
            assert f"{series}\n" in told()
