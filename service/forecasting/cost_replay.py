"""Replay of the drain engine on the forecasts of the last months, at several costs of a failure.

In: the forecasts in the scorebook, the outcomes, places and sizes of the disks. Out, for each setting: the bytes
that were moved, moved for nothing, and rebuilt after a death. No cluster is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from predrain.actions.core.drain_policy import Policy
from predrain.actions.cost_benefit import (
    HERE,
    DailyForecasts,
    DriveFates,
    DriveLayout,
    FailureCostRow,
    NoForecastToReplay,
    Notch,
    compare_failure_costs,
)
from predrain.data.ids import DeviceId
from predrain.data.reading import Reading, Smart
from predrain.service.forecasting.score_cost_benefit import SIZE_BYTES

if TYPE_CHECKING:
    from predrain.data.lifespan import Lifespans
    from predrain.data.scorebook import ScorebookForecasts as Book
    from predrain.models.forecast.calibration import Thresholds

FILL: Final = 0.69
"""Assumed used share of a disk, since the past fill is not stored."""
HOSTS_A_RACK: Final = 4
"""Assumed hosts in one rack, since the scorebook does not know racks."""
HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """One setting and its result in the days that were replayed."""

    name: str
    failure_cost: float
    current: bool
    """True if the policy has this setting."""
    drains: int
    in_time: int
    needless: int
    undecided: int
    moved_bytes: int
    needless_bytes: int
    rebuilt_bytes: int
    """Bytes of disks that died before those bytes were moved off."""
    moving_hours: float
    """Hours of movement at the pace of the policy, one drain after the other."""
    cost_bytes: float
    """Moved bytes, plus each rebuilt byte times the failure cost of the policy. All settings are compared by this
    cost.
    """


@dataclass(frozen=True, slots=True)
class CostPreview:
    """Several settings over the same days and disks."""

    first: str
    last: str
    disks: int
    failures: int
    rows: tuple[PreviewRow, ...]

    def describe_replay(self) -> str:
        """Describe the replayed days and disks in a few sentences."""
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
) -> CostPreview:
    """Replay the forecasts of one bundle.

    lives, readings: by device id; readings: the latest of each disk. Raises NoForecastToReplay if there is no
    forecast.
    """
    import numpy as np

    if not len(book):
        raise NoForecastToReplay(
            "nothing was forecast here yet: the preview needs some days of a running service"
        )
    # Rows are sorted by device and day, so that the first row of a device is its first day.
    names, first_row, drive = np.unique(book.device.astype(str), return_index=True, return_inverse=True)
    last = int(book.day.max())
    at = lives.find_positions(names.astype(object))
    known = at >= 0
    died = np.where(known, lives.died[at], False) if len(lives.died) else np.zeros(len(names), dtype=bool)
    end = np.where(known, lives.last[at], last) if len(lives.last) else np.full(len(names), last)
    fates = DriveFates(
        devices=names.astype(object),
        models=book.model[first_row],
        first=book.day[first_row].astype(np.int64),
        last=np.maximum(end, book.day[first_row]).astype(np.int64),
        died=died.astype(bool),
        end=max(last, int(end.max())),
    )
    forecasts = DailyForecasts.from_rows(
        drive.astype(np.int64),
        book.day,
        book.p[:, 2],
        drives=len(names),
        every=1,
        sooner=(book.p[:, 0], book.p[:, 1]),
    )
    cost_rows = compare_failure_costs(
        forecasts,
        fates,
        _build_layout(names.tolist(), readings),
        policy,
        Notch(thresholds.warning, thresholds.bad),
        tell=tell,
    )
    worth = cost_rows[0].worth
    return CostPreview(
        worth.first,
        worth.last,
        worth.drives,
        worth.failures,
        tuple(_build_preview_row(cost_row, policy) for cost_row in cost_rows),
    )


def _build_preview_row(cost_row: FailureCostRow, policy: Policy) -> PreviewRow:
    worth = cost_row.worth
    rebuilt = worth.failing_bytes - worth.safe_bytes
    return PreviewRow(
        name=cost_row.name,
        failure_cost=cost_row.failure_cost,
        current=cost_row.name.endswith(HERE),
        drains=worth.drains,
        in_time=worth.in_time,
        needless=worth.for_nothing,
        undecided=worth.undecided,
        moved_bytes=worth.moved_bytes,
        needless_bytes=worth.nothing_bytes,
        rebuilt_bytes=rebuilt,
        moving_hours=worth.moved_bytes / policy.backfill_bytes_per_second / HOUR,
        cost_bytes=worth.moved_bytes + policy.failure_cost * rebuilt,
    )


def _build_layout(names: list[str], readings: Mapping[DeviceId, Reading]) -> DriveLayout:
    """Place each disk in the host that read it last, with the size that the disk reports."""
    import numpy as np

    known = [readings.get(DeviceId(name)) for name in names]
    hosts = sorted({reading.host for reading in known if reading is not None})
    place = {host: number for number, host in enumerate(hosts)}
    host = np.array([place[one.host] if one is not None else len(hosts) for one in known], dtype=np.int64)
    size = np.array([_find_capacity_bytes(one) for one in known], dtype=np.int64)
    rack = host // HOSTS_A_RACK
    return DriveLayout(np.zeros(len(names), dtype=np.int64), rack, host, (size * FILL).astype(np.int64), size)


def _find_capacity_bytes(reading: Reading | None) -> int:
    seen = reading.seen if reading is not None else None
    told = seen.identity.capacity_bytes if isinstance(seen, Smart) else None
    return told or SIZE_BYTES
