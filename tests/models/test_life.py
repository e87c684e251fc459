"""Families, calibration, thresholds and lives, by cases worked out by hand and by laws that must come back."""

from __future__ import annotations

from dataclasses import astuple
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.lifespan import HistorySource, Lifespans
from predrain.data.outlook import GRID_DAYS, Status
from predrain.features.feature_schema import NAMES_IN_ORDER, POSITION
from predrain.models.forecast.bundle import Bundle
from predrain.models.forecast.calibration import Calibration, compute_logit, fit_calibration, thresholds_of
from predrain.models.forecast.drive_family import (
    AGES,
    STRENGTH,
    YEAR,
    DeathRates,
    compute_age_years,
    fit_rates,
    maker_of,
)
from predrain.models.forecast.hazard import EDGES, compute_failure_probabilities, person_periods
from predrain.models.forecast.landmarks import Landmarks
from predrain.models.forecast.life_expectancy import (
    USUAL,
    HazardFading,
    WatchedPeriods,
    compute_life_quantiles,
    compute_survival_curves,
    fading_of,
    first_risk,
)
from predrain.models.forecast.watched_periods import watches_of

FLAT = DeathRates(pooled=(0.02,) * AGES, makers={}, models={"M": (0.02,) * AGES})
MODEL = np.array(["M"], dtype=object)
HOURS = np.array([1000.0], dtype=np.float32)


def counts(deaths: float, drive_years: float) -> tuple[np.ndarray, np.ndarray]:
    """All in the first year of age."""
    died, seen = np.zeros(AGES), np.zeros(AGES)
    died[0], seen[0] = deaths, drive_years
    return died, seen


@pytest.mark.parametrize(
    ("model", "maker"),
    [
        ("ST4000DM000", 0),
        ("HGST HMS5C4040ALE640", 1),
        ("Hitachi HDS722020ALA330", 1),
        ("WDC WD30EFRX", 2),
        ("FOO", None),
    ],
)
def test_a_models_name_tells_its_maker_or_nothing(model: str, maker: int | None) -> None:
    assert maker_of(model) == maker


def test_a_model_seen_little_is_drawn_to_its_maker_and_one_seen_much_is_itself() -> None:
    rates = fit_rates({"ST1": counts(200, 2000), "ST2": counts(0, 1), "WDC X": counts(10, 2000)})
    much, little, other = (rates.by_age(name)[0] for name in ("ST1", "ST2", "WDC X"))
    assert much == pytest.approx(0.1, rel=0.1)
    assert rates.pooled[0] < little < much
    assert other < 0.02


def test_an_unseen_model_has_its_makers_rate_and_an_unseen_maker_the_pooled_one() -> None:
    rates = fit_rates({"ST1": counts(200, 2000), "WDC X": counts(10, 2000)})
    assert rates.by_age("ST9999") == rates.makers["Seagate"]
    assert rates.by_age("FOO") == rates.pooled


def test_age_comes_from_hours_and_unknown_hours_count_as_the_third_year() -> None:
    hours = np.array([0, 24 * YEAR - 1, 24 * YEAR + 1, 1e9, np.nan])
    assert compute_age_years(hours).tolist() == [0, 0, 1, AGES - 1, 2]


def test_calibration_finds_the_odds_that_were_wrong_and_keeps_order() -> None:
    chance = np.random.default_rng(1)
    p = chance.uniform(0.01, 0.4, 40_000)
    truth = 1 / (1 + np.exp(-(compute_logit(p) + np.log(2))))
    fitted = fit_calibration(p, chance.uniform(size=len(p)) < truth, np.ones(len(p)))
    assert fitted.shift == pytest.approx(np.log(2), abs=0.08)
    assert fitted.slope == pytest.approx(1, abs=0.05)
    assert (np.diff(fitted(np.sort(p))) >= 0).all()
    assert Calibration()(p) == pytest.approx(p)


def test_thresholds_are_the_values_that_one_healthy_window_in_a_hundred_and_a_thousand_reaches() -> None:
    drive = np.arange(2000)
    p = (drive + 1) / 2001
    day = np.zeros(2000, dtype=np.int64)
    none = np.zeros(2000, dtype=bool)
    found = thresholds_of(p, drive, day, none, ~none)
    assert np.count_nonzero(p >= found.bad) == 2
    assert np.count_nonzero(p >= found.warning) == 20
    dies = drive >= 1000
    assert thresholds_of(p, drive, day, dies, ~none).bad == pytest.approx(p[999])


def test_a_steady_hazard_gives_the_life_of_an_exponential_law() -> None:
    died_by = 1 - np.exp(-0.02 / YEAR * np.array([[7.0, 14.0, 30.0, 90.0]]))
    curve = compute_survival_curves(died_by, FLAT, USUAL, MODEL, HOURS)
    assert curve[0] == pytest.approx(np.exp(-0.02 / YEAR * np.array(GRID_DAYS)), abs=1e-9)
    life = compute_life_quantiles(curve)[0]
    assert life[0] == pytest.approx(-np.log(0.9) / 0.02 * YEAR, rel=1e-6)
    assert np.isnan(life[1:]).all()


def test_a_flagged_drive_that_survives_lives_on_for_years() -> None:
    hazard = np.array([[0.25, 0.2, 0.2, 0.15]])
    curve = compute_survival_curves(
        compute_failure_probabilities(hazard),
        FLAT,
        HazardFading(flagged=60.0, quiet=60.0, spread=0.5),
        MODEL,
        HOURS,
    )[0]
    at = {days: curve[GRID_DAYS.index(days)] for days in (0, 30, 60, 2010, 2370)}
    assert at[30] == pytest.approx(0.75 * 0.8 * 0.8)
    assert at[2370] / at[2010] == pytest.approx(np.exp(-0.02 / YEAR * 360))
    p10, p50, p90 = compute_life_quantiles(curve[None])[0]
    assert p10 < 7
    assert p50 < 60
    assert np.isnan(p90), "one in ten is left after ten years"


def test_of_drives_that_share_a_forecast_the_sick_die_first() -> None:
    died = compute_failure_probabilities(np.array([[0.1, 0.1, 0.15, 0.4]]))
    alike, mixed = (
        compute_survival_curves(
            died, FLAT, HazardFading(flagged=1e9, quiet=1e9, spread=spread), MODEL, HOURS
        )[0]
        for spread in (1e-6, 1.0)
    )
    beyond, end = GRID_DAYS.index(88), GRID_DAYS.index(1080)
    assert mixed[: beyond + 1] == pytest.approx(alike[: beyond + 1])
    excess = -np.log(alike[end] / alike[beyond]) / (1080 - 88) - 0.02 / YEAR
    # 88 is the last day of the grid within the interval that ends on day 90; excess counts from day 60 on.
    by_gamma = (1 + excess * 1020) / (1 + excess * 30) * np.exp(0.02 / YEAR * 990)
    assert alike[beyond] / mixed[end] == pytest.approx(
        by_gamma * np.exp((excess + 0.02 / YEAR) * 2), rel=1e-3
    )


def test_a_relative_risk_is_the_hazard_from_day_30_to_90_over_the_familys() -> None:
    died_by = 1 - np.exp(-np.array([[0.02], [0.08]]) / YEAR * np.array([7.0, 14.0, 30.0, 90.0]))
    assert np.exp(first_risk(died_by, np.full(2, 0.02))) == pytest.approx([1.0, 4.0])


def test_half_of_a_log_relative_risk_is_left_after_so_many_days() -> None:
    first = np.log([8.0, 1.0, 0.25])
    fading = HazardFading(flagged=500.0, quiet=100.0, spread=0.5)
    assert np.exp(fading.log_risk(first, 60.0)) == pytest.approx([8.0, 1.0, 0.25])
    assert np.exp(fading.log_risk(first, 560.0)) == pytest.approx([8.0**0.5, 1.0, 0.25 ** (1 / 32)])


hazards_of_intervals = st.lists(st.floats(1e-6, 0.9), min_size=4, max_size=4)
fadings = st.builds(
    HazardFading, flagged=st.floats(20, 9000), quiet=st.floats(20, 9000), spread=st.floats(0.05, 5)
)


@given(hazards_of_intervals, fadings, st.floats(0, 150_000))
def test_the_curve_goes_on_from_the_chances_and_never_rises(
    hazard: list[float], fading: HazardFading, age: float
) -> None:
    died = compute_failure_probabilities(np.array([hazard]))
    curve = compute_survival_curves(died, FLAT, fading, MODEL, np.array([age], dtype=np.float32))[0]
    assert curve[0] == 1.0
    assert (np.diff(curve) <= 0).all()
    assert (curve >= 0).all()
    assert [1 - curve[GRID_DAYS.index(day)] for day in (7, 14, 30)] == pytest.approx(died[0, :3], abs=1e-9)
    life = compute_life_quantiles(curve[None])[0]
    assert (np.diff(life[np.isfinite(life)]) >= 0).all()


@given(hazards_of_intervals, st.floats(1.0, 1.1), fadings)
def test_a_drive_at_greater_risk_never_has_the_better_curve(
    hazard: list[float], times: float, fading: HazardFading
) -> None:
    pair = compute_failure_probabilities(np.array([hazard, [h * times for h in hazard]]))
    calm, sick = compute_survival_curves(pair, FLAT, fading, np.repeat(MODEL, 2), np.repeat(HOURS, 2))
    assert (sick <= calm + 1e-12).all()


LAW = HazardFading(flagged=700.0, quiet=250.0, spread=0.8)


def lives(number: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log relative risk, last day and death of drives that die by LAW at 0.2 a year, watched 1,500 days."""
    chance = np.random.default_rng(seed)
    first = chance.choice([-1.5, -0.5, 0.0, 2.0, 3.0], number)
    sick = chance.gamma(1 / LAW.spread, LAW.spread, number)
    follow, died = np.full(number, 1500), np.zeros(number, dtype=bool)
    for day in range(60, 1500, 5):
        own = np.exp(LAW.log_risk(first, day + 2.5))
        hazard = 0.2 / YEAR * 5 * (np.minimum(own, 1) + np.maximum(own - 1, 0) * sick)
        dies = ~died & (chance.uniform(size=number) < -np.expm1(-hazard))
        follow[dies], died[dies] = day + 3, True
    return first, follow.astype(float), died


@pytest.mark.slow
def test_fading_comes_back_from_lives_that_follow_it() -> None:
    first, follow, died = lives(60_000, seed=8)
    ones = np.ones(len(first))
    # Landmarks of a whole period count as one drive: a weight of 52 makes each of these a year of weeks.
    found = fading_of(first, 0.2 * ones, 52 * ones, [WatchedPeriods(0 * ones, follow, died)])
    assert found.flagged == pytest.approx(LAW.flagged, rel=0.3)
    assert found.quiet == pytest.approx(LAW.quiet, rel=0.3)
    assert found.spread == pytest.approx(LAW.spread, rel=0.3)


@pytest.mark.slow
def test_drives_without_a_symptom_fade_alike_at_whatever_rate_the_years_brought() -> None:
    first, follow, died = lives(20_000, seed=9)
    quiet = first <= 0
    first, watch = first[quiet], WatchedPeriods(np.zeros(quiet.sum()), follow[quiet], died[quiet])
    ones = np.ones(len(first))
    at_one, at_three = (fading_of(first, times * 0.2 * ones, 52 * ones, [watch]) for times in (1, 3))
    assert at_one.quiet == at_three.quiet
    assert at_one.quiet > 1.3 * USUAL.quiet


@pytest.mark.slow
def test_a_second_watch_after_a_gap_tells_as_much_as_one_without() -> None:
    first, follow, died = lives(60_000, seed=10)
    ones = np.ones(len(first))
    before = WatchedPeriods(0 * ones, np.minimum(follow, 200), died & (follow <= 200))
    after = WatchedPeriods(500 * ones, np.maximum(follow, 500), died & (follow > 500))
    found = fading_of(first, 0.2 * ones, 52 * ones, [before, after])
    assert found.flagged == pytest.approx(LAW.flagged, rel=0.3)
    assert found.spread == pytest.approx(LAW.spread, rel=0.3)


def test_a_history_that_follows_nobody_past_ninety_days_fades_at_the_usual_pace() -> None:
    watch = WatchedPeriods(np.zeros(3), np.array([20.0, 60.0, 90.0]), np.array([True, False, True]))
    found = fading_of(np.array([0.0, 2.0, 4.0]), np.full(3, 0.02), np.ones(3), [watch])
    assert astuple(found) == pytest.approx(astuple(USUAL))


def source(serials: list[str], first: list[int], last: list[int], died: list[bool]) -> HistorySource:
    return HistorySource(
        (), Lifespans(np.array(serials, dtype=object), np.array(first), np.array(last), np.array(died))
    )


def test_a_drive_that_a_later_source_holds_is_watched_again_and_one_that_it_lacks_is_not() -> None:
    drawn = landmarks([100, 100, 40], [False, False, True], [100, 100, 100])
    early = source(["Z0", "Z1", "Z2"], [0, 0, 0], [100, 100, 40], [False, False, True])
    late = source(["Z0", "Z2"], [700, 700], [750, 800], [True, False])
    whole, again = watches_of([drawn], [early, late])
    assert (whole.closes.tolist(), whole.died.tolist()) == ([100, 100, 40], [False, False, True])
    assert (again.opens[0], again.closes[0], again.died[0]) == (700, 750, True)
    # Z1 is not seen again, and nothing is made of Z2, which had died.
    assert (again.closes <= again.opens).tolist() == [False, True, True]


def test_a_drive_that_reports_nothing_has_the_life_of_its_models_base_rate() -> None:
    bundle = Bundle.load()
    x = np.full((1, len(NAMES_IN_ORDER)), np.nan, dtype=np.float32)
    x[0, POSITION["hours"]] = 2.5 * 24 * YEAR
    told = bundle.forecast(x, np.array(["ACME 4000"], dtype=object), np.zeros(1, dtype=bool))
    assert told.status.tolist() == [Status.UNKNOWN]
    pooled = np.array(bundle.facts.rates.pooled)
    assert told.p_fail[0] == pytest.approx(1 - np.exp(-pooled[2] / YEAR * np.array([7, 14, 30])), rel=1e-4)
    steps = np.arange(3650) + 0.5
    died = np.cumsum(pooled[compute_age_years(24.0 * (2.5 * YEAR + steps))] / YEAR)
    # Nobody counted this model, so that its rate is worth one death: survival is averaged over that Gamma.
    assert told.life[0, 0] == pytest.approx(int(np.searchsorted(died, 1 / 0.9 - 1)), abs=10)
    assert told.survival[0, -1] == pytest.approx(1 / (1 + died[-1]), rel=0.01)


def test_of_a_model_of_which_less_is_known_lives_spread_wider() -> None:
    def lives(worth: float) -> tuple[float, float]:
        rates = DeathRates(FLAT.pooled, FLAT.makers, FLAT.models, {str(MODEL[0]): worth})
        died = np.repeat(1 - np.exp(-0.2 * np.array([[7, 14, 30, 90]]) / YEAR), 1, axis=0)
        curve = compute_survival_curves(died, rates, USUAL, MODEL, HOURS)
        return float(curve[0, 5]), float(curve[0, -1])

    (sure_soon, sure_late), (vague_soon, vague_late) = lives(1e9), lives(1.0)
    assert vague_soon == pytest.approx(sure_soon, rel=0.01)
    assert vague_late > sure_late


def test_a_history_without_deaths_has_the_rate_of_a_drive_of_all_makers() -> None:
    rates = fit_rates({"ACME 4000": counts(0, 0)})
    assert rates.pooled == pytest.approx([1 / 40] * AGES)
    assert rates.by_age("ACME 4000") == pytest.approx([1 / 40] * AGES)


def test_the_strength_of_the_prior_is_that_of_the_models_of_the_years_to_2024(shared_data: Path) -> None:
    from scipy.stats import nbinom

    died, seen = model_years(shared_data)
    grid = [(shape, weight) for shape in np.arange(0.5, 2.0, 0.05) for weight in np.arange(10.0, 90.0, 2.5)]
    fitted = max(grid, key=lambda g: nbinom.logpmf(died, g[0], g[1] / (g[1] + seen)).sum())
    assert fitted[0] == pytest.approx(1.0, abs=0.15)
    assert fitted[1] == pytest.approx(STRENGTH, rel=0.15)


@pytest.mark.parametrize("model", ["ACME 4000", "TOSHIBA MG07ACA14TA"])
def test_the_rate_of_an_unseen_maker_lies_amid_the_models_of_the_years_to_2024(
    model: str, shared_data: Path
) -> None:
    died, seen = model_years(shared_data)
    low, high = np.quantile(died / seen, (0.25, 0.9))
    assert low < np.mean(Bundle.load().facts.rates.by_age(model)[:5]) < high


def model_years(shared_data: Path) -> tuple[np.ndarray, np.ndarray]:
    """Deaths and drive-years of each model that was watched for 400 drive-years or more."""
    table = np.genfromtxt(
        shared_data / "evidence" / "priors" / "backblaze_afr_by_model_2024q2.csv",
        delimiter=",", names=True, dtype=None, encoding="utf-8",
    )  # fmt: skip
    much = table["drive_days"] > 400 * YEAR
    return table["failed"][much], table["drive_days"][much] / YEAR


def landmarks(follow: list[int], died: list[bool], watched: list[int]) -> Landmarks:
    return Landmarks(
        x=np.zeros((len(follow), 1), dtype=np.float32),
        serial=np.array([f"Z{n}" for n in range(len(follow))], dtype=object),
        model=np.array(["M"] * len(follow), dtype=object),
        day=np.zeros(len(follow), dtype=np.int64),
        follow=np.array(follow),
        died=np.array(died),
        watched=np.array(watched),
        weight=np.ones(len(follow)),
    )


def test_a_drive_that_leaves_alive_is_evidence_for_what_it_lived_through_and_no_more() -> None:
    told = person_periods(landmarks([18, 20], [False, True], [99, 99]))
    rows = zip(told.landmark, told.interval, told.dies, told.weight, strict=True)
    found = sorted((int(a), int(b), bool(c), float(d)) for a, b, c, d in rows)
    assert found == [
        *((0, 0, False, 1.0), (0, 1, False, 1.0), (0, 2, False, 0.25)),
        *((1, 0, False, 1.0), (1, 1, False, 1.0), (1, 2, True, 1.0)),
    ]


def test_a_death_counts_only_where_survival_could_have_been_seen_as_well() -> None:
    dies, known = landmarks(
        [5, 20, 20, 30, 12], [True, True, False, False, False], [99, 20, 20, 30, 99]
    ).outcome(30)
    assert dies.tolist() == [True, True, False, False, False]
    assert known.tolist() == [True, False, False, True, False]


def test_person_periods_give_back_a_steady_hazard_though_the_watch_ends() -> None:
    chance = np.random.default_rng(3)
    life, watched = chance.exponential(200, 60_000), chance.integers(1, 120, 60_000)
    follow = np.maximum(np.minimum(np.ceil(life), watched), 1).astype(int)
    told = person_periods(landmarks(follow.tolist(), (np.ceil(life) <= watched).tolist(), watched.tolist()))
    for interval, (opens, closes) in enumerate(pairwise(EDGES)):
        mine = told.interval == interval
        hazard = told.weight[mine & told.dies].sum() / told.weight[mine].sum()
        assert hazard == pytest.approx(1 - np.exp(-(closes - opens) / 200), rel=0.16)


def test_the_shipped_bundle_gives_an_ordinary_drive_years_and_an_older_fleet_its_own_rate() -> None:
    rates = Bundle.load().facts.rates
    young = rates.by_age("ST4000DM000")
    assert 0.015 < np.mean(young[:5]) < 0.04
    assert len(rates.models) > 60
