"""A real broker for tests: `broker` runs all the while, `log` is a log on topics of its own there."""

from __future__ import annotations

import gc
import uuid
import warnings
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from predrain.data.log.log_port import Topic
from tests.system.kafka.broker import Broker as Process
from tests.system.kafka.broker import running_broker

with warnings.catch_warnings():  # of how kafka-python reads its own schemas, once, while it is imported
    warnings.simplefilter("ignore", DeprecationWarning)
    from predrain.data.log.kafka import Broker, KafkaLog, TopicShape, ensure_topics

Make = Callable[..., Broker]
"""A client's view of a broker with new topics, `partitions` each; further words are Broker's."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test of this folder needs a broker, which takes its time to start."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("system")
            item.add_marker("slow")


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A broker of Kafka that runs; a test that ends it starts it again."""
    with running_broker(tmp_path_factory.mktemp("kafka")) as process:
        yield process


@pytest.fixture(scope="session")
def make(broker: Process) -> Make:
    """Makes topics that no other test has."""

    def make(partitions: int = 1, **options: object) -> Broker:
        prefix = f"{uuid.uuid4().hex[:8]}."
        shape = TopicShape(partitions, timedelta(days=1))
        plain = Broker((broker.address(),), prefix=prefix)
        ensure_topics(plain, dict.fromkeys(Topic, shape), replicas=1, in_sync=1)
        return Broker(**{"bootstrap": plain.bootstrap, "prefix": prefix, **options})  # type: ignore[arg-type]

    return make


@pytest.fixture
def log(make: Make) -> Iterator[KafkaLog]:
    """A log on topics of one partition."""
    log = KafkaLog(make())
    yield log
    log.close()


@pytest.fixture(autouse=True)
def swept() -> Iterator[None]:
    """Collects what a client of kafka-python that ended late leaves open, so that no later test is blamed for it."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        for _ in range(5):  # a coroutine that is collected lets go of its socket for the next pass
            gc.collect()
