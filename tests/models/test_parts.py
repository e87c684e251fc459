"""The results are the same to the last bit for every size of the parts and every number of threads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predrain.data.history import HistoryFiles, SerialRange
from predrain.data.history.history_files import SCANS
from predrain.data.lifespan import sources_of
from predrain.models.forecast.bundle import Bundle
from predrain.models.forecast.hazard import Recipe
from predrain.models.forecast.history_scores import score_landmark_days
from predrain.models.forecast.landmarks import Landmarks, draw_landmarks
from predrain.models.forecast.part_executor import PartExecutor, ThreadExecutor
from predrain.models.forecast.training import Trained, train_forecaster
from predrain.service.cli import main

SAMPLES = Path(__file__).parents[1] / "data" / "drives"
DAILY, CHANGES, DRIVES = (SAMPLES / f"{name}.parquet" for name in ("daily", "changes", "drives"))


def scores(executor: PartExecutor, paths: Sequence[Path] = (DAILY,)) -> pa.Table:
    parts = score_landmark_days(
        list(paths), Bundle.load(), first=date(2018, 5, 3), last=date(2018, 5, 17), every=7, executor=executor
    )
    return pa.concat_tables(part.table for part in parts)


def landmarks(executor: PartExecutor) -> list[Landmarks]:
    return [
        draw_landmarks(source, until=None, seed=1, executor=executor)
        for source in sources_of([DAILY, CHANGES, DRIVES])
    ]


def same(one: Landmarks, other: Landmarks) -> bool:
    pairs = ((getattr(one, name), getattr(other, name)) for name in Landmarks.__slots__)
    return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)


def learned(executor: PartExecutor) -> Trained:
    recipe = Recipe(rounds=20, least=20)
    return train_forecaster(
        [CHANGES, DRIVES], name="sample", until=date(2015, 12, 31), recipe=recipe, executor=executor
    )


WHOLE = ThreadExecutor(1, rows_per_part=10**9)
whole_scores = cache(lambda: scores(WHOLE))
whole_landmarks = cache(lambda: landmarks(WHOLE))


@pytest.mark.slow
@settings(max_examples=3)
@given(st.integers(1_000, 6_000), st.sampled_from([1, 3]))
def test_parts_of_any_size_and_any_number_of_threads_give_the_same_scores(rows: int, threads: int) -> None:
    assert scores(ThreadExecutor(threads, rows)).equals(whole_scores())


@pytest.mark.slow
@settings(max_examples=3)
@given(st.integers(700, 6_000), st.sampled_from([1, 3]))
def test_parts_of_any_size_and_any_number_of_threads_give_the_same_landmarks(rows: int, threads: int) -> None:
    drawn = landmarks(ThreadExecutor(threads, rows))
    assert all(same(one, other) for one, other in zip(drawn, whole_landmarks(), strict=True))


@pytest.mark.slow
def test_training_in_parts_gives_the_trees_and_facts_of_training_in_one() -> None:
    parted, whole = learned(ThreadExecutor(2, rows_per_part=700)), learned(WHOLE)
    assert parted.facts == whole.facts
    assert parted.booster.model_to_string() == whole.booster.model_to_string().replace(
        "num_threads: 1", "num_threads: 2"
    )


def test_many_parts_are_read_from_copies_that_go_with_the_files_and_few_in_place(tmp_path: Path) -> None:
    files = HistoryFiles([DAILY])
    few = files.split_into_parts(files.read().day.size // 3)
    assert 1 < len(few) <= SCANS
    assert not scratch(few)
    many = files.split_into_parts(500)
    assert len(many) > SCANS
    folders = scratch(many)
    assert len(folders) == 1
    inside = [files.read(part=part).serials.tolist() for part in many]
    assert [serial for part in inside for serial in part] == files.read().serials.tolist()
    assert all(inside)
    del files
    assert not any(folder.exists() for folder in folders)


def scratch(parts: Sequence[SerialRange]) -> set[Path]:
    """Folders that parts are read from instead of the files."""
    return {part.copies.folder for part in parts if part.copies is not None}


def test_a_part_holds_no_more_rows_than_asked_for_unless_one_drive_does() -> None:
    files = HistoryFiles([DAILY])
    for part in files.split_into_parts(1_000):
        history = files.read(part=part)
        assert len(history.day) <= 1_000 or history.drives == 1


@pytest.mark.parametrize(
    ("asked", "code", "says"),
    [
        (["--rows-per-part", "0"], 2, "--rows-per-part must be 1 or more"),
        (["--dask", "local:many"], 1, "names no number of workers"),
    ],
)
def test_a_crew_that_cannot_be_is_refused_by_both_commands(
    asked: list[str], code: int, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed", reason="the extra `scale` is not installed")
    day = ["--from", "2018-05-03", "--to", "2018-05-03", "--out", str(tmp_path / "s.csv")]
    assert main(["score", str(DAILY), *day, *asked]) == code
    assert main(["train", str(DAILY), "--out", str(tmp_path / "bundle"), *asked]) == code
    assert capsys.readouterr().err.count(says) == 2


def test_an_error_in_one_part_ends_the_work_and_is_told_as_it_is() -> None:
    def work(part: object) -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(ThreadExecutor(2).map_parts(work, HistoryFiles([DAILY]).split_into_parts(1_000)))
