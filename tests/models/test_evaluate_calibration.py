"""Calibration by hand."""

from __future__ import annotations

import numpy as np
import pytest

from predrain.models.evaluate.reliability import Reliability


def test_expected_over_observed_ece_and_brier_skill_by_hand() -> None:
    # One bin [0.1, 0.3): says 0.2 for 10 rows, 1 fails. One bin [0.3, 1]: says 0.5 for 4 rows, 3 fail.
    p = np.r_[np.full(10, 0.2), np.full(4, 0.5)]
    label = np.r_[1, np.zeros(9), 1, 1, 1, 0].astype(np.int64)
    reliability = Reliability(p, label, np.arange(14), 14)
    figures = reliability.figures(np.ones(14, dtype=np.int64))
    assert figures.expected_over_observed == pytest.approx(4.0 / 4.0)
    assert figures.ece == pytest.approx((10 * abs(0.2 - 0.1) + 4 * abs(0.5 - 0.75)) / 14)
    base, brier = 4 / 14, (0.64 + 9 * 0.04 + 4 * 0.25) / 14
    assert figures.brier_skill == pytest.approx(1 - brier / (base * (1 - base)))
    assert [(one.rows, one.mean_p, one.observed) for one in reliability.table()] == [
        (10, pytest.approx(0.2), pytest.approx(0.1)),
        (4, pytest.approx(0.5), pytest.approx(0.75)),
    ]


def test_the_base_rate_told_to_everybody_has_no_skill_and_no_error() -> None:
    label = np.array([1, 0, 0, 0], dtype=np.int64)
    figures = Reliability(np.full(4, 0.25), label, np.arange(4), 4).figures(np.ones(4, dtype=np.int64))
    assert figures.brier_skill == pytest.approx(0)
    assert figures.ece == pytest.approx(0)


def test_weighing_a_drive_is_repeating_its_rows() -> None:
    rng = np.random.default_rng(3)
    p, drive = rng.random(60), rng.integers(6, size=60)
    label = (rng.random(60) < p).astype(np.int64)
    weight = np.array([0, 1, 2, 3, 1, 0])
    times = weight[drive]
    weighted = Reliability(p, label, drive, 6).figures(weight)
    repeated = Reliability(
        np.repeat(p, times), np.repeat(label, times), np.repeat(drive, times), 6
    ).figures(np.ones(6, dtype=np.int64))  # fmt: skip
    assert weighted.ece == pytest.approx(repeated.ece)
    assert weighted.brier_skill == pytest.approx(repeated.brier_skill)
    assert weighted.expected_over_observed == pytest.approx(repeated.expected_over_observed)


def test_probabilities_of_nought_and_one_have_a_bin() -> None:
    table = Reliability(np.array([0.0, 1.0]), np.array([0, 1]), np.arange(2), 2).table()
    assert [(one.low, one.high, one.rows) for one in table] == [(0.0, 0.0001, 1), (0.3, 1.0, 1)]


def test_nothing_is_said_of_rows_without_a_failure() -> None:
    figures = Reliability(np.array([0.1]), np.array([0]), np.arange(1), 1).figures(np.ones(1, dtype=np.int64))
    assert np.isnan(figures.expected_over_observed)
    assert np.isnan(figures.brier_skill)
