"""Quantiles of counted operations: as near to the real ones as the buckets allow, and never of what was not counted."""

from __future__ import annotations

import math
from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.collector.latency.latency_histogram import Histogram, quantile_of_means

EDGES = (0.0, *(0.1 * 2**n for n in range(30)))
LATENCIES = st.lists(st.floats(0.001, 50_000), min_size=1, max_size=200)


def of(latencies: list[float]) -> Histogram:
    counts = [0] * len(EDGES)
    for ms in latencies:
        counts[bisect_right(EDGES, ms) - 1] += 1
    return Histogram(EDGES, tuple(counts))


@given(LATENCIES, st.floats(0, 1))
def test_a_quantile_lies_in_the_bucket_of_the_real_one(latencies: list[float], part: float) -> None:
    real = sorted(latencies)[max(math.ceil(part * len(latencies)) - 1, 0)]
    bucket = bisect_right(EDGES, real) - 1
    told = of(latencies).quantile_ms(part)
    assert told is not None
    assert EDGES[bucket] <= told <= EDGES[bucket + 1] * (1 + 1e-12)


@given(LATENCIES)
def test_a_higher_part_never_has_a_lower_quantile(latencies: list[float]) -> None:
    counted = of(latencies)
    told = [counted.quantile_ms(part / 20) or 0 for part in range(21)]
    assert told == sorted(told)


def test_within_a_bucket_operations_are_spread_evenly() -> None:
    assert Histogram((0.0, 1.0, 2.0, 4.0), (0, 0, 100, 0)).quantile_ms(0.5) == pytest.approx(3.0)


def test_of_the_last_bucket_only_the_beginning_is_known() -> None:
    assert Histogram((0.0, 1.0), (0, 3)).quantile_ms(0.99) == 1.0


def test_no_operations_have_no_quantile() -> None:
    assert Histogram((0.0, 1.0), (0, 0)).quantile_ms(0.5) is None


@given(LATENCIES, LATENCIES)
def test_the_difference_of_two_histograms_counts_only_the_operations_between_them(
    first: list[float], more: list[float]
) -> None:
    assert of(first + more).since(of(first)) == of(more)
    assert of(first).plus(of(more)) == of(first + more)


@given(LATENCIES, LATENCIES)
def test_a_count_that_falls_was_reset(first: list[float], more: list[float]) -> None:
    assert of(more).since(of(first + more)) is None


def test_counts_of_other_buckets_are_not_compared() -> None:
    assert Histogram((0.0, 1.0), (1, 1)).since(Histogram((0.0, 2.0), (0, 0))) is None


@given(st.lists(st.tuples(st.floats(0.01, 1000), st.integers(0, 100)), max_size=8), st.floats(0, 1))
def test_a_quantile_of_means_is_one_of_them_that_has_operations(
    means: list[tuple[float, int]], part: float
) -> None:
    told = quantile_of_means(means, part)
    assert (told is None) == all(count == 0 for _, count in means)
    assert told is None or told in [mean for mean, count in means if count]


def test_a_mean_weighs_as_much_as_its_operations() -> None:
    means = [(100.0, 1), (2.0, 50), (3.0, 49)]
    assert quantile_of_means(means, 0.5) == 2.0
    assert quantile_of_means(means, 0.99) == 3.0
    assert quantile_of_means(means, 1.0) == 100.0
