"""A drive model that dies more often than its drives' forecasts said is forecast to go on so, for a while."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.models.forecast.calibration import Calibration
from predrain.models.forecast.landmarks import Landmarks
from predrain.models.forecast.recent_mortality import HALF_LIFE, PRIOR, log_odds, measure_recent_mortality

STEP = 7


def weekly(model: list[str], follow: list[int], died: list[bool], day: int | list[int] = 1000) -> Landmarks:
    """One landmark a drive, and one of a drive that is alive at the end of all data (day 1,060)."""
    count = len(model) + 1
    days = np.append(np.broadcast_to(day, count - 1), 1060 - 30).astype(np.int64)
    return Landmarks(
        x=np.zeros((count, 1), dtype=np.float32),
        serial=np.array([f"S{n}" for n in range(count)], dtype=object),
        model=np.array([*model, "OTHER"], dtype=object),
        day=days,
        follow=np.append(follow, 30).astype(np.int64),
        died=np.append(died, False).astype(bool),
        watched=1060 - days,
        weight=np.ones(count),
    )


def two_models(deaths: int, drives: int = 1000) -> Landmarks:
    """DYING loses so many of its drives, STEADY one in a hundred; both were forecast to lose one in a hundred."""
    steady = drives // 100
    died = [n < deaths for n in range(drives)] + [n < steady for n in range(drives)]
    return weekly(["DYING"] * drives + ["STEADY"] * drives, [15 if d else 30 for d in died], died)


def test_a_model_that_dies_more_often_than_forecast_is_drawn_up_and_a_steady_one_is_not() -> None:
    marks = two_models(deaths=100)
    ratio = measure_recent_mortality(marks, np.full(len(marks), 0.01), STEP)
    assert ratio["DYING"] > 1.2
    assert ratio["STEADY"] < 1.0


def test_when_all_models_die_alike_the_general_level_is_left_to_calibration() -> None:
    marks = two_models(deaths=10)
    ratio = measure_recent_mortality(marks, np.full(len(marks), 0.002), STEP)
    assert ratio["DYING"] == pytest.approx(1.0, abs=0.1)
    assert ratio["DYING"] == ratio["STEADY"]


def test_one_death_of_a_rare_model_moves_it_little() -> None:
    marks = weekly(["RARE"] + ["COMMON"] * 2000, [10] + [30] * 2000, [True] + [False] * 2000)
    common = replace(marks, died=marks.died | (np.arange(len(marks)) > 1980))
    ratio = measure_recent_mortality(common, np.full(len(marks), 0.01), STEP)
    assert 1.0 < ratio["RARE"] < 1.0 + 1.0 / PRIOR


def test_deaths_in_a_drive_model_a_year_ago_hardly_count() -> None:
    def ratio(day: int) -> float:
        died = [n < 100 for n in range(1000)] + [n < 300 for n in range(30_000)]
        days = [day] * 1000 + [1000] * 30_000
        follow = [15 if d else 30 for d in died]
        marks = weekly(["DYING"] * 1000 + ["STEADY"] * 30_000, follow, died, days)
        return measure_recent_mortality(marks, np.full(len(marks), 0.01), STEP)["DYING"]

    assert ratio(1000) > ratio(1000 - int(HALF_LIFE)) > ratio(1000 - 4 * int(HALF_LIFE)) > 1.0
    assert ratio(1000 - 8 * int(HALF_LIFE)) == pytest.approx(1.0, abs=0.1)


def test_a_landmark_watched_for_ten_days_expects_a_third_of_a_death_within_thirty() -> None:
    def dying(follow: int) -> float:
        marks = weekly(["A"] * 500 + ["B"] * 500, [follow] * 500 + [30] * 500, [False] * 1000)
        marks.died[:20] = True
        marks.died[500:520] = True
        return measure_recent_mortality(marks, np.full(len(marks), 0.02), STEP)["A"]

    assert dying(10) > dying(30)


def test_a_model_that_nothing_is_known_of_keeps_its_chances() -> None:
    assert log_odds({"A": 2.0}, np.array(["A", "NEW"], dtype=object)).tolist() == [
        pytest.approx(np.log(2)),
        0.0,
    ]
    assert len(log_odds({"A": 2.0}, np.array([], dtype=object))) == 0


@given(
    st.lists(st.floats(1e-6, 0.9), min_size=3, max_size=3).map(sorted),
    st.floats(-3, 3),
    st.floats(-2, 2),
    st.floats(0.3, 1.5),
)
def test_horizons_stay_in_order_whatever_is_added_to_the_odds(
    chances: list[float], more: float, shift: float, slope: float
) -> None:
    corrected = Calibration(shift, slope)(np.array([chances]), np.array([more]))
    assert (np.diff(corrected[0]) >= 0).all()
    assert ((corrected > 0) & (corrected < 1)).all()
