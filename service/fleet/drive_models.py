"""The drive models of the fleet in numbers: disks, failures, disks at risk, age, and the annual failure rate.

The annual failure rate is the number of failures for each year that a drive was watched here. A drive is watched from
its first record until now, or until it failed or was retired: a drive that was swapped in time is no failure. The
interval is that of a Poisson count.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median

from predrain.data.ids import DeviceId
from predrain.data.life_cycle import LifeState
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.outlook import Status
from predrain.data.reading import Smart
from predrain.data.store.store_port import Store
from predrain.service.fleet.fleet import FleetSnapshot

YEAR = timedelta(days=365.25)
_Z95 = 1.959964
"""The quantile of the normal distribution that leaves 2.5 % above it."""


@dataclass(frozen=True, slots=True)
class FailureRate:
    """Failures for each drive-year, with the ends of the 95 % interval."""

    rate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class DriveModelNumbers:
    """The drives of one model. `disks`: living ones; `failed`: those that failed here, ever since records began.

    `drive_years`: how long all of them were watched. `rate`: None if they were watched for no time.
    """

    model: str | None
    """None: the disks report no model."""
    disks: int
    failed: int
    warning: int
    bad: int
    capacity_bytes: int | None
    """The most common capacity."""
    age_days_p50: float | None
    """The median of the living disks' power-on times."""
    drive_years: float
    rate: FailureRate | None


@dataclass(frozen=True, slots=True)
class WatchedDisks:
    """The records of disks until now. `first`: the time of each disk's first record. `failed`: the disks that
    failed, also if another one stands in their slot by now."""

    first: Mapping[DeviceId, datetime]
    failed: frozenset[DeviceId]


class DiskRecords:
    """The first record of each disk, and the failures. Thread-safe; the changes in the lives of disks are read once."""

    def __init__(self, store: Store) -> None:
        self._store, self._lock = store, threading.Lock()
        self._first: dict[DeviceId, datetime] = {}
        self._failed: set[DeviceId] = set()
        self._is_read = False

    def read_watched_disks(self, snapshot: FleetSnapshot) -> WatchedDisks:
        """Return what is recorded of the disks of the snapshot. Raises what the store raises."""
        with self._lock:
            if not self._is_read:
                for change in self._store.read_life_changes():  # newest first: the oldest is written last
                    self._first[change.device] = change.at
                    if change.state is LifeState.FAILED:
                        self._failed.add(change.device)
                self._is_read = True
            for device, life in snapshot.lives.items():
                self._first.setdefault(device, life.change.at)
                if life.state is LifeState.FAILED:
                    self._failed.add(device)
                elif life.is_living:  # an OSD serves on the disk again
                    self._failed.discard(device)
            stated = find_stated_failures(self._store.outcomes())
            return WatchedDisks(dict(self._first), frozenset(self._failed | stated))


def find_stated_failures(outcomes: Iterable[Outcome]) -> frozenset[DeviceId]:
    """Return the disks that a person or a rule declared failed, without those that were cleared afterwards.

    outcomes: in order of time.
    """
    found = set[DeviceId]()
    for outcome in outcomes:
        if outcome.fate is DriveFate.FAILED:
            found.add(outcome.device)
        elif outcome.fate is DriveFate.CLEARED:
            found.discard(outcome.device)
    return frozenset(found)


@dataclass(slots=True)
class _Tally:
    disks: int = 0
    failed: int = 0
    warning: int = 0
    bad: int = 0
    years: float = 0.0
    ages: list[float] = field(default_factory=list)
    capacities: dict[int, int] = field(default_factory=dict)


def count_drive_models(
    snapshot: FleetSnapshot, watched: WatchedDisks, now: datetime
) -> tuple[DriveModelNumbers, ...]:
    """Count the disks of each model, in order of the models; those that report none come last."""
    models, tallies = name_drive_models(snapshot), dict[str | None, _Tally]()
    for device, life in snapshot.lives.items():
        of_model = tallies.setdefault(models.get(device), _Tally())
        until = now if life.is_living else life.change.at
        of_model.years += max(0.0, (until - watched.first.get(device, until)) / YEAR)
        if not life.is_living:
            of_model.failed += device in watched.failed
            continue
        of_model.disks += 1
        of_model.warning += life.severity is Status.WARNING
        of_model.bad += life.severity is Status.BAD
        reading = snapshot.readings.get(device)
        if reading is None or not isinstance(reading.seen, Smart):
            continue
        if reading.seen.power_on_hours is not None:
            of_model.ages.append(reading.seen.power_on_hours / 24)
        if size := reading.seen.identity.capacity_bytes:
            of_model.capacities[size] = of_model.capacities.get(size, 0) + 1
    ordered = sorted(tallies.items(), key=lambda item: (item[0] is None, item[0] or ""))
    return tuple(_build_numbers(model, tally) for model, tally in ordered)


def name_drive_models(snapshot: FleetSnapshot) -> dict[DeviceId, str]:
    """Return the model of each disk: as the drive reports it, as the cluster does, or as disks of the same id do.

    A disk that failed cannot say its model any more, but its id is the model's with another serial number.
    """
    found: dict[DeviceId, str] = {}
    if snapshot.view is not None:
        found |= {osd.device: osd.model for osd in snapshot.view.osds.values() if osd.device and osd.model}
    for device, reading in snapshot.readings.items():
        if isinstance(reading.seen, Smart) and reading.seen.identity.model:
            found[device] = reading.seen.identity.model
    by_prefix = {_cut_serial(device): model for device, model in found.items()}
    for device in snapshot.lives.keys() - found.keys():
        model = by_prefix.get(_cut_serial(device))
        if model is not None:
            found[device] = model
    return found


def _cut_serial(device: DeviceId) -> str:
    return device.rpartition("_")[0]


def _build_numbers(model: str | None, tally: _Tally) -> DriveModelNumbers:
    sizes = tally.capacities
    return DriveModelNumbers(
        model,
        tally.disks,
        tally.failed,
        tally.warning,
        tally.bad,
        max(sizes, key=lambda size: (sizes[size], size)) if sizes else None,
        median(tally.ages) if tally.ages else None,
        tally.years,
        compute_failure_rate(tally.failed, tally.years),
    )


def compute_failure_rate(failures: int, years: float) -> FailureRate | None:
    """Return the failures for each drive-year with their 95 % interval, or None without a drive-year.

    The ends are Byar's approximation of the exact interval of a Poisson count, which is within 1 % of it from one
    failure on (Breslow and Day, Statistical Methods in Cancer Research, volume 2, 1987).
    """
    if years <= 0:
        return None
    above = failures + 1
    low = failures * (1 - 1 / (9 * failures) - _Z95 / (3 * failures**0.5)) ** 3 if failures else 0.0
    high = above * (1 - 1 / (9 * above) + _Z95 / (3 * above**0.5)) ** 3
    return FailureRate(failures / years, max(0.0, low) / years, high / years)
