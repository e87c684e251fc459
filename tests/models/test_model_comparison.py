"""Bundles on what has happened: counted by hand on small worlds, honest where there is too little."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.lifespan import Lifespans
from predrain.data.outlook import Status
from predrain.data.scorebook import ScorebookForecasts
from predrain.models.deploy.model_comparison import (
    ENOUGH,
    Calibrated,
    CalibrationVerdict,
    compare_bundles,
    measure_family_calibration,
)

LONG = 400
"""Last day of the world."""

Said = tuple[str, int, float, Status]


def book(*said: Said) -> ScorebookForecasts:
    rows = sorted(said)
    return ScorebookForecasts(
        np.array([device for device, *_ in rows], dtype=object),
        np.array([day for _, day, *_ in rows], dtype=np.int64),
        np.array(["ST4000DM000"] * len(rows), dtype=object),
        np.array([status for *_, status in rows], dtype=object),
        np.array([[p / 4, p / 2, p] for _, _, p, _ in rows]).reshape(-1, 3),
    )


def ends(**lives: tuple[int, bool]) -> Lifespans:
    names = sorted({*lives, "~end"})
    known = {**lives, "~end": (LONG, False)}
    return Lifespans(
        np.array(names, dtype=object),
        np.zeros(len(names), dtype=np.int64),
        np.array([known[name][0] for name in names]),
        np.array([known[name][1] for name in names]),
    )


def daily(device: str, first: int, last: int, p: float, status: Status = Status.GOOD) -> list[Said]:
    return [(device, day, p, status) for day in range(first, last + 1)]


def test_a_failure_called_in_the_thirty_days_before_is_foretold_with_its_lead() -> None:
    said = [*daily("A", 0, 79, 0.01), *daily("A", 80, 99, 0.4, Status.WARNING)]
    found = compare_bundles({"one": book(*said)}, ends(A=(100, True)))
    (standing,) = found.standings
    assert (found.failures, standing.detected, standing.detected_bad) == (1, 1, 0)
    assert standing.lead_days == 20


def test_a_call_too_early_or_on_the_day_of_death_foretells_nothing() -> None:
    said = [*daily("A", 0, 60, 0.4, Status.BAD), *daily("A", 61, 99, 0.01), ("A", 100, 0.9, Status.BAD)]
    found = compare_bundles({"one": book(*said)}, ends(A=(100, True)))
    assert (found.failures, found.standings[0].detected) == (1, 0)


def test_a_healthy_window_with_a_call_is_one_false_alarm_however_often_it_was_called() -> None:
    said = [*daily("A", 0, 9, 0.3, Status.BAD), *daily("A", 10, 59, 0.01)]
    found = compare_bundles({"one": book(*said)}, ends(A=(LONG, False)))
    assert (found.windows, found.standings[0].false_alarms, found.standings[0].false_alarms_bad) == (2, 1, 1)


def test_a_disk_that_was_censored_before_thirty_days_were_over_is_neither() -> None:
    found = compare_bundles({"one": book(*daily("A", 80, 99, 0.5, Status.BAD))}, ends(A=(100, False)))
    assert (found.failures, found.windows, found.rows) == (0, 0, 0)
    assert found.standings[0].brier is None


def test_brier_and_expected_are_those_of_the_rows_whose_outcome_is_known() -> None:
    said = [("A", 90, 0.2, Status.GOOD), ("B", 90, 0.1, Status.GOOD), ("B", LONG - 5, 0.9, Status.GOOD)]
    found = compare_bundles({"one": book(*said)}, ends(A=(100, True), B=(LONG, False)))
    assert (found.rows, found.observed) == (2, 1)
    assert found.standings[0].brier == pytest.approx((0.8**2 + 0.1**2) / 2)
    assert found.standings[0].expected == pytest.approx(0.3)


def test_bundles_are_judged_on_the_disks_and_days_that_both_forecast() -> None:
    early = daily("A", 0, 99, 0.4, Status.BAD)
    late = daily("A", 90, 99, 0.01)
    found = compare_bundles({"one": book(*early), "two": book(*late)}, ends(A=(100, True)))
    assert [one.detected for one in found.standings] == [1, 0]
    assert found.rows == 10


def test_few_failures_are_said_to_be_too_few_whoever_is_ahead() -> None:
    good, bad = daily("A", 90, 99, 0.9, Status.BAD), daily("A", 90, 99, 0.0)
    found = compare_bundles({"champion": book(*bad), "challenger": book(*good)}, ends(A=(100, True)))
    assert not found.has_enough_failures
    assert not found.is_second_better
    assert found.recall_gain is None
    assert (found.only_first, found.only_second, found.days) == (0, 1, 10)
    assert found.sentence() == (
        "Of 1 failure in 10 days 1 were foretold by challenger alone and 0 by champion alone: too few to tell them "
        "apart. As failures come here, it takes about 8 months more."
    )
    assert compare_bundles({"champion": book(*bad)}, ends(A=(100, True))).sentence() == (
        f"Too few to judge: 1 failures on record, {ENOUGH} are wanted."
    )


def fleet(caught: int, p: float, *, dead: int = 60, alive: int = 60) -> list[Said]:
    """60 failures, the first `caught` of which were called."""
    told: list[Said] = []
    for number in range(dead):
        called = number < caught
        told += [(f"D{number:03}", 90, p if called else 0.01, Status.BAD if called else Status.GOOD)]
    return told + [(f"H{number:03}", 90, 0.01, Status.GOOD) for number in range(alive)]


LIVES = ends(
    **{f"D{n:03}": (100, True) for n in range(60)},  # type: ignore[arg-type]
    **{f"H{n:03}": (LONG, False) for n in range(60)},  # type: ignore[arg-type]
)


def test_a_challenger_that_foretells_far_more_is_really_better_and_the_other_way_round_worse() -> None:
    weak, strong = book(*fleet(15, 0.6)), book(*fleet(45, 0.6))
    found = compare_bundles({"champion": weak, "challenger": strong}, LIVES)
    assert found.has_enough_failures
    assert found.is_second_better
    assert found.recall_gain is not None
    assert found.recall_gain[0] > 0.3
    assert "challenger really foretells more" in found.sentence()
    turned = compare_bundles({"champion": strong, "challenger": weak}, LIVES)
    assert not turned.is_second_better
    assert "really foretells less" in turned.sentence()


def test_seven_failures_that_only_the_challenger_foretold_are_enough_in_a_small_fleet() -> None:
    few = ends(
        **{f"D{n:03}": (100, True) for n in range(7)},  # type: ignore[arg-type]
        **{f"H{n:03}": (LONG, False) for n in range(60)},  # type: ignore[arg-type]
    )
    blind, seeing = (book(*fleet(caught, 0.6, dead=7)) for caught in (0, 7))
    found = compare_bundles({"champion": blind, "challenger": seeing}, few)
    assert not found.has_enough_failures
    assert found.is_second_better
    assert found.days_left == 0


def test_a_challenger_that_foretells_more_by_calling_healthy_disks_is_left_to_a_person() -> None:
    calm, loud = fleet(15, 0.6), fleet(45, 0.6)
    loud = [(d, day, p, Status.BAD if d.startswith("H") else status) for d, day, p, status in loud]
    found = compare_bundles({"champion": book(*calm), "challenger": book(*loud)}, LIVES)
    assert found.evidence > 20
    assert not found.is_second_better
    assert "a person has to choose" in found.sentence()


def test_equal_bundles_cannot_be_told_apart_and_a_lone_champion_has_none_to_compare() -> None:
    same = book(*fleet(30, 0.6))
    assert "nothing speaks for b so far" in compare_bundles({"a": same, "b": same}, LIVES).sentence()
    assert "no challenger" in compare_bundles({"a": same}, LIVES).sentence()


def test_nothing_forecast_is_nothing_judged() -> None:
    found = compare_bundles({"one": book(), "two": book()}, ends())
    assert (found.failures, found.windows, found.rows) == (0, 0, 0)
    assert measure_family_calibration(book(), ends(), str) == ()


def test_calibration_counts_each_disk_once_in_thirty_days_and_gives_the_exact_interval() -> None:
    said = [row for n in range(40) for row in daily(f"D{n:03}", 60, 89, 0.5)]
    lives = ends(**{f"D{n:03}": (95 if n < 20 else LONG, n < 20) for n in range(40)})  # type: ignore[arg-type]
    (found,) = measure_family_calibration(book(*said), lives, lambda _: "Seagate")
    assert found.family == "Seagate"
    assert (found.expected, found.observed) == (pytest.approx(20.0), 0)
    # No disk dies within 30 days of day 60; the interval is that of no failure at all (Poisson: 3.69).
    assert found.low == pytest.approx(20 / 3.689, rel=1e-3)
    assert (found.high, found.ratio, found.is_off) == (None, None, False)


@pytest.mark.parametrize(("p", "off"), [(0.5, False), (0.95, True), (0.1, True)])
def test_chances_are_off_only_when_more_than_chance_says_so_on_enough_failures(p: float, off: bool) -> None:
    said = [(f"D{n:03}", 90, p, Status.GOOD) for n in range(60)] + [
        (f"H{n:03}", 90, p, Status.GOOD) for n in range(60)
    ]
    (found,) = measure_family_calibration(book(*said), LIVES, lambda _: "")
    assert found.observed == 60
    assert found.low < found.expected / 60 < (found.high or 0)
    assert found.is_off is off


@pytest.mark.parametrize(
    ("expected", "observed", "low", "high", "verdict"),
    [
        (2.9, 8, 0.18, 0.84, CalibrationVerdict.DOUBTFUL),
        (2.9, 3, 0.33, 4.7, CalibrationVerdict.TOO_FEW),
        (40.0, 41, 0.72, 1.36, CalibrationVerdict.FITS),
        (20.0, 60, 0.26, 0.44, CalibrationVerdict.OFF),
    ],
)
def test_the_verdict_on_a_family_follows_from_its_figures(
    expected: float, observed: int, low: float, high: float, verdict: CalibrationVerdict
) -> None:
    assert Calibrated("Seagate", expected, observed, low, high).verdict is verdict


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ABC"),
            st.integers(0, LONG),
            st.floats(0, 1),
            st.sampled_from([Status.GOOD, Status.WARNING, Status.BAD, Status.UNKNOWN]),
        ),
        max_size=30,
        unique_by=lambda row: row[:2],
    ),
    st.lists(st.tuples(st.integers(0, LONG), st.booleans()), min_size=3, max_size=3),
)
def test_counts_stay_within_what_there_is(said: list[Said], lives: list[tuple[int, bool]]) -> None:
    found = compare_bundles({"one": book(*said)}, ends(**dict(zip("ABC", lives, strict=True))))
    (one,) = found.standings
    assert 0 <= one.detected_bad <= one.detected <= found.failures <= 3
    assert 0 <= one.false_alarms_bad <= one.false_alarms <= found.windows
    assert found.observed <= found.rows <= len(said)
    assert one.brier is None or 0 <= one.brier <= 1
