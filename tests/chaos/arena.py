"""The real things that are broken, for each way of delivery, with a proxy on each network between them.

Processes that are started here die with the thread that started them.
"""

from __future__ import annotations

import contextlib
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Protocol

from predrain.data.log.kafka import Broker, KafkaLog, TopicShape, ensure_topics
from predrain.data.log.log_port import Log, Topic
from predrain.data.log.sqlite_log import SqliteLog
from predrain.data.store.postgres_store import PostgresStore, migrate_postgres_store
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_port import Store
from tests.chaos.program import Program
from tests.chaos.proxy import TcpProxy
from tests.chaos.schedule import Part, Way
from tests.chaos.spool_host import CollectorHost, Delivery, LoadHost, SpoolHost
from tests.ports import hold_port
from tests.system.kafka import broker as kafka_server
from tests.system.kafka.broker import Broker as KafkaServer
from tests.system.postgres.server import Server

PREFIX = "chaos."
PARTITIONS, WORKERS, LOAD_HOSTS = 6, 2, 2
SECONDS_A_TURN = 20
"""Each made-up drive is read as often as this."""
PREDRAIN = Path(sys.executable).parent / "predrain"
_KAFKA = """
[kafka]
bootstrap_servers = ["127.0.0.1:{port}"]
prefix = "{prefix}"
replication_factor = 1
min_insync_replicas = 1
"""


class Breakable(Protocol):
    """A part of the arena that can be killed and frozen."""

    def kill(self) -> None: ...

    def start(self) -> object: ...

    def freeze(self, frozen: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class FleetSize:
    """Hosts with a collector, drives of each, and readings a second of all made-up drives together."""

    collectors: int = 3
    drives: int = 20
    readings_per_second: float = 1_000.0

    @property
    def made_up_drives(self) -> int:
        """Drives without a collector, over all load generators."""
        return round(self.readings_per_second * SECONDS_A_TURN)


@dataclass(frozen=True)
class Arena:
    """All that runs."""

    way: Way
    folder: Path
    parts: Mapping[Part, Sequence[Breakable]]
    networks: Sequence[TcpProxy]
    consumers: Sequence[Program]
    """The programs that take the delivered records: the workers (Kafka), or the service (HTTP)."""
    collectors: Sequence[CollectorHost]
    loads: Sequence[LoadHost]
    open_log: Callable[[], Log]
    open_store: Callable[[], Store]
    """Log and store as they stand, once the consumers have ended."""
    count_rows: Callable[[str], int]
    """Rows of a table of the store, while all runs."""
    broker: Broker | None
    """The broker to which poison is sent, not over the hosts' listener; None for HTTP, which has no broker."""

    @property
    def hosts(self) -> Sequence[SpoolHost]:
        """All that deliver."""
        return (*self.collectors, *self.loads)

    @property
    def programs(self) -> Sequence[Program]:
        """All of our processes."""
        return (*self.consumers, *(host.program for host in self.hosts))


@contextmanager
def open_arena(way: Way, folder: Path, size: FleetSize, random: Random) -> Iterator[Arena]:
    """Servers run, tables and topics are there; the programs are not started yet."""
    with ExitStack() as closing:
        build = _build_kafka if way is Way.KAFKA else _build_http
        arena = build(folder, size, random, closing)
        for one in arena.consumers:
            closing.callback(one.kill)
        yield arena


def _build_kafka(folder: Path, size: FleetSize, random: Random, closing: ExitStack) -> Arena:
    # Beside all that runs here, and on a machine with much else to do, it takes its time to stand.
    kafka_server.READY_SECONDS = 400.0
    to_hosts, to_workers, to_database = (_proxied(closing) for _ in range(3))
    place = folder / "kafka"
    place.mkdir()
    kafka = KafkaServer(place, proxied={"HOSTS": to_hosts.port, "WORKERS": to_workers.port})
    closing.callback(kafka.stop)
    kafka.start()
    to_hosts.target, to_workers.target = kafka.port("HOSTS"), kafka.port("WORKERS")
    database = Server()
    closing.callback(database.remove)
    to_database.target = database.port
    url = database.url(database.database())
    migrate_postgres_store(url)
    broker = Broker((kafka.address(),), prefix=PREFIX)
    shape = TopicShape(PARTITIONS, timedelta(days=7))
    ensure_topics(broker, dict.fromkeys(Topic, shape), replicas=1, in_sync=1)
    config = folder / "worker.toml"
    config.write_text(
        f'[service]\nstate = "{folder / "worker-state"}"\n'
        f'[store]\nurl = "{url.replace(f":{database.port}/", f":{to_database.port}/")}"\n'
        + _KAFKA.format(port=to_workers.port, prefix=PREFIX)
    )
    workers = [
        Program([PREDRAIN, "work", "--config", config], folder / f"worker-{number}.log")
        for number in range(WORKERS)
    ]
    delivery = Delivery(tables=_KAFKA.format(port=to_hosts.port, prefix=PREFIX))
    collectors, loads = _hosts(folder, size, delivery, random, closing)
    return Arena(
        way=Way.KAFKA,
        folder=folder,
        parts={
            Part.BROKER: [kafka],
            Part.POSTGRES: [database],
            Part.WORKER: workers,
            Part.HOST: [host.program for host in (*collectors, *loads)],
        },
        networks=(to_hosts, to_workers, to_database),
        consumers=workers,
        collectors=collectors,
        loads=loads,
        open_log=lambda: KafkaLog(broker),
        open_store=lambda: PostgresStore(url),
        count_rows=lambda table: int(database.ask(f"SELECT count(*) FROM {table}", url)),
        broker=broker,
    )


def _build_http(folder: Path, size: FleetSize, random: Random, closing: ExitStack) -> Arena:
    to_service = _proxied(closing)
    to_service.target = hold_port()
    state, config = folder / "service", folder / "service.toml"
    config.write_text(f'[service]\nport = {to_service.target}\nstate = "{state}"\n')
    service = Program([PREDRAIN, "up", "--config", config], folder / "service.log")
    delivery = Delivery(
        of_collector=f'url = "http://127.0.0.1:{to_service.port}"\ntoken_file = "{state / "token"}"'
    )
    collectors, loads = _hosts(folder, size, delivery, random, closing)

    def count_rows(table: str) -> int:
        file = f"file:{state / 'store.sqlite'}?mode=ro"
        with contextlib.closing(sqlite3.connect(file, uri=True)) as connection:
            return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])

    return Arena(
        way=Way.HTTP,
        folder=folder,
        parts={Part.SERVICE: [service], Part.HOST: [host.program for host in (*collectors, *loads)]},
        networks=(to_service,),
        consumers=(service,),
        collectors=collectors,
        loads=loads,
        open_log=lambda: SqliteLog(state / "log.sqlite"),
        open_store=lambda: SqliteStore(state / "store.sqlite"),
        count_rows=count_rows,
        broker=None,
    )


def _proxied(closing: ExitStack) -> TcpProxy:
    proxy = TcpProxy()
    closing.callback(proxy.close)
    return proxy


def _hosts(
    folder: Path, size: FleetSize, delivery: Delivery, random: Random, closing: ExitStack
) -> tuple[list[CollectorHost], list[LoadHost]]:
    collectors: list[CollectorHost] = []
    loads: list[LoadHost] = []
    for number in range(size.collectors):
        collectors.append(CollectorHost(folder, number, size.drives, delivery, random))
        closing.callback(collectors[-1].close)
    for number in range(LOAD_HOSTS):
        drives, rate = size.made_up_drives // LOAD_HOSTS, size.readings_per_second / LOAD_HOSTS
        loads.append(LoadHost(folder, number, drives, rate, delivery))
        closing.callback(loads[-1].close)
    return collectors, loads
