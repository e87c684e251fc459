"""The effect of a fleet's own drives on the rates of their models."""

from __future__ import annotations

import numpy as np
import pytest

from predrain.data.lifespan import Lifespans
from predrain.data.outlook import Status
from predrain.data.scorebook import ScorebookForecasts
from predrain.features.feature_schema import NAMES_IN_ORDER, POSITION
from predrain.models.forecast.bundle import Bundle
from predrain.models.forecast.drive_family import YEAR, fit_rates
from predrain.models.forecast.experience import Experience, count_experience


def book(*drives: tuple[str, str, int, int]) -> ScorebookForecasts:
    """device, model, first day, last day: a forecast a day."""
    rows = [(device, model, day) for device, model, first, last in drives for day in range(first, last + 1)]
    return ScorebookForecasts(
        device=np.array([row[0] for row in rows], dtype=object),
        day=np.array([row[2] for row in rows], dtype=np.int64),
        model=np.array([row[1] for row in rows], dtype=object),
        status=np.array([Status.GOOD] * len(rows), dtype=object),
        p=np.full((len(rows), 3), 0.001),
    )


def ends(**last: tuple[int, bool]) -> Lifespans:
    names = sorted(last)
    return Lifespans(
        np.array(names, dtype=object),
        np.zeros(len(names), dtype=np.int64),
        np.array([last[name][0] for name in names], dtype=np.int64),
        np.array([last[name][1] for name in names], dtype=bool),
    )


def test_drive_years_and_deaths_are_counted_by_model_whatever_suffix_a_name_has() -> None:
    told = book(("A", "ST4000DM000-1F2168", 0, 100), ("B", "ST4000DM000-2AE166", 50, 100), ("C", "X", 0, 10))
    found = count_experience(told, ends(A=(100, False), B=(90, True), C=(10, False)))
    assert found["ST4000DM000"] == Experience(2, 1, 1, pytest.approx(140 / YEAR))
    assert found["X"].deaths == 0


def test_a_death_before_the_first_forecast_is_none_of_this_fleets_experience() -> None:
    found = count_experience(book(("A", "X", 50, 60)), ends(A=(40, True)))
    assert found["X"].deaths == 0


def test_a_death_after_a_warning_is_no_death_of_a_quiet_drive() -> None:
    told = book(("A", "X", 0, 9), ("B", "X", 0, 9))
    told.status[5:10] = Status.WARNING
    found = count_experience(told, ends(A=(9, True), B=(9, True)))["X"]
    assert (found.deaths, found.quiet_deaths) == (2, 1)
    assert found.quiet_years == pytest.approx((4.5 + 9) / YEAR)


def test_nothing_is_learned_from_an_empty_book() -> None:
    assert count_experience(book(), ends()) == {}


def test_chances_and_lives_of_a_model_follow_what_became_of_its_drives_here() -> None:
    bundle = Bundle.load()
    x = np.zeros((1, len(NAMES_IN_ORDER)), dtype=np.float32)
    x[0, POSITION["hours"]] = 2.5 * 24 * YEAR
    model = np.array(["NEVER SEEN 20TB"], dtype=object)
    judged = np.ones(1, dtype=bool)

    def after(deaths: float, lived: float) -> tuple[float, float]:
        own = {"NEVER SEEN 20TB": Experience(1_000, deaths, deaths, lived)}
        told = bundle.update_rates(own).forecast(x, model, judged)
        return float(told.p_fail[0, 2]), float(np.nan_to_num(told.life[0, 0], nan=1e9))

    healthy, nothing, sick = after(0, 900), after(0, 0), after(60, 900)
    assert healthy[0] < nothing[0] < sick[0]
    assert healthy[1] > nothing[1] > sick[1]


def test_rates_that_learned_nothing_are_the_rates_before() -> None:
    rates = fit_rates({})
    assert rates.update({}).by_age("X") == rates.by_age("X")
