"""PR-AUC against scikit-learn, operating points by hand, and weights that mean a drive repeated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from predrain.models.evaluate.arrays import Floats, Ints, weighted_quantile
from predrain.models.evaluate.ranking import (
    RATES,
    HealthyCurve,
    RowCurve,
    compute_average_precision,
    resample_drives,
)

rows = st.lists(
    st.tuples(st.sampled_from([-np.inf, 0.0, 0.1, 0.2, 0.2, 0.7]), st.booleans(), st.integers(0, 4)),
    min_size=1,
)
draws = st.lists(st.integers(0, 3), min_size=5, max_size=5)


def split(table: list[tuple[float, bool, int]]) -> tuple[Floats, Ints, Ints]:
    score, label, drive = zip(*table, strict=True)
    return np.array(score), np.array(label, dtype=np.int64), np.array(drive, dtype=np.int64)


@given(rows, draws)
def test_average_precision_is_scikit_learns_under_any_weights(
    table: list[tuple[float, bool, int]], drawn: list[int]
) -> None:
    score, label, drive = split(table)
    weight = np.array(drawn)
    assume((weight[drive] * label).sum() > 0)
    known = average_precision_score(label, np.maximum(score, -1), sample_weight=weight[drive])
    assert RowCurve(score, label, drive).average_precision(weight) == pytest.approx(known)


@given(rows, st.lists(st.floats(0.25, 30.0), min_size=1))
def test_average_precision_of_weighted_rows_is_scikit_learns(
    table: list[tuple[float, bool, int]], weights: list[float]
) -> None:
    score, label, _ = split(table)
    weight = np.resize(weights, len(score))
    assume(label.any())
    known = average_precision_score(label, np.maximum(score, -1), sample_weight=weight)
    assert compute_average_precision(label == 1, np.maximum(score, -1), weight) == pytest.approx(known)


def test_average_precision_of_rows_without_a_failure_is_unknown() -> None:
    assert np.isnan(compute_average_precision(np.zeros(2, dtype=bool), np.array([0.1, 0.2]), np.ones(2)))


def test_average_precision_without_a_failure_is_unknown() -> None:
    curve = RowCurve(np.array([0.1, 0.2]), np.array([0, 0]), np.array([0, 1]))
    assert np.isnan(curve.average_precision(np.ones(2, dtype=np.int64)))


@pytest.mark.parametrize("windows", [37, 1000, 20_001])
def test_a_constant_scorer_catches_exactly_the_false_alarm_rate(windows: int) -> None:
    curve = HealthyCurve(np.zeros(windows), np.arange(windows), windows)
    for rate, point in zip(
        RATES, curve.find_operating_points(RATES, np.ones(windows, dtype=np.int64)), strict=True
    ):
        assert point.flag_scores(np.zeros(5)).mean() == pytest.approx(rate)
        assert curve.share_caught(point, np.ones(windows, dtype=np.int64)) == pytest.approx(rate)


def test_ties_on_the_threshold_are_shared_out_linearly() -> None:
    # 1,000 windows: 4 above, 12 tied, the rest below. 1 % may flag 10: the 4, and half of the 12.
    score = np.r_[np.full(4, 0.9), np.full(12, 0.5), np.zeros(984)]
    curve = HealthyCurve(score, np.arange(1000), 1000)
    (point,) = curve.find_operating_points((0.01,), np.ones(1000, dtype=np.int64))
    assert (point.threshold, point.tied) == (0.5, 0.5)
    assert point.flag_scores(np.array([0.9, 0.6, 0.5, 0.4])).tolist() == [1.0, 1.0, 0.5, 0.0]


def test_a_failure_missing_from_the_file_is_never_caught() -> None:
    curve = HealthyCurve(np.r_[np.full(3, 0.2), np.zeros(97)], np.arange(100), 100)
    for point in curve.find_operating_points(RATES, np.ones(100, dtype=np.int64)):
        assert point.flag_scores(np.array([-np.inf])).tolist() == [0.0]


@given(rows, draws)
def test_weighing_a_drive_is_repeating_its_windows(
    table: list[tuple[float, bool, int]], drawn: list[int]
) -> None:
    score, _, drive = split(table)
    weight = np.array(drawn)
    times = weight[drive]
    assume(times.sum() > 0)
    weighted = HealthyCurve(score, drive, 5).find_operating_points(RATES, weight)
    repeated = HealthyCurve(np.repeat(score, times), np.repeat(drive, times), 5).find_operating_points(
        RATES, np.ones(5, dtype=np.int64)
    )
    for one, other in zip(weighted, repeated, strict=True):
        assert one.threshold == other.threshold
        assert one.tied == pytest.approx(other.tied)


@given(rows, draws)
def test_the_share_of_windows_flagged_is_the_rate_whatever_the_ties(
    table: list[tuple[float, bool, int]], drawn: list[int]
) -> None:
    score, _, drive = split(table)
    weight = np.array(drawn)
    assume(weight[drive].sum() > 0)
    curve = HealthyCurve(score, drive, 5)
    for rate, point in zip((0.1, 0.5), curve.find_operating_points((0.1, 0.5), weight), strict=True):
        assert curve.share_caught(point, weight) == pytest.approx(rate)


def test_resamples_draw_as_many_drives_as_there_are_and_are_the_same_for_one_seed() -> None:
    assert resample_drives(7, 0, 4).tolist() == [1, 1, 1, 1]
    first, again, other = (
        resample_drives(7, 1, 1000),
        resample_drives(7, 1, 1000),
        resample_drives(8, 1, 1000),
    )
    assert first.sum() == 1000
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_weighted_quantile_is_that_of_the_repeated_values() -> None:
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([1.0, 0.0, 3.0])
    assert weighted_quantile(values, weights, (0.1, 0.5, 0.9)) == (2.0, 2.0, 3.0)
    assert np.isnan(weighted_quantile(values, np.zeros(3), (0.5,))[0])
