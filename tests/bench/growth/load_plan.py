"""How much is sent while a size is measured, and drives with a past."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from predrain.data.reading import Smart
from predrain.data.store.store_port import Store
from tests.bench.growth.measures import MeasureName
from tests.bench.growth.probing import wait_for
from tests.bench.histories import fill_past

FILLED_AT_ONCE = 10_000
PAST = timedelta(hours=1)
MOST_WAITING = 10_000
"""Readings that may wait to be scored before more are sent."""
Report = Callable[[str], None]
"""Takes a sentence about what is measured now."""
Values = dict[MeasureName, float]


@dataclass(frozen=True)
class LoadPlan:
    """The load of every size.

    - rounds: The readings of each disk that are sent as fast as they are scored.
    - least: The least number of readings that are sent in this way, so that the processor time of a small fleet can be
      measured.
    - steady_seconds: The seconds for which `rate` readings a second are sent.
    - restarts: The number of starts on the same store. The start with the least processor time counts.
    - settles: True if the load of one process begins only when the service is at rest. The service has then done all
      work that it does once after a start.
    """

    rounds: int = 2
    least: int = 6_000
    steady_seconds: float = 150.0
    rate: int = 500
    restarts: int = 2
    settles: bool = True

    def count_at_once(self, disks: int) -> int:
        """Return the readings that are sent as fast as they are scored."""
        return max(self.least, self.rounds * disks)


def fill_store(store: Store, fleet: list[Smart]) -> None:
    """Give each disk a reading, an outlook and a checkpoint from an hour ago, with a state of many days."""
    at = datetime.now(UTC) - PAST
    for first in range(0, len(fleet), FILLED_AT_ONCE):
        fill_past(store, fleet[first : first + FILLED_AT_ONCE], at=at, first=first)


def send_at_once(count: int, send: Callable[[], int], scored: Callable[[], int], patience: float) -> int:
    """Send at least `count` readings, never far ahead of the scoring, until all are scored; return how many.

    send: sends some, and returns how many. scored: how many of them are scored. Raises GrowthFailed if the scoring
    takes longer than `patience` seconds for what waits.
    """
    sent = known = 0

    def await_scored(target: int) -> int:
        wait_for(f"outlook {target:,} of the readings", lambda: scored() >= target, patience, pause=0.2)
        return target

    while sent < count:
        sent += send()
        if sent - known > MOST_WAITING:
            known = await_scored(sent - MOST_WAITING // 2)
    return await_scored(sent)
