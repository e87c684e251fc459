"""The same readings through one process on SQLite, and over Kafka into PostgreSQL: the same outlooks, bit by bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC
from itertools import chain, islice
from pathlib import Path

import pytest

from predrain.actions.core.drain_policy import Policy
from predrain.data.clock import SystemClock
from predrain.data.ids import HostName
from predrain.data.importing import backblaze_import, smartctl_import
from predrain.data.log.sqlite_log import SqliteLog
from predrain.data.reading import Reading, Unreadable
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.app.application import Application, ApplicationPorts
from predrain.service.config.settings import Settings
from predrain.service.forecasting.bundle_choice import BundledForecaster
from tests.system.kafka.broker import Broker as KafkaServer
from tests.system.stream.alike import Told, announced, differing, disordered
from tests.system.stream.crew import Crew
from tests.system.stream.fleet import readings
from tests.system.stream.trial import Rows, batches, sent, settings_file, with_topics

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(900)]
DATA = Path(__file__).resolve().parents[2] / "data"
HOST = HostName("dc1")
DAILY, DRIVES, DAYS = 4_000, 150, 4
HANGING = 40
"""One in so many readings of the fleet."""


def mixed() -> Iterator[Reading]:
    """Daily values of real drives, some of which fail; real outputs of SATA, SAS and NVMe drives; a fleet's, some late,
    some twice, some unreadable.
    """
    outputs = smartctl_import.list_smartctl_import_parts(
        sorted((DATA / "smart" / "samples").iterdir()), HOST, UTC
    )
    (table,) = backblaze_import.list_backblaze_import_parts([DATA / "drives" / "daily.parquet"], HOST)
    items = chain(islice(table.items(0), DAILY), *(output.items(0) for output in outputs))
    yield from (item for item in items if isinstance(item, Reading))
    for number, reading in enumerate(readings(DRIVES, DAYS)):
        hangs = number % HANGING == 0
        yield replace(reading, seen=Unreadable(reading.taken_at, "smartctl hangs")) if hangs else reading


@dataclass(frozen=True)
class Expected:
    """The results of an application on SQLite from the same readings."""

    store: str
    outlooks: int
    told: Told


@pytest.fixture(scope="module")
def by_an_application(tmp_path_factory: pytest.TempPathFactory) -> Expected:
    folder = tmp_path_factory.mktemp("house")
    with closing(SqliteLog(folder / "log.db")) as log, closing(SqliteStore(folder / "store.db")) as store:
        application = Application(
            ApplicationPorts(log, store, SystemClock(), BundledForecaster.load), Policy(), Settings()
        )
        application.start()
        for batch in batches(mixed()):
            assert application.ingest(batch).refused == ()
        while application.step_worker().taken:
            pass
        application.stop()
        told = announced(log, disordered(mixed()))
        return Expected(
            f"sqlite:///{folder / 'store.db'}", len({(one.device, one.taken_at) for one in mixed()}), told
        )


@pytest.mark.parametrize(("command", "processes"), [("work", 2), ("up", 1)])
def test_readings_over_kafka_and_postgresql_come_to_the_outlooks_of_an_application_on_sqlite(
    by_an_application: Expected,
    kafka: KafkaServer,
    database: str,
    tmp_path: Path,
    command: str,
    processes: int,
) -> None:
    config, stored = settings_file(tmp_path, kafka, database, f"{command}."), Rows(database)
    with closing(with_topics(kafka, f"{command}.")) as log, Crew(tmp_path, config, command) as crew:
        assert sent(log, mixed()) == by_an_application.outlooks
        crew.begin(processes)
        crew.until(lambda: stored.outlooks == by_an_application.outlooks, lambda: stored.outlooks)
        assert crew.end() == [0] * processes
        assert differing(by_an_application.store, database) == {}
        assert announced(log, disordered(mixed())) == by_an_application.told
    assert by_an_application.told
