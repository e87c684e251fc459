"""Two `predrain up` over one real PostgreSQL and one real Kafka while readings flow: one is killed, the next one stands
still, and the other one goes on.

The test prints how long each fail-over took:
`.venv/bin/pytest tests/system/postgres/test_two_services_over_kafka.py -p no:xdist -s`.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path

import httpx2
import pytest

from predrain.data.clock import SystemClock
from predrain.data.ids import DeviceId, HostName
from predrain.data.log.log_port import Log, Record, Topic
from predrain.data.outlook import Outlook
from predrain.data.reading import Reading
from predrain.data.store.postgres_store import PostgresStore
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.wire import decode_envelope
from predrain.service.storage.record_sender import RecordSender
from predrain.service.storage.store_identity import MARK_KEY
from tests.deadlines import idle_seconds
from tests.processes import freeze_process, thaw_process
from tests.system.kafka.broker import Broker as KafkaServer
from tests.system.kafka.broker import running_broker
from tests.system.postgres.shared_services import PlayedServices, Service, make_sick_readings, wait_until
from tests.system.stream.alike import announced
from tests.system.stream.fleet import compose_reading
from tests.system.stream.trial import by_one, with_topics

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(900)]
PREFIX = "pair."
DRIVES, SICK_EVERY, HOURS = 60, 10, 500
BATCH, PAUSE_SECONDS = 6, 0.25
"""About 24 readings/s."""
FAIL_OVER_SECONDS = 30.0
"""The lease runs out 15 s after its last renewal, and is read every 3 s: 18 s, and time for a busy machine."""


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    with running_broker(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture
def log(kafka: KafkaServer) -> Iterator[Log]:
    with closing(with_topics(kafka, PREFIX)) as log:
        yield log


@pytest.fixture
def pair(tmp_path: Path, url: str, kafka: KafkaServer, log: Log) -> Iterator[PlayedServices]:
    tables = (
        f'[kafka]\nbootstrap_servers = ["{kafka.address()}"]\nprefix = "{PREFIX}"\n'
        "replication_factor = 1\nmin_insync_replicas = 1\n"
    )
    made = PlayedServices(tmp_path, url, tables)
    yield made
    made.end()


def make_hourly_readings() -> Iterator[Reading]:
    """One reading of each drive in each hour; one drive in ten gets worse from hour to hour."""
    begin = datetime.now(UTC) - timedelta(hours=HOURS)
    for hour in range(HOURS):
        for number in range(DRIVES):
            pending = 8 * hour if number % SICK_EVERY == 0 else 0
            host = HostName(f"stor-{number % 6:02d}")
            at = begin + timedelta(hours=hour, seconds=number)
            yield compose_reading(f"Z{number:03d}", host, at, 9_000 + hour, pending)


@dataclass
class ReadingFlow:
    """A thread that sends readings all the time.

    The readings of half of the drives go into Kafka, as a collector sends them. The readings of the others go over HTTP
    to a service that takes them, and are sent again until a service acknowledges them. `sent`: all readings that were
    acknowledged.
    """

    log: Log
    services: list[Service] = field(default_factory=list)
    sent: list[Reading] = field(default_factory=list)
    repeats: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)
    _failure: list[BaseException] = field(default_factory=list)

    def __enter__(self) -> ReadingFlow:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        assert self._failure == []

    def send(self, readings: list[Reading]) -> None:
        """Send readings into Kafka."""
        sender = RecordSender("hosts", SystemClock())
        self.log.append(Topic.READINGS, [Record(one.device, sender.encode_envelope(one)) for one in readings])
        self.sent += readings

    def _run(self) -> None:
        try:
            readings = make_hourly_readings()
            while not self._ended.wait(PAUSE_SECONDS):
                batch = [next(readings) for _ in range(BATCH)]
                self.send(batch[::2])
                self._post(batch[1::2])
        except BaseException as failure:
            self._failure.append(failure)

    def _post(self, readings: list[Reading]) -> None:
        while True:
            for service in tuple(self.services):
                with suppress(httpx2.TransportError):
                    answer = service.post(readings, timeout=2.0)
                    if answer.status_code == 200:
                        assert answer.json() == {"accepted": len(readings), "refused": []}
                        self.sent += readings
                        return
                self.repeats += 1
            time.sleep(0.1)


@dataclass
class ActiveObserver:
    """Asks each service in turn, all the time, whether it is the active one."""

    services: list[Service] = field(default_factory=list)
    claims: list[str] = field(default_factory=list)
    """Names of the services that said so, in the order of their answers."""
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> ActiveObserver:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def list_active(self) -> list[str]:
        """Return the services that said so, one name for each time in which no other one said so."""
        return [name for name, _ in groupby(self.claims)]

    def _run(self) -> None:
        while not self._ended.wait(0.1):
            for service in tuple(self.services):
                with suppress(httpx2.TransportError):
                    if service.client.get("/activez", timeout=1.0).status_code == 200:
                        self.claims.append(service.state.name)


def read_scored(url: str) -> Counter[tuple[DeviceId, datetime]]:
    """Count the outlooks in the store by device and the time of the reading."""
    with closing(PostgresStore(url)) as store:
        devices = [one.device for one in store.latest_readings().values()]
        return Counter((one.device, one.as_of) for device in devices for one in store.outlooks(device))


def count_announcements(log: Log) -> Counter[tuple[DeviceId, datetime]]:
    records = (one for one in log.read_newest(Topic.OUTLOOKS, 1_000_000) if one.key != MARK_KEY)
    found = (decode_envelope(one.value, Outlook).body for one in records)
    return Counter((one.device, one.as_of) for one in found)


def take_over(pair: PlayedServices, standby: Service, flow: ReadingFlow) -> dict[str, float]:
    """Seconds from now until the standby does each thing."""
    began, limit = time.monotonic(), idle_seconds() + FAIL_OVER_SECONDS
    due = len(flow.sent)
    found = {"is the active one": wait_until(standby.is_active, "the standby becomes active")}
    assert idle_seconds() < limit
    wait_until(lambda: pair.controls(standby), "it takes the cluster's lease")
    found["controls the cluster"] = time.monotonic() - began
    wait_until(lambda: read_scored(pair.url).total() >= due, "every reading sent before is scored")
    found["and the store have every reading scored that was sent before"] = time.monotonic() - began
    return found


def name_active(service: Service) -> tuple[int, str]:
    """Return the active process and its address, as the service says."""
    active = service.get("status")["service"]["active"]
    return (active["pid"], active["url"]) if active else (0, "")


def check_one_active(active: Service, standby: Service) -> None:
    """Wait until both services name the same active one, over REST and where load balancers ask."""
    told = (active.process.pid, str(active.client.base_url).rstrip("/"))
    wait_until(lambda: name_active(active) == name_active(standby) == told, "both name the active one")
    assert active.client.get("/activez").status_code == 200
    refused = standby.client.get("/activez")
    assert refused.status_code == 503
    roles = [one.get("status")["service"]["role"] for one in (active, standby)]
    assert roles == ["active", "standby"]


def test_a_standby_goes_on_over_kafka_and_each_acknowledged_reading_is_scored_once(
    pair: PlayedServices, log: Log, tmp_path: Path
) -> None:
    first = pair.begin("first")
    wait_until(first.is_active, "the first one is active")
    second = pair.begin("second")
    with ReadingFlow(log, [first, second]) as flow, ActiveObserver([first, second]) as observer:
        check_one_active(first, second)
        flow.send(make_sick_readings("A"))
        wait_until(lambda: first.judges("ST4000DM000_A"), "the disk is judged")
        first.process.kill()
        killed = take_over(pair, second, flow)

        third = pair.begin("third")
        flow.services.append(third)
        observer.services.append(third)
        check_one_active(second, third)
        flow.send(make_sick_readings("B"))
        wait_until(lambda: second.judges("ST4000DM000_B"), "the second disk is judged")
        freeze_process(second.process.pid)
        stopped = take_over(pair, third, flow)
        thaw_process(second.process.pid)
        check_one_active(third, second)
        for serial in "AB":
            wait_until(
                lambda serial=serial: pair.receiver.names(f"ST4000DM000_{serial}"), "no message is lost"
            )
        assert not pair.controls(second)
    assert observer.list_active() == ["first", "second", "third"]
    assert [id_ for id_, count in pair.receiver.count_ids().items() if count > 1] == []

    wait_until(lambda: read_scored(pair.url).total() >= len(flow.sent), "every reading is scored")
    assert read_scored(pair.url) == Counter((one.device, one.taken_at) for one in flow.sent)
    with closing(SqliteStore(tmp_path / "alone.db")) as alone:
        told = announced(by_one(alone, flow.sent), frozenset())
    assert told
    # Status and time of each announcement are compared. Probabilities are not: a service learns base rates from its own
    # drives every six hours, and the worker alone does not.
    assert announced(log, frozenset()) >= told
    again = count_announcements(log)
    print(
        f"\n{len(flow.sent)} readings were acknowledged, {flow.repeats} requests were sent again; of {len(again)} "
        f"announcements {again.total() - len(again)} came twice"
    )
    for what in killed:
        print(f"the standby {what}: {killed[what]:.1f} s after kill -9, {stopped[what]:.1f} s after SIGSTOP")
