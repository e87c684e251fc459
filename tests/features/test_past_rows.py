"""A drive's earlier days come back bit for bit, in less memory, also from a state that version 0.1.0 packed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.ids import DeviceId
from predrain.features import state_packing
from predrain.features.drive_history_rows import COLUMNS
from predrain.features.drive_state import DriveState, compute_state_vector, replay_readings
from predrain.features.past_rows import PAST, append_row, compress_past
from predrain.features.state_packing import pack_drive_state, unpack_drive_state
from tests.data.store.written import READINGS

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
VALUES = st.sampled_from([0.0, -0.0, 1.0, 4096.0, float("nan"), 2.0**53])


def watch_drive(days: int) -> DriveState:
    """Return the state of a drive that was read once a day."""
    readings = [
        replace(READINGS[0], taken_at=NOON + timedelta(days=day), received_at=NOON + timedelta(days=day))
        for day in range(days)
    ]
    state = replay_readings(readings)
    assert state is not None
    return state


@given(st.lists(st.lists(VALUES, min_size=len(PAST), max_size=len(PAST)), max_size=6), st.data())
def test_rows_come_back_bit_for_bit_and_equal_neighbours_are_held_once(
    rows: list[list[float]], data: st.DataObject
) -> None:
    repeated = [row for row in rows for _ in range(data.draw(st.integers(1, 3)))]
    table = np.array(repeated).reshape(-1, len(PAST))
    past = compress_past(table)
    assert past.expand_runs().tobytes() == table.tobytes()
    assert len(past) == len(table)
    assert len(past.seldom) <= len(rows)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 2)), max_size=30), st.integers(1, 20))
def test_an_appended_row_gives_what_all_rows_would_give(steps: list[tuple[int, int]], window: int) -> None:
    """steps: the days since the row before, and the number of one of three sets of values."""
    past, rows, day = compress_past(np.empty((0, len(PAST)))), np.empty((0, len(PAST))), 100.0
    for step, kind in steps:
        day += step
        row = np.full(len(PAST), float("nan") if kind == 2 else float(kind))
        row[0] = day
        rows = np.concatenate([rows, row[None, :]])
        holds = np.flatnonzero(rows[:, 0] <= day - window)
        rows = rows[holds[-1] :] if len(holds) else rows
        past = append_row(past, row, day - window)
        assert past.expand_runs().tobytes() == rows.tobytes()
        assert past.lengths.tolist() == compress_past(rows).lengths.tolist()


def test_a_quiet_drive_takes_a_third_of_the_memory_of_its_rows() -> None:
    past = watch_drive(60).past
    held = past.daily.nbytes + past.seldom.nbytes + past.lengths.nbytes
    assert len(past) == 31
    assert held < past.expand_runs().nbytes / 3


def test_a_state_that_version_0_1_0_packed_measures_the_same_features() -> None:
    state = watch_drive(20)
    now = state_packing._PACKED.decode(pack_drive_state(state))
    old = msgspec.structs.astuple(
        msgspec.structs.replace(now, columns=len(COLUMNS), past=state.past.expand_runs().tobytes())
    )
    read = unpack_drive_state(msgspec.msgpack.encode(old[:12]))
    assert read is not None
    assert read.device == DeviceId(READINGS[0].device)
    assert compute_state_vector(read, state.day).tobytes() == compute_state_vector(state, state.day).tobytes()
    assert pack_drive_state(read) == pack_drive_state(state)
