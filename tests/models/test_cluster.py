"""A Dask cluster gives what one machine gives: landmarks and scores to the last bit, boosters nearly."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from predrain.data.lifespan import sources_of
from predrain.models.forecast.bundle import Bundle
from predrain.models.forecast.hazard import person_periods, predict_hazards
from predrain.models.forecast.history_scores import score_landmark_days
from predrain.models.forecast.landmarks import Landmarks, draw_landmarks
from predrain.models.forecast.part_executor import PartExecutor, ThreadExecutor
from predrain.models.forecast.training import PLAIN
from predrain.models.lab.dask_cluster import DaskCluster, NoDaskCluster

pytest.importorskip("distributed", reason="the extra `scale` is not installed")

SAMPLES = Path(__file__).parents[1] / "data" / "drives"
DAILY, CHANGES, DRIVES = (SAMPLES / f"{name}.parquet" for name in ("daily", "changes", "drives"))
HERE = ThreadExecutor(1)

# Dask and LightGBM warn of themselves: ports, closing sockets, parameters that they set.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[DaskCluster]:
    with DaskCluster("local:2", rows_per_part=4_000) as executor:
        yield executor


@pytest.fixture(scope="module")
def landmarks() -> Landmarks:
    return draw_landmarks(sources_of([CHANGES, DRIVES])[0], until=None, seed=1, executor=HERE)


def scores(executor: PartExecutor) -> pa.Table:
    asked = {"first": date(2018, 5, 3), "last": date(2018, 5, 17), "every": 7}
    return pa.concat_tables(
        part.table for part in score_landmark_days([DAILY], Bundle.load(), executor=executor, **asked)
    )


def test_a_cluster_draws_the_landmarks_of_one_machine(cluster: DaskCluster, landmarks: Landmarks) -> None:
    drawn = draw_landmarks(sources_of([CHANGES, DRIVES])[0], until=None, seed=1, executor=cluster)
    for name in Landmarks.__slots__:
        one, other = getattr(drawn, name), getattr(landmarks, name)
        assert np.array_equal(one, other, equal_nan=one.dtype.kind == "f"), name


def test_a_cluster_scores_as_one_machine_does(cluster: DaskCluster) -> None:
    assert scores(cluster).equals(scores(HERE))


def test_a_clusters_booster_forecasts_nearly_what_one_machines_does(
    cluster: DaskCluster, landmarks: Landmarks
) -> None:
    """Bins and bags are chosen by each worker for its rows, so trees differ; forecasts may not, by much.

    The yardstick is one machine with another seed: the cluster may be no farther from it than twice that.
    """
    periods = person_periods(landmarks)
    names = [f"f{place}" for place in range(landmarks.x.shape[1])]

    def grown(executor: PartExecutor, seed: int) -> np.ndarray:
        booster = executor.grow_booster(
            landmarks.x, periods, PLAIN, seed=seed, names=names, tell=lambda _: None
        )
        assert booster.num_trees() == PLAIN.rounds
        assert booster.feature_name() == [*names, "interval"]
        return np.log(predict_hazards(booster, landmarks.x, 1)[:, 0])

    here, apart, reseeded = grown(HERE, 1), grown(cluster, 1), grown(HERE, 2)
    assert np.corrcoef(here, apart)[0, 1] > 0.97
    assert np.abs(here - apart).mean() < 2 * np.abs(here - reseeded).mean()


def test_an_error_of_a_worker_ends_the_work_and_is_told_as_it_is(cluster: DaskCluster) -> None:
    from predrain.data.history import SerialRange

    with pytest.raises(ZeroDivisionError):
        list(cluster.map_parts(_breaks, [SerialRange()]))


def _breaks(part: object) -> int:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("address", "says"),
    [("local:none", "names no number of workers"), ("local:0", "names no number of workers")],
)
def test_an_address_that_names_no_workers_is_refused(address: str, says: str) -> None:
    with pytest.raises(NoDaskCluster, match=says):
        DaskCluster(address)


def test_a_scheduler_that_does_not_answer_is_refused_with_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("predrain.models.lab.dask_cluster.PATIENCE", "1s")
    with pytest.raises(NoDaskCluster, match="start one, or say local:2"):
        DaskCluster("tcp://127.0.0.1:9")
