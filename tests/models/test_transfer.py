"""A symptom means the same on every drive, of any maker, model or age."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from predrain.data.outlook import Status
from predrain.features.feature_schema import NAMES_IN_ORDER, POSITION
from predrain.models.forecast.booster_columns import COLUMNS, find_direction, has_symptom, select_columns
from predrain.models.forecast.bundle import Bundle

MODELS = ("ST4000DM000", "ST4000DM000-1F2168", "WDC WUH721816ALE6L4", "ACME DH18000", "")
ONE_WAY = [name for name in COLUMNS if find_direction(name)]


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return Bundle.load(threads=1)


def drive(**features: float) -> NDArray[np.float32]:
    """(1, features) of a quiet drive of two years with these features."""
    x = np.zeros((1, len(NAMES_IN_ORDER)), dtype=np.float32)
    for name in NAMES_IN_ORDER:
        if "since" in name:
            x[0, POSITION[name]] = np.nan
    x[0, POSITION["hours"]] = 17_500
    for name, value in features.items():
        x[0, POSITION[name]] = value
    return x


def chance(bundle: Bundle, x: NDArray[np.float32], model: str) -> float:
    return float(bundle.forecast(x, np.array([model], dtype=object), np.ones(1, dtype=bool)).p_fail[0, 2])


FAILING = {
    "smart_197": 64, "smart_197_up_7d": 64, "smart_197_up_30d": 64, "smart_197_since_rise": 1,
    "smart_197_rises_30d": 4, "smart_187": 12, "smart_187_up_7d": 12, "smart_187_up_30d": 12,
    "smart_187_since_rise": 1, "symptoms": 2, "rising_7d": 2, "rising_30d": 2, "since_any_rise": 1,
    "sectors_up_7d": 76,
}  # fmt: skip


def test_a_failing_drive_has_the_same_chance_whatever_its_model(bundle: Bundle) -> None:
    found = [chance(bundle, drive(**FAILING), model) for model in MODELS]
    assert min(found) > 0.1
    assert max(found) < 1.1 * min(found)


def test_a_quiet_drive_owes_its_chance_to_the_rate_of_its_model(bundle: Bundle) -> None:
    calm, known = (
        chance(bundle, drive(), "WDC WUH721816ALE6L4"),
        chance(bundle, drive(), "ST4000DM000-1F2168"),
    )
    assert 4 < known / calm < 12
    assert chance(bundle, drive(), "ST4000DM000") == pytest.approx(known)


@settings(max_examples=60)
@given(
    st.sampled_from(ONE_WAY),
    arrays(np.float32, len(COLUMNS), elements=st.integers(0, 200)),
    st.integers(1, 10_000),
)
def test_more_of_what_is_worse_never_lowers_a_chance(
    bundle: Bundle, column: str, values: NDArray[np.float32], more: int
) -> None:
    x = drive(**dict(zip(COLUMNS, values.tolist(), strict=True)))
    worse = x.copy()
    place = POSITION[column]
    worse[0, place] = x[0, place] + more if find_direction(column) > 0 else max(x[0, place] - more, 0)
    if has_symptom(x)[0] == has_symptom(worse)[0]:  # a first symptom: the next test
        assert chance(bundle, worse, "ACME") >= chance(bundle, x, "ACME") - 1e-9


@pytest.mark.parametrize("model", [*MODELS, "ST3000DM001"])
@pytest.mark.parametrize("smart_id", [5, 187, 197, 198])
def test_a_first_symptom_never_lowers_the_chance_of_a_drive_whose_model_dies_often(
    bundle: Bundle, model: str, smart_id: int
) -> None:
    old = {f"smart_{smart_id}": 1.0, "symptoms": 1.0}
    assert chance(bundle, drive(**old), model) >= chance(bundle, drive(), model)


def test_a_counter_that_is_not_reported_reads_as_one_that_never_left_zero(bundle: Bundle) -> None:
    told, missing = drive(), drive()
    for name in NAMES_IN_ORDER:
        if name.startswith(("smart_187", "smart_188")):
            missing[0, POSITION[name]] = np.nan
    assert chance(bundle, missing, "ACME") == chance(bundle, told, "ACME")
    selected = select_columns(missing, COLUMNS, fill=True)
    assert np.isfinite(selected).all()


@pytest.mark.parametrize("count", [65_535, 2**24 - 1, 2**32 - 1, 2**32, 2**47])
def test_a_counter_at_the_limit_of_its_type_is_no_certainty(bundle: Bundle, count: int) -> None:
    p = chance(bundle, drive(smart_197=count, symptoms=1), "ACME")
    assert p < 0.5


def test_a_drive_with_one_reading_is_judged_by_its_levels(bundle: Bundle) -> None:
    x = drive(smart_197=500, smart_187=200, smart_5=3000, symptoms=3)
    told = bundle.forecast(x, np.array(["ACME"], dtype=object), np.ones(1, dtype=bool))
    assert told.status.tolist() != [Status.UNKNOWN]
    assert told.p_fail[0, 2] > 5 * chance(bundle, drive(), "ACME")
