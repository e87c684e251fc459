"""Properties that hold for every replay, with any forecasts and any lives of the drives."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from predrain.actions.core.drain_policy import Policy
from predrain.actions.cost_benefit import (
    DailyForecasts,
    DriveFates,
    DriveLayout,
    Notch,
    ReplayResult,
    replay_forecast_days,
    worth_of,
)

DAYS = 40
HOSTS = 4
USED = 5_000_000_000_000
NOTCH = Notch(0.05, 0.2)
BOUND = Policy(out_share_max=0.5, mass_suspicion_min=5)
BOUNDLESS = Policy(
    drains_per_host=1000, drains_per_rack=1000, drains_per_cluster=1000, out_share_max=1.0,
    in_flight_max=1000, mass_suspicion_min=1000,
)  # fmt: skip
INSTANT = replace(BOUNDLESS, failure_cost=100, backfill_bytes_per_second=1e12)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[DailyForecasts, DriveFates, DriveLayout]:
    """Up to twelve drives, each with levels that change now and then, and one healthy one that takes what moves."""
    number = draw(st.integers(1, 12))
    levels = st.sampled_from([0.001, 0.06, 0.1, 0.25, 0.5, float("nan")])
    p = np.full((number + 1, DAYS), 0.001, dtype=np.float32)
    for place in range(number):
        for begin in draw(st.lists(st.integers(0, DAYS - 1), max_size=4)):
            p[place, begin:] = draw(levels)
    last = [draw(st.integers(1, DAYS + 40)) for _ in range(number)]
    died = [draw(st.booleans()) for _ in range(number)]
    end = DAYS + 40
    fates = DriveFates(
        np.array([f"D{place}" for place in range(number + 1)], dtype=object),
        np.array(["M"] * (number + 1), dtype=object),
        np.array([*(draw(st.integers(0, 9)) for _ in range(number)), 0], dtype=np.int64),
        np.array([*last, end], dtype=np.int64),
        np.array([*died, False], dtype=bool),
        end,
    )
    host = np.array([*(draw(st.integers(0, HOSTS - 1)) for _ in range(number)), HOSTS], dtype=np.int64)
    none = np.zeros(number + 1, dtype=np.int64)
    layout = DriveLayout(none, host // 2, host, none + USED, none + 100 * USED)
    return DailyForecasts(0, p), fates, layout


@settings(deadline=None, max_examples=40)
@given(worlds())
def test_safe_bytes_are_a_part_of_the_failing_ones_and_every_drain_has_one_verdict(
    world: tuple[DailyForecasts, DriveFates, DriveLayout],
) -> None:
    worth = worth_of(*world, BOUND, NOTCH, resamples=5)
    assert 0 <= worth.safe_bytes <= worth.failing_bytes == worth.failures * USED
    assert worth.in_time + worth.for_nothing + worth.undecided == worth.drains
    assert 0 <= worth.nothing_bytes <= worth.moved_bytes <= worth.drains * USED
    assert worth.saved_whole + worth.cut_short <= worth.failures


@settings(deadline=None, max_examples=40)
@given(worlds())
def test_no_budget_is_ever_exceeded(world: tuple[DailyForecasts, DriveFates, DriveLayout]) -> None:
    _, fates, layout = world
    done = replay_forecast_days(*world, BOUND, NOTCH)
    for group, most in ((layout.host, 1), (layout.rack, 2), (layout.cluster, 4)):
        for number in np.unique(group):
            _within(done, {int(drive) for drive in np.flatnonzero(group == number)}, most)
    assert len({drain.drive for drain in done.drains}) == len(done.drains)
    assert all(drain.begun >= drain.proposed >= fates.first[drain.drive] for drain in done.drains)
    assert all(drain.ended <= fates.last[drain.drive] + 1 for drain in done.drains)


def _within(done: ReplayResult, drives: set[int], most: int) -> None:
    """No more bytes left the drives than `most` drains at once can move between any beginning and any end."""
    drains = [drain for drain in done.drains if drain.drive in drives]
    a_day = BOUND.backfill_bytes_per_second * 86_400
    for begin in {drain.begun for drain in drains}:
        for end in {drain.ended for drain in drains}:
            inside = [drain for drain in drains if begin <= drain.begun and drain.ended <= end]
            assert sum(drain.moved_bytes for drain in inside) <= most * a_day * max(0.0, end - begin) + 10


@settings(deadline=None, max_examples=40)
@given(worlds())
def test_a_perfect_oracle_without_a_budget_saves_all_that_has_lead_time(
    world: tuple[DailyForecasts, DriveFates, DriveLayout],
) -> None:
    _, fates, layout = world
    p = np.full((len(fates.last), DAYS), 0.001, dtype=np.float32)
    for drive in np.flatnonzero(fates.died):
        p[drive, max(0, int(fates.last[drive]) - 20) : max(0, int(fates.last[drive]))] = 0.9
    worth = worth_of(DailyForecasts(0, p), fates, layout, INSTANT, NOTCH, resamples=5)
    seen = fates.died & (fates.last > 0) & (fates.last < DAYS) & (fates.first < fates.last)
    assert worth.safe_bytes == USED * int(seen.sum())
    assert worth.for_nothing == 0


@settings(deadline=None, max_examples=40)
@given(worlds(), st.sampled_from([1.5, 3.0]))
def test_a_dearer_failure_never_saves_less_where_no_budget_binds(
    world: tuple[DailyForecasts, DriveFates, DriveLayout], factor: float
) -> None:
    fast = replace(BOUNDLESS, mass_suspicion_window=timedelta(days=1))
    cheap = worth_of(*world, fast, NOTCH, resamples=5)
    dear = worth_of(*world, replace(fast, failure_cost=10 * factor), NOTCH, resamples=5)
    assert dear.safe_bytes >= cheap.safe_bytes
    assert dear.drains >= cheap.drains


@settings(deadline=None, max_examples=20)
@given(worlds())
def test_the_same_replay_gives_the_same_figures(
    world: tuple[DailyForecasts, DriveFates, DriveLayout],
) -> None:
    once, again = (worth_of(*world, BOUND, NOTCH, resamples=5, seed=1) for _ in range(2))
    assert once == again
