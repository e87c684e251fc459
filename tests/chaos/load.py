"""`python -m tests.chaos.load FOLDER`: one process that reads thousands of made-up drives and delivers as a host does.

It accepts and delivers with the collector's own spool, courier and sink, by FOLDER/predrain.toml; only its drives are
made up, by FOLDER/load.json. Each drive is read in turn. Which drive is due, and how old it is, follows from the time
alone, so that a process that was killed goes on where the fleet stands now.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import msgspec

from data.clock import SystemClock
from data.ids import HostName
from data.reading import Reading
from tests.system.stream.fleet import compose_reading

TICK_SECONDS = 0.2
LATE_SECONDS = 2.0
"""What was due longer ago than this is not read any more: a collector that stood still makes up for nothing."""
SICK_SHARE, SICK_WITHIN_TURNS = 0.03, 30
"""Of the drives these fall ill, each at a turn of its own, so that something is announced at any time."""


class LoadOrder(msgspec.Struct, frozen=True):
    """What one process is to read. `began`: seconds since 1970, from which its drives are counted."""

    host: str
    drives: int
    readings_per_second: float
    began: float


def compose_due(order: LoadOrder, number: int, at: datetime) -> Reading:
    """The reading of whichever drive is the `number`th since the load began."""
    turn, drive = divmod(number, order.drives)
    serial = f"{order.host.upper()}-{drive:06d}"
    random = Random(serial)
    sick_turns = turn - random.randrange(SICK_WITHIN_TURNS) if random.random() < SICK_SHARE else 0
    hours, pending = 9_000 + drive % 20_000 + turn, 100 * max(0, sick_turns)
    return compose_reading(serial, HostName(order.host), at, hours, pending, passed=sick_turns <= 0)


class LoadClock:
    """Which readings are due: each once, in the order of the time at which each is due."""

    def __init__(self, order: LoadOrder, now: float) -> None:
        self._order = order
        self._next = self._count(now)

    def take_due(self, now: float) -> range:
        """Numbers that became due since the last call, less those that are too late."""
        end = self._count(now)
        first = max(self._next, self._count(now - LATE_SECONDS))
        self._next = max(self._next, end)
        return range(first, end)

    def _count(self, now: float) -> int:
        return max(0, int((now - self._order.began) * self._order.readings_per_second))


def run_load(folder: Path) -> None:
    """Read and deliver until SIGTERM."""
    from collector.delivery import Courier
    from service import collecting
    from service.tables.collector import load
    from tests.chaos.witness import WitnessedSpool

    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    order = msgspec.json.decode((folder / "load.json").read_bytes(), type=LoadOrder)
    over, random, clock = threading.Event(), Random(), SystemClock()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    settings = load(folder / "predrain.toml")
    WitnessedSpool.folder = folder
    spool = WitnessedSpool(collecting._spool_path(settings), HostName(order.host), random)
    courier = Courier(spool, collecting._sink(settings)[0], clock, random)
    due = LoadClock(order, time.time())

    def read() -> float:
        numbers, now = due.take_due(time.time()), clock.now()
        readings = [
            compose_due(order, number, now - timedelta(microseconds=len(numbers) - place))
            for place, number in enumerate(numbers)
        ]
        if readings:
            spool.accept(readings, now)
        return TICK_SECONDS

    delivering = threading.Thread(target=_repeat, args=(courier.step, over), daemon=True)
    delivering.start()
    _repeat(read, over)
    delivering.join(5.0)  # what is under way then ends with the process, as at a kill -9


def _repeat(step: Callable[[], float], over: threading.Event) -> None:
    while not over.wait(step()):
        pass


if __name__ == "__main__":
    run_load(Path(sys.argv[1]))
