"""The stream driver: a drive's recent past in a few kilobytes, advanced by one reading at a time.

`observe_reading(state, reading)` is a pure function that returns a state. `compute_state_vector(state, day)`
measures the same features as the batch driver, to the last bit, unless the day is before the last reading's.
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
from predrain.data.history import EPOCH, LIMITS, PACKED, believable_one
from predrain.data.ids import DeviceId
from predrain.data.reading import Counters, Protocol, Reading, Smart, Unreadable
from predrain.data.unreadable import UnreadableCause
from predrain.features.drive_history_rows import (
    AT,
    COLUMNS,
    COUNTERS,
    Floats,
    first_row,
    next_row,
    start_counts_anew,
)
from predrain.features.feature_schema import WINDOWS, LandmarkRows
from predrain.features.feature_vectors import measure_features
from predrain.features.past_rows import PAST, PastRows, append_row, compress_past, join_pasts

_PAST_AT: Final = np.array([AT[name] for name in PAST])
KEPT: Final = max(WINDOWS) + 1
"""Days of past rows that are kept, besides the one row that held before them."""
TOLD: Final = (*ERROR_COUNTERS, "percentage_used", "available_spare_pct", "critical_warning")
"""Counters whose changes are remembered, so that a reason can name its dates."""
IO_ERROR_HOURS: Final = 7 * 24
"""Hours for which I/O errors are remembered."""
CHANGES: Final = 12
"""Number of changes that are remembered of each counter, the latest ones."""
_COUNTERS: Final[Mapping[Protocol, Mapping[int, str]]] = {
    Protocol.ATA: ATA_COUNTERS,
    Protocol.SCSI: SAS_COUNTERS,
}
"""SMART id -> the decoded counter that is read where a drive has no such attribute."""
_NO_COUNTERS: Final[Mapping[int, str]] = {}
Changes = Mapping[str, tuple[tuple[int, int], ...]]


class Probe(msgspec.Struct, frozen=True):
    """Failed probes of a drive that cannot be read: since when, how many, and why."""

    since: datetime
    probes: int
    """Failed probes in a row that are evidence about the disk."""
    why: str
    cause: UnreadableCause | None = None
    """None only in states that version 0.1.0 packed; `unpack_drive_state` replaces it."""
    host_probes: int = 0
    """Failed probes in a row that are the host's fault."""


class IoErrors(msgspec.Struct, frozen=True, array_like=True):
    """I/O errors that the kernel logged for a drive within one hour, by the time of the reading."""

    hour: int
    """UTC hours since 1970-01-01."""
    own: int
    """Errors that only this drive had."""
    shared: int = 0
    """Errors at a time when other disks of the host had errors, too."""


class Face(msgspec.Struct, frozen=True):
    """The parts of the last successful reading that rules use."""

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
    """Number of failed self-tests since the newest long self-test that the drive passed, or None if the drive
    keeps no such log."""
    firmware: str | None = None
    """None if the drive does not report its firmware, or if the state was packed by a version that did not store it."""


@dataclass(frozen=True, slots=True)
class DriveState:
    """All that is remembered of a drive: an immutable value, below 10 kB when packed."""

    device: DeviceId
    first_day: int
    """Day of the first successful reading, days since 1970-01-01; -1 before any succeeded."""
    taken_at: datetime
    """Time of the newest reading, failed probes included."""
    readings: int
    latest: Floats
    """The accumulated row of the newest day; empty before any reading succeeded."""
    before: Floats
    """The accumulated row of the read day before the newest one; empty without such a day."""
    past: PastRows
    """The rows of earlier days, `before` included."""
    face: Face | None
    unreadable: Probe | None
    changes: Changes
    """Counter -> (day, value) of its latest changes, oldest first. The first pair is the value at the start."""
    io_errors: tuple[IoErrors, ...] = ()
    """The hours with errors among the last `IO_ERROR_HOURS`, oldest first."""

    @property
    def day(self) -> int:
        """Return the day of the newest successful reading, days since 1970-01-01, or -1 without one."""
        return int(self.latest[AT["day"]]) if len(self.latest) else -1


_NONE: Final = np.empty(0)
_NO_PAST: Final = compress_past(np.empty((0, len(PAST))))


def create_drive_state(device: DeviceId, at: datetime) -> DriveState:
    """Create the state of a drive that has not been read yet."""
    return DriveState(device, -1, at, 0, _NONE, _NONE, _NO_PAST, None, None, {})


def observe_reading(state: DriveState | None, reading: Reading) -> DriveState:
    """Return the state with a reading added. A reading that is not newer than the newest is ignored.

    The daily value is the day's last reading. A count that differs in the first reading under another
    firmware has not risen: counting starts again from that value.
    """
    state = create_drive_state(reading.device, reading.taken_at) if state is None else state
    if state.readings and reading.taken_at <= state.taken_at:
        return state
    io_errors = _add_io_errors(state.io_errors, reading)
    if isinstance(reading.seen, Unreadable):
        probe = _update_probe(state.unreadable, reading.seen)
        return replace(
            state,
            taken_at=reading.taken_at,
            readings=state.readings + 1,
            unreadable=probe,
            io_errors=io_errors,
        )
    day = day_of(reading.taken_at)
    changed = _has_other_firmware(state.face, reading.seen)
    latest, before, past = _advance_rows(state, day, values_of(reading.seen), starts_anew=changed)
    return DriveState(
        state.device,
        day if state.first_day < 0 else state.first_day,
        reading.taken_at,
        state.readings + 1,
        latest,
        before,
        past,
        _build_face(reading.seen, reading.taken_at),
        None,
        _record_changes(state.changes, day, reading.seen.counters, starts_anew=changed),
        io_errors,
    )


def _has_other_firmware(face: Face | None, seen: Smart) -> bool:
    """Return whether both readings name their firmware and the names differ."""
    known = face.firmware if face is not None else None
    return known is not None and seen.identity.firmware is not None and seen.identity.firmware != known


def hour_of(at: datetime) -> int:
    """Return the UTC hour as hours since 1970-01-01."""
    return int(at.timestamp() // 3600)


def _add_io_errors(known: tuple[IoErrors, ...], reading: Reading) -> tuple[IoErrors, ...]:
    """Return the error counts of the last week's hours, with the errors of the reading added."""
    if not known and not reading.kernel_errors:
        return known  # the usual case
    hour, errors = hour_of(reading.taken_at), reading.kernel_errors or 0
    kept = tuple(one for one in known if one.hour > hour - IO_ERROR_HOURS)
    if not errors:
        return kept
    own, shared = (0, errors) if reading.kernel_errors_shared else (errors, 0)
    if kept and kept[-1].hour == hour:
        own, shared, kept = own + kept[-1].own, shared + kept[-1].shared, kept[:-1]
    return (*kept, IoErrors(hour, own, shared))


def _update_probe(earlier: Probe | None, seen: Unreadable) -> Probe:
    """Return the probe after one more failure. A failure that is the host's fault does not change the
    evidence about the disk."""
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


def compute_state_vector(state: DriveState, day: int) -> NDArray[np.float32]:
    """Compute the (features,) vector on a day not before the newest reading's. Raises ValueError when nothing
    was read yet."""
    only: NDArray[np.float32] = compute_state_matrix([state], day)[0]
    return only


def compute_state_matrix(states: Sequence[DriveState], day: int) -> NDArray[np.float32]:
    """Compute the (drives, features) matrix on one day, which is not before the newest reading of any drive.

    Raises ValueError if a drive has no reading yet, or one of a later day.
    """
    if not all(len(state.latest) for state in states):
        raise ValueError("a drive has no reading yet")
    now = np.array([state.latest for state in states]).reshape(len(states), len(COLUMNS))
    if (now[:, AT["day"]] > day).any():
        raise ValueError("a drive has a reading of a later day")
    past = join_pasts([state.past for state in states], now[:, _PAST_AT])
    held = _find_window_rows([len(state.past) for state in states], past.days, day)
    rows = past.select_columns(held.ravel())
    for column, name in enumerate(COLUMNS):
        if name not in rows:
            rows[name] = np.full(held.size, np.nan)
            rows[name][held.shape[1] - 1 :: held.shape[1]] = now[:, column]
    places = np.arange(held.size, dtype=np.int64).reshape(held.shape)
    back: dict[int, NDArray[np.int64]] = dict(
        zip(sorted(WINDOWS, reverse=True), places[:, :-1].T, strict=True)
    )
    return measure_features(LandmarkRows(rows, places[:, -1], back, np.full(len(states), float(day))))


def _find_window_rows(sizes: Sequence[int], days: NDArray[np.int64], day: int) -> NDArray[np.int64]:
    """Find the (drives, windows + 1) rows that features read.

    For each window, longest first, this is the row that held before the window, or the first row; the last
    column is the latest row. days: first those of all past rows, `sizes` of them by drive, then the day of
    each drive's latest row.
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
    """Return SMART id -> plausible decoded count, NaN where it is not. 9, 194, 241 and 242 come from decoded fields.

    Some SATA drives report a count only in their device statistics or their list of pending defects. Such counts,
    and the equivalent counts of SAS drives (SAS_COUNTERS), get the same ids.
    """
    found = {n: float(row.raw) for n, row in smart.attributes.items() if n in LIMITS}
    for n, name in _COUNTERS.get(smart.protocol, _NO_COUNTERS).items():
        if n not in found and (count := getattr(smart.counters, name)) is not None:
            found[n] = float(count)
    if smart.power_on_hours is not None:
        found[9] = float(smart.power_on_hours)
    if smart.temperature_c is not None:
        found[194] = float(smart.temperature_c)
    for n, count in ((241, smart.counters.bytes_written), (242, smart.counters.bytes_read)):
        if count is not None:
            found[n] = float(count // 512)
    return {
        n: value if n not in PACKED and 0 <= value <= LIMITS[n] else believable_one(n, value)
        for n, value in found.items()
    }


def day_of(at: datetime) -> int:
    """Return the UTC day as days since 1970-01-01."""
    return (at.astimezone(UTC).date() - EPOCH).days


def _advance_rows(
    state: DriveState, day: int, values: Mapping[int, float], *, starts_anew: bool = False
) -> tuple[Floats, Floats, PastRows]:
    """Return latest, before and past after a daily value. A second value on the same day replaces the first."""
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


def _shift_levels(past: PastRows, steps: Floats) -> PastRows:
    """Return the past with its counts raised by `steps`, (columns,), as if they had always been higher."""
    shifted = past.expand_runs()
    for n in COUNTERS:
        step = steps[AT[f"level_{n}"]]
        if step == step:
            shifted[:, PAST.index(f"level_{n}")] += step
    return compress_past(shifted)


def _extend_past(state: DriveState, day: int) -> PastRows:
    """Return the past with the state's latest row appended, which holds before `day`. Rows older than needed
    are removed."""
    return append_row(state.past, state.latest[_PAST_AT], day - KEPT)


def _build_face(smart: Smart, at: datetime) -> Face:
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


def _record_changes(changes: Changes, day: int, counters: Counters, *, starts_anew: bool = False) -> Changes:
    kept: dict[str, tuple[tuple[int, int], ...]] | None = None
    for name, value in zip(TOLD, _told(counters), strict=True):
        if value is None:
            continue
        known = changes.get(name, ())
        if known and known[-1][1] == value and known[-1][0] != day:
            continue  # the usual case
        if starts_anew and known and known[-1][1] != value:
            known = ()
        if len(known) > 1 and known[-1][0] == day:
            known = known[:-1]
        if not known or known[-1][1] != value:
            known = (*known, (day, value))[-CHANGES:]
        kept = dict(changes) if kept is None else kept
        kept[name] = known
    return changes if kept is None else kept


def replay_readings(readings: Iterable[Reading]) -> DriveState | None:
    """Observe the readings of one drive, oldest first. Return the state, or None without a reading."""
    state: DriveState | None = None
    for reading in readings:
        state = observe_reading(state, reading)
    return state
