"""The traces of the real service over a simulated cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from predrain.data.reading import Reading
from predrain.data.store.sqlite_store import SqliteStore
from predrain.features.drive_state import DriveState
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.rest import drain_routes
from tests.measure.scenarios import running_service, trace_drain, trace_reading
from tests.service.conftest import forecaster

__all__ = ["forecaster"]


@pytest.mark.slow
def test_a_drain_is_traced_from_its_route_to_the_store_and_to_its_first_upmap(
    tmp_path: Path, forecaster: BundledForecaster
) -> None:
    with running_service(tmp_path, forecaster) as service:
        proposal, approval, upmap = trace_drain(service)
        assert service.observed.upmaps == 1
    saved = SqliteStore.save_drain.__code__
    assert {drain_routes.propose_drain.__code__, saved} <= proposal.codes
    assert {drain_routes.approve_drain_plan.__code__, saved} <= approval.codes
    assert drain_routes.approve_drain_plan.__code__ not in upmap.codes
    assert not [name for name in upmap.list_functions() if name.startswith("actions/simulator/")]


@pytest.mark.slow
def test_a_readings_types_hold_its_reading_and_its_drives_state(
    tmp_path: Path, forecaster: BundledForecaster
) -> None:
    with running_service(tmp_path, forecaster) as service:
        trace = trace_reading(service, forecaster)
    assert {Reading, DriveState} <= trace.types
