"""The stream driver gives the numbers of the batch driver, to the last bit, and forgets nothing it needs."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predrain.data.history import EPOCH, LIMITS, History, HistoryFiles
from predrain.data.ids import DeviceId, HostName
from predrain.data.reading import Attribute, Counters, Identity, Protocol, Reading, Smart, Unreadable
from predrain.features import (
    DriveState,
    compute_feature_vectors,
    compute_state_matrix,
    compute_state_vector,
    ledger_of,
    observe_reading,
    pack_drive_state,
    unpack_drive_state,
)
from predrain.features.drive_history_rows import LEVELS
from predrain.features.feature_schema import NAMES_IN_ORDER

SAMPLE = Path(__file__).parents[1] / "data" / "drives" / "daily.parquet"
DEVICE = DeviceId("ST4000DM000_Z0000001")
READ = [n for n in LEVELS if n in LIMITS]


def reading(day: int, values: dict[int, int], hour: int = 12) -> Reading:
    """A reading that reports these raw values, and no other."""
    at = datetime.combine(EPOCH + timedelta(days=day), datetime.min.time(), UTC) + timedelta(hours=hour)
    smart = Smart(
        protocol=Protocol.ATA,
        identity=Identity(model="ST4000DM000", serial="Z0000001", rotation_rpm=5900),
        passed=True,
        counters=Counters(
            bytes_written=values[241] * 512 if 241 in values else None,
            bytes_read=values[242] * 512 if 242 in values else None,
        ),
        attributes={n: Attribute(str(n), raw) for n, raw in values.items() if n not in (9, 194, 241, 242)},
        power_on_hours=values.get(9),
        temperature_c=values.get(194),
    )
    return Reading(DEVICE, HostName("stor-1"), at, at, smart)


def history(days: list[int], rows: list[dict[int, int]]) -> History:
    """The same readings as a history of one drive."""
    raw = {n: np.array([float(row.get(n, np.nan)) for row in rows]) for n in READ}
    return History(
        serials=np.array(["Z0000001"], dtype=object),
        start=np.array([0, len(days)], dtype=np.int64),
        day=np.array(days, dtype=np.int32),
        model=np.zeros(len(days), dtype=np.int32),
        model_names=("ST4000DM000",),
        raw=raw,
    )


def batch(past: History, day: int) -> np.ndarray:
    return compute_feature_vectors(ledger_of(past), np.array([0]), np.array([day]))[0]


COUNT = st.integers(0, 70_000) | st.integers(0, 3)
ROW = st.fixed_dictionaries(
    {},
    optional={
        n: st.integers(1, 90) if n == 194 else st.integers(0, 60_000) if n in (9, 188) else COUNT
        for n in READ
    },
)
LIFE = st.lists(st.tuples(st.integers(1, 40), ROW), min_size=1, max_size=45)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(LIFE, st.integers(0, 12))
def test_stream_and_batch_give_the_same_bits(life: list[tuple[int, dict[int, int]]], later: int) -> None:
    days, rows, state = [], [], None
    day = 17_500
    for step, row in life:
        day += step
        days.append(day)
        rows.append(row)
        state = observe_reading(state, reading(day, row))
    assert state is not None
    expected = batch(history(days, rows), day + later)
    assert compute_state_vector(state, day + later).tobytes() == expected.tobytes()


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(LIFE)
def test_a_packed_state_goes_on_as_if_it_had_stayed_in_memory(life: list[tuple[int, dict[int, int]]]) -> None:
    stayed: DriveState | None = None
    packed: DriveState | None = None
    day = 17_500
    for step, row in life:
        day += step
        stayed = observe_reading(stayed, reading(day, row))
        packed = unpack_drive_state(pack_drive_state(observe_reading(packed, reading(day, row))))
    assert stayed is not None
    assert packed is not None
    assert compute_state_vector(stayed, day).tobytes() == compute_state_vector(packed, day).tobytes()
    assert pack_drive_state(stayed) == pack_drive_state(packed)


def test_the_last_reading_of_a_day_is_its_daily_value() -> None:
    state = observe_reading(None, reading(17_600, {197: 0, 9: 100}))
    for hour, pending in ((1, 5), (9, 8), (20, 2)):
        state = observe_reading(state, reading(17_601, {197: pending, 9: 124}, hour))
    expected = batch(history([17_600, 17_601], [{197: 0, 9: 100}, {197: 2, 9: 124}]), 17_601)
    assert compute_state_vector(state, 17_601).tobytes() == expected.tobytes()


def test_a_reading_that_arrives_late_changes_nothing() -> None:
    state = observe_reading(None, reading(17_600, {197: 4}))
    assert observe_reading(state, reading(17_599, {197: 9})) is state


def test_a_failed_probe_is_remembered_until_the_drive_is_read_again() -> None:
    state = observe_reading(None, reading(17_600, {197: 4}))
    at = state.taken_at + timedelta(hours=1)
    for hour in range(3):
        failed = Reading(
            DEVICE, HostName("stor-1"), at + timedelta(hours=hour), at, Unreadable(at, "no such device")
        )
        state = observe_reading(state, failed)
    assert state.unreadable is not None
    assert (state.unreadable.probes, state.unreadable.since) == (3, at)
    assert observe_reading(state, reading(17_601, {197: 4})).unreadable is None


def test_a_state_of_a_daily_read_drive_stays_below_ten_kilobytes() -> None:
    state: DriveState | None = None
    for day in range(17_000, 17_400):
        state = observe_reading(state, reading(day, {n: day % 977 + 1 if n == 197 else 20 for n in READ}))
    assert state is not None
    assert len(pack_drive_state(state)) < 10_000


def test_the_real_sample_streamed_gives_the_bits_of_the_batch() -> None:
    past = HistoryFiles([SAMPLE], threads=1).read()
    day = (date(2018, 5, 3) - EPOCH).days
    ledger = ledger_of(past)
    states, drives = [], []
    for drive in range(0, past.drives, 3):
        state = None
        for row in range(past.start[drive], past.start[drive + 1]):
            if past.day[row] > day:
                break
            values = {n: int(raw[row]) for n, raw in past.raw.items() if np.isfinite(raw[row])}
            state = observe_reading(state, reading(int(past.day[row]), values))
        if state is not None:
            states.append(state)
            drives.append(drive)
    expected = compute_feature_vectors(ledger, np.array(drives), np.full(len(drives), day))
    assert compute_state_matrix(states, day).tobytes() == expected.tobytes()
    assert np.isfinite(expected[:, NAMES_IN_ORDER.index("written_30d")]).sum() > 10


def test_a_drive_that_was_never_read_has_no_vector() -> None:
    at = datetime(2018, 5, 3, tzinfo=UTC)
    state = observe_reading(None, Reading(DEVICE, HostName("stor-1"), at, at, Unreadable(at, "asleep")))
    with pytest.raises(ValueError, match="no reading"):
        compute_state_vector(state, 17_700)
