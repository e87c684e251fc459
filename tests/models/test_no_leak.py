"""The forecast sees neither the future, nor the outcome of a drive, nor how the rows came to be.

Each test changes what may not matter and wants the same scores, on small real histories (tests/data/drives).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from predrain.models.evaluate import Scores, compare_truncated_scores, read_scores
from predrain.service.cli import main

DRIVES = Path(__file__).resolve().parents[1] / "data" / "drives"
DAILY_LANDMARKS = (date(2018, 2, 14), date(2018, 4, 11), date(2018, 6, 6))
FLEET_LANDMARKS = (date(2014, 7, 2), date(2015, 3, 4), date(2015, 11, 4))
COUNTERS = [f"smart_{number}_raw" for number in (5, 187, 188, 197, 198)]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a bundle that is trained on these very drives, so that it depends on any leak in their rows."""
    folder = tmp_path_factory.mktemp("bundle") / "small"
    history = [str(DRIVES / f"{name}.parquet") for name in ("daily", "changes", "drives")]
    assert main(["train", *history, "--out", str(folder), "--threads", "1"]) == 0
    return folder


Score = Callable[[pd.DataFrame, date], Scores]


@pytest.fixture
def scored(bundle: Path, tmp_path: Path) -> Score:
    """`predrain score` of a history on one landmark."""

    def run(history: pd.DataFrame, landmark: date) -> Scores:
        history.to_parquet(tmp_path / "history.parquet", index=False)
        day, out = landmark.isoformat(), tmp_path / "scores.parquet"
        asked = ["--from", day, "--to", day, "--bundle", str(bundle), "--out", str(out)]
        assert main(["score", str(tmp_path / "history.parquet"), *asked]) == 0
        return read_scores(out)

    return run


def carried(changes: pd.DataFrame, days: list[date], *, hours_go_on: bool = False) -> pd.DataFrame:
    """Change points with a snapshot row for each drive seen by then on each of these days, as the judge's
    sets have.

    hours_go_on: power-on hours are those of the day, not those of the change that the row repeats.
    """
    parts = [changes]
    for day in days:
        last = changes[changes.date <= day].groupby("serial_number", observed=True).tail(1).copy()
        if hours_go_on:
            last["smart_9_raw"] += [24 * (day - then).days for then in last.date]
        parts.insert(0, last.assign(date=day, snapshot=True))
    return pd.concat(parts).sort_values(["serial_number", "date"], kind="stable")


@pytest.fixture(scope="module")
def daily() -> pd.DataFrame:
    return pd.read_parquet(DRIVES / "daily.parquet")


@pytest.fixture(scope="module")
def changes() -> pd.DataFrame:
    frame = pd.read_parquet(DRIVES / "changes.parquet")
    return frame.astype({"serial_number": str, "model": str}).sort_values(
        ["serial_number", "date", "smart_9_raw"], kind="stable"
    )


def assert_same(one: Scores, other: Scores) -> None:
    cut = compare_truncated_scores(one, other)
    assert cut.rows > 20
    assert cut.differences == ()
    p = one.numbers["p_fail_30d"]
    assert np.ptp(p) > 0, "scores that are all alike would hide any leak"


@pytest.mark.slow
@pytest.mark.parametrize("landmark", DAILY_LANDMARKS)
def test_removing_the_failure_column_changes_nothing(
    daily: pd.DataFrame, landmark: date, scored: Score
) -> None:
    assert_same(scored(daily, landmark), scored(daily.drop(columns="failure"), landmark))


@pytest.mark.slow
def test_swapping_the_dead_and_the_living_in_the_failure_column_changes_nothing(
    daily: pd.DataFrame, scored: Score
) -> None:
    landmark = DAILY_LANDMARKS[1]
    swapped = daily.assign(failure=1 - daily.failure)
    assert_same(scored(daily, landmark), scored(swapped, landmark))


@pytest.mark.slow
@pytest.mark.parametrize("landmark", DAILY_LANDMARKS)
def test_cutting_a_daily_history_at_the_landmark_changes_nothing(
    daily: pd.DataFrame, landmark: date, scored: Score
) -> None:
    assert_same(scored(daily, landmark), scored(daily[daily.date <= landmark], landmark))


@pytest.mark.slow
@pytest.mark.parametrize("landmark", FLEET_LANDMARKS)
def test_cutting_change_points_at_the_landmark_changes_nothing(
    changes: pd.DataFrame, landmark: date, scored: Score
) -> None:
    whole = carried(changes, [landmark])
    assert_same(scored(whole, landmark), scored(whole[whole.date <= landmark], landmark))


@pytest.mark.slow
def test_later_readings_of_a_drive_change_no_score_at_the_landmark(
    daily: pd.DataFrame, scored: Score
) -> None:
    landmark = DAILY_LANDMARKS[1]
    later = daily.date > landmark
    worse = daily.copy()
    worse.loc[later, COUNTERS] += 1000
    assert_same(scored(daily, landmark), scored(worse, landmark))


@pytest.mark.slow
def test_the_order_of_the_rows_changes_nothing(daily: pd.DataFrame, scored: Score) -> None:
    landmark = DAILY_LANDMARKS[1]
    shuffled = daily.sample(frac=1.0, random_state=7)
    assert_same(scored(daily, landmark), scored(shuffled, landmark))


@pytest.mark.slow
def test_the_other_drives_of_the_file_change_nothing(daily: pd.DataFrame, scored: Score) -> None:
    landmark = DAILY_LANDMARKS[1]
    serials = sorted(daily.serial_number.unique())[::2]
    half = daily[daily.serial_number.isin(serials)]
    whole = scored(daily, landmark)
    mine = np.isin(whole.serials.astype(str), [str(serial) for serial in serials])
    kept = Scores(
        whole.serials[mine],
        whole.day[mine],
        {name: column[mine] for name, column in whole.numbers.items()},
        {name: column[mine] for name, column in whole.words.items()},
    )
    assert_same(kept, scored(half, landmark))


@pytest.mark.slow
@pytest.mark.parametrize("landmark", FLEET_LANDMARKS)
def test_snapshot_rows_that_repeat_an_unchanged_reading_change_nothing(
    changes: pd.DataFrame, landmark: date, scored: Score
) -> None:
    weekly = [landmark - timedelta(7 * number) for number in range(12)]
    once = scored(carried(changes, [landmark]), landmark)
    assert_same(once, scored(carried(changes, weekly), landmark))


@pytest.mark.slow
@pytest.mark.parametrize("landmark", FLEET_LANDMARKS)
def test_the_snapshot_flag_changes_nothing(changes: pd.DataFrame, landmark: date, scored: Score) -> None:
    rows = carried(changes, [landmark])
    assert_same(
        scored(rows, landmark), scored(rows.assign(snapshot=False), landmark)
    )  # fmt: skip
    assert_same(scored(rows, landmark), scored(rows.drop(columns="snapshot"), landmark))


@pytest.mark.slow
def test_a_drive_that_has_just_changed_scores_alike_with_and_without_a_snapshot(
    changes: pd.DataFrame, scored: Score
) -> None:
    just_changed = 0
    for landmark in FLEET_LANDMARKS:
        plain = scored(changes, landmark)
        repeated = scored(carried(changes, [landmark], hours_go_on=True), landmark)
        differences = compare_truncated_scores(plain, repeated).differences
        assert [each for each in differences if "only in the truncated run" not in each] == []
        just_changed += len(plain.serials)
    assert just_changed > 20


@pytest.mark.slow
def test_a_daily_history_and_its_change_points_score_alike(daily: pd.DataFrame, scored: Score) -> None:
    landmark = DAILY_LANDMARKS[2]
    rows = daily[["date", "serial_number", "model", *COUNTERS]].sort_values(["serial_number", "date"])
    rows = rows[rows.date <= landmark].dropna()
    told = rows[COUNTERS].ne(rows.groupby("serial_number", observed=True)[COUNTERS].shift()).any(axis=1)
    last = ~rows.duplicated("serial_number", keep="last")
    assert told.mean() < 0.1
    assert_same(scored(rows, landmark), scored(rows[told | last], landmark))


@pytest.mark.slow
def test_a_leak_would_be_seen(daily: pd.DataFrame, scored: Score) -> None:
    """The canary: a rise that is moved to before the landmark does change scores."""
    landmark = DAILY_LANDMARKS[1]
    sicker = daily.copy()
    sicker.loc[daily.date >= landmark - timedelta(2), ["smart_187_raw", "smart_197_raw"]] += 100
    assert compare_truncated_scores(scored(daily, landmark), scored(sicker, landmark)).differences
