"""One run: all is started, blows fall as scheduled, each kind from a thread of its own, and all is let run out."""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random

from predrain.collector.delivery import Shipper, Spool
from predrain.collector.delivery.shipper import DeliveryPace
from predrain.data.clock import SystemClock
from predrain.service.config.collector_table import load_collector_settings
from predrain.service.processes import collector_process
from tests.chaos import poison
from tests.chaos.arena import Arena
from tests.chaos.proxy import Cut
from tests.chaos.schedule import FREEZES, KILLS, Blow, Kind, Part
from tests.deadlines import idle_seconds

AGEING_SECONDS, SUPERVISOR_SECONDS = 4.0, 2.0
READY_SECONDS = 120.0
CLOCK_SHIFT_SECONDS = -7200
"""The jump of a clock, in seconds. The jump goes back, so that no second comes twice. A reading from more than five
minutes ahead would be refused, and the refusal reported, by design."""
CUTS = (Cut.ANSWERS_LOST, Cut.STALLED, Cut.RESET)


@dataclass
class Dealt:
    """The record of a run: its times, its counts of readings and outlooks, and the faults that were injected."""

    began: float = field(default_factory=time.monotonic)
    delivery_seconds: float = 0.0
    """From the start of the hosts until they were asked to end."""
    ended: float = 0.0
    """The time at which the hosts were asked to end, in seconds of the monotonic clock."""
    due: int = 0
    """Readings that were due from the load generators by then."""
    scored: int = 0
    """Outlooks that were kept then."""
    undelivered: int = 0
    """Readings that lay in spools then."""
    blows: list[tuple[Kind, float, float]] = field(default_factory=list)
    """Kind, when, and for how many seconds."""
    poison: list[tuple[poison.Bad, poison.Place]] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    """Processes that did not end in order when they were asked."""
    skipped: Counter[Kind] = field(default_factory=Counter)

    def tell(self, sentence: str) -> None:
        """A line of progress."""
        print(f"[{time.monotonic() - self.began:6.1f} s] {sentence}", file=sys.stderr, flush=True)


class Storm:
    """Deals `blows` in `arena` for `seconds`. Processes that the storm started again live until its context ends."""

    def __init__(self, arena: Arena, blows: Sequence[Blow], seconds: float) -> None:
        self._arena, self._blows, self._seconds = arena, blows, seconds
        self.dealt = Dealt()
        self._over = threading.Event()
        self._turns = {part: threading.Lock() for part in Part}
        """Held while a part is down or frozen: it is not killed and frozen at once. That of the broker is also held
        while poison is sent: what was sent is then known."""
        self._errors: list[BaseException] = []
        self._threads: list[threading.Thread] = []
        self._released = threading.Event()

    def run(self) -> Dealt:
        """Returns when all blows were dealt and everything stands again. Raises what went wrong in dealing them."""
        started = time.monotonic()
        for program in self._arena.programs:
            program.start()
        self._await_first_outlook()
        self.dealt.began = time.monotonic()
        self.dealt.tell(f"{len(self._blows)} blows in {self._seconds:.0f} s")
        steps: list[Callable[[], None]] = [self._supervise, self._age]
        steps += [partial(self._deal, kind, how) for kind, how in self._ways_to_deal().items()]
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
        self.dealt.ended = time.monotonic()
        self.dealt.delivery_seconds = self.dealt.ended - started
        self.dealt.due = sum(host.count_due(time.time()) for host in self._arena.loads)
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

    def _ways_to_deal(self) -> Mapping[Kind, Callable[[Blow], None]]:
        return {
            **{kind: partial(self._kill, part) for kind, part in KILLS.items()},
            **{kind: partial(self._freeze, part) for kind, part in FREEZES.items()},
            Kind.NETWORK: self._cut_network,
            Kind.DISK_FULL: self._fill_disk,
            Kind.CLOCK: self._shift_clock,
            Kind.POISON: self._send_poison,
        }

    def _await_first_outlook(self) -> None:
        """Wait for the first outlook: faults can only break delivery and scoring after both have begun."""
        end = idle_seconds() + READY_SECONDS
        while True:
            with suppress(sqlite3.OperationalError):  # a service that has not begun has no store
                if self._arena.count_rows("outlooks"):
                    return
            if idle_seconds() > end:
                raise TimeoutError(
                    f"no reading was scored in {READY_SECONDS:.0f} s: see {self._arena.folder}"
                )
            time.sleep(0.2)

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
            for host in self._arena.collectors:
                host.cabinet.age()

    def _supervise(self) -> None:
        """To the very end: a worker that found no server may be the last one to take what is left."""
        while not self._released.wait(SUPERVISOR_SECONDS):
            for program in self._arena.programs:
                if wrong := program.revive():
                    self.dealt.unexpected.append(wrong)

    def _kill(self, part: Part, blow: Blow) -> None:
        targets = self._arena.parts[part]
        target = targets[blow.target % len(targets)]
        with self._turns[part]:
            target.kill()
            self._over.wait(blow.seconds)
            target.start()

    def _freeze(self, part: Part, blow: Blow) -> None:
        targets = self._arena.parts[part]
        target = targets[blow.target % len(targets)]
        with self._turns[part]:
            target.freeze(True)
            self._over.wait(blow.seconds)
            target.freeze(False)

    def _cut_network(self, blow: Blow) -> None:
        how = CUTS[blow.target % len(CUTS)]
        network = self._arena.networks[blow.target // len(CUTS) % len(self._arena.networks)]
        network.cut(how)
        self._over.wait(blow.seconds)
        network.cut(None)

    def _fill_disk(self, blow: Blow) -> None:
        host = self._arena.collectors[blow.target % len(self._arena.collectors)]
        if not host.mounted:
            self.dealt.skipped[Kind.DISK_FULL] += 1
            self.dealt.tell("no disk was filled: to give a spool a small disk of its own needs root")
            return
        with self._turns[Part.HOST]:
            host.fill_disk()
        self._over.wait(blow.seconds)
        host.free_disk()

    def _shift_clock(self, blow: Blow) -> None:
        host = self._arena.collectors[blow.target % len(self._arena.collectors)]
        host.cabinet.shift.write_text(str(CLOCK_SHIFT_SECONDS))
        self._over.wait(blow.seconds)
        host.cabinet.shift.write_text("0")

    def _send_poison(self, blow: Blow) -> None:
        assert self._arena.broker is not None
        with self._turns[Part.BROKER]:
            random = Random(blow.target)
            self.dealt.poison += poison.send(self._arena.broker, poison.of_every_kind(random))

    def _left(self, at: float) -> float:
        return max(0.0, self.dealt.began + at - time.monotonic())


def run_out(arena: Arena, dealt: Dealt) -> None:
    """Hosts end as on a machine that shuts down; what their spools hold yet is delivered as by their next start."""
    for host in arena.hosts:
        if not host.program.stop():
            dealt.unexpected.append(f"the process of {host.name} did not end in order")
    dealt.scored = arena.count_rows("outlooks")
    clock, random = SystemClock(), Random(0)
    for host in arena.hosts:
        spool = Spool(host.spool, host.name, random)
        sink, _ = collector_process._build_sink(load_collector_settings(host.settings))
        courier = Shipper(spool, sink, clock, random, DeliveryPace(backlog_per_second=1e6))
        try:
            left = spool.read_status()
            dealt.undelivered += left.readings
            dealt.tell(f"{host.name} has {left.readings} readings and {left.batches} batches left to deliver")
            while (left := spool.read_status()).readings or left.batches:
                time.sleep(min(courier.ship_batch(), 1.0))
        finally:
            spool.close()
            sink.close()
