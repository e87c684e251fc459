"""A real `predrain up` under a steady load: readings over HTTP and pages that hold event streams."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from predrain.service.forecasting.worker import STEP
from tests.attack.target import NO_RATES, Target, running_service
from tests.bench.loading import Hosts, count_worked
from tests.bench.readers import Readers
from tests.endure.flatness import ResourceSample

SAMPLE_SECONDS = 2.0
ROUNDS_AT_ONCE = 3
"""Readings of each device that are sent at once before the load begins. Memory grows meanwhile to what it takes at
most: for a whole step of the worker, and for the readings and outlooks before the newest ones, which the last answer
to a reader holds until the next one. Such growth is bounded, and lies before what is measured."""


@dataclass(frozen=True, slots=True)
class EnduranceLoad:
    """The load on the service. The devices are the same from the begin to the end."""

    seconds: float
    readings_per_second: int = 500
    streams: int = 50
    devices: int = 2_000


@dataclass(frozen=True, slots=True)
class EnduranceRun:
    """The load that was sent, and samples of the resources that the service held meanwhile."""

    load: EnduranceLoad
    seconds: float
    accepted: int
    page_rounds: int
    failed_answers: int
    samples: tuple[ResourceSample, ...]


def run_load(folder: Path, load: EnduranceLoad, report: Callable[[ResourceSample], None]) -> EnduranceRun:
    """Start the service, send for so long, and end it. Raises ValueError when readings are refused."""
    with running_service(folder, settings=NO_RATES) as target:
        hosts = Hosts(target.address, target.token, load.devices)
        while hosts.accepted < ROUNDS_AT_ONCE * max(load.devices, STEP):
            hosts.post()
        before = hosts.accepted
        spawn = multiprocessing.get_context("spawn")
        ours, theirs = spawn.Pipe()
        readers = spawn.Process(
            target=_read_pages, args=(target.address, load.streams, load.seconds, theirs), daemon=True
        )
        readers.start()
        theirs.close()
        ours.recv()
        samples: list[ResourceSample] = []
        over = threading.Event()
        began = time.monotonic()

        def sample() -> None:
            while not over.wait(SAMPLE_SECONDS):
                samples.append(_sample(target, time.monotonic() - began, hosts.accepted))
                report(samples[-1])

        sampling = threading.Thread(target=sample)
        sampling.start()
        try:
            hosts.send(load.seconds, load.readings_per_second)
            took = time.monotonic() - began
        finally:
            over.set()
            sampling.join()
        found: Readers = ours.recv()
        readers.join()
    return EnduranceRun(load, took, hosts.accepted - before, found.rounds, found.failed, tuple(samples))


def _sample(target: Target, at_seconds: float, accepted: int) -> ResourceSample:
    waiting = max(0, accepted - count_worked(target.address))
    descriptors = sum(1 for _ in Path(f"/proc/{target.pid}/fd").iterdir())
    return ResourceSample(at_seconds, target.memory_bytes() / 1e6, descriptors, waiting)


def _read_pages(address: str, streams: int, seconds: float, connection: Connection) -> None:
    readers = Readers(address)
    asyncio.run(readers.read(streams, seconds, lambda: connection.send("all listen")))
    connection.send(readers)
