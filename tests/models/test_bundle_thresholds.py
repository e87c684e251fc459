"""Followed thresholds call a drive with a symptom earlier, and never one without."""

from __future__ import annotations

import numpy as np
import pytest

from predrain.data.outlook import Status
from predrain.features.feature_schema import NAMES_IN_ORDER, POSITION
from predrain.models.forecast.booster_columns import has_symptom
from predrain.models.forecast.bundle import Bundle
from predrain.models.forecast.calibration import Thresholds
from predrain.models.forecast.fleet_thresholds import FollowedThresholds

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shipped() -> Bundle:
    return Bundle.load()


def drives() -> tuple[np.ndarray, np.ndarray]:
    """One without a symptom and one with 16 pending sectors, of one model."""
    x = np.zeros((2, len(NAMES_IN_ORDER)), dtype=np.float32)
    for name in NAMES_IN_ORDER:
        if "since" in name:
            x[:, POSITION[name]] = np.nan
    x[:, POSITION["hours"]] = 20_000
    x[1, POSITION["smart_197"]] = 16
    assert has_symptom(x).tolist() == [False, True]
    return x, np.array(["ST4000DM000"] * 2, dtype=object)


def statuses(bundle: Bundle) -> list[Status]:
    return list(bundle.forecast(*drives(), np.ones(2, dtype=bool)).status)


def test_a_lower_threshold_calls_the_drive_with_a_symptom_and_not_the_quiet_one(shipped: Bundle) -> None:
    low = FollowedThresholds(Thresholds(warning=1e-6, bad=2e-6), 1_000.0)
    assert statuses(shipped)[0] == Status.GOOD
    assert statuses(shipped.with_thresholds(low)) == [Status.GOOD, Status.BAD]


def test_a_higher_threshold_holds_for_both(shipped: Bundle) -> None:
    high = FollowedThresholds(Thresholds(warning=0.98, bad=0.99), 1_000.0)
    assert statuses(shipped.with_thresholds(high)) == [Status.GOOD, Status.GOOD]


def test_thresholds_of_the_training_come_back_where_nothing_is_followed(shipped: Bundle) -> None:
    low = FollowedThresholds(Thresholds(warning=1e-6, bad=2e-6), 1_000.0)
    assert shipped.with_thresholds(low).trained == shipped.facts.thresholds
    assert shipped.with_thresholds(None) is shipped
