"""One run: all is started, blows fall as scheduled, each kind from a thread of its own, and all is let run out."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random

from collector.delivery import Courier, LogSink, Spool
from collector.delivery.courier import Pace
from data.clock import SystemClock
from data.log.kafka import Broker, KafkaLog, Shape, ensure_topics
from data.log.port import Topic
from data.store.postgres import migrated
from tests.chaos import poison
from tests.chaos.arena import PREFIX, Host, Program, worker
from tests.chaos.schedule import Blow, Kind
from tests.system.kafka import broker as kafka_server
from tests.system.kafka.broker import Broker as KafkaServer
from tests.system.postgres.server import Server

PARTITIONS, WORKERS = 6, 2
AGEING_SECONDS, SUPERVISOR_SECONDS = 4.0, 2.0
CLOCK_SHIFT_SECONDS = -7200
"""Back, so that no second comes twice; more than five minutes ahead would be refused, and told so, by design."""


@dataclass
class Dealt:
    """What was done while it ran."""

    began: float = field(default_factory=time.monotonic)
    blows: list[tuple[Kind, float, float]] = field(default_factory=list)
    """Kind, when, and for how many seconds."""
    poison: list[tuple[poison.Bad, poison.Place]] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    """Processes that did not end in order when they were asked."""
    skipped: Counter[Kind] = field(default_factory=Counter)

    def tell(self, sentence: str) -> None:
        """A line of progress."""
        print(f"[{time.monotonic() - self.began:6.1f} s] {sentence}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Arena:
    """All that runs."""

    folder: Path
    kafka: KafkaServer
    database: Server
    url: str
    broker: Broker
    workers: Sequence[Program]
    hosts: Sequence[Host]


@contextmanager
def arena(folder: Path, hosts: int, drives: int, random: Random) -> Iterator[Arena]:
    """Broker and database run, topics and tables are there; workers and hosts are not started yet."""
    # Beside all that runs here, and on a machine with much else to do, it takes its time to stand.
    kafka_server.READY_SECONDS = 400.0
    with ExitStack() as closing:
        place = folder / "kafka"
        place.mkdir()
        kafka = KafkaServer(place)
        closing.callback(kafka.stop)
        kafka.start()
        database = Server()
        closing.callback(database.remove)
        url = database.url(database.database())
        migrated(url)
        broker = Broker((kafka.address(),), prefix=PREFIX)
        shape = Shape(PARTITIONS, timedelta(days=7))
        ensure_topics(broker, dict.fromkeys(Topic, shape), replicas=1, in_sync=1)
        workers = [worker(folder, number, kafka.address(), url) for number in range(WORKERS)]
        racks: list[Host] = []
        for number in range(hosts):
            racks.append(Host(folder, number, drives, kafka.address(), random))
            closing.callback(racks[-1].close)
        for one in workers:
            closing.callback(one.kill)
        yield Arena(folder, kafka, database, url, broker, workers, racks)


class Storm:
    """Deals `blows` in `arena` for `seconds`. What it started anew lives until the end of its context."""

    def __init__(self, arena: Arena, blows: Sequence[Blow], seconds: float) -> None:
        self._arena, self._blows, self._seconds = arena, blows, seconds
        self.dealt = Dealt()
        self._over = threading.Event()
        self._broker_stands = threading.Lock()
        """Held while the broker is down, and while poison is sent: what was sent is then known."""
        self._errors: list[BaseException] = []
        self._threads: list[threading.Thread] = []
        self._released = threading.Event()
        self._programs = (*arena.workers, *(host.collector for host in arena.hosts))

    def run(self) -> Dealt:
        """Returns when all blows were dealt and everything stands again. Raises what went wrong in dealing them."""
        for program in self._programs:
            program.start()
        deal: Mapping[Kind, Callable[[Blow], None]] = {
            Kind.BROKER: self._break_broker,
            Kind.POSTGRES: self._break_database,
            Kind.WORKER: lambda blow: self._kill(self._arena.workers, blow),
            Kind.COLLECTOR: lambda blow: self._kill([host.collector for host in self._arena.hosts], blow),
            Kind.DISK_FULL: self._fill_disk,
            Kind.CLOCK: self._shift_clock,
            Kind.POISON: self._send_poison,
        }
        self.dealt.began = time.monotonic()
        self.dealt.tell(f"{len(self._blows)} blows in {self._seconds:.0f} s")
        steps: list[Callable[[], None]] = [self._supervise, self._age]
        steps += [lambda kind=kind, how=how: self._deal(kind, how) for kind, how in deal.items()]  # type: ignore[misc]
        waiting = [
            (threading.Thread(target=self._guarded, args=(step, done := threading.Event())), done)
            for step in steps
        ]
        self._threads += [thread for thread, _ in waiting]
        for thread in self._threads:
            thread.start()
        for _, done in waiting[2:]:
            done.wait()
        self._over.wait(self._left(self._seconds))
        self._over.set()
        waiting[1][1].wait()
        if self._errors:
            raise self._errors[0]
        return self.dealt

    def __enter__(self) -> Storm:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._released.set()
        for thread in self._threads:
            thread.join()

    def _guarded(self, step: Callable[[], None], done: threading.Event) -> None:
        try:
            step()
        except BaseException as error:  # raised again by `run`
            self._errors.append(error)
            self._over.set()
        done.set()
        self._released.wait()  # what was started here would die with this thread

    def _deal(self, kind: Kind, how: Callable[[Blow], None]) -> None:
        for blow in self._blows:
            if blow.kind is not kind:
                continue
            if self._over.wait(self._left(blow.at)):
                return
            began = time.monotonic()
            how(blow)
            if not self.dealt.skipped[kind]:
                self.dealt.blows.append((kind, began - self.dealt.began, time.monotonic() - began))
                self.dealt.tell(f"{kind}: {time.monotonic() - began:.1f} s")

    def _age(self) -> None:
        while not self._over.wait(AGEING_SECONDS):
            for host in self._arena.hosts:
                host.cabinet.age()

    def _supervise(self) -> None:
        """To the very end: a worker that found no server may be the last one to take what is left."""
        while not self._released.wait(SUPERVISOR_SECONDS):
            for program in self._programs:
                if wrong := program.revive():
                    self.dealt.unexpected.append(wrong)

    def _break_broker(self, blow: Blow) -> None:
        with self._broker_stands:
            self._arena.kafka.kill()
            self._over.wait(blow.seconds)
            self._arena.kafka.start()

    def _break_database(self, blow: Blow) -> None:
        self._arena.database.kill()
        self._over.wait(blow.seconds)
        self._arena.database.start()

    def _kill(self, programs: Sequence[Program], blow: Blow) -> None:
        program = programs[blow.target % len(programs)]
        program.kill()
        self._over.wait(blow.seconds)
        program.start()

    def _fill_disk(self, blow: Blow) -> None:
        host = self._arena.hosts[blow.target % len(self._arena.hosts)]
        if not host.mounted:
            self.dealt.skipped[Kind.DISK_FULL] += 1
            self.dealt.tell("no disk was filled: to give a spool a small disk of its own needs root")
            return
        host.fill_disk()
        self._over.wait(blow.seconds)
        host.free_disk()

    def _shift_clock(self, blow: Blow) -> None:
        host = self._arena.hosts[blow.target % len(self._arena.hosts)]
        host.cabinet.shift.write_text(str(CLOCK_SHIFT_SECONDS))
        self._over.wait(blow.seconds)
        host.cabinet.shift.write_text("0")

    def _send_poison(self, blow: Blow) -> None:
        with self._broker_stands:
            random = Random(blow.target)
            self.dealt.poison += poison.send(self._arena.broker, poison.of_every_kind(random))

    def _left(self, at: float) -> float:
        return max(0.0, self.dealt.began + at - time.monotonic())


def run_out(arena: Arena, dealt: Dealt) -> None:
    """Collectors end as a host that shuts down does; what their spools hold yet is delivered as by their next start."""
    for host in arena.hosts:
        if not host.collector.stop():
            dealt.unexpected.append(f"the collector of {host.name} did not end in order")
    clock, random = SystemClock(), Random(0)
    for host in arena.hosts:
        spool = Spool(host.spool, host.name, random)
        log = KafkaLog(arena.broker)
        courier = Courier(spool, LogSink(lambda log=log: log), clock, random, Pace(backlog_per_second=1e6))  # type: ignore[misc]
        try:
            left = spool.standing()
            dealt.tell(f"{host.name} has {left.readings} readings and {left.batches} batches left to deliver")
            while (left := spool.standing()).readings or left.batches:
                time.sleep(min(courier.step(), 1.0))
        finally:
            spool.close()
            log.close()
