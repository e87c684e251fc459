"""Families, calibration, thresholds and lives, by cases worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from data.outlook import GRID_DAYS
from models.bundle import Bundle
from models.calibrate import Calibration, calibrated, logit, thresholds_of
from models.family import AGES, YEAR, Rates, maker_of, shrunk, years
from models.hazard import failing, person_periods
from models.landmarks import Landmarks
from models.life import BINS, Fading, quantiles, survival

FLAT = Rates(pooled=(0.02,) * AGES, makers={}, models={"M": (0.02,) * AGES})
EVEN = Fading(risk=((1.0, 1.0, 1.0),) * (len(BINS) + 1))


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
    rates = shrunk({"ST1": counts(200, 2000), "ST2": counts(0, 1), "WDC X": counts(10, 2000)})
    much, little, other = (rates.by_age(name)[0] for name in ("ST1", "ST2", "WDC X"))
    assert much == pytest.approx(0.1, rel=0.1)
    assert 0.5 * much < little < 1.1 * much
    assert other < 0.02


def test_an_unseen_model_has_its_makers_rate_and_an_unseen_maker_the_pooled_one() -> None:
    rates = shrunk({"ST1": counts(200, 2000), "WDC X": counts(10, 2000)})
    assert rates.by_age("ST9999") == rates.makers["Seagate"]
    assert rates.by_age("FOO") == rates.pooled
    assert (rates.knows("ST9999"), rates.knows("FOO"), rates.knows("TOSHIBA X")) == (True, False, False)


def test_age_comes_from_hours_and_unknown_hours_count_as_the_third_year() -> None:
    hours = np.array([0, 24 * YEAR - 1, 24 * YEAR + 1, 1e9, np.nan])
    assert years(hours).tolist() == [0, 0, 1, AGES - 1, 2]


def test_calibration_finds_the_odds_that_were_wrong_and_keeps_order() -> None:
    chance = np.random.default_rng(1)
    p = chance.uniform(0.01, 0.4, 40_000)
    truth = 1 / (1 + np.exp(-(logit(p) + np.log(2))))
    fitted = calibrated(p, chance.uniform(size=len(p)) < truth, np.ones(len(p)))
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
    curve = survival(died_by, FLAT, EVEN, np.array(["M"], dtype=object), np.array([1000.0]))
    assert curve[0] == pytest.approx(np.exp(-0.02 / YEAR * np.array(GRID_DAYS)), abs=1e-9)
    life = quantiles(curve)[0]
    assert life[0] == pytest.approx(-np.log(0.9) / 0.02 * YEAR, rel=1e-6)
    assert np.isnan(life[1:]).all()


def test_a_flagged_drive_that_survives_lives_on_for_years() -> None:
    hazard = np.array([[0.25, 0.2, 0.2, 0.15]])
    curve = survival(failing(hazard), FLAT, EVEN, np.array(["M"], dtype=object), np.array([1000.0]))[0]
    at = {days: curve[GRID_DAYS.index(days)] for days in (0, 30, 60, 390, 750)}
    assert at[30] == pytest.approx(0.75 * 0.8 * 0.8)
    assert at[750] / at[390] == pytest.approx(np.exp(-0.02 / YEAR * 360))


def test_a_drive_that_leaves_alive_says_nothing_of_the_interval_in_which_it_left() -> None:
    one = Landmarks(
        x=np.zeros((2, 1), dtype=np.float32),
        serial=np.array(["left", "died"], dtype=object),
        model=np.array(["M", "M"], dtype=object),
        day=np.zeros(2, dtype=np.int64),
        follow=np.array([20, 20]),
        died=np.array([False, True]),
        weight=np.ones(2),
    )
    told = person_periods(one)
    rows = sorted(zip(told.landmark.tolist(), told.interval.tolist(), told.dies.tolist(), strict=True))
    assert rows == [(0, 0, False), (0, 1, False), (1, 0, False), (1, 1, False), (1, 2, True)]


def test_the_shipped_bundle_gives_an_ordinary_drive_years_and_an_older_fleet_its_own_rate() -> None:
    rates = Bundle.load().facts.rates
    young = rates.by_age("ST4000DM000")
    assert 0.015 < np.mean(young[:5]) < 0.04
    assert len(rates.models) > 60
