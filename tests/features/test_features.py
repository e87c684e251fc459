"""The features of a history, in hand-made and real cases, and the rows that must have no effect on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predrain.data.history import History, HistoryFiles
from predrain.features import NAMES_IN_ORDER, SCHEMA, compute_feature_vectors, ledger_of, rows_at, schema_hash

SAMPLES = Path(__file__).parents[1] / "data" / "drives"
FIRST = 17_500


def drive(days: list[int], **raw: list[float | None]) -> History:
    """One drive; raw columns as smart_N."""
    values = {
        int(name.removeprefix("smart_")): np.array([np.nan if v is None else v for v in column], dtype=float)
        for name, column in raw.items()
    }
    return History(
        serials=np.array(["Z1"], dtype=object),
        start=np.array([0, len(days)], dtype=np.int64),
        day=np.array([FIRST + d for d in days], dtype=np.int32),
        model=np.zeros(len(days), dtype=np.int32),
        model_names=("ST4000DM000",),
        raw=values,
    )


def on(history: History, day: int) -> dict[str, float]:
    row = compute_feature_vectors(ledger_of(history), np.array([0]), np.array([FIRST + day]))[0]
    return dict(zip(NAMES_IN_ORDER, row.tolist(), strict=True))


def test_a_rise_is_summed_over_each_window_and_a_fall_takes_nothing_back() -> None:
    seen = on(drive([0, 10, 28, 29, 30], smart_197=[0, 8, 8, 3, 5]), 30)
    assert [seen[f"smart_197_up_{w}d"] for w in (3, 7, 15, 30)] == [2, 2, 2, 10]
    assert seen["smart_197_net_30d"] == 5
    assert seen["smart_197_rises_30d"] == 2
    assert seen["smart_197_since_rise"] == 0
    assert seen["smart_197_since_first"] == 20
    assert seen["pending_fallen"] == 3


def test_a_counter_that_the_drive_does_not_report_is_missing_not_zero() -> None:
    seen = on(drive([0, 30], smart_5=[0, 0]), 30)
    assert np.isnan(seen["smart_187"])
    assert np.isnan(seen["smart_187_up_7d"])
    assert seen["smart_5"] == 0
    assert seen["symptoms"] == 0


def test_a_null_row_neither_resets_a_counter_nor_counts_as_a_rise() -> None:
    seen = on(drive([0, 1, 2], smart_197=[4, None, 4]), 2)
    assert (seen["smart_197"], seen["smart_197_up_30d"]) == (4, 0)


def test_a_row_holds_until_the_next_so_a_change_point_and_its_repetition_say_the_same() -> None:
    changes = drive([0, 20], smart_9=[100, 580], smart_197=[0, 6])
    daily = drive(list(range(31)), smart_9=[100 + 24 * d for d in range(31)], smart_197=[0] * 20 + [6] * 11)
    assert on(changes, 30) == pytest.approx(on(daily, 30), nan_ok=True)


def test_hours_go_on_after_the_last_row() -> None:
    assert on(drive([0], smart_9=[1000]), 2)["hours"] == 1048


def test_a_carried_forward_row_with_the_hours_of_an_older_one_does_not_stop_the_clock() -> None:
    carried = drive([0, 20, 27], smart_9=[1000, 1480, 1480], smart_197=[0, 2, 2])
    assert (
        on(carried, 27)["hours"]
        == on(drive([0, 20], smart_9=[1000, 1480], smart_197=[0, 2]), 27)["hours"]
        == 1648
    )


def test_long_ago_is_capped_so_that_longer_histories_look_alike() -> None:
    for later in (100, 400):
        assert on(drive([0, 1], smart_187=[0, 1]), later)["smart_187_since_rise"] == 90


def test_a_row_after_the_landmark_changes_nothing() -> None:
    short = drive([0, 5], smart_197=[0, 1], smart_9=[10, 130])
    longer = drive([0, 5, 6, 9], smart_197=[0, 1, 50, 900], smart_9=[10, 130, 154, 226])
    assert on(short, 5) == pytest.approx(on(longer, 5), nan_ok=True)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=40, max_size=60), st.data())
def test_dropping_rows_that_repeat_the_one_before_changes_nothing(
    rises: list[int], data: st.DataObject
) -> None:
    level = np.cumsum([r if r > 3 else 0 for r in rises]).astype(float).tolist()
    hours = [24.0 * d for d in range(len(level))]
    whole = drive(list(range(len(level))), smart_197=level, smart_9=hours)
    kept = [0] + [
        d
        for d in range(1, len(level))
        if level[d] != level[d - 1] or data.draw(st.booleans(), label=f"keep {d}")
    ]
    thin = drive(kept, smart_197=[level[d] for d in kept], smart_9=[hours[d] for d in kept])
    assert on(whole, len(level) - 1) == pytest.approx(on(thin, len(level) - 1), nan_ok=True)


def test_a_landmark_before_the_first_row_is_refused() -> None:
    with pytest.raises(ValueError, match="no reading on or before"):
        on(drive([5], smart_5=[0]), 4)
    assert rows_at(ledger_of(drive([5], smart_5=[0])), np.array([0]), np.array([FIRST + 4])).tolist() == [-1]


def test_the_schema_names_each_feature_once_with_unit_and_definition() -> None:
    assert len(set(NAMES_IN_ORDER)) == len(SCHEMA)
    assert all(feature.unit and feature.definition for feature in SCHEMA)
    assert len(schema_hash()) == 64


def test_drives_do_not_see_each_other_in_one_history() -> None:
    past = HistoryFiles([SAMPLES / "daily.parquet"], threads=1).read()
    day = int(past.day.max())
    both = rows_at(ledger_of(past), np.arange(past.drives), np.full(past.drives, day))
    drives = np.flatnonzero(both >= 0)[:12]
    together = compute_feature_vectors(ledger_of(past), drives, np.full(len(drives), day))
    for place, one in enumerate(drives):
        rows = slice(past.start[one], past.start[one + 1])
        alone = History(
            serials=past.serials[[one]],
            start=np.array([0, rows.stop - rows.start]),
            day=past.day[rows],
            model=past.model[rows],
            model_names=past.model_names,
            raw={n: raw[rows] for n, raw in past.raw.items()},
        )
        assert (
            compute_feature_vectors(ledger_of(alone), np.array([0]), np.array([day]))[0].tobytes()
            == together[place].tobytes()
        )
