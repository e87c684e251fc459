"""The two rules that need no training: logarithms of the sector counters, and of their rises within a week."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from predrain.models.lab.peers.counter_rules import score_level, score_rise
from tests.models.peer_rows import rows_of


def test_level_adds_the_logarithms_of_5_197_and_198_and_null_has_no_vote(tmp_path: Path) -> None:
    readings: dict[str, list[object]] = {"5": [7], "197": [None], "198": [3], "187": [99], "199": [99]}
    assert score_level(rows_of(tmp_path, readings, 0)).score.tolist() == [
        pytest.approx(np.log(8) + np.log(4))
    ]
    assert score_level(rows_of(tmp_path, {"9": [1]}, 0)).score.tolist() == [0.0]


@pytest.mark.parametrize(
    ("day", "expected"),
    [(9, 0.0), (10, np.log(5)), (12, np.log(5) + np.log(17)), (17, np.log(17)), (19, 0.0)],
)
def test_rise_adds_the_logarithms_of_what_rose_within_7_days(
    tmp_path: Path, day: int, expected: float
) -> None:
    readings: dict[str, list[object]] = {"5": [2] * 10 + [6] * 20, "197": [0] * 12 + [16] * 18}
    assert score_rise(rows_of(tmp_path, readings, day)).score.tolist() == [pytest.approx(expected)]


def test_a_fall_a_null_and_a_first_reading_are_no_rise_of_the_sectors(tmp_path: Path) -> None:
    assert score_rise(rows_of(tmp_path, {"197": [8] * 5 + [0] * 5}, 9)).score.tolist() == [0.0]
    assert score_rise(rows_of(tmp_path, {"198": [None] * 5 + [9] * 5}, 9)).score.tolist() == [0.0]
    assert score_rise(rows_of(tmp_path, {"5": [500] * 3}, 2)).score.tolist() == [0.0]


def test_level_and_rise_rank_and_raise_no_alarm(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, {"5": [500] * 9}, 8)
    assert (score_level(rows).status, score_rise(rows).status) == (None, None)
