"""The verdict on endurance finds memory and descriptors that grow."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.endure.flatness import MEMORY_BOUND, ResourceSample, judge_flatness

TEN_MINUTES = 600


def sample_process(
    megabytes: Callable[[int], float],
    descriptors: Callable[[int], int] = lambda _: 100,
    waiting: Callable[[int], int] = lambda _: 0,
) -> list[ResourceSample]:
    return [ResourceSample(at, megabytes(at), descriptors(at), waiting(at)) for at in range(TEN_MINUTES)]


def test_memory_that_stands_still_after_the_warm_up_is_flat() -> None:
    verdict = judge_flatness(sample_process(lambda at: 300.0 + min(at, 200) / 2))
    assert verdict.is_flat
    assert verdict.megabytes_per_minute == pytest.approx(0.0)


def test_memory_that_swings_around_a_level_is_flat() -> None:
    assert judge_flatness(sample_process(lambda at: 300.0 + 20.0 * (at % 30 < 15))).is_flat


def test_memory_that_grows_by_more_than_the_bound_is_not_flat() -> None:
    verdict = judge_flatness(sample_process(lambda at: 300.0 + 2 * MEMORY_BOUND * at / 60))
    assert not verdict.is_memory_flat
    assert not verdict.is_flat
    assert verdict.megabytes_per_minute == pytest.approx(2 * MEMORY_BOUND)


def test_memory_that_is_given_back_is_flat() -> None:
    assert judge_flatness(sample_process(lambda at: 400.0 - at / 10)).is_flat


def test_descriptors_that_grow_are_not_flat() -> None:
    verdict = judge_flatness(sample_process(lambda _: 300.0, lambda at: 100 + at // 30))
    assert verdict.is_memory_flat
    assert not verdict.are_descriptors_flat
    assert not verdict.is_flat


def test_a_service_that_falls_behind_was_not_measured() -> None:
    verdict = judge_flatness(sample_process(lambda _: 300.0, waiting=lambda at: 20 * at))
    assert verdict.is_memory_flat
    assert not verdict.has_kept_up
    assert not verdict.is_flat


def test_readings_that_wait_while_the_service_starts_do_not_count() -> None:
    assert judge_flatness(sample_process(lambda _: 300.0, waiting=lambda at: 9_000 * (at < 60))).is_flat


def test_too_few_samples_are_not_judged() -> None:
    with pytest.raises(ValueError, match="too few"):
        judge_flatness([ResourceSample(float(at), 300.0, 100, 0) for at in range(15)])
