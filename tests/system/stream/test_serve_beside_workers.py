"""`predrain serve` and a controller beside two `predrain work`, over a real Kafka and a real PostgreSQL."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from predrain.actions.core.drain_policy import Policy
from predrain.actions.simulator import SimulatedCluster
from predrain.actions.simulator.worlds import build_tiny_cluster
from predrain.data.clock import SystemClock
from predrain.data.ids import DeviceId
from predrain.data.log.kafka import Broker, KafkaLog, TopicShape, ensure_topics
from predrain.data.log.log_port import Topic
from predrain.data.reading import Reading
from predrain.data.store.postgres_store import PostgresStore
from predrain.service.app.application import Application, ApplicationPorts
from predrain.service.app.roles import CONTROLLING
from predrain.service.config.settings import Settings
from predrain.service.drains.live_cluster import LiveClusterParts
from predrain.service.storage.record_sender import RecordSender
from tests.deadlines import idle_seconds
from tests.service.conftest import smart_reading, week_of
from tests.service.test_drains import ClusterClock
from tests.system.kafka.broker import Broker as KafkaServer
from tests.system.stream.crew import PREDRAIN, Crew

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(900)]
PATIENCE = 240.0
SERIALS = tuple("ABCDEFGHIJKL")
SICK = DeviceId("ST4000DM000_A")


@dataclass
class Page:
    """A `predrain serve` that answers."""

    client: httpx2.Client
    token: str

    def get(self, what: str) -> Any:
        """An answer of the REST interface."""
        answer = self.client.get(f"/api/v1/{what}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, readings: list[Reading]) -> None:
        """Send readings as a host would."""
        sender = RecordSender("hosts", SystemClock())
        sent = [json.loads(sender.encode_envelope(reading)) for reading in readings]
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = self.client.post("/api/v1/readings", json=sent, headers=headers)
        assert answer.json() == {"accepted": len(sent), "refused": []}


@contextmanager
def serving(config: Path, state: Path) -> Iterator[Page]:
    """The page, found by the address that it writes into its state directory."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREDRAIN_")}
    command = [PREDRAIN, "serve", "--port", "0", "--state", state, "--config", config]
    with (state.parent / f"{state.name}.txt").open("wb") as said:
        process = subprocess.Popen(command, stderr=said, env=environment)
    try:
        until(lambda: (state / "url").exists() and (state / "url").read_text().endswith("\n"), process)
        with httpx2.Client(base_url=(state / "url").read_text().strip(), timeout=60) as client:
            yield Page(client, (state / "token").read_text().strip())
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


def until(done: Callable[[], object], process: subprocess.Popen[bytes] | None = None) -> None:
    end = idle_seconds() + PATIENCE
    while not done():
        assert idle_seconds() < end, "it does not come to that"
        assert process is None or process.poll() is None, "it has ended by itself"
        time.sleep(0.2)


def test_readings_posted_to_a_page_come_back_as_outlooks_that_workers_made_and_a_controller_acts_on(
    kafka: KafkaServer, database: str, tmp_path: Path
) -> None:
    broker = Broker((kafka.address(),), prefix="page.")
    ensure_topics(broker, dict.fromkeys(Topic, TopicShape(12, timedelta(days=1))), replicas=1, in_sync=1)
    config = tmp_path / "predrain.toml"
    config.write_text(
        f'[service]\nstate = "{tmp_path / "workers"}"\n[store]\nurl = "{database}"\n'
        f'[kafka]\nbootstrap_servers = ["{kafka.address()}"]\nprefix = "page."\n'
        "replication_factor = 1\nmin_insync_replicas = 1\n"
    )
    with ExitStack() as closing:
        crew = closing.enter_context(Crew(tmp_path, config))
        crew.begin(2)
        one = closing.enter_context(serving(config, tmp_path / "one"))
        other = closing.enter_context(serving(config, tmp_path / "other"))
        parts = one.client.get("/healthz").json()["parts"]
        assert (parts["page"], parts["scoring"]) == ("here", "in other processes")
        assert one.client.get("/readyz").status_code == 200
        with other.client.stream("GET", "/api/v1/events", timeout=PATIENCE) as events:
            lines = events.iter_lines()
            next(lines)
            now = datetime.now(UTC)
            bad = [smart_reading("A", now - timedelta(hours=h), pending=400) for h in (30, 20, 10, 0)]
            quiet = [reading for serial in SERIALS[1:] for reading in week_of(serial, now)]
            one.post([*week_of("A", now - timedelta(hours=36)), *bad, *quiet])
            assert any(line.startswith("data:") and "outlooks" in line for line in lines)
        for page in (one, other):
            until(lambda page=page: sorted(outlooks(page)) == [f"ST4000DM000_{name}" for name in SERIALS])
            until(lambda page=page: outlooks(page)[SICK]["status"] == "bad")
            until(lambda page=page: page.get("alerts")["items"])
            assert page.get("status")["forecast"]["bundle"] == "default"
        controller = closing.enter_context(controlling(broker, database))
        controller.step_others()
        for _ in range(8):
            controller.clock.sleep(10.0)  # type: ignore[attr-defined]
            controller.step_controller()
        (proposed,) = controller.store.drains()
        assert proposed.device == SICK
        for page in (one, other):
            until(lambda page=page: page.get("drains")["items"])
            (shown,) = page.get("drains")["items"]
            assert (shown["id"], shown["state"]) == (proposed.id, "proposed")
        assert crew.end() == [0, 0]


def outlooks(page: Page) -> dict[str, Any]:
    return {row["device"]: row for row in page.get("outlooks")["items"]}


@contextmanager
def controlling(broker: Broker, database: str) -> Iterator[Application]:
    """Yield the application that `predrain control` runs, over a simulated cluster with the sick disk under osd.0."""
    spec = build_tiny_cluster(1)
    osds = (replace(spec.osds[0], device=SICK, model="ST4000DM000"), *spec.osds[1:])
    cluster = SimulatedCluster(replace(spec, osds=osds), 1, datetime.now(UTC))
    log, store = KafkaLog(broker), PostgresStore(database)
    ports = ApplicationPorts(log, store, ClusterClock(cluster), _scores_nothing, LiveClusterParts(cluster))
    application = Application(ports, Policy(), Settings(), parts=CONTROLLING)
    try:
        yield application
    finally:
        application.stop()
        log.close()
        store.close()


def _scores_nothing() -> Any:
    raise AssertionError("a controller loads no forecaster")
