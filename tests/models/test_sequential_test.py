"""A challenger is called better on evidence that holds however often it is looked at."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.models.deploy.sequential_test import ENOUGH_EVIDENCE, estimate_days_left, weigh_evidence

COUNTS = st.integers(0, 400)


def test_without_failures_that_tell_them_apart_there_is_no_evidence_and_no_hope() -> None:
    assert weigh_evidence(0, 0) == 1.0
    assert estimate_days_left(0, 0, 100) is None


@pytest.mark.parametrize(("hits", "enough"), [(6, False), (7, True)])
def test_seven_failures_foretold_by_the_challenger_alone_are_enough(hits: int, enough: bool) -> None:
    assert (weigh_evidence(hits, 0) >= ENOUGH_EVIDENCE) is enough


def test_the_evidence_is_the_mean_likelihood_over_that_of_one_half() -> None:
    share = np.linspace(0.5, 1.0, 200_001)
    likelihood = (2 * share) ** 9 * (2 * (1 - share)) ** 3
    assert weigh_evidence(9, 3) == pytest.approx(likelihood.mean(), rel=1e-4)


@given(COUNTS, COUNTS)
def test_one_more_failure_of_the_challengers_never_lowers_the_evidence(hits: int, misses: int) -> None:
    assert weigh_evidence(hits + 1, misses) >= weigh_evidence(hits, misses) * (1 - 1e-9)


def test_equal_bundles_that_are_looked_at_after_every_failure_are_rarely_told_apart() -> None:
    chance = np.random.default_rng(1)
    fooled = 0
    for _ in range(400):
        hits = np.cumsum(chance.random(150) < 0.5)
        fooled += any(
            weigh_evidence(int(won), number - int(won)) >= ENOUGH_EVIDENCE
            for number, won in enumerate(hits, 1)
        )
    assert fooled <= 0.05 * 400


def test_days_that_are_left_follow_from_the_pace_of_failures() -> None:
    left = estimate_days_left(4, 1, 100)
    assert left is not None
    assert 100 < left < 2_000
    slower = estimate_days_left(4, 1, 200)
    assert slower == pytest.approx(2 * left)


def test_a_challenger_that_foretells_less_has_no_day_to_wait_for() -> None:
    assert estimate_days_left(3, 5, 100) is None


@pytest.mark.parametrize(("hits", "misses"), [(1, 0), (0, 7), (12, 30), (400, 380), (4000, 3900)])
def test_the_evidence_is_the_incomplete_beta_integral_of_scipy(hits: int, misses: int) -> None:
    from scipy.special import betainc, betaln

    log = (hits + misses + 1) * np.log(2.0) + betaln(misses + 1, hits + 1)
    expected = np.exp(log + np.log(betainc(misses + 1, hits + 1, 0.5)))
    assert weigh_evidence(hits, misses) == pytest.approx(expected, rel=1e-9)
