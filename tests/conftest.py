"""The set-up that all tests share: the folder of the source data, the profile of hypothesis, and scaled timeouts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.deadlines import measure_multiple, scale_timeout

ROOT = Path(__file__).resolve().parents[1]

# A failed `assert` of a helper module gives its values, as one of a test does. This file is imported a second time, as
# `tests.conftest`; packages that are imported by then are registered already.
_PACKAGES = {f"tests.{folder.name}" for folder in Path(__file__).parent.iterdir() if folder.is_dir()}
pytest.register_assert_rewrite(*(_PACKAGES - sys.modules.keys()))

settings.register_profile(
    "house", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")


def data_folder() -> Path | None:
    """The source data: `PREDRAIN_DATA`, else the folder beside the checkout; None in a clone without it."""
    named = os.environ.get("PREDRAIN_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The source data folder; the test is skipped in a clone that stands alone."""
    folder = data_folder()
    if folder is None:
        pytest.skip("the source data are not beside this checkout (PREDRAIN_DATA names their folder)")
    return folder


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Scale the limits of pytest-timeout where this machine is slower than the one they were written for."""
    if measure_multiple() == 1:
        return
    for item in items:
        marker = item.get_closest_marker("timeout")
        seconds = float(marker.args[0]) if marker is not None else float(config.getini("timeout"))
        item.add_marker(pytest.mark.timeout(scale_timeout(seconds)), append=False)
