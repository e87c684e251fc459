"""Families, calibration, thresholds and lives, by cases worked out by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from data.outlook import GRID_DAYS
from models.bundle import Bundle
from models.calibrate import Calibration, calibrated, logit, thresholds_of
from models.family import AGES, YEAR, Rates, maker_of, shrunk, years
from models.hazard import EDGES, failing, person_periods
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
