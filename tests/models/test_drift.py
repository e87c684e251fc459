"""Drift: drives of one population are not called changed, those of another are, and few are not judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from predrain.features.feature_schema import NAMES_IN_ORDER, POSITION
from predrain.models.forecast.bundle import REFERENCE, Bundle, CorruptBundle, save_bundle
from predrain.models.forecast.drift import (
    LEAST,
    MODELS_MAX,
    POINTS,
    SCORE,
    DriftReference,
    FamilyDrift,
    compute_kolmogorov_tail,
    is_watched_long_enough,
    measure_drift,
    reference_of,
)
from predrain.models.forecast.landmarks import Landmarks

MODEL = "ST4000DM000"


def population(count: int, seed: int, **moved: float) -> NDArray[np.float32]:
    """Drives with some counters mostly at zero and some measures spread; `moved`: added to a feature."""
    chance = np.random.default_rng(seed)
    x = np.full((count, len(NAMES_IN_ORDER)), np.nan, dtype=np.float32)
    x[:, POSITION["smart_5"]] = np.where(chance.random(count) < 0.02, chance.integers(1, 500, count), 0)
    x[:, POSITION["smart_197"]] = np.where(chance.random(count) < 0.01, 8, 0)
    x[:, POSITION["celsius"]] = chance.normal(28, 3, count)
    x[:, POSITION["hours"]] = chance.uniform(1e4, 3e4, count)
    x[:, POSITION["loads_30d"]] = chance.gamma(2, 20, count)
    for name, by in moved.items():
        x[:, POSITION[name]] += by
    return x


def landmarks(x: NDArray[np.float32], model: str = MODEL) -> Landmarks:
    count = len(x)
    return Landmarks(
        x=x,
        serial=np.array([f"S{number}" for number in range(count)], dtype=object),
        model=np.array([model] * count, dtype=object),
        day=np.full(count, 17_000),
        follow=np.full(count, 90),
        died=np.zeros(count, dtype=bool),
        watched=np.full(count, 90),
        weight=np.ones(count),
    )


def scores(count: int, seed: int, scale: float = 0.002) -> NDArray[np.float64]:
    return np.random.default_rng(seed).gamma(1, scale, count)


@pytest.fixture(scope="module")
def reference() -> DriftReference:
    return reference_of(landmarks(population(5000, 1)), scores(5000, 1))


def found(reference: DriftReference | None, x: NDArray[np.float32], scale: float = 0.002) -> FamilyDrift:
    model = np.array([MODEL] * len(x), dtype=object)
    (one,) = measure_drift(reference, x, model, scores(len(x), 9, scale))
    return one


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [LEAST, 1000])
def test_other_drives_of_the_same_population_have_not_drifted(
    reference: DriftReference, seed: int, count: int
) -> None:
    one = found(reference, population(count, 100 + seed))
    assert one.drifted_features == ()
    assert not one.score_drifted


def test_a_feature_that_moved_is_named_and_the_others_are_not(reference: DriftReference) -> None:
    one = found(reference, population(500, 2, celsius=8))
    assert [shift.name for shift in one.drifted_features] == ["celsius"]
    assert one.features[0].name == "celsius"
    assert one.features[0].psi > 1
    assert one.features[0].ks > 0.5


def test_a_feature_that_is_no_longer_reported_has_drifted(reference: DriftReference) -> None:
    x = population(500, 2)
    x[:, POSITION["loads_30d"]] = np.nan
    (lost,) = found(reference, x).drifted_features
    assert (lost.name, lost.missing) == ("loads_30d", 1.0)


def test_a_feature_that_varies_by_week_in_training_must_move_farther_to_count_as_drift() -> None:
    x = population(5000, 5)
    week = np.arange(5000) % 25
    x[:, POSITION["loads_30d"]] *= 1 + week % 5  # the whole fleet works harder in some weeks
    restless = replace(landmarks(x), day=17_000 + 7 * week)
    steady = replace(landmarks(x), day=np.full(5000, 17_000))
    now = population(700, 6)
    now[:, POSITION["loads_30d"]] *= 5
    one, other = (found(reference_of(marks, scores(5000, 1)), now) for marks in (restless, steady))
    assert one.drifted_features == ()
    assert [shift.name for shift in other.drifted_features] == ["loads_30d"]
    now[:, POSITION["loads_30d"]] *= 1000
    assert [shift.name for shift in found(reference_of(restless, scores(5000, 1)), now).drifted_features] == [
        "loads_30d"
    ]


def test_that_a_fleet_grows_older_is_no_drift(reference: DriftReference) -> None:
    assert found(reference, population(500, 2, hours=20_000)).drifted_features == ()


def test_the_score_drifts_when_much_more_is_forecast(reference: DriftReference) -> None:
    assert found(reference, population(500, 2), scale=0.02).score_drifted


def test_a_score_that_moved_by_less_than_half_is_what_age_does() -> None:
    steady = np.random.default_rng(3).normal(0.002, 0.0001, 5000)
    narrow = reference_of(landmarks(population(5000, 1)), steady)
    x = population(500, 2)
    for times, moved in ((1.5, False), (3.0, True)):
        (one,) = measure_drift(narrow, x, np.array([MODEL] * 500, dtype=object), steady[:500] * times)
        assert one.score is not None
        assert one.score.has_drifted(1)
        assert one.score_drifted is moved


def test_too_few_drives_and_bundles_without_a_reference_are_not_judged(reference: DriftReference) -> None:
    few = found(reference, population(LEAST - 1, 2, celsius=50))
    assert (few.drives, few.features, few.score) == (LEAST - 1, (), None)
    assert found(None, population(500, 2)).score is None


def test_a_model_without_a_sketch_is_compared_with_its_maker_and_an_unknown_maker_with_nobody() -> None:
    x = population(20 * LEAST, 4)
    names = np.array([f"ST{1000 + number % 20}DM" for number in range(len(x))], dtype=object)
    reference = reference_of(replace(landmarks(x), model=names), scores(len(x), 1))
    assert reference.find_family("ST1000DM") == "ST1000DM"
    assert reference.find_family("ST8000NM0055") == "Seagate"
    assert reference.families["Seagate"].drives == (20 - MODELS_MAX) * LEAST
    assert reference.find_family("WDC WD40EFRX") == ""
    assert reference.find_family("no maker at all") == ""


def test_thinned_landmarks_count_for_as_many_as_they_stand_for() -> None:
    x = population(2000, 3)
    hot = x[:, POSITION["celsius"]] > 30
    kept = hot | (np.arange(2000) % 10 == 0)
    thin = replace(landmarks(x[kept]), weight=np.where(hot[kept], 1.0, 10.0))
    told = reference_of(thin, scores(int(kept.sum()), 1)).families[MODEL].sketches["celsius"].points
    assert np.median(told) == pytest.approx(np.median(x[:, POSITION["celsius"]]), abs=0.5)


def test_families_are_bounded_and_a_sketch_is_small(reference: DriftReference) -> None:
    x = population(40 * LEAST, 4)
    names = np.array([f"ST{1000 + number % 40}DM" for number in range(len(x))], dtype=object)
    many = reference_of(replace(landmarks(x), model=names), scores(len(x), 1))
    assert len(many.families) <= 12 + 5
    assert len(reference.families[MODEL].sketches[SCORE].points) == POINTS
    assert len(msgspec.json.encode(reference.families[MODEL])) < 40_000


def test_only_drives_watched_for_thirty_days_are_compared() -> None:
    assert is_watched_long_enough([-1, 0, 70, 71], 100).tolist() == [False, True, True, False]


def test_a_reference_travels_with_its_bundle_and_is_verified(
    reference: DriftReference, tmp_path: Path
) -> None:
    shipped = Bundle.load()
    save_bundle(tmp_path, shipped.facts, shipped.booster, "card", reference)
    assert Bundle.load(tmp_path).reference == reference
    whole = (tmp_path / REFERENCE).read_bytes()
    (tmp_path / REFERENCE).write_bytes(whole.replace(b"0.0", b"0.1", 1))
    with pytest.raises(CorruptBundle, match="not what SHA256SUMS says"):
        Bundle.load(tmp_path)
    (tmp_path / REFERENCE).unlink()
    with pytest.raises(CorruptBundle, match="missing"):
        Bundle.load(tmp_path)
    save_bundle(tmp_path, shipped.facts, shipped.booster, "card")
    assert Bundle.load(tmp_path).reference is None
    (tmp_path / REFERENCE).write_bytes(whole)
    with pytest.raises(CorruptBundle, match="not what SHA256SUMS says"):
        Bundle.load(tmp_path)


@pytest.mark.parametrize("scaled", [0.0, 1e-200, 0.04, 0.3, 0.999, 1.0, 1.36, 5.0])
def test_the_tail_of_kolmogorovs_distribution_is_that_of_scipy(scaled: float) -> None:
    from scipy.special import kolmogorov

    assert compute_kolmogorov_tail(scaled) == pytest.approx(float(kolmogorov(scaled)), rel=1e-12)
