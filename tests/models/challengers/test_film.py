"""A film shows what happened and when, for any spacing of the rows; frames before the first row are empty."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.history import History
from predrain.features.drive_history_rows import COUNTERS, ledger_of
from predrain.models.lab.challengers.drive_film import AGO, CHANNELS, STEPS, build_films

DAY = 1000
PENDING = 4 * COUNTERS.index(197)
WATCHED = CHANNELS - 1


def history(days: list[int], pending: list[float]) -> History:
    return History(
        serials=np.array(["A"], dtype=object),
        start=np.array([0, len(days)]),
        day=np.array(days, dtype=np.int32),
        model=np.zeros(len(days), dtype=np.int32),
        model_names=("M",),
        raw={197: np.array(pending, dtype=float), 9: np.array(days, dtype=float) * 24},
    )


def film(days: list[int], pending: list[float], at: int = DAY) -> np.ndarray:
    return build_films(ledger_of(history(days, pending)), np.array([0]), np.array([at]))[0]


def test_a_rise_stands_in_the_frame_of_its_day() -> None:
    days = list(range(DAY - 95, DAY + 1))
    shown = film(days, [0.0 if day < DAY - 3 else 7.0 for day in days])
    rose = np.flatnonzero(shown[:, PENDING + 1])
    assert shown.shape == (STEPS, CHANNELS)
    assert rose.tolist() == [STEPS - 1 - AGO.index(3)]
    assert np.allclose(shown[rose[0] :, PENDING], np.log1p(7.0), atol=1e-3)
    assert not shown[: rose[0], PENDING].any()


def test_frames_from_before_the_first_row_are_empty() -> None:
    days = list(range(DAY - 10, DAY + 1))
    shown = film(days, [5.0] * len(days))
    watched = shown[:, WATCHED] == 1
    assert watched.tolist() == [ago <= 10 for ago in reversed(AGO[:-1])]
    assert not shown[~watched].any()
    assert not shown[:, PENDING + 1].any()


@given(
    st.lists(st.integers(0, 90), min_size=1, max_size=30, unique=True),
    st.sets(st.integers(0, 120)),
)
def test_rows_that_repeat_what_held_change_nothing(changes: list[int], repeats: set[int]) -> None:
    first = DAY - 120
    told = {first: 0.0} | {DAY - ago: float(n + 1) for n, ago in enumerate(sorted(changes, reverse=True))}
    days = sorted(told)
    more = dict(told)
    for ago in repeats:
        day = DAY - ago
        more.setdefault(day, told[max(d for d in days if d <= day)])
    every = sorted(more)
    assert np.array_equal(
        film(days, [told[d] for d in days])[:, : CHANNELS - 1],
        film(every, [more[d] for d in every])[:, : CHANNELS - 1],
    )


@given(st.lists(st.floats(0, 1e9), max_size=20))
def test_readings_after_the_landmark_are_not_in_the_film(later: list[float]) -> None:
    days = list(range(DAY - 50, DAY + 1))
    known = [float(day % 9) for day in days]
    after = [DAY + 1 + n for n in range(len(later))]
    assert np.array_equal(film(days, known), film(days + after, known + later))
