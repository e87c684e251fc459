"""A stage for what streams: a real Kafka of twelve partitions, a real PostgreSQL, and a fleet that sends into them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import msgspec

from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.latency_windows import LatencyBatch, LatencySummary, LatencyWindows
from predrain.data.reading import Reading, Smart
from tests.bench.figure import MissingInput, Work
from tests.bench.plumbing import documents

PARTITIONS = 12
NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
DRIVES_A_HOST = OSDS_A_HOST = 60
DURABLE = ("fsync = on", "full_page_writes = on", "shared_buffers = '128MB'")
"""As PostgreSQL is installed, and as nobody should be without; tests do without them."""
TICK = os.sysconf("SC_CLK_TCK")
PATIENCE = 300.0
LOOK_SECONDS = 1.0
"""Between two: PostgreSQL counts rows one by one, at 80 ms for 60,000, on the processors that are measured."""


@dataclass(frozen=True)
class Stage:
    """The addresses of a Kafka and a PostgreSQL that run. `config` is a settings file that names both."""

    folder: Path
    config: Path
    bootstrap: str
    database: str


@contextmanager
def stage(folder: Path, *settings: str) -> Iterator[Stage]:
    """Both servers with empty topics and tables; settings: of PostgreSQL, `name = value`. Raises MissingInput."""
    from predrain.data.log.kafka import Broker, TopicShape, ensure_topics
    from predrain.data.log.log_port import Topic
    from predrain.data.store.postgres_store import migrate_postgres_store
    from tests.system.kafka import jars
    from tests.system.kafka.broker import Broker as Kafka
    from tests.system.postgres.server import running

    if why := jars.missing():
        raise MissingInput(why)
    if not any(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        raise MissingInput("PostgreSQL is not installed: apt-get install postgresql-15")
    (folder / "kafka").mkdir()
    kafka = Kafka(folder / "kafka")
    try:
        kafka.start()
        with running() as server:
            for setting in (*DURABLE, *settings):
                server.run(f"ALTER SYSTEM SET {setting}")
            server.stop()
            server.start()
            url = server.url(server.database())
            migrate_postgres_store(url)
            shapes = dict.fromkeys(Topic, TopicShape(PARTITIONS, timedelta(days=1)))
            ensure_topics(Broker((kafka.address(),)), shapes, replicas=1, in_sync=1)
            config = folder / "predrain.toml"
            config.write_text(
                f'[service]\nstate = "{folder / "state"}"\n[store]\nurl = "{url}"\n'
                f'[kafka]\nbootstrap_servers = ["{kafka.address()}"]\n'
                "replication_factor = 1\nmin_insync_replicas = 1\n"
            )
            yield Stage(folder, config, kafka.address(), url)
    finally:
        kafka.stop()


def drives(count: int) -> list[Smart]:
    """Return the SMART data of `count` hard disks: real ones of thirty models, repeated, each with its own serial."""
    from predrain.data.smart import Undecodable, decode_smartctl_output

    models = []
    for text in documents():
        try:
            smart = decode_smartctl_output(text, NOW).smart
        except Undecodable:
            continue
        if smart.identity.rotation_rpm and smart.identity.model and len(smart.attributes) >= 20:
            models.append(smart)
    return [
        replace(one, identity=replace(one.identity, serial=f"{number:08X}"))
        for number, one in ((number, models[number % len(models)]) for number in range(count))
    ]


def reading(number: int, smart: Smart, at: datetime, hours: int = 0) -> Reading:
    """A look at drive `number`, so many hours after it was first seen; one in forty is on its way out."""
    random, counters = Random(number * 1_000 + hours), smart.counters
    if number % 40 == 0:
        counters = replace(counters, pending=8 * (1 + max(0, hours)), offline_uncorrectable=max(0, hours))
    attributes = dict(smart.attributes)
    for id_, raw in (
        (9, (smart.power_on_hours or 0) + hours),
        (194, 25 + random.randrange(12)),
        (197, counters.pending),
    ):
        if id_ in attributes and raw is not None:
            attributes[id_] = msgspec.structs.replace(attributes[id_], raw=raw, raw_packed=None)
    seen = replace(
        smart, counters=counters, attributes=attributes, power_on_hours=(smart.power_on_hours or 0) + hours
    )
    device = DeviceId(f"{(smart.identity.model or '').replace(' ', '_')}_{smart.identity.serial}")
    return Reading(device, HostName(f"stor-{number // DRIVES_A_HOST:04d}"), at, at, seen)


def batch(host: int, minute: int, osds: int = OSDS_A_HOST) -> LatencyBatch:
    """Return the latencies that one host of so many OSDs counted in a minute."""
    random, name = Random(host * 10_000 + minute), HostName(f"stor-{host:04d}")
    at = NOW - timedelta(hours=12) + timedelta(minutes=minute)

    def summary(osd: int) -> LatencySummary:
        times = sorted(round(random.expovariate(0.2), 3) for _ in range(7))
        load = random.randrange(200, 9_000)
        return LatencySummary(
            OsdId(host * OSDS_A_HOST + osd), name, at, 60.0, load, times[0], times[4], times[1], times[5], times[2],
            times[6], times[3], round(load / 60, 2), round(random.random() * 3, 2), 0, 1, False, minute % 60 < 9,
        )  # fmt: skip

    return LatencyBatch(name, LatencyWindows.from_summaries(map(summary, range(osds))))


def passed(done: Callable[[], int], total: int) -> Work:
    """Rate and processor seconds of all processes that we started, from when a twentieth of `total` is `done` until the
    last look at which some of it is not.
    """
    end = time.monotonic() + PATIENCE
    looks: list[tuple[int, float, float]] = []
    while (count := done()) < total:
        if time.monotonic() > end:
            raise TimeoutError(f"{count:,} of {total:,} are done after {PATIENCE:.0f} s")
        if count >= total // 20:
            looks.append((count, time.monotonic(), burnt()))
        time.sleep(LOOK_SECONDS)
    amount, seconds, spent = (last - first for first, last in zip(looks[0], looks[-1], strict=True))
    return Work(amount, seconds, spent)


def burnt() -> float:
    """Processor seconds of all our descendants so far, those that have ended included."""
    parents, spent = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(stat.parent.name)
        parents[pid], spent[pid] = int(words[1]), sum(map(int, words[11:15]))
    ours, total = {os.getpid()}, 0
    while grown := {pid for pid, parent in parents.items() if parent in ours and pid not in ours}:
        total += sum(spent[pid] for pid in grown)
        ours |= grown
    return total / TICK


def quantile(values: Sequence[float], share: float) -> float:
    """The value that a `share` of them does not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
