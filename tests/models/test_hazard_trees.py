"""The trees of a bundle by LightGBM's C interface, beside LightGBM's own Python package."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import lightgbm as lgb
import numpy as np
import pytest
from numpy.typing import NDArray

from predrain.models.forecast.bundle import DEFAULT, Bundle
from predrain.models.forecast.hazard_trees import HazardTrees
from predrain.models.forecast.tree_text_check import UnfitTrees

TEXT = (DEFAULT / "model.txt").read_text()


@pytest.fixture(scope="module")
def trees() -> HazardTrees:
    return HazardTrees(TEXT, Bundle.load().facts.columns)


@pytest.fixture(scope="module")
def rows(trees: HazardTrees) -> NDArray[np.float32]:
    rng = np.random.default_rng(0)
    made = (rng.random((500, trees.columns)) * 100).astype(np.float32)
    made[rng.random(made.shape) < 0.3] = np.nan
    return made


def test_probabilities_and_contributions_are_those_of_the_python_package(
    trees: HazardTrees, rows: NDArray[np.float32]
) -> None:
    booster = lgb.Booster(model_str=TEXT)
    assert np.array_equal(trees.predict(rows), np.asarray(booster.predict(rows)))
    contributions = np.asarray(booster.predict(rows, pred_contrib=True))
    assert np.array_equal(trees.predict(rows, pred_contrib=True), contributions)


def test_columns_of_an_array_that_is_not_contiguous_are_read_as_they_stand(
    trees: HazardTrees, rows: NDArray[np.float32]
) -> None:
    assert np.array_equal(trees.predict(np.asfortranarray(rows)[::2]), trees.predict(rows)[::2])


def test_no_rows_give_no_probabilities(trees: HazardTrees, rows: NDArray[np.float32]) -> None:
    assert trees.predict(rows[:0]).shape == (0,)


def test_an_array_with_another_number_of_columns_is_refused(
    trees: HazardTrees, rows: NDArray[np.float32]
) -> None:
    with pytest.raises(ValueError, match=f"read {trees.columns} columns"):
        trees.predict(rows[:, 1:])


def test_many_threads_predict_at_the_same_time(trees: HazardTrees, rows: NDArray[np.float32]) -> None:
    expected = trees.predict(rows)
    with ThreadPoolExecutor(8) as threads:
        for found in threads.map(lambda _: trees.predict(rows), range(64)):
            assert np.array_equal(found, expected)


def test_a_text_that_is_cut_off_is_refused_before_lightgbm_sees_it() -> None:
    with pytest.raises(UnfitTrees):
        HazardTrees(TEXT[: len(TEXT) // 2], Bundle.load().facts.columns)


def test_a_bundle_that_forecasts_loads_none_of_the_training_libraries() -> None:
    program = (
        "import sys, numpy\n"
        "from predrain.models.forecast.bundle import Bundle\n"
        "Bundle.load()\n"
        "print(*sorted({'lightgbm', 'pandas', 'scipy', 'sklearn', 'pyarrow'} & set(sys.modules)))\n"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []


def test_trees_that_are_sent_to_another_process_predict_the_same(
    trees: HazardTrees, rows: NDArray[np.float32]
) -> None:
    sent = pickle.loads(pickle.dumps(trees))
    assert np.array_equal(sent.predict(rows), trees.predict(rows))
