"""A forecast that has seen later days is caught; one that has not is called equal."""

from __future__ import annotations

import numpy as np

from predrain.models.evaluate.score_rows import Scores
from predrain.models.evaluate.truncation_test import compare_truncated_scores


def scores(p: list[float], *, days: list[int] | None = None, reason: str = "still") -> Scores:
    number = len(p)
    return Scores(
        np.array([f"drive-{n}" for n in range(number)], dtype=object),
        np.array(days or [17_000] * number),
        {"p_fail_30d": np.array(p)},
        {"reason": np.array([reason] * number, dtype=object)},
    )


def test_equal_runs_are_equal_and_other_landmarks_of_the_full_run_do_not_count() -> None:
    full = scores([0.1, 0.2, np.nan, 0.9], days=[17_000, 17_000, 17_000, 17_007])
    cut = compare_truncated_scores(full, scores([0.1, 0.2, np.nan]))
    assert cut.rows == 3
    assert cut.differences == ()


def test_a_changed_number_a_changed_word_and_a_lacking_drive_are_each_told() -> None:
    assert compare_truncated_scores(scores([0.1, 0.2]), scores([0.1, 0.25])).differences == (
        "drive-1 on 2016-07-18: p_fail_30d is 0.2, truncated 0.25",
    )
    assert (
        "reason is 'still'"
        in compare_truncated_scores(scores([0.1]), scores([0.1], reason="rose")).differences[0]
    )
    assert compare_truncated_scores(scores([0.1]), scores([0.1, 0.2])).differences == (
        "drive-1 on 2016-07-18: only in the truncated run",
    )
    assert compare_truncated_scores(scores([0.1, 0.2]), scores([0.1])).differences == (
        "drive-1 on 2016-07-18: only in the full run",
    )


def test_an_empty_number_is_not_equal_to_any_other() -> None:
    assert len(compare_truncated_scores(scores([np.nan]), scores([0.0])).differences) == 1


def test_a_score_difference_within_the_rounding_of_a_csv_file_is_ignored() -> None:
    assert compare_truncated_scores(scores([0.1]), scores([0.1 + 1e-12])).differences == ()
