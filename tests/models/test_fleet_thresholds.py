"""The thresholds of `warning` and `bad` follow the chances that a fleet's own healthy disks reach."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.lifespan import Lifespans
from predrain.data.outlook import Status
from predrain.data.scorebook import ScorebookForecasts
from predrain.models.forecast.calibration import Thresholds
from predrain.models.forecast.fleet_thresholds import FOLLOWED_DAYS, MOST_SHIFT, follow_thresholds

TODAY = 20_000
SHIPPED = Thresholds(warning=0.05, bad=0.2)


def scored(p: np.ndarray, days: int = FOLLOWED_DAYS) -> ScorebookForecasts:
    """p: (disks,) what each disk was forecast every week of the last `days`."""
    day = np.arange(TODAY - days + 1, TODAY + 1, 7)
    device = np.repeat([f"D{number:06}" for number in range(len(p))], len(day)).astype(object)
    return ScorebookForecasts(
        device=device,
        day=np.tile(day, len(p)).astype(np.int64),
        model=np.full(len(device), "ST4000DM000", dtype=object),
        status=np.full(len(device), Status.GOOD, dtype=object),
        p=np.repeat(p, len(day))[:, None] * np.ones(3),
    )


def ends(**known: tuple[int, bool]) -> Lifespans:
    """By device: the last day, and whether it died then."""
    names = sorted(known)
    return Lifespans(
        np.array(names, dtype=object),
        np.zeros(len(names), dtype=np.int64),
        np.array([known[name][0] for name in names], dtype=np.int64),
        np.array([known[name][1] for name in names], dtype=bool),
    )


def spread(disks: int, scale: float = 1.0) -> np.ndarray:
    """Chances of which each is another one, 1 % of them above 0.02 * scale."""
    return np.minimum(scale * 0.0002 / (1 - np.arange(disks) / disks), 0.9)


def alive(disks: int) -> Lifespans:
    return ends(**{f"D{number:06}": (TODAY + 60, False) for number in range(disks)})


def test_in_a_large_fleet_one_in_a_hundred_healthy_months_reaches_the_warning() -> None:
    p = spread(20_000)
    found = follow_thresholds(scored(p), alive(20_000), SHIPPED, TODAY)
    assert (p >= found.thresholds.warning).mean() == pytest.approx(0.01, rel=0.1)
    assert (p >= found.thresholds.bad).mean() == pytest.approx(0.001, rel=0.3)
    assert found.disk_months == pytest.approx(60_000, rel=0.01)


def test_the_last_month_counts_for_more_than_the_ones_before() -> None:
    old, new = scored(spread(20_000)), scored(spread(20_000, 0.1))
    late = new.day > TODAY - 30
    book = replace(old, p=np.where(late[:, None], new.p, old.p))
    same = replace(old, p=np.where(late[:, None], old.p, new.p))
    found = [follow_thresholds(one, alive(20_000), SHIPPED, TODAY).thresholds.warning for one in (book, same)]
    assert found[0] < found[1]


def test_a_fleet_whose_scores_are_all_half_as_high_has_the_same_alarms() -> None:
    one, half = (
        follow_thresholds(scored(spread(20_000, scale)), ends(), SHIPPED, TODAY).thresholds
        for scale in (1.0, 0.5)
    )
    assert half.warning == pytest.approx(one.warning / 2, rel=0.1)


def test_a_fleet_without_forecasts_has_the_bundles_own_thresholds() -> None:
    found = follow_thresholds(scored(np.zeros(0)), ends(), SHIPPED, TODAY)
    assert (found.thresholds, found.disk_months) == (SHIPPED, 0.0)


def test_forecasts_older_than_the_followed_days_say_nothing() -> None:
    assert follow_thresholds(scored(spread(500)), ends(), SHIPPED, TODAY + 200).thresholds == SHIPPED


def test_a_small_fleet_stays_near_the_bundles_own_thresholds() -> None:
    small, large = (
        follow_thresholds(scored(spread(n, 0.3)), alive(n), SHIPPED, TODAY).thresholds for n in (60, 20_000)
    )
    assert large.bad < 0.1 < small.bad <= SHIPPED.bad
    assert small.bad == pytest.approx(SHIPPED.bad, rel=0.3)


def test_a_disk_that_was_scored_for_two_weeks_of_a_month_does_not_count() -> None:
    assert follow_thresholds(scored(spread(500), days=14), ends(), SHIPPED, TODAY).disk_months == 0


def test_disks_that_died_within_a_month_are_not_healthy() -> None:
    p = np.concatenate([spread(20_000), np.full(300, 0.5)])
    dead = {f"D{number:06}": (TODAY, True) for number in range(20_000, 20_300)}
    quiet = follow_thresholds(scored(spread(20_000)), ends(), SHIPPED, TODAY).thresholds
    assert follow_thresholds(
        scored(p, days=30), ends(**dead), SHIPPED, TODAY
    ).thresholds.warning == pytest.approx(quiet.warning, rel=0.1)


def test_draining_the_worst_disks_does_not_lower_the_thresholds() -> None:
    p = spread(20_000)
    kept = {f"D{number:06}": (TODAY + 60, False) for number in range(20_000)}
    drained = kept | {f"D{number:06}": (TODAY, False) for number in np.flatnonzero(p > 0.02).tolist()}
    before, after = (
        follow_thresholds(scored(p), ends(**known), SHIPPED, TODAY).thresholds for known in (kept, drained)
    )
    assert after.warning == pytest.approx(before.warning, rel=0.1)
    assert after.bad == pytest.approx(before.bad, rel=0.3)


def test_disks_that_all_look_alike_are_not_called_ill_to_fill_a_rate() -> None:
    found = follow_thresholds(scored(np.full(5_000, 0.004)), ends(), SHIPPED, TODAY).thresholds
    assert found == SHIPPED


def test_a_fleet_in_perfect_health_lowers_a_threshold_by_a_bounded_part_only() -> None:
    found = follow_thresholds(scored(spread(50_000, 1e-4)), ends(), SHIPPED, TODAY).thresholds
    assert found.bad > SHIPPED.bad * np.exp(-MOST_SHIFT) * 0.99


@given(st.lists(st.floats(0, 1), max_size=300))
def test_a_warning_is_never_harder_to_reach_than_bad(p: list[float]) -> None:
    found = follow_thresholds(scored(np.array(p)), ends(), SHIPPED, TODAY).thresholds
    assert 0 < found.warning <= found.bad < 1
