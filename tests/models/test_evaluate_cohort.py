"""Drives at risk, labels of rows, failures and healthy windows, computed by hand, day by day."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from predrain.models.evaluate.cohort import (
    CENSORED,
    align_scores,
    gather_cohort,
    group_failures,
    healthy_windows,
)
from predrain.models.evaluate.drive_outcomes import NEVER, FailureTruth, UnreadableTruth, read_truth
from predrain.models.evaluate.score_rows import Scores, landmarks_of

START = date(2018, 1, 1)
DAY0 = (START - date(1970, 1, 1)).days


def daily(path: Path, drives: Mapping[str, Iterable[int]], dies: dict[str, int], **columns: object) -> Path:
    """A daily file: each drive has a row on these days (0 is 2018-01-01), failure = 1 on its day of death."""
    rows = [
        {
            "date": START + timedelta(day),
            "serial_number": serial,
            "model": "M",
            "failure": int(dies.get(serial) == day),
            **columns,
        }
        for serial, days in drives.items()
        for day in days
    ]
    pd.DataFrame(rows).to_parquet(path)
    return path


def labels(truth: FailureTruth, serial: str, landmark: int) -> int | None:
    """The 30-day label of a drive at a landmark; None when it is not at risk."""
    cohort = gather_cohort(truth, np.array([DAY0 + landmark]))
    row = np.flatnonzero(truth.serials[cohort.truth_drive[cohort.drive]] == serial)
    return int(cohort.label[30][row[0]]) if len(row) else None


@pytest.fixture
def truth(tmp_path: Path) -> FailureTruth:
    return read_truth([
        daily(
            tmp_path / "days.parquet",
            {"lives": range(91), "dies": range(61), "leaves": range(50)},
            {"dies": 60},
        )
    ])  # fmt: skip


@pytest.mark.parametrize(("landmark", "label"), [(29, 0), (30, 1), (59, 1), (60, None), (61, None)])
def test_a_failure_is_positive_from_thirty_days_before_death_to_the_day_before(
    truth: FailureTruth, landmark: int, label: int | None
) -> None:
    assert labels(truth, "dies", landmark) == label


@pytest.mark.parametrize(("landmark", "label"), [(19, 0), (20, CENSORED), (48, CENSORED), (49, None)])
def test_a_drive_that_leaves_alive_is_healthy_only_where_it_was_seen_for_thirty_days(
    truth: FailureTruth, landmark: int, label: int | None
) -> None:
    assert labels(truth, "leaves", landmark) == label


def test_a_drive_is_not_at_risk_before_its_first_day_nor_a_week_after_its_last_reading(
    tmp_path: Path,
) -> None:
    gap = daily(tmp_path / "gap.parquet", {"gap": [*range(10), *range(30, 91)], "late": range(40, 91)}, {})
    truth = read_truth([gap])
    assert labels(truth, "gap", 15) == 0
    assert labels(truth, "gap", 16) is None
    assert labels(truth, "gap", 30) == 0
    assert labels(truth, "late", 39) is None
    assert labels(truth, "late", 40) == 0


def test_the_first_row_with_failure_is_the_day_of_death_and_what_follows_is_ignored(tmp_path: Path) -> None:
    frame = pd.read_parquet(
        daily(tmp_path / "a.parquet", {"dies": range(62), "lives": range(91)}, {"dies": 60})
    )
    frame.loc[(frame.serial_number == "dies") & (frame.date == START + timedelta(61)), "failure"] = 0
    frame.to_parquet(tmp_path / "a.parquet")
    truth = read_truth([tmp_path / "a.parquet"])
    assert truth.death[0] == DAY0 + 60
    assert truth.last[0] == DAY0 + 60


def test_rows_must_have_their_horizon_inside_the_data_but_failures_need_not(
    truth: FailureTruth, tmp_path: Path
) -> None:
    cohort = gather_cohort(truth, DAY0 + np.arange(0, 91, 7))
    known = cohort.has_known_label(30)
    assert cohort.landmark[known].max() - DAY0 == 56
    late = read_truth(
        [daily(tmp_path / "late.parquet", {"dies": range(89), "lives": range(91)}, {"dies": 88})]
    )
    cohort = gather_cohort(late, DAY0 + np.array([63, 70, 77]))
    assert not cohort.has_known_label(30).any()
    assert len(group_failures(cohort)) == 1


def test_no_landmark_stands_on_the_last_day_of_the_data(truth: FailureTruth) -> None:
    assert len(gather_cohort(truth, np.array([DAY0 + 90])).drive) == 0
    assert len(gather_cohort(truth, np.array([DAY0 + 89])).drive) > 0


def test_a_healthy_window_is_a_block_of_thirty_days_with_healthy_rows_and_no_positive_one(
    truth: FailureTruth,
) -> None:
    cohort = gather_cohort(truth, DAY0 + np.arange(0, 91, 7))
    windows = healthy_windows(cohort)
    serial = truth.serials[cohort.truth_drive[windows.drive]]
    assert (serial == "lives").sum() == 2
    # "dies" is healthy at days 0, 7, 14, 21, 28 and positive from 35 on: one block of each kind.
    assert (serial == "dies").sum() == 1
    assert (serial == "leaves").sum() == 1
    failed = group_failures(cohort)
    assert (cohort.landmark[failed.rows] - DAY0).tolist() == [35, 42, 49, 56]


def test_a_drives_table_gives_death_and_needs_no_weekly_reading(tmp_path: Path) -> None:
    pd.DataFrame(
        {
            "serial_number": ["dies", "leaves", "stays", "came-back"],
            "model": "M",
            "first_date": START,
            "last_date": [START + timedelta(day) for day in (60, 50, 90, 90)],
            "failure": [1, 0, 0, 1],
        }
    ).to_parquet(tmp_path / "drives.parquet")
    changes = pd.DataFrame(
        {"date": [START, START + timedelta(30)], "serial_number": "dies", "model": "M", "smart_5_raw": [0, 8]}
    )
    changes.to_parquet(tmp_path / "changes.parquet")
    truth = read_truth([tmp_path / "changes.parquet", tmp_path / "drives.parquet"])
    assert labels(truth, "dies", 30) == 1
    assert labels(truth, "leaves", 30) == CENSORED
    assert labels(truth, "stays", 40) == 0
    # A failure on the table's last day is a drive that came back (evaluation.md).
    assert labels(truth, "came-back", 40) is None
    cohort = gather_cohort(truth, DAY0 + np.array([29, 30]))
    mine = truth.serials[cohort.truth_drive[cohort.drive]] == "dies"
    assert cohort.symptomatic[mine].tolist() == [False, True]


def test_a_missing_row_stands_below_every_other_and_a_needless_one_is_ignored(truth: FailureTruth) -> None:
    cohort = gather_cohort(truth, np.array([DAY0 + 7]))
    scores = Scores(
        np.array(["lives", "nobody", "lives"], dtype=object),
        DAY0 + np.array([7, 7, 8]),
        {"p_fail_30d": np.array([0.0, 0.5, 0.5])},
        {},
    )
    aligned = align_scores(cohort, truth, scores)
    mine = truth.serials[cohort.truth_drive[cohort.drive]] == "lives"
    assert aligned.score("p_fail_30d")[mine].tolist() == [0.0]
    assert np.all(aligned.score("p_fail_30d")[~mine] == -np.inf)
    assert np.all(aligned.probability("p_fail_30d")[~mine] == 0)
    assert (aligned.missing, aligned.ignored) == (int((~mine).sum()), 2)


def test_landmarks_are_the_regular_days_of_the_scores_even_where_one_is_lacking_or_astray() -> None:
    asked = DAY0 + np.array([0, 7, 14, 28, 35, 37])
    scores = Scores(np.array(["a"] * 6, dtype=object), asked, {}, {})
    assert (landmarks_of(scores) - DAY0).tolist() == [0, 7, 14, 21, 28, 35]


def test_csv_with_slashed_dates_says_the_same_as_parquet(tmp_path: Path) -> None:
    path = daily(tmp_path / "a.parquet", {"dies": range(61), "lives": range(91)}, {"dies": 60}, smart_5_raw=3)
    frame = pd.read_parquet(path)
    frame["date"] = [f"{day.year}/{day.month}/{day.day}" for day in frame.date]
    frame.sample(frac=1.0, random_state=1).to_csv(tmp_path / "a.csv", index=False)
    left, right = read_truth([path]), read_truth([tmp_path / "a.csv"])
    deaths = [dict(zip(truth.serials, truth.death, strict=True)) for truth in (left, right)]
    assert deaths[0] == deaths[1] == {"dies": DAY0 + 60, "lives": NEVER}
    assert left.symptomatic.all()
    assert right.symptomatic.all()
    assert len(left.reading_key) == len(right.reading_key) == 152


def test_truth_without_any_word_of_failure_is_refused_with_the_cure(tmp_path: Path) -> None:
    frame = pd.DataFrame({"date": [START], "serial_number": ["a"], "model": ["M"], "smart_5_raw": [0]})
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(UnreadableTruth, match="`failure` column"):
        read_truth([tmp_path / "a.parquet"])
    with pytest.raises(UnreadableTruth, match=r"cannot be read"):
        read_truth([tmp_path / "none.parquet"])
