"""Every challenger learns what there is to learn, keeps its horizons in order, repeats itself, and sees no future."""

from __future__ import annotations

import sys
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from predrain.data.history import EPOCH
from predrain.models.forecast.training import TooLittleHistory
from predrain.models.lab.challengers import NAMES, UnknownChallenger, challenger_scores, members_of
from predrain.models.lab.challengers.sequence_model import NoNeuralNetworks
from tests.models.challengers.planted import LANDMARKS, UNTIL, Fleet, fleet, history_of, stored

QUICK = ("forest", "logistic_hazard")
EACH = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]


def scores(
    made: Fleet, name: str, folder: Path, *, seed: int = 3, landmarks: np.ndarray = LANDMARKS
) -> pa.Table:
    """Return the scores of one challenger for the months after UNTIL."""
    tables = challenger_scores(
        [name],
        [stored(made.readings, folder / "learned.parquet")],
        until=UNTIL,
        history=history_of(made.readings, folder / "judged.parquet"),
        landmarks=landmarks,
        seed=seed,
        threads=1,
    )
    assert list(tables) == [name]
    return tables[name]


@pytest.fixture(scope="module")
def made() -> Fleet:
    return fleet()


@pytest.fixture(scope="module")
def said(made: Fleet, tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    """Each challenger's scores, made when first asked for."""
    folder = tmp_path_factory.mktemp("said")

    class Scores(dict[str, pa.Table]):
        def __missing__(self, name: str) -> pa.Table:
            self[name] = scores(made, name, folder)
            return self[name]

    return Scores()


def chances(table: pa.Table) -> np.ndarray:
    return np.stack([table[f"p_fail_{days}d"].to_numpy() for days in (7, 14, 30)], axis=1)


def assert_same_chances(one: pa.Table, other: pa.Table) -> None:
    """Equal but for the last digits: libraries of linear algebra add in another order where memory lies otherwise."""
    np.testing.assert_allclose(chances(one), chances(other), rtol=1e-4)


def dies_soon(table: pa.Table, made: Fleet, days: int) -> np.ndarray:
    rows = zip(table["serial_number"].to_pylist(), table["date"].to_pylist(), strict=True)
    return np.array([s in made.death and (made.death[s] - day).days <= days for s, day in rows])


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH)
def test_a_drive_that_shows_the_planted_sign_is_called_likelier_to_die(
    name: str, said: dict[str, pa.Table], made: Fleet
) -> None:
    from sklearn.metrics import roc_auc_score

    dies = dies_soon(said[name], made, 14)
    assert 20 <= dies.sum() < len(dies)
    assert roc_auc_score(dies, chances(said[name])[:, 2]) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH)
def test_chances_are_odds_of_the_fleet_and_not_of_the_thinned_sample(
    name: str, said: dict[str, pa.Table], made: Fleet
) -> None:
    expected, happened = chances(said[name])[:, 2].sum(), dies_soon(said[name], made, 30).sum()
    assert 0.5 < expected / happened < 2.0


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH)
def test_a_longer_horizon_is_never_less_likely(name: str, said: dict[str, pa.Table]) -> None:
    p = chances(said[name])
    assert np.isfinite(p).all()
    assert (p > 0).all()
    assert (p < 1).all()
    assert (np.diff(p, axis=1) >= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH)
def test_every_drive_that_reported_in_the_week_before_is_scored_once(
    name: str, said: dict[str, pa.Table], made: Fleet
) -> None:
    rows = list(zip(said[name]["serial_number"].to_pylist(), said[name]["date"].to_pylist(), strict=True))
    last = made.readings.groupby("serial_number")["date"].max()
    days = [EPOCH + timedelta(days=int(day)) for day in LANDMARKS]
    assert sorted(rows) == sorted((s, day) for s in last.index for day in days if (day - last[s]).days <= 6)


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH)
def test_the_same_seed_gives_the_same_scores(
    name: str, said: dict[str, pa.Table], made: Fleet, tmp_path: Path
) -> None:
    again = scores(made, name, tmp_path)
    assert again["serial_number"].equals(said[name]["serial_number"])
    assert again["date"].equals(said[name]["date"])
    assert_same_chances(again, said[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH)
def test_nothing_from_after_the_split_is_learned_and_nothing_from_after_a_landmark_is_seen(
    name: str, said: dict[str, pa.Table], made: Fleet, tmp_path: Path
) -> None:
    day = EPOCH + timedelta(days=int(LANDMARKS[2]))
    known = made.readings[made.readings.date <= UNTIL]
    seen = made.readings[made.readings.date <= day]
    # The future is not merely cut: after the landmark every drive is alive and full of pending sectors.
    invented = seen.groupby("serial_number").tail(1).assign(date=day + timedelta(days=1), failure=0)
    invented = invented.assign(smart_197_raw=9999, smart_198_raw=9999)
    other = Fleet(pd.concat([seen, invented]), {})
    table = challenger_scores(
        [name],
        [stored(known, tmp_path / "learned.parquet")],
        until=date(2021, 1, 1),
        history=history_of(other.readings, tmp_path / "judged.parquet"),
        landmarks=LANDMARKS[2:3],
        seed=3,
        threads=1,
    )[name]
    there = said[name].filter(pc.equal(said[name]["date"], pa.scalar(day)))
    assert len(table) > 200
    assert table["serial_number"].to_pylist() == there["serial_number"].to_pylist()
    assert_same_chances(table, there)


@pytest.mark.slow
def test_a_fleet_whose_fates_are_dealt_out_at_random_teaches_nothing(made: Fleet, tmp_path: Path) -> None:
    from sklearn.metrics import roc_auc_score

    flat = made.readings.assign(smart_197_raw=0, smart_198_raw=0)
    table = scores(Fleet(flat, made.death), "logistic_hazard", tmp_path)
    assert roc_auc_score(dies_soon(table, made, 14), chances(table)[:, 2]) < 0.75


def test_an_unknown_challenger_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownChallenger, match="no challenger oracle; known are hist_boosting, forest"):
        members_of(["forest", "oracle"])


@pytest.mark.slow
def test_a_blend_is_of_the_shipped_recipe_and_of_those_that_are_named_beside_it() -> None:
    assert list(members_of(["forest", "blend"])) == ["shipped", "forest"]
    assert list(members_of(["blend"])) == ["shipped", "hist_boosting", "forest", "logistic_hazard"]
    assert list(members_of(["sequence"])) == ["sequence"]


@pytest.mark.slow
def test_without_jax_the_sequence_model_is_refused_with_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optax", None)
    with pytest.raises(NoNeuralNetworks, match=r"pip install .predrain\[neural\]"):
        members_of(["sequence"])


@pytest.mark.slow
def test_a_drive_that_has_not_reported_for_a_week_is_not_asked_about(made: Fleet, tmp_path: Path) -> None:
    early = made.readings[made.readings.date <= UNTIL]
    table = challenger_scores(
        ["logistic_hazard"],
        [stored(made.readings, tmp_path / "learned.parquet")],
        until=UNTIL,
        history=history_of(early, tmp_path / "early.parquet"),
        landmarks=LANDMARKS[-1:],
        seed=3,
        threads=1,
    )["logistic_hazard"]
    assert len(table) == 0


def test_too_few_deaths_are_refused_in_a_sentence(tmp_path: Path) -> None:
    few = fleet(drives=40, dying=12)
    with pytest.raises(TooLittleHistory, match="give a history with 20 or more"):
        scores(few, "logistic_hazard", tmp_path)
