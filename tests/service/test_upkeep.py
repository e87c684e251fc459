"""Alerts about the forecast: one a cause, kept while it stands, and rules that speak of metrics that are there."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from predrain.models.deploy.model_comparison import BundleComparison, Calibrated, Comparison
from predrain.models.forecast.drift import DriftShift, FamilyDrift
from predrain.service.app.application import Application
from predrain.service.forecasting.forecast_health import ForecastFault, ForecastHealth, concerns_of
from predrain.service.rest.metrics import registry_of
from tests.service.conftest import NOON, Place, shut

RULES = Path(__file__).parents[2] / "deploy" / "prometheus" / "forecast.yml"
MOVED = DriftShift("celsius", 0.9, 0.5, 1e-12, 0.0, then=28.0, now=60.0)
STILL = DriftShift("celsius", 0.01, 0.05, 0.6, 0.0)
OFF = Calibrated("Seagate", 90.0, 40, 1.6, 3.1)
RIGHT = Calibrated("Seagate", 42.0, 40, 0.8, 1.4)


def drifted(family: str, shift: DriftShift = MOVED, score: DriftShift = STILL) -> FamilyDrift:
    return FamilyDrift(family, 500, (shift,), score)


def standing(name: str, foretold: int) -> BundleComparison:
    return BundleComparison(name, foretold, 3, 20, 2, 0.002, 40.0, 12.0)


BETTER = Comparison(
    (standing("a", 10), standing("b", 30)), 40, 9000, 90_000, 300, (0.3, 0.6), (-0.1, 0.1), 0, 20, 90
)


def test_one_alert_a_cause_whatever_the_number_of_families() -> None:
    health = ForecastHealth(NOON, (drifted("HGST"), drifted("Seagate", score=MOVED)), (OFF, OFF), BETTER)
    found = concerns_of(health)
    assert [one.cause for one in found] == [
        ForecastFault.DRIFT,
        ForecastFault.CALIBRATION,
        ForecastFault.CHALLENGER,
    ]
    assert found[0].families == ("HGST", "Seagate")
    assert "celsius" in found[0].sentence
    assert "90.0 failures expected and 40 seen" in found[1].sentence
    assert "b really foretells more" in found[2].sentence


def test_a_score_that_drifted_alone_is_told_without_naming_a_feature() -> None:
    (one,) = concerns_of(ForecastHealth(NOON, (drifted("HGST", STILL, MOVED),)))
    assert "what is forecast of them" in one.sentence


def test_nothing_is_alerted_while_all_is_well_or_too_little_is_known() -> None:
    few = Comparison((standing("a", 0), standing("b", 9)), 9, 90, 900, 9, None, None)
    assert (
        concerns_of(ForecastHealth(NOON, (drifted("HGST", STILL), FamilyDrift("", 7)), (RIGHT,), few)) == []
    )
    assert concerns_of(ForecastHealth(NOON)) == []


def test_an_alert_keeps_the_time_at_which_it_began_until_it_is_over() -> None:
    def at(hours: int, *families: FamilyDrift) -> ForecastHealth:
        now = NOON + timedelta(hours=hours)
        plain = ForecastHealth(now, families)
        return ForecastHealth(now, families, concerns=tuple(concerns_of(plain)))

    first = at(0, drifted("HGST")).merge_earlier_concerns(None)
    second = at(1, drifted("HGST"), drifted("WDC")).merge_earlier_concerns(first)
    assert [one.since for one in second.concerns] == [NOON]
    assert second.concerns[0].families == ("HGST", "WDC")
    third = at(2).merge_earlier_concerns(second)
    assert third.concerns == ()
    assert [one.since for one in at(3, drifted("WDC")).merge_earlier_concerns(third).concerns] == [
        NOON + timedelta(hours=3)
    ]


@pytest.fixture
def troubled(place: Place) -> Application:
    application = place.application()
    application.start()
    families = tuple(drifted(name) for name in ("HGST", "Seagate", ""))
    health = ForecastHealth(NOON, families, (OFF, Calibrated("WDC", 3.0, 0, 0.8, None)), BETTER)
    application.scorer.health = ForecastHealth(
        NOON, health.drift, health.calibration, health.comparison, tuple(concerns_of(health))
    )
    return application


def test_metrics_carry_families_and_roles_and_leave_out_what_is_not_known(troubled: Application) -> None:
    lines = generate_latest(registry_of(troubled)).decode().splitlines()
    shut(troubled)
    assert 'predrain_forecast_concern{cause="calibration"} 1.0' in lines
    assert 'predrain_forecast_drift_index{family="other"} 0.9' in lines
    assert 'predrain_forecast_calibration_low{family="WDC"} 0.8' in lines
    assert not [line for line in lines if line.startswith('predrain_forecast_calibration_high{family="WDC"')]
    assert 'predrain_forecast_detected_failures{role="challenger"} 30.0' in lines
    assert 'predrain_fault{part="bundle"} 0.0' in lines


def test_the_rules_speak_of_metrics_and_causes_that_are_there(troubled: Application) -> None:
    shown = generate_latest(registry_of(troubled)).decode()
    shut(troubled)
    rules = RULES.read_text()
    asked = set(re.findall(r"predrain_\w+", rules))
    assert asked == {"predrain_forecast_concern", "predrain_fault"}
    assert all(f"\n{name}{{" in shown for name in asked)
    for part in re.findall(r'part=~"([\w|]+)"', rules)[0].split("|"):
        assert f'predrain_fault{{part="{part}"}}' in shown
    assert all(f"({cause})" in rules for cause in ForecastFault)
