"""With the rights that the documentation names each process works, and is refused everywhere else, by a real broker."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
)

from predrain.data.clock import SystemClock
from predrain.data.log.kafka import Broker, BrokerRefuses, KafkaLog, TopicShape, ensure_topics
from predrain.data.log.log_port import LogFull, Record, Topic
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.app.application import Application, ApplicationPorts
from predrain.service.app.roles import CONTROLLING, SERVING
from predrain.service.config.settings import load_settings
from predrain.service.doctor.remote_checks import check_kafka as examined
from predrain.service.forecasting.deployed_models import DeployedModels
from predrain.service.forecasting.worker import GROUP as WORKER
from predrain.service.processes.up import forecaster_of
from predrain.service.processes.worker_process import WorkerProcess
from predrain.service.streams.dead_letters import REPLAYING, list_dead_letters, replay_dead_letters
from predrain.service.streams.latency_ingest import GROUP as LATENCY
from tests.deadlines import idle_seconds
from tests.docs.pages import DOCS, blocks
from tests.system.kafka import jars
from tests.system.kafka.broker import AUTHORIZED, PASSWORD
from tests.system.kafka.broker import Broker as Process

pytestmark = pytest.mark.timeout(120)
PATIENCE_SECONDS = 60.0
SHAPES = dict.fromkeys(Topic, TopicShape(1, timedelta(days=1)))
GROUPS = ((Topic.READINGS, WORKER), (Topic.LATENCY, LATENCY), (Topic.DEAD_LETTERS, REPLAYING))
READINGS, LATENCIES, OUTLOOKS, ACTIONS, LETTERS = Topic
Rights = tuple[set[Topic], set[Topic], set[tuple[Topic, str]]]
ALLOWED: dict[str, Rights] = {
    "predrain-collector": ({READINGS, LATENCIES}, set(), set()),
    "predrain-worker": ({OUTLOOKS, LETTERS}, {READINGS, LATENCIES, OUTLOOKS}, set(GROUPS[:2])),
    "predrain-serve": ({READINGS, LATENCIES}, {OUTLOOKS, ACTIONS}, set()),
    "predrain-control": ({ACTIONS}, {OUTLOOKS, ACTIONS}, set()),
    "predrain-operator": ({READINGS, LATENCIES, LETTERS}, {LETTERS}, set(GROUPS[2:])),
}
"""User: topics that are written, topics that are read, groups that are joined. All else is refused."""


def documented() -> list[ACL]:
    """Return the ACLs that the commands on the documentation's page grant."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--allow-principal", required=True)
    parser.add_argument("--operation", action="append", required=True)
    parser.add_argument("--topic", action="append", default=[])
    parser.add_argument("--group", action="append", default=[])
    parser.add_argument("--resource-pattern-type", default="literal")
    (block,) = blocks(DOCS / "reference" / "network.md", "sh")
    found = []
    for line in block.text.splitlines():
        if not line.startswith("$acls "):
            continue
        said = parser.parse_args(shlex.split(line)[1:])
        pattern = ACLResourcePatternType[said.resource_pattern_type.upper()]
        named = [(ResourceType.TOPIC, name) for name in said.topic]
        named += [(ResourceType.GROUP, name) for name in said.group]
        found += [
            ACL(
                said.allow_principal,
                "*",
                ACLOperation[operation.upper()],
                ACLPermissionType.ALLOW,
                ResourcePattern(kind, name, pattern),
            )
            for operation, (kind, name) in product(said.operation, named)
        ]
    return found


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A broker that lets users do what the page lets them. The operator has made the topics; each holds a record."""
    if why := jars.missing():
        pytest.fail(why) if os.environ.get("CI") == "true" else pytest.skip(why)
    process = Process(tmp_path_factory.mktemp("guarded"), AUTHORIZED, ALLOWED)
    try:
        process.start()
        admin: Any = KafkaAdminClient(bootstrap_servers=process.address())
        assert not admin.create_acls(documented())["failed"]
        admin.close()
        made = ensure_topics(known(process, "predrain-operator"), SHAPES, replicas=1, in_sync=1)
        assert [one.made for one in made] == [True] * len(Topic)
        with closing(KafkaLog(Broker((process.address(),)))) as log:
            for topic in Topic:
                log.append(topic, [Record("a", b"from who may everything")])
        yield process
    finally:
        process.stop()


def known(process: Process, user: str, seconds: float = 10.0) -> Broker:
    """The broker as `user` sees it."""
    return Broker(
        (process.address("SCRAM"),),
        "scram",
        ca=process.ca,
        user=user,
        password=PASSWORD,
        timeout_seconds=seconds,
    )


def granted(guarded: Process, user: str, allowed: bool, work: Callable[[KafkaLog], object]) -> bool:
    """Return True if the broker lets `user` do the work. Work that should be refused gets 2 s instead of 10 s."""
    with closing(KafkaLog(known(guarded, user, 10.0 if allowed else 2.0))) as log:
        try:
            return bool(work(log))
        except LogFull:
            return False


def written(topic: Topic) -> Callable[[KafkaLog], bool]:
    def work(log: KafkaLog) -> bool:
        log.append(topic, [Record("a", b"from a user")])
        return True

    return work


def joined(topic: Topic, group: str) -> Callable[[KafkaLog], bool]:
    def work(log: KafkaLog) -> bool:
        found = log.read(topic, group, 1)
        log.commit(topic, group, ())
        return bool(found)

    return work


@pytest.mark.parametrize("user", ALLOWED)
def test_a_user_does_what_its_process_does_and_nothing_else(guarded: Process, user: str) -> None:
    writes, reads, groups = ALLOWED[user]
    assert {topic for topic in Topic if granted(guarded, user, topic in writes, written(topic))} == writes, (
        "written"
    )
    assert {
        topic
        for topic in Topic
        if granted(guarded, user, topic in reads, lambda log, topic=topic: log.read_newest(topic, 1))
    } == reads, "read"
    assert {one for one in GROUPS if granted(guarded, user, one in groups, joined(*one))} == groups, "joined"
    if user != "predrain-operator":
        with pytest.raises(BrokerRefuses, match="may not make topics"):
            ensure_topics(
                replace(known(guarded, user), prefix="predrain.more."), SHAPES, replicas=1, in_sync=1
            )


def test_the_processes_themselves_work_with_these_rights(guarded: Process, tmp_path: Path) -> None:
    clock = SystemClock()
    with closing(KafkaLog(known(guarded, "predrain-collector"))) as collector:
        collector.append(Topic.READINGS, [Record("a", b"no reading")])
        collector.append(Topic.LATENCY, [Record("a", b"no latencies")])
    with (
        closing(KafkaLog(known(guarded, "predrain-worker"))) as log,
        closing(SqliteStore(tmp_path / "worker.sqlite")) as store,
    ):
        working = WorkerProcess(log, store, clock, DeployedModels(forecaster_of(None), tmp_path), "worker")
        until = idle_seconds() + PATIENCE_SECONDS
        counts = working.counts
        while min(counts["dead"], counts["latencies_dead"]) < 2 and idle_seconds() < until:
            working.step()  # a poll may bring nothing, or not all, though more is there
            working._listen()
        assert counts["dead"] >= 2
        assert counts["latencies_dead"] >= 2
    with closing(KafkaLog(known(guarded, "predrain-operator"))) as log:
        waiting = len(list_dead_letters(log).letters)
        assert waiting >= 4
        assert replay_dead_letters(log).sent == waiting
    for user, parts in (("predrain-serve", SERVING), ("predrain-control", CONTROLLING)):
        with (
            closing(KafkaLog(known(guarded, user))) as log,
            closing(SqliteStore(tmp_path / f"{user}.sqlite")) as store,
        ):
            settings = load_settings(None, {})
            ports = ApplicationPorts(log, store, clock, forecaster_of(None))
            application = Application(ports, settings.policy.to_policy(), settings, parts=parts)
            application.step_others()


def test_a_user_without_the_right_to_delete_dead_letters_is_refused_before_any_letter_is_replayed(
    guarded: Process,
) -> None:
    with (
        closing(KafkaLog(known(guarded, "predrain-worker"))) as log,
        pytest.raises(BrokerRefuses, match="allow it the operation Delete on that topic"),
    ):
        replay_dead_letters(log)


def test_the_doctor_looks_at_all_of_it_as_the_operator(guarded: Process, tmp_path: Path) -> None:
    (tmp_path / "password").write_text(PASSWORD)
    (tmp_path / "predrain.toml").write_text(
        f"[kafka]\nbootstrap_servers = ['{guarded.address('SCRAM')}']\nsecurity = 'scram'\nca = '{guarded.ca}'\n"
        f"user = 'predrain-operator'\npassword_file = '{tmp_path / 'password'}'\n"
        "readings_partitions = 1\nlatency_partitions = 1\n"
    )
    found = {one.what: one for one in examined(load_settings(tmp_path / "predrain.toml", {}), SystemClock())}
    assert {"kafka topics", "kafka worker", "kafka latency"} <= found.keys()
    assert {one.told for one in found.values() if one.state == "wrong"} == set()
