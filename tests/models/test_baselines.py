"""The peers do what their definitions say, and see nothing that came later."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.history import EPOCH, HistoryFiles
from models.baselines import NAMES, Rows, TooFewFailures, any5, any5_rise, baseline_scores, smart_197
from models.evaluate import read_truth

START = date(2018, 1, 1)
DAY0 = (START - EPOCH).days


def rows_of(tmp_path: Path, readings: dict[str, list[object]], day: int) -> Rows:
    """One drive with a row a day from 2018-01-01, asked on `day` (0 is the first)."""
    number = max(len(values) for values in readings.values())
    frame = pd.DataFrame(
        {"date": [START + timedelta(n) for n in range(number)], "serial_number": "a", "model": "M"}
    )
    for name, values in readings.items():
        frame[f"smart_{name}_raw"] = pd.array(values, dtype="Int64")
    frame.to_parquet(tmp_path / "a.parquet")
    history = HistoryFiles([tmp_path / "a.parquet"], threads=1).read()
    return Rows.of(history, np.array([0]), np.array([DAY0 + day]))


def test_any5_counts_the_counters_above_zero_and_null_has_no_vote(tmp_path: Path) -> None:
    readings: dict[str, list[object]] = {
        "5": [1],
        "187": [0],
        "188": [None],
        "197": [8],
        "198": [8],
        "9": [100],
    }
    assert any5(rows_of(tmp_path, readings, 0)).tolist() == [3.0]


def test_any5_takes_the_low_word_of_a_packed_188(tmp_path: Path) -> None:
    # Two slow commands of 5 s and 7.5 s in the upper words, no timeout in the lowest.
    assert any5(rows_of(tmp_path, {"188": [(2 << 32) + (2 << 16)], "5": [0]}, 0)).tolist() == [0.0]
    assert any5(rows_of(tmp_path, {"188": [(2 << 32) + (2 << 16) + 3], "5": [0]}, 0)).tolist() == [1.0]


def test_smart_197_is_the_raw_value_of_the_day_and_none_is_nought(tmp_path: Path) -> None:
    assert smart_197(rows_of(tmp_path, {"197": [8, 16, 24]}, 1)).tolist() == [16.0]
    assert smart_197(rows_of(tmp_path, {"197": [None], "5": [0]}, 0)).tolist() == [0.0]


@pytest.mark.parametrize(("day", "score"), [(9, 0.0), (10, 1.0), (16, 1.0), (17, 0.0)])
def test_any5_rise_flags_for_seven_days_after_a_rise(tmp_path: Path, day: int, score: float) -> None:
    assert any5_rise(rows_of(tmp_path, {"187": [2] * 10 + [3] * 20, "5": [7] * 30}, day)).tolist() == [score]


def test_a_fall_is_no_rise(tmp_path: Path) -> None:
    assert any5_rise(rows_of(tmp_path, {"197": [8] * 5 + [0] * 5}, 6)).tolist() == [0.0]


def test_lgbm_plain_sees_each_raw_value_and_its_differences_over_1_7_and_30_days(tmp_path: Path) -> None:
    readings: dict[str, list[object]] = {"5": [day * day for day in range(40)]}
    (seen,) = rows_of(tmp_path, readings, 35).everything()
    assert seen.tolist() == [35**2, 35**2 - 34**2, 35**2 - 28**2, 35**2 - 5**2]
    (early,) = rows_of(tmp_path, readings, 3).everything()
    assert early[:2].tolist() == [9.0, 5.0]
    assert np.isnan(early[2:]).all()


def test_a_row_holds_until_the_next_change(tmp_path: Path) -> None:
    pd.DataFrame(
        {
            "date": [START, START + timedelta(20)],
            "serial_number": "a",
            "model": "M",
            "smart_197_raw": [0, 8],
        }
    ).to_parquet(tmp_path / "a.parquet")
    history = HistoryFiles([tmp_path / "a.parquet"], threads=1).read()
    days = DAY0 + np.array([0, 19, 20, 99])
    assert smart_197(Rows.of(history, np.zeros(4, dtype=np.int64), days)).tolist() == [0.0, 0.0, 8.0, 8.0]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 drives over 150 days; a fifth dies, SMART 197 rising 15 days before; 5 is noise."""
    rng = np.random.default_rng(4)
    rows = []
    for number in range(300):
        dies = number % 5 == 0
        last = int(rng.integers(20, 150)) if dies else 149
        rows += [
            (START + timedelta(day), f"Z{number:03d}", "M", int(dies and day == last),
             int(rng.integers(0, 3)), 8 * max(0, day - last + 15) if dies else 0)
            for day in range(last + 1)
        ]  # fmt: skip
    path = tmp_path_factory.mktemp("fleet") / "days.parquet"
    columns = ["date", "serial_number", "model", "failure", "smart_5_raw", "smart_197_raw"]
    pd.DataFrame(rows, columns=columns).to_parquet(path)
    return path


def scores(
    path: Path, truth: Path, *, names: tuple[str, ...] = NAMES, split: int = 100
) -> dict[str, pd.DataFrame]:
    history = HistoryFiles([path], threads=1).read()
    landmarks = DAY0 + np.array([105, 112])
    found = baseline_scores(names, history, read_truth([truth]), landmarks, split=DAY0 + split, seed=1)
    return {name: table.to_pandas().sort_values(["serial_number", "date"]) for name, table in found.items()}


@pytest.fixture(scope="module")
def whole(fleet: Path) -> dict[str, pd.DataFrame]:
    return scores(fleet, fleet)


@pytest.mark.slow
def test_the_learners_learn_and_say_probabilities_of_about_the_true_size(
    fleet: Path, whole: dict[str, pd.DataFrame]
) -> None:
    truth = pd.read_parquet(fleet)
    deaths = truth[truth.failure == 1].set_index("serial_number").date.to_dict()
    for name in ("rf5", "lgbm_plain"):
        table = whole[name]
        left = np.array(
            [
                (deaths.get(s, date(2030, 1, 1)) - day).days
                for s, day in zip(table.serial_number, table.date, strict=True)
            ]
        )
        p = table.p_fail_30d.to_numpy()
        assert table.p_fail_30d.between(0, 1).all()
        assert p[(left > 0) & (left <= 14)].mean() > 3 * p[left > 14].mean()
        assert p[left > 0].mean() == pytest.approx(0.05, abs=0.04)


@pytest.mark.slow
def test_no_baseline_sees_a_row_or_a_death_after_its_landmark_or_its_split(
    fleet: Path, whole: dict[str, pd.DataFrame], tmp_path: Path
) -> None:
    frame = pd.read_parquet(fleet)
    frame[frame.date <= START + timedelta(112)].drop(columns="failure").to_parquet(tmp_path / "cut.parquet")
    frame[frame.date <= START + timedelta(100)].to_parquet(tmp_path / "known.parquet")
    cut = scores(tmp_path / "cut.parquet", tmp_path / "known.parquet")
    for name in NAMES:
        assert whole[name].reset_index(drop=True).equals(cut[name].reset_index(drop=True)), name


def test_a_learner_without_a_failure_to_learn_from_is_refused(fleet: Path) -> None:
    with pytest.raises(TooFewFailures, match="split later"):
        scores(fleet, fleet, names=("rf5",), split=20)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.integers(0, 30))
def test_rules_agree_with_a_plain_loop_over_days(
    tmp_path_factory: pytest.TempPathFactory, raw: list[int], day: int
) -> None:
    rows = rows_of(tmp_path_factory.mktemp("one"), {"187": list(raw)}, day)
    held = lambda at: raw[min(at, len(raw) - 1)] if at >= 0 else None  # noqa: E731
    now, before = held(day), held(day - 7)
    assert any5(rows).tolist() == [float(now is not None and now > 0)]
    assert any5_rise(rows).tolist() == [float(now is not None and before is not None and now > before)]
