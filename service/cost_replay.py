"""What the last months would have looked like at other costs of a failure: the drain engine replayed on what was
forecast here.

In: the forecasts that the scorebook keeps, what became of the disks, where they stand and how large they are. Out: for
each setting what was moved, what was moved for nothing, and what had to be rebuilt after a death. No cluster is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from predrain.actions.core.policy import Policy
from predrain.actions.cost_benefit import (
    HERE,
    DailyForecasts,
    Fates,
    Layout,
    NoForecastToReplay,
    Notch,
    Rung,
    ladder,
)
from predrain.data.ids import DeviceId
from predrain.data.reading import Reading, Smart
from predrain.service.cost_benefit import SIZE_BYTES

if TYPE_CHECKING:
    from predrain.data.lifespan import Lifespans
    from predrain.data.scorebook import ScorebookForecasts as Book
    from predrain.models.calibrate import Thresholds

FILL: Final = 0.69
"""Share of a disk that is taken to be full, since past fill is not kept."""
HOSTS_A_RACK: Final = 4
"""Hosts that are taken for one rack, since the scorebook does not know racks."""
HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """One setting and what it would have given in the days that were replayed."""

    name: str
    failure_cost: float
    here: bool
    """Whether this is the setting of the policy."""
    drains: int
    in_time: int
    for_nothing: int
    undecided: int
    moved_bytes: int
    nothing_bytes: int
    rebuilt_bytes: int
    """Bytes on disks that died with them."""
    moving_hours: float
    """Hours of movement at the pace of the policy, one drain after the other."""
    cost_bytes: float
    """Moved bytes, and each rebuilt byte times the failure cost of the policy: what all settings are judged by."""


@dataclass(frozen=True, slots=True)
class Preview:
    """Settings beside each other over the same days and disks."""

    first: str
    last: str
    disks: int
    failures: int
    rows: tuple[PreviewRow, ...]

    def describe_replay(self) -> str:
        """What was replayed."""
        return (
            f"{self.first} to {self.last}: {self.disks:,} disks, of which {self.failures:,} failed. The forecasts of "
            "that time are replayed at the base cost of a failure and at others. A disk that was drained in that time "
            "counts as undecided: nobody knows whether it would have failed."
        )


def preview_policy(
    book: Book,
    lives: Lifespans,
    readings: Mapping[DeviceId, Reading],
    policy: Policy,
    thresholds: Thresholds,
    tell: Callable[[str], None] = lambda _: None,
) -> Preview:
    """Replay what one bundle forecast. lives, readings: by device id; readings: the latest of each disk.

    Raises NothingToReplay where nothing was forecast.
    """
    import numpy as np

    if not len(book):
        raise NoForecastToReplay(
            "nothing was forecast here yet: the preview needs some days of a running service"
        )
    # Rows stand sorted by device and day, so that the first row of a device is its first day.
    names, first_row, drive = np.unique(book.device.astype(str), return_index=True, return_inverse=True)
    last = int(book.day.max())
    at = lives.of(names.astype(object))
    known = at >= 0
    died = np.where(known, lives.died[at], False) if len(lives.died) else np.zeros(len(names), dtype=bool)
    end = np.where(known, lives.last[at], last) if len(lives.last) else np.full(len(names), last)
    fates = Fates(
        devices=names.astype(object),
        models=book.model[first_row],
        first=book.day[first_row].astype(np.int64),
        last=np.maximum(end, book.day[first_row]).astype(np.int64),
        died=died.astype(bool),
        end=max(last, int(end.max())),
    )
    forecasts = DailyForecasts.spread(
        drive.astype(np.int64),
        book.day,
        book.p[:, 2],
        drives=len(names),
        every=1,
        sooner=(book.p[:, 0], book.p[:, 1]),
    )
    rungs = ladder(
        forecasts,
        fates,
        _layout(names.tolist(), readings),
        policy,
        Notch(thresholds.warning, thresholds.bad),
        tell=tell,
    )
    worth = rungs[0].worth
    return Preview(
        worth.first, worth.last, worth.drives, worth.failures, tuple(_row(rung, policy) for rung in rungs)
    )


def _row(rung: Rung, policy: Policy) -> PreviewRow:
    worth = rung.worth
    rebuilt = worth.failing_bytes - worth.safe_bytes
    return PreviewRow(
        name=rung.name,
        failure_cost=rung.failure_cost,
        here=rung.name.endswith(HERE),
        drains=worth.drains,
        in_time=worth.in_time,
        for_nothing=worth.for_nothing,
        undecided=worth.undecided,
        moved_bytes=worth.moved_bytes,
        nothing_bytes=worth.nothing_bytes,
        rebuilt_bytes=rebuilt,
        moving_hours=worth.moved_bytes / policy.move_bytes_per_second / HOUR,
        cost_bytes=worth.moved_bytes + policy.failure_cost * rebuilt,
    )


def _layout(names: list[str], readings: Mapping[DeviceId, Reading]) -> Layout:
    """Disks in the hosts that read them last, each as large as it says."""
    import numpy as np

    known = [readings.get(DeviceId(name)) for name in names]
    hosts = sorted({reading.host for reading in known if reading is not None})
    place = {host: number for number, host in enumerate(hosts)}
    host = np.array([place[one.host] if one is not None else len(hosts) for one in known], dtype=np.int64)
    size = np.array([_capacity(one) for one in known], dtype=np.int64)
    rack = host // HOSTS_A_RACK
    return Layout(np.zeros(len(names), dtype=np.int64), rack, host, (size * FILL).astype(np.int64), size)


def _capacity(reading: Reading | None) -> int:
    seen = reading.seen if reading is not None else None
    told = seen.identity.capacity_bytes if isinstance(seen, Smart) else None
    return told or SIZE_BYTES
