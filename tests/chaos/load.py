"""`python -m tests.chaos.load FOLDER`: one process that reads thousands of made-up drives and delivers as a host does.

The process accepts and delivers with the collector's own spool, shipper and sink, as FOLDER/predrain.toml configures
them. Only its drives are made up, as FOLDER/load.json says. Each drive is read in turn. The number of readings that are
due follows from the time alone, and the number that were read is the spool's count. A process that was killed or frozen
therefore reads later the readings that became due meanwhile.
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

from predrain.data.clock import SystemClock
from predrain.data.ids import HostName
from predrain.data.reading import Reading
from tests.system.stream.fleet import compose_reading

TICK_SECONDS = 0.2
MOST_AT_ONCE = 1_000
"""Readings that are accepted in one go."""
MOST_SPOOLED_SECONDS = 60.0
"""Seconds of the load that may wait in the spool, more than any fault lasts. While so many wait, nothing is read: the
consumers of the readings are too slow for the load, and a run that piles readings up would never end."""
SICK_SHARE, SICK_WITHIN_TURNS = 0.03, 30
"""Of the drives these fall ill, each at a turn of its own, so that something is announced at any time."""


class LoadOrder(msgspec.Struct, frozen=True):
    """The drives that one process has to read, and the rate of its readings."""

    host: str
    drives: int
    readings_per_second: float

    def count_due(self, seconds: float) -> int:
        """Readings that are due so many seconds after the load began."""
        return max(0, int(seconds * self.readings_per_second))


def compose_due(order: LoadOrder, number: int, at: datetime) -> Reading:
    """The reading of whichever drive is the `number`th since the load began."""
    turn, drive = divmod(number, order.drives)
    serial = f"{order.host.upper()}-{drive:06d}"
    random = Random(serial)
    sick_turns = turn - random.randrange(SICK_WITHIN_TURNS) if random.random() < SICK_SHARE else 0
    hours, pending = 9_000 + drive % 20_000 + turn, 100 * max(0, sick_turns)
    return compose_reading(serial, HostName(order.host), at, hours, pending, passed=sick_turns <= 0)


class LoadClock:
    """Which readings are due: each once, in the order of the time at which each is due.

    began: seconds since 1970. taken: how many were read before.
    """

    def __init__(self, order: LoadOrder, began: float, taken: int) -> None:
        self._order, self._began, self._next = order, began, taken
        self._most = min(MOST_AT_ONCE, order.drives)  # no drive twice at one time

    def take_due(self, now: float, spooled: int) -> range:
        """Numbers of what is due and was not read yet: the first ones, where there are too many for one go, and none
        while as many are `spooled` as may be."""
        room = max(0, self._order.count_due(MOST_SPOOLED_SECONDS) - spooled)
        due = range(self._next, self._order.count_due(now - self._began))[: min(self._most, room)]
        self._next += len(due)
        return due


def read_began(folder: Path) -> float | None:
    """When the process in `folder` was started first, in seconds since 1970; None before that."""
    file = folder / "began"
    return float(file.read_text()) if file.exists() else None


def _begin(folder: Path, now: float) -> float:
    began = read_began(folder)
    if began is None:
        (folder / "began.part").write_text(repr(now))
        (folder / "began.part").replace(folder / "began")
    return now if began is None else began


def run_load(folder: Path) -> None:
    """Read and deliver until SIGTERM."""
    from predrain.collector.delivery import Shipper
    from predrain.collector.delivery.shipper import DeliveryPace
    from predrain.service.config.collector_table import load_collector_settings
    from predrain.service.processes import collector_process
    from tests.chaos.witness import WitnessedSpool, count_accepted

    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    order = msgspec.json.decode((folder / "load.json").read_bytes(), type=LoadOrder)
    over, random, clock = threading.Event(), Random(), SystemClock()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    settings = load_collector_settings(folder / "predrain.toml")
    WitnessedSpool.folder = folder
    path = collector_process._spool_path(settings)
    spool = WitnessedSpool(path, HostName(order.host), random)
    # A host alone takes its time with what is left over; hundreds of them come with as much a second as is read.
    pace = DeliveryPace(backlog_per_second=2 * order.readings_per_second)
    courier = Shipper(spool, collector_process._build_sink(settings)[0], clock, random, pace)
    due = LoadClock(order, _begin(folder, time.time()), count_accepted(path))

    def read() -> float:
        numbers, now = due.take_due(time.time(), spool.read_status().readings), clock.now()
        readings = [
            compose_due(order, number, now - timedelta(microseconds=len(numbers) - place))
            for place, number in enumerate(numbers)
        ]
        if readings:
            spool.accept(readings, now)
        return 0.0 if len(numbers) >= MOST_AT_ONCE else TICK_SECONDS

    delivering = threading.Thread(target=_repeat, args=(courier.ship_batch, over), daemon=True)
    delivering.start()
    _repeat(read, over)
    delivering.join(5.0)  # what is under way then ends with the process, as at a kill -9


def _repeat(step: Callable[[], float], over: threading.Event) -> None:
    while not over.wait(step()):
        pass


if __name__ == "__main__":
    run_load(Path(sys.argv[1]))
