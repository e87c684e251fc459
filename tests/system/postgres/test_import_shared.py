"""`predrain data import` where history is in PostgreSQL and readings go over Kafka: killed, cut off, resumed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from predrain.data.clock import SystemClock
from predrain.data.ids import HostName
from predrain.data.importing import backblaze_import
from predrain.data.log.log_port import Topic
from predrain.data.reading import Reading
from predrain.data.store import postgres_store, postgres_timeouts
from predrain.data.store.postgres_store import PostgresStore, migrate_postgres_store
from predrain.data.store.store_faults import StoreAway
from predrain.data.wire import decode_envelope
from predrain.service.streams.history_import import BATCH, Importer
from tests.system.kafka.broker import Broker as KafkaServer
from tests.system.postgres.server import Server
from tests.system.stream.conftest import kafka as kafka

with warnings.catch_warnings():  # of how kafka-python reads its own schemas, once, while it is imported
    warnings.simplefilter("ignore", DeprecationWarning)
    from predrain.data.log.kafka import Broker, KafkaLog, TopicShape, ensure_topics

pytestmark = [pytest.mark.system, pytest.mark.slow]
HOST = HostName("dc1")
DRIVES, DAYS = 60, 200
RUN = [sys.executable, "-c", "from predrain.service.cli import run; run()", "data", "import", "backblaze"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Months of daily tables until yesterday, in two files."""
    folder, rows = tmp_path_factory.mktemp("tables"), []
    last = datetime.now(UTC).date() - timedelta(days=1)
    for day in range(DAYS):
        at = last - timedelta(days=DAYS - 1 - day)
        rows += [f"{at},S{n:03},ST4000DM000,0,{n % 7},{100 + day}\n" for n in range(DRIVES)]
    head = "date,serial_number,model,failure,smart_5_raw,smart_9_raw\n"
    half = len(rows) // 2
    (folder / "a.csv").write_text(head + "".join(rows[:half]))
    (folder / "b.csv").write_text(head + "".join(rows[half:]))
    return folder


def settings(folder: Path, url: str, *more: str) -> list[str]:
    folder.mkdir()
    config = folder / "predrain.toml"
    config.write_text("\n".join((f'[service]\nstate = "{folder}"\n[store]\nurl = "{url}"', *more)))
    return ["--config", str(config)]


def rows(url: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT device, taken_at, document FROM readings ORDER BY 1, 2").fetchall()


def test_an_import_killed_again_and_again_keeps_in_postgresql_what_one_keeps_that_was_not(
    server: Server, url: str, tables: Path, tmp_path: Path
) -> None:
    other = server.url(server.database())
    migrate_postgres_store(other)
    whole = settings(tmp_path / "whole", other)
    subprocess.run([*RUN, str(tables), *whole], check=True, stdout=subprocess.DEVNULL, timeout=240)
    killed = settings(tmp_path / "killed", url)
    for share in (1, 4, 8):
        with subprocess.Popen([*RUN, str(tables), *killed], stdout=subprocess.DEVNULL) as process:
            while process.poll() is None and len(rows(url)) < share * BATCH:
                time.sleep(0.01)
            process.kill()
    done = subprocess.run(
        [*RUN, str(tables), *killed, "--json"], check=True, capture_output=True, text=True, timeout=240
    )
    assert done.stdout.startswith("{"), done.stdout
    told = json.loads(done.stdout)
    assert rows(url) == rows(other)
    assert len(rows(url)) == DRIVES * DAYS
    assert told["readings"] + told["known"] == DRIVES * DAYS


def test_fresh_readings_are_handed_to_the_workers_over_kafka_one_a_device(
    kafka: KafkaServer, url: str, tables: Path, tmp_path: Path
) -> None:
    broker = Broker((kafka.address(),), prefix="import.")
    ensure_topics(broker, dict.fromkeys(Topic, TopicShape(3, timedelta(days=1))), replicas=1, in_sync=1)
    more = f'[kafka]\nbootstrap_servers = ["{kafka.address()}"]\nprefix = "import."\n'
    config = settings(tmp_path / "state", url, more)
    done = subprocess.run(
        [*RUN, str(tables), *config, "--json"], check=True, capture_output=True, text=True, timeout=240
    )
    assert json.loads(done.stdout)["to_be_scored"] == DRIVES
    with closing(PostgresStore(url)) as store, closing(KafkaLog(broker)) as log:
        sent = [
            (one.key, decode_envelope(one.value, Reading).body)
            for one in log.read(Topic.READINGS, "worker", 10_000)
        ]
        assert dict(sent) == store.latest_readings()
        assert len(sent) == DRIVES
    assert not (tmp_path / "state" / "store.sqlite").exists()


def test_an_import_whose_server_stands_still_ends_with_the_reason_and_the_next_goes_on(
    server: Server, url: str, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_timeouts, "SILENT_SECONDS", 1)
    monkeypatch.setattr(postgres_store, "CONNECT_SECONDS", 3)
    files = sorted(tables.glob("*.csv"))
    with closing(PostgresStore(url)) as store:
        with pytest.raises(StoreAway, match="does not answer"):
            Importer("backblaze", SystemClock(), store).run(
                backblaze_import.list_backblaze_import_parts(files, HOST),
                lambda seen: server.freeze(seen.total.read >= 3 * BATCH),
            )
        server.freeze(False)
        done = Importer("backblaze", SystemClock(), store).run(
            backblaze_import.list_backblaze_import_parts(files, HOST)
        )
        assert (done.broken, done.total.read, done.parts) == ((), DRIVES * DAYS, 2)
        assert len(rows(url)) == DRIVES * DAYS
