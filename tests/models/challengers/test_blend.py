"""A blend leans on who was right about drives that nobody had seen."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from predrain.models.forecast.landmarks import Landmarks
from predrain.models.lab.challengers.blend import Blend, fit_blend

COUNT = 4000


def landmarks(died: np.ndarray) -> Landmarks:
    n = len(died)
    names = np.array([f"D{i}" for i in range(n)], dtype=object)
    return Landmarks(
        x=np.zeros((n, 1), dtype=np.float32),
        serial=names,
        model=names,
        day=np.zeros(n, dtype=np.int64),
        follow=np.where(died, 10, 100),
        died=died,
        watched=np.full(n, 200),
        weight=np.ones(n),
    )


def horizons(odds: np.ndarray) -> np.ndarray:
    p = 1 / (1 + np.exp(-odds))
    return np.stack([0.3 * p, 0.5 * p, p], axis=1)


def test_a_member_that_says_nothing_gets_next_to_no_weight() -> None:
    rng = np.random.default_rng(5)
    odds = rng.normal(-2, 1.5, COUNT)
    died = rng.random(COUNT) < 1 / (1 + np.exp(-odds))
    right, noise = horizons(odds), horizons(rng.normal(-2, 1.5, COUNT))
    blend = fit_blend([right, noise], landmarks(died))
    assert blend.weights[0] > 0.8
    assert blend.weights[1] < 0.1


def test_two_members_that_each_know_half_beat_either() -> None:
    rng = np.random.default_rng(6)
    halves = rng.normal(0, 1.5, (2, COUNT))
    died = rng.random(COUNT) < 1 / (1 + np.exp(2 - halves.sum(axis=0)))
    members = [horizons(half - 2) for half in halves]
    p = fit_blend(members, landmarks(died))(members)[:, 2]

    def log_loss(q: np.ndarray) -> float:
        return float(-np.mean(np.where(died, np.log(q), np.log1p(-q))))

    assert log_loss(p) < 0.9 * min(log_loss(member[:, 2]) for member in members)


def test_a_member_that_is_wrong_is_left_out_and_not_turned_round() -> None:
    rng = np.random.default_rng(8)
    odds = rng.normal(-2, 1.5, COUNT)
    died = rng.random(COUNT) < 1 / (1 + np.exp(-odds))
    assert fit_blend([horizons(odds), horizons(-4 - odds)], landmarks(died)).weights[1] == 0.0


@given(
    st.floats(-3, 3),
    st.lists(st.floats(0, 3), min_size=2, max_size=2),
    st.lists(st.lists(st.floats(1e-6, 1 - 1e-6), min_size=3, max_size=3), min_size=2, max_size=2),
)
def test_horizons_stay_in_order(shift: float, weights: list[float], chances: list[list[float]]) -> None:
    members = [np.sort(np.array([each]), axis=1) for each in chances]
    p = Blend(shift, tuple(weights))(members)
    assert (np.diff(p, axis=1) >= 0).all()
