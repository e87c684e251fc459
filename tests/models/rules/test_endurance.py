"""When a rated life ends: unknown while the slope is unknown, else an interval that is not too narrow."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.ids import DeviceId, HostName
from predrain.data.outlook import Status
from predrain.data.reading import Counters, Identity, Protocol, Reading, Smart
from predrain.features.drive_state import replay_readings
from predrain.models.forecast.rules import RuleVerdict, judge_by_rules
from predrain.models.forecast.rules.endurance import compute_beta_quantiles, rated_life

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def steady(start: int, days_a_step: int, steps: int) -> list[tuple[int, int]]:
    return [(1000 + days_a_step * n, start + n) for n in range(steps + 1)]


@pytest.mark.parametrize(
    ("changes", "day"),
    [
        ([], 1000),
        ([(1000, 40)], 2000),
        ([(1000, 40), (1400, 41)], 1400),
        ([(1000, 40), (1001, 42)], 1001),
        ([(1000, 40), (1100, 50), (1200, 3)], 1200),
        ([(1000, 98), (1100, 100)], 1100),
    ],
)
def test_a_slope_that_is_not_known_gives_no_end(changes: list[tuple[int, int]], day: int) -> None:
    assert rated_life(changes, day) is None


def test_a_steady_wear_ends_where_its_slope_says() -> None:
    life = rated_life(steady(50, 20, 10), 1200)
    assert life is not None
    assert life.p50_days == pytest.approx(39.5 / 10 * 200, rel=0.1)


def test_more_steps_give_a_narrower_interval() -> None:
    few, many = rated_life(steady(50, 20, 3), 1060), rated_life(steady(50, 20, 11), 1220)
    assert few is not None
    assert many is not None
    assert (few.p90_days or 9e9) / (few.p10_days or 0) > (many.p90_days or 9e9) / (many.p10_days or 0)


def test_wear_before_a_fall_is_another_count() -> None:
    assert rated_life([(0, 80), *steady(10, 20, 8)], 1160) == rated_life(steady(10, 20, 8), 1160)


@given(st.integers(0, 97), st.integers(1, 60), st.integers(2, 11), st.integers(0, 30))
def test_the_quantiles_are_ordered_and_ahead(start: int, pace: int, steps: int, since: int) -> None:
    changes = steady(start, pace, min(steps, 99 - start))
    life = rated_life(changes, changes[-1][0] + since)
    if life is None:
        return
    days = [np.inf if end is None else end for end in (life.p10_days, life.p50_days, life.p90_days)]
    assert 0 < days[0] <= days[1] <= days[2]


@pytest.mark.parametrize(("monthly_change", "covered"), [(0.0, 0.85), (0.25, 0.8), (0.5, 0.75)])
def test_about_eight_in_ten_ends_lie_within_the_interval_though_the_load_changes_from_month_to_month(
    monthly_change: float, covered: float
) -> None:
    chance, inside, known = np.random.default_rng(5), 0, 0
    for _ in range(400):
        # The wear in percent a day; the value of each month is drawn about the drive's own pace.
        pace = chance.uniform(0.05, 0.5)
        daily = np.repeat(pace * chance.lognormal(0, monthly_change, 240), 30)
        used = np.floor(chance.uniform(0, 1) + np.cumsum(daily)).astype(int)
        end = int(np.argmax(used >= 100))
        now = int(chance.integers(60, max(end, 61)))
        rises = [0, *(np.flatnonzero(np.diff(used[: now + 1])) + 1)]
        life = rated_life([(int(day), int(used[day])) for day in rises[-12:]], now)
        if life is None or life.p10_days is None or end <= now:
            continue
        known += 1
        inside += life.p10_days <= end - now <= (life.p90_days or np.inf)
    assert known > 300
    assert inside / known > covered


def worn(*used: int, every: int = 10) -> RuleVerdict:
    """A drive's NVMe readings, `every` so many days."""
    readings = [
        Reading(
            DeviceId("D"), HostName("h"), NOON + timedelta(days=every * n), NOON,
            Smart(Protocol.NVME, Identity(model="D"), True, Counters(percentage_used=percent)),
        )
        for n, percent in enumerate(used)
    ]  # fmt: skip
    state = replay_readings(readings)
    assert state is not None
    verdict = judge_by_rules(state)
    assert verdict is not None
    return verdict


def test_a_drive_whose_rated_life_ends_within_a_month_is_warned_of_with_its_slope_and_day() -> None:
    said = worn(*range(70, 98, 3))
    assert said.status is Status.WARNING
    assert said.reasons[0].code == "wearing-out"
    assert said.reasons[0].sentence == (
        "97 % of its rated life is used, by its own statistics, 0.30 % a day: it ends about 08 Apr."
    )
    assert said.endurance is not None


def test_a_drive_that_wears_slowly_is_good_and_its_end_is_told() -> None:
    said = worn(60, 61, 62, 63, every=90)
    assert said.status is Status.GOOD
    assert said.score == 0
    assert said.endurance is not None
    assert said.endurance.p10_days is not None
    assert said.endurance.p10_days > 365


def test_wear_without_a_slope_says_that_its_pace_is_not_known() -> None:
    said = worn(92)
    assert said.endurance is None
    assert said.reasons[0].sentence.endswith("how fast it goes is not known yet.")


@pytest.mark.parametrize("a", [0.5, 1.5, 30.5, 99.5])
@pytest.mark.parametrize("b", [2.5, 10.5, 98.5])
def test_the_quantiles_of_a_beta_distribution_are_those_of_scipy(a: float, b: float) -> None:
    from scipy.special import betaincinv

    expected = [betaincinv(a, b, share) for share in (0.1, 0.5, 0.9)]
    assert compute_beta_quantiles(a, b) == pytest.approx(expected, abs=1e-5)
