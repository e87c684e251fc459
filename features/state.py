"""The stream driver: a drive's recent past in a few kilobytes, advanced by one reading at a time.

`observe(state, reading) -> state` is pure; `vector(state, day)` measures the same features as the batch driver, to
the last bit, as long as nobody asks for a day before the last reading's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import attrgetter
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from predrain.data.error_counts import ATA_COUNTERS, ERROR_COUNTERS, SAS_COUNTERS
from predrain.data.history import EPOCH, LIMITS, believable_one
from predrain.data.ids import DeviceId
from predrain.data.reading import Counters, Protocol, Reading, Smart, Unreadable
from predrain.data.unreadable import UnreadableCause
from predrain.features.ledger import (
    AT,
    COLUMNS,
    COUNTERS,
    RISING,
    FeatureLedger,
    Floats,
    first_row,
    next_row,
    start_counts_anew,
)
from predrain.features.schema import WINDOWS
from predrain.features.vector import vectors

PAST: Final = (
    "day",
    *(f"risen_{n}" for n in RISING),
    *(f"rises_{n}" for n in COUNTERS),
    *(f"level_{n}" for n in COUNTERS),
    "heat",
    "warm_days",
)
"""Columns of the ledger that features look back at; of earlier days only these are kept."""
_PAST_AT: Final = np.array([AT[name] for name in PAST])
KEPT: Final = max(WINDOWS) + 1
"""Days of past rows that are kept, besides the one that held before them."""
TOLD: Final = (*ERROR_COUNTERS, "percentage_used", "available_spare_pct", "critical_warning")
"""Counters whose changes are remembered, to tell a reason with its dates."""
IO_ERROR_HOURS: Final = 7 * 24
"""Hours for which I/O errors are remembered."""
CHANGES: Final = 12
"""Changes remembered of each counter, the latest ones."""
_COUNTERS: Final[Mapping[Protocol, Mapping[int, str]]] = {
    Protocol.ATA: ATA_COUNTERS,
    Protocol.SCSI: SAS_COUNTERS,
}
"""SMART id -> the decoded counter, which is read where a drive has no such attribute."""
Changes = Mapping[str, tuple[tuple[int, int], ...]]


class Probe(msgspec.Struct, frozen=True):
    """A drive that cannot be read: since when, by how many probes, and why."""

    since: datetime
    probes: int
    """Failed probes in a row that are evidence about the disk."""
    why: str
    cause: UnreadableCause | None = None
    """None only in states that version 0.1.0 packed; `unpack` replaces it."""
    host_probes: int = 0
    """Failed probes in a row that are the host's fault."""


class IoErrors(msgspec.Struct, frozen=True, array_like=True):
    """I/O errors that the kernel logged of a drive, by the hour in which it was read."""

    hour: int
    """UTC hours since 1970-01-01."""
    own: int
    """Errors of this drive alone."""
    shared: int = 0
    """Errors at a time when other disks of the host had some, too."""


class Face(msgspec.Struct, frozen=True):
    """What the last successful reading said that rules look at."""

    protocol: Protocol
    model: str
    serial: str
    rotation_rpm: int | None
    passed: bool | None
    counters: Counters
    spare_threshold_pct: int | None
    temperature_c: int | None
    power_on_hours: int | None
    exit_bits: tuple[int, ...]
    taken_at: datetime
    failed_self_tests: int | None = None
    """Since the newest long self-test that the drive passed; None: it keeps no such log."""
    firmware: str | None = None
    """None: the drive does not tell it, or the state was packed before it was remembered."""


@dataclass(frozen=True, slots=True)
class DriveState:
    """All that is remembered of a drive. A value; below 10 kB packed."""

    device: DeviceId
    first_day: int
    """Day of the first reading, days since 1970-01-01; -1 before any succeeded."""
    taken_at: datetime
    """Of the newest reading, failed probes included."""
    readings: int
    latest: Floats
    """The ledger's row of the newest day; empty before any reading succeeded."""
    before: Floats
    """The ledger's row of the day before that was read; empty when there is none."""
    past: NDArray[np.float64]
    """(days, PAST) rows of earlier days, oldest first, `before` included."""
    face: Face | None
    unreadable: Probe | None
    changes: Changes
    """Counter -> (day, value) of its latest changes, oldest first; the first pair is where it started."""
    io_errors: tuple[IoErrors, ...] = ()
    """Hours of the last `IO_ERROR_HOURS` in which there were any, oldest first."""

    @property
    def day(self) -> int:
        """Day of the newest successful reading, days since 1970-01-01; -1 when there is none."""
        return int(self.latest[AT["day"]]) if len(self.latest) else -1


_NONE: Final = np.empty(0)


def fresh(device: DeviceId, at: datetime) -> DriveState:
    """The state of a drive that has not been read yet."""
    return DriveState(device, -1, at, 0, _NONE, _NONE, np.empty((0, len(PAST))), None, None, {})


def observe(state: DriveState | None, reading: Reading) -> DriveState:
    """Add a reading. One that is older than the newest is left out: the daily value is the day's last reading.

    A count that steps up in the first reading under another firmware has not risen: it starts anew from there.
    """
    state = fresh(reading.device, reading.taken_at) if state is None else state
    if state.readings and reading.taken_at <= state.taken_at:
        return state
    io_errors = _add_io_errors(state.io_errors, reading)
    if isinstance(reading.seen, Unreadable):
        probe = _probed(state.unreadable, reading.seen)
        return replace(
            state,
            taken_at=reading.taken_at,
            readings=state.readings + 1,
            unreadable=probe,
            io_errors=io_errors,
        )
    day = day_of(reading.taken_at)
    changed = _has_other_firmware(state.face, reading.seen)
    latest, before, past = _advanced(state, day, values_of(reading.seen), starts_anew=changed)
    return DriveState(
        state.device,
        day if state.first_day < 0 else state.first_day,
        reading.taken_at,
        state.readings + 1,
        latest,
        before,
        past,
        _face(reading.seen, reading.taken_at),
        None,
        _changed(state.changes, day, reading.seen.counters, starts_anew=changed),
        io_errors,
    )


def _has_other_firmware(face: Face | None, seen: Smart) -> bool:
    """Whether both readings tell their firmware, and it is not the same."""
    known = face.firmware if face is not None else None
    return known is not None and seen.identity.firmware is not None and seen.identity.firmware != known


def hour_of(at: datetime) -> int:
    """The UTC hour, as hours since 1970-01-01."""
    return int(at.timestamp() // 3600)


def _add_io_errors(known: tuple[IoErrors, ...], reading: Reading) -> tuple[IoErrors, ...]:
    """What is known of the hours not before the last week, with what the reading adds."""
    if not known and not reading.kernel_errors:
        return known  # nearly always
    hour, errors = hour_of(reading.taken_at), reading.kernel_errors or 0
    kept = tuple(one for one in known if one.hour > hour - IO_ERROR_HOURS)
    if not errors:
        return kept
    own, shared = (0, errors) if reading.kernel_errors_shared else (errors, 0)
    if kept and kept[-1].hour == hour:
        own, shared, kept = own + kept[-1].own, shared + kept[-1].shared, kept[:-1]
    return (*kept, IoErrors(hour, own, shared))


def _probed(earlier: Probe | None, seen: Unreadable) -> Probe:
    """After one more failed probe. A probe that is the host's fault neither adds to the evidence about the disk nor
    takes any of it away."""
    if seen.cause.blames_host:
        if earlier is None:
            return Probe(seen.since, 0, seen.why, seen.cause, 1)
        if earlier.probes:
            return msgspec.structs.replace(earlier, host_probes=earlier.host_probes + 1)
        since = min(earlier.since, seen.since)
        return Probe(since, 0, seen.why, seen.cause, earlier.host_probes + 1)
    if earlier is None or not earlier.probes:
        return Probe(seen.since, 1, seen.why, seen.cause, earlier.host_probes if earlier else 0)
    return Probe(
        min(earlier.since, seen.since), earlier.probes + 1, seen.why, seen.cause, earlier.host_probes
    )


def vector(state: DriveState, day: int) -> NDArray[np.float32]:
    """(features,) on a day not before the newest reading's. Raises ValueError when nothing was read yet."""
    only: NDArray[np.float32] = matrix([state], day)[0]
    return only


def matrix(states: Sequence[DriveState], day: int) -> NDArray[np.float32]:
    """(drives, features) of many drives on one day, not before any one's newest reading."""
    if not all(len(state.latest) for state in states):
        raise ValueError("a drive has no reading yet")
    now = np.array([state.latest for state in states]).reshape(len(states), len(COLUMNS))
    if (now[:, AT["day"]] > day).any():
        raise ValueError("a drive has a reading of a later day")
    past = np.concatenate([*(state.past for state in states), now[:, _PAST_AT]])
    held = _held([len(state.past) for state in states], past[:, 0].astype(np.int64), day)
    rows = dict(zip(PAST, np.ascontiguousarray(past[held.ravel()].T), strict=True))
    for column, name in enumerate(COLUMNS):
        if name not in rows:
            rows[name] = np.full(held.size, np.nan)
            rows[name][held.shape[1] - 1 :: held.shape[1]] = now[:, column]
    drives = np.arange(len(states) + 1, dtype=np.int64)
    ledger = FeatureLedger(drives * held.shape[1], rows)
    return vectors(ledger, drives[:-1], np.full(len(states), day, dtype=np.int64))


def _held(sizes: Sequence[int], days: NDArray[np.int64], day: int) -> NDArray[np.int64]:
    """(drives, windows + 1) rows that features look at: those that held before each window, or the first; the latest.

    days: of all past rows, so many a drive, and then of each drive's latest.
    """
    drives, many, stride = np.arange(len(sizes), dtype=np.int64), np.array(sizes, dtype=np.int64), 1 << 20
    end = np.cumsum(many)
    latest = len(days) - len(sizes) + drives
    first = np.where(many > 0, end - many, latest)
    key = np.repeat(drives, many) * stride + days[: len(days) - len(sizes)]
    held = []
    for window in sorted(WINDOWS, reverse=True):
        then = np.searchsorted(key, drives * stride + day - window, side="right") - 1
        held.append(np.where(days[latest] <= day - window, latest, np.maximum(then, first)))
    return np.stack([*held, latest], axis=1)


def values_of(smart: Smart) -> dict[int, float]:
    """SMART id -> believable decoded count; NaN where it is not reported. 9, 241, 242 come from decoded fields.

    What a SATA drive tells in its device statistics or its list of pending defects alone, and what means the same on a
    SAS drive (SAS_COUNTERS), stands under the same ids.
    """
    found = {n: float(a.raw) for n, a in smart.attributes.items() if n in LIMITS}
    for n, name in _COUNTERS.get(smart.protocol, {}).items():
        count = getattr(smart.counters, name)
        if count is not None:
            found.setdefault(n, float(count))
    if smart.power_on_hours is not None:
        found[9] = float(smart.power_on_hours)
    if smart.temperature_c is not None:
        found[194] = float(smart.temperature_c)
    for n, count in ((241, smart.counters.bytes_written), (242, smart.counters.bytes_read)):
        if count is not None:
            found[n] = float(count // 512)
    return {n: believable_one(n, value) for n, value in found.items()}


def day_of(at: datetime) -> int:
    """The UTC day, as days since 1970-01-01."""
    return (at.astimezone(UTC).date() - EPOCH).days


def _advanced(
    state: DriveState, day: int, values: Mapping[int, float], *, starts_anew: bool = False
) -> tuple[Floats, Floats, Floats]:
    """latest, before and past after a daily value; a second one on a day replaces the first."""
    if not len(state.latest):
        return first_row(day, values), _NONE, state.past
    if starts_anew:
        base = start_counts_anew(state.latest, values)
        past = _shift_levels(
            state.past if day == state.day else _extend_past(state, day), base - state.latest
        )
        return next_row(base, day, values), base, past
    if day == state.day:
        again = next_row(state.before, day, values) if len(state.before) else first_row(day, values)
        return again, state.before, state.past
    return next_row(state.latest, day, values), state.latest, _extend_past(state, day)


def _shift_levels(past: NDArray[np.float64], steps: Floats) -> NDArray[np.float64]:
    """The past as if its counts had always been higher by `steps`, (columns,)."""
    shifted = past.copy()
    for n in COUNTERS:
        step = steps[AT[f"level_{n}"]]
        if step == step:
            shifted[:, PAST.index(f"level_{n}")] += step
    return shifted


def _extend_past(state: DriveState, day: int) -> NDArray[np.float64]:
    """The past with the row that was the latest before `day`."""
    past = np.concatenate([state.past, state.latest[_PAST_AT][None, :]])
    holds = np.flatnonzero(past[:, 0] <= day - KEPT)
    return past[holds[-1] :] if len(holds) else past


def _face(smart: Smart, at: datetime) -> Face:
    identity = smart.identity
    return Face(
        protocol=smart.protocol,
        model=identity.model or "",
        serial=identity.serial or "",
        rotation_rpm=identity.rotation_rpm,
        passed=smart.passed,
        counters=smart.counters,
        spare_threshold_pct=smart.spare_threshold_pct,
        temperature_c=smart.temperature_c,
        power_on_hours=smart.power_on_hours,
        exit_bits=smart.exit_bits or (),
        taken_at=at,
        failed_self_tests=smart.logs.failed_self_tests if smart.logs is not None else None,
        firmware=identity.firmware,
    )


_told = attrgetter(*TOLD)


def _changed(changes: Changes, day: int, counters: Counters, *, starts_anew: bool = False) -> Changes:
    kept: dict[str, tuple[tuple[int, int], ...]] | None = None
    for name, value in zip(TOLD, _told(counters), strict=True):
        if value is None:
            continue
        known = changes.get(name, ())
        if known and known[-1][1] == value and known[-1][0] != day:
            continue  # nearly always
        if starts_anew and known and known[-1][1] != value:
            known = ()
        if len(known) > 1 and known[-1][0] == day:
            known = known[:-1]
        if not known or known[-1][1] != value:
            known = (*known, (day, value))[-CHANGES:]
        kept = dict(changes) if kept is None else kept
        kept[name] = known
    return changes if kept is None else kept


def replay(readings: Iterable[Reading]) -> DriveState | None:
    """Observe readings of one drive, oldest first; None when there are none."""
    state: DriveState | None = None
    for reading in readings:
        state = observe(state, reading)
    return state
