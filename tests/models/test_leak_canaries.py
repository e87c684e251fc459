"""Canaries are scorers that use data which they must not see; each must be caught by the change that reveals it.

A scorer is asked twice, the second time of a history changed in a way that may not matter. Peers answer alike;
each canary answers differently to at least the change that it is named after.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from predrain.data.history import EPOCH, HistoryFiles
from predrain.models.evaluate import evaluate_forecasts, read_scores, read_truth
from predrain.models.evaluate.arrays import Ints
from predrain.models.lab.peers import peer_scores

START = date(2018, 1, 1)
DAY0 = (START - EPOCH).days
LANDMARK = START + timedelta(60)
Scorer = Callable[[pd.DataFrame, Path], dict[str, float]]
"""(history, scratch folder) -> serial number -> score on LANDMARK."""
Change = Callable[[pd.DataFrame], pd.DataFrame]


@pytest.fixture(scope="module")
def history() -> pd.DataFrame:
    """Change points of 40 drives over 120 days; every fourth dies, its counters rising before."""
    rng = np.random.default_rng(7)
    rows = []
    for number in range(40):
        last = int(rng.integers(70, 110)) if number % 4 == 0 else 119
        days = sorted({0, *rng.integers(1, last + 1, size=6).tolist(), last})
        for day in days:
            sick = number % 4 == 0 and day > last - 20
            rows.append(
                (START + timedelta(int(day)), f"Z{number:02d}", "ST1", int(sick and day == last), False,
                 int(rng.integers(0, 3)), 8 * int(sick) * (day - last + 20), 100 + 24 * int(day))
            )  # fmt: skip
    names = [
        "date",
        "serial_number",
        "model",
        "failure",
        "snapshot",
        "smart_5_raw",
        "smart_197_raw",
        "smart_9_raw",
    ]
    return pd.DataFrame(rows, columns=names)


def cut(frame: pd.DataFrame) -> pd.DataFrame:
    """The history ends on the landmark."""
    return frame[frame.date <= LANDMARK]


def worse_future(frame: pd.DataFrame) -> pd.DataFrame:
    """All counters soar after the landmark."""
    later = frame.date > LANDMARK
    return frame.assign(
        smart_197_raw=frame.smart_197_raw + 4000 * later, smart_5_raw=frame.smart_5_raw + 900 * later
    )


def no_fate(frame: pd.DataFrame) -> pd.DataFrame:
    """Nobody says who failed."""
    return frame.drop(columns="failure")


def other_fate(frame: pd.DataFrame) -> pd.DataFrame:
    """The failed are said to be well, and the others to have failed."""
    return frame.assign(failure=1 - frame.failure)


def repeated(frame: pd.DataFrame) -> pd.DataFrame:
    """Each drive's row of the day stands once more as a snapshot on the days between its rows."""
    more = frame.copy()
    more["date"] = more.groupby("serial_number").date.shift(-1)
    more["date"] = [
        then - timedelta(1) if isinstance(then, date) else row
        for then, row in zip(more.date, frame.date, strict=True)
    ]
    more["snapshot"] = True
    free = [
        (serial, day) not in taken
        for taken in [set(zip(frame.serial_number, frame.date, strict=True))]
        for serial, day in zip(more.serial_number, more.date, strict=True)
    ]
    both = pd.concat([frame, more[free]])
    return both.sort_values(["serial_number", "date"], kind="stable")


def flagged(frame: pd.DataFrame) -> pd.DataFrame:
    """Every row calls itself a snapshot."""
    return frame.assign(snapshot=True)


CHANGES: dict[str, Change] = {
    change.__name__: change for change in (cut, worse_future, no_fate, other_fate, repeated, flagged)
}


def _on_the_day(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame.date <= LANDMARK].groupby("serial_number").tail(1).set_index("serial_number")


def _each(values: pd.Series) -> dict[str, float]:
    return {str(serial): float(value) for serial, value in values.items()}


def future_counter(frame: pd.DataFrame, _scratch: Path) -> dict[str, float]:
    """The largest counter ever to come."""
    return _each(frame.groupby("serial_number").smart_197_raw.max())


def rest_of_the_interval(frame: pd.DataFrame, _scratch: Path) -> dict[str, float]:
    """Days until the drive's next row, as a column of stop days would give it."""
    later = frame[frame.date > LANDMARK].groupby("serial_number").date.min()
    return {
        serial: float((later[serial] - LANDMARK).days) if serial in later else -1.0
        for serial in frame.serial_number.unique()
    }


def last_row_of_all(frame: pd.DataFrame, _scratch: Path) -> dict[str, float]:
    """Return the day of each drive's last row, in days since START, also where that row is after the landmark."""
    return _each(frame.groupby("serial_number").date.max().map(lambda day: (day - START).days))


def fate_itself(frame: pd.DataFrame, _scratch: Path) -> dict[str, float]:
    """The label, where the file has it."""
    told = frame.failure if "failure" in frame else pd.Series(0, index=frame.index)
    return _each(told.groupby(frame.serial_number).max())


def number_of_rows(frame: pd.DataFrame, _scratch: Path) -> dict[str, float]:
    """How often the drive has changed, which sick drives do."""
    return _each(frame[frame.date <= LANDMARK].groupby("serial_number").size())


def days_since_the_last_row(frame: pd.DataFrame, _scratch: Path) -> dict[str, float]:
    """The spacing of rows."""
    return _each(_on_the_day(frame).date.map(lambda day: (LANDMARK - day).days))


def snapshot_flag(frame: pd.DataFrame, _scratch: Path) -> dict[str, float]:
    """Return the snapshot flag of each drive's last row on or before the landmark."""
    return _each(_on_the_day(frame).snapshot)


def peer(name: str) -> Scorer:
    """A peer that does not learn, asked as the backtest asks it."""

    def run(frame: pd.DataFrame, scratch: Path) -> dict[str, float]:
        frame.to_parquet(scratch / "history.parquet", index=False)
        frame.assign(failure=0).to_parquet(scratch / "truth.parquet", index=False)
        landmarks = np.array([(LANDMARK - EPOCH).days])
        (answer,) = peer_scores(
            [name], HistoryFiles([scratch / "history.parquet"], threads=1).read(),
            read_truth([scratch / "truth.parquet"]), landmarks, split=DAY0 + 50, seed=0,
        )  # fmt: skip
        assert answer.table is not None
        table = answer.table.to_pandas()
        return dict(zip(table.serial_number, table.p_fail_30d, strict=True))

    return run


def caught_by(scorer: Scorer, history: pd.DataFrame, scratch: Path) -> set[str]:
    """The changes to which the scorer answers differently."""
    before = scorer(history, scratch)
    return {name for name, change in CHANGES.items() if scorer(change(history), scratch) != before}


@pytest.mark.parametrize(
    ("canary", "betrayed_by"),
    [
        (future_counter, "cut"), (future_counter, "worse_future"), (rest_of_the_interval, "cut"),
        (last_row_of_all, "cut"), (fate_itself, "no_fate"), (fate_itself, "other_fate"),
        (number_of_rows, "repeated"), (days_since_the_last_row, "repeated"), (snapshot_flag, "flagged"),
    ],
)  # fmt: skip
def test_a_scorer_that_peeks_is_caught(
    canary: Scorer, betrayed_by: str, history: pd.DataFrame, tmp_path: Path
) -> None:
    assert betrayed_by in caught_by(canary, history, tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        *("any5", "any4", "smart_197", "any5_rise", "level", "rise"),
        *("scrutiny", "hdsentinel", "hdsentinel_strict"),
    ],
)
def test_no_rule_peeks(name: str, history: pd.DataFrame, tmp_path: Path) -> None:
    assert caught_by(peer(name), history, tmp_path) == set()


def judged(
    fates: dict[int, int], score: Callable[[int, int], float], landmarks: Ints, scratch: Path
) -> float:
    """Return the recall at 1 % of 400 daily drives. `fates`: drive -> day of death; `score`: (drive, day) -> chance."""
    rows = [
        (START + timedelta(day), f"Z{drive:03d}", "M", int(fates.get(drive) == day))
        for drive in range(400)
        for day in range(fates.get(drive, 119) + 1)
    ]
    truth = pd.DataFrame(rows, columns=["date", "serial_number", "model", "failure"])
    truth.to_parquet(scratch / "truth.parquet", index=False)
    asked = [
        (START + timedelta(int(d)), f"Z{n:03d}", score(n, int(d))) for n in range(400) for d in landmarks
    ]
    pd.DataFrame(asked, columns=["date", "serial_number", "p_fail_30d"]).to_parquet(
        scratch / "scores.parquet"
    )
    report = evaluate_forecasts(
        read_truth([scratch / "truth.parquet"]), [("s", read_scores(scratch / "scores.parquet"))],
        resamples=0, landmarks=DAY0 + landmarks,
    )  # fmt: skip
    return report.judged[0].figures["recall_at_1pct"].value


FATES = {drive: 20 + drive for drive in range(60)}


@pytest.mark.slow
def test_a_score_that_rises_only_on_the_day_of_death_is_worth_nothing(tmp_path: Path) -> None:
    every_day = np.arange(10, 88, dtype=np.int64)
    assert judged(FATES, lambda n, d: float(FATES.get(n, 999) <= d), every_day, tmp_path) == pytest.approx(
        0.01
    )
    assert judged(FATES, lambda n, d: float(FATES.get(n, 999) <= d + 1), every_day, tmp_path) == 1.0


def test_a_score_that_has_nothing_to_do_with_the_fates_has_the_recall_of_chance(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    weekly = np.arange(10, 88, 7, dtype=np.int64)
    noise = rng.random((400, 120))
    assert judged(FATES, lambda n, d: float(noise[n, d]), weekly, tmp_path) < 0.06
