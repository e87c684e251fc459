"""The limits of a mean number of failures are the exact ones."""

from __future__ import annotations

import pytest

from predrain.models.deploy.poisson_limits import compute_poisson_limits


@pytest.mark.parametrize("count", [1, 2, 30, 5000])
def test_the_limits_are_those_of_scipy(count: int) -> None:
    from scipy.special import gammaincinv

    expected = (gammaincinv(count, 0.025), gammaincinv(count + 1, 0.975))
    assert compute_poisson_limits(count) == pytest.approx(expected, rel=1e-9)


def test_without_a_failure_the_lower_limit_is_zero() -> None:
    assert compute_poisson_limits(0) == (0.0, pytest.approx(3.688879, rel=1e-6))
