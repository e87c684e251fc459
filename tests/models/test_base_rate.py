"""The contribution of a drive's identity: base rates of models, and their effect on odds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from predrain.models.forecast.base_rate import BaseRate, fit_base_rate
from predrain.models.forecast.calibration import compute_logit
from predrain.models.forecast.drive_family import (
    AGES,
    EVIDENCE_MAX,
    POPULATION,
    fit_rates,
    load_public_counts,
    maker_of,
    normalize_model,
)

Table = tuple[NDArray[np.float64], NDArray[np.float64]]


def counts(deaths: float, lived: float) -> Table:
    """All in the first year of age."""
    first = np.zeros(AGES)
    first[0] = 1.0
    return deaths * first, lived * first


@pytest.mark.parametrize(
    ("name", "model", "maker"),
    [
        ("ST4000DM000-1F2168", "ST4000DM000", 0),
        ("ST4000DM000", "ST4000DM000", 0),
        ("SEAGATE  ST16000NM001G", "ST16000NM001G", 0),
        ("ATA ST8000NM000A-2KE101", "ST8000NM000A", 0),
        ("WDC WD40EFRX-68WT0N0", "WD40EFRX", 2),
        ("wdc wuh721816ale6l4", "WUH721816ALE6L4", 1),
        ("WDC  WUH721816ALE6L4", "WUH721816ALE6L4", 1),
        ("HGST HUH721212ALE600", "HUH721212ALE600", 1),
        ("Hitachi HDS5C3030ALA630", "HDS5C3030ALA630", 1),
        ("TOSHIBA MG07ACA14TA", "MG07ACA14TA", 3),
        ("MG08ACA16TE", "MG08ACA16TE", 3),
        ("SAMSUNG HD103UJ", "SAMSUNG HD103UJ", 4),
        ("MB4000GCWDC", "MB4000GCWDC", None),
        ("MZ-7KM480", "MZ-7KM480", None),
        ("TOSHIBA", "TOSHIBA", 3),
        ("", "", None),
    ],
)
def test_a_models_name_is_the_same_with_and_without_vendor_and_variant(
    name: str, model: str, maker: int | None
) -> None:
    assert (normalize_model(name), maker_of(name)) == (model, maker)


@given(st.text(max_size=40))
def test_normalizing_a_normalized_name_changes_nothing(name: str) -> None:
    once = normalize_model(name)
    assert normalize_model(once) == once


def test_a_live_drive_has_the_rate_of_its_model_whatever_suffix_smartctl_tells() -> None:
    rates = fit_rates({"ST4000DM000": counts(900, 10_000), "WD40EFRX": counts(5, 10_000)})
    assert rates.by_age("ST4000DM000-1F2168") == rates.by_age("ST4000DM000")
    assert rates.by_age("WDC WD40EFRX-68WT0N0") == rates.by_age("WD40EFRX")


def test_a_maker_never_seen_is_drawn_to_the_population_and_not_to_the_model_that_a_fleet_bought_most() -> (
    None
):
    rates = fit_rates({"ST3000DM001": counts(30_000, 100_000), "ST4000DM000": counts(20, 1_000)})
    pooled = rates.pooled[0]
    assert POPULATION < pooled < 0.08


def test_public_counts_of_a_model_that_the_history_knows_better_are_not_used() -> None:
    own = {"ST1000": counts(100, 1_000)}
    assert fit_rates(own, {"ST1000": (1.0, 2_000.0)}) == fit_rates(own)
    assert fit_rates(own, {"ST1000": (10.0, 50_000.0)}).by_age("ST1000")[0] < 0.005


def test_the_public_counts_are_those_of_81_models_and_name_their_source_and_terms() -> None:
    table = load_public_counts()
    assert table.until == "2024-06-30"
    assert "Backblaze" in table.source
    assert "credit Backblaze" in table.terms
    assert table.models["WUH721816ALE6L4"] == (26602, 102, 31804.91)
    assert 75 <= len(table.models) <= 81


def test_a_fleets_own_deaths_and_drive_years_move_the_rate_of_its_model_alone() -> None:
    rates = fit_rates({"ST1000": counts(20, 1_000), "ST2000": counts(20, 1_000)})
    healthy = rates.update({"ST1000": (0, 100)})
    assert healthy.by_age("ST1000")[0] < 0.2 * rates.by_age("ST1000")[0]
    assert healthy.by_age("ST2000") == rates.by_age("ST2000")
    sick = rates.update({"WDC NEW-00": (50, 2.5)})
    assert sick.by_age("WDC NEW-00")[0] > 0.2
    assert "WDC NEW-00" not in rates.models


@given(
    deaths=st.integers(0, 10_000),
    lived=st.floats(0, 1e6),
    own_deaths=st.integers(0, 500),
    expected=st.floats(0, 1e4),
)
def test_a_posterior_lies_between_what_was_known_and_what_was_seen(
    deaths: int, lived: float, own_deaths: int, expected: float
) -> None:
    rates = fit_rates({"ST1000": counts(deaths, lived)})
    times = rates.update({"ST1000": (own_deaths, expected)}).by_age("ST1000")[0] / rates.by_age("ST1000")[0]
    assert 1.0 <= rates.evidence["ST1000"] <= EVIDENCE_MAX
    assert times > 0
    if expected > 0.01:
        low, high = sorted((1.0, own_deaths / expected))
        assert low * 0.999 <= times <= high * 1.001


def test_models_of_a_maker_that_nobody_counted_learn_from_each_other() -> None:
    rates = fit_rates({"ST1000": counts(20, 1_000)})
    after = rates.update({f"WD{number}00EFRX": (2.0, 0.5) for number in range(10)})
    assert after.by_age("WD100EFRX")[0] > 3 * rates.by_age("WD100EFRX")[0]
    assert after.by_age("WD999EFRX")[0] > 3 * rates.by_age("WD999EFRX")[0]
    assert after.by_age("ST1000") == rates.by_age("ST1000")
    assert after.by_age("ACME 1") == rates.by_age("ACME 1")


def test_a_model_of_which_one_drive_died_in_its_first_week_keeps_a_rate_that_can_be_believed() -> None:
    rates = fit_rates({"ST1000": counts(1, 0.02)})
    assert rates.by_age("ST1000")[0] < 0.1


def drawn(
    quiet: float, symptomatic: float, size: int = 400_000
) -> tuple[
    NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]
]:
    chance = np.random.default_rng(3)
    symptom = chance.random(size) < 0.1
    p = np.where(symptom, 0.05, 0.004) * chance.lognormal(0, 0.4, size)
    rate = 0.02 * chance.lognormal(0, 0.8, size)
    power = np.where(symptom, symptomatic, quiet)
    truth = 1 / (1 + np.exp(-(compute_logit(p) + power * np.log(rate / 0.02))))
    return p, chance.random(size) < truth, np.ones(size), rate, symptom


def test_the_powers_of_base_rates_are_found_for_quiet_drives_and_for_those_with_symptoms() -> None:
    calibration, base = fit_base_rate(*drawn(0.8, 0.3))
    assert base.reference == pytest.approx(0.02, rel=0.02)
    assert base.quiet == pytest.approx(0.8, abs=0.08)
    assert base.symptomatic == pytest.approx(0.3, abs=0.08)
    assert calibration.slope == pytest.approx(1.0, abs=0.08)


def test_a_base_rate_counts_once_at_most() -> None:
    _, base = fit_base_rate(*drawn(2.0, -1.0))
    assert (base.quiet, base.symptomatic) == (1.0, 0.0)


def test_a_base_rate_that_is_not_fitted_moves_nothing() -> None:
    odds = BaseRate().log_odds(np.array([0.001, 5.0]), np.array([True, False]))
    assert odds.tolist() == [0.0, 0.0]


def test_a_higher_base_rate_never_lowers_the_odds() -> None:
    base = BaseRate(reference=0.02, quiet=0.7, symptomatic=0.2, shift=0.1)
    rates = np.geomspace(1e-4, 5, 50)
    for symptom in (True, False):
        assert (np.diff(base.log_odds(rates, np.full(50, symptom))) > 0).all()
