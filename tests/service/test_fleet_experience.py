"""The experience of a bundle with its fleet outlives the process, and a command prints a comparison of bundles."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from predrain.data.ids import DeviceId
from predrain.models.forecast.experience import FleetExperience
from predrain.service.fleet.fleet_counts import BACKGROUND
from predrain.service.forecasting.fleet_experience import ROOM, load_experience
from tests.service.conftest import Place, shut, smart_reading, week_of
from tests.service.test_lifecycle import EAGER, Make, bundle, make, models, shipped
from tests.service.test_worker import work

pytestmark = pytest.mark.slow
__all__ = ["bundle", "make", "models", "shipped"]  # fixtures of this module, too


def test_base_rates_that_a_fleet_taught_outlive_the_process_that_learned_them(
    make: Make, place: Place
) -> None:
    application = make()
    for serial in "ABC":
        application.ingest(week_of(serial))
    work(application)
    application.update_forecast_health()
    shut(application)
    place.forecaster.learn_experience(FleetExperience())
    again = make()
    again.clock.sleep(86_400)
    again.ingest([smart_reading("A", again.clock.now())])
    work(again)
    (rate,) = [
        one
        for one in again.store.latest_outlooks()[DeviceId("ST4000DM000_A")].reasons
        if one.code in BACKGROUND
    ]
    assert "here: 3 drives" in rate.sentence


def test_an_experience_that_cannot_be_read_is_counted_anew(make: Make) -> None:
    application = make()
    for serial in "ABC":
        application.ingest(week_of(serial))
    work(application)
    champion = application.deployed_models.champion
    assert champion is not None
    application.store.write_notes(ROOM, {champion.fingerprint: b"{"})
    assert load_experience(application.store, champion.fingerprint) == FleetExperience()
    application.update_forecast_health()
    assert load_experience(application.store, champion.fingerprint).models["ST4000DM000"].drives == 3


def test_the_comparison_is_printed_for_people_and_for_programs(
    make: Make, bundle: Callable[..., Path], models: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert models("compare") == 1
    assert "holds no forecasts yet" in capsys.readouterr().err
    assert models("challenge", str(bundle("eager", thresholds=EAGER))) == 0
    make()
    assert models("compare") == 0
    told = capsys.readouterr().out
    assert "challenger" in told
    assert "No failure is on record yet, so nothing tells eager-" in told
    assert models("compare", "--json") == 0
    assert json.loads(capsys.readouterr().out)["failures"] == 0
