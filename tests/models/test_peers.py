"""The peers do what their definitions say, and see nothing that came later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predrain.data.history import HistoryFiles
from predrain.models.evaluate import read_truth
from predrain.models.lab.peers import NAMES, UnknownPeer, peer_scores
from predrain.models.lab.peers.counter_rules import any5_rise, score_any4, score_any5, smart_197
from predrain.models.lab.peers.drive_days import DriveDayRows
from predrain.models.lab.peers.hdsentinel import hdsentinel, hdsentinel_strict
from predrain.models.lab.peers.learned_peers import (
    TrainingHistory,
    build_raw_features,
    grow_booster,
    lgbm_all_rows,
    lgbm_plain,
    lower_odds,
    sample_healthy_rows,
)
from predrain.models.lab.peers.peer_answer import NotComputable, PeerVerdict
from predrain.models.lab.peers.redhat import compute_window_statistics
from predrain.models.lab.peers.scrutiny import apply_scrutiny_thresholds
from predrain.models.lab.peers.vendor_thresholds import apply_vendor_thresholds
from tests.models.peer_rows import DAY0, START, rows_of

ALL = tuple(name for name in NAMES if name not in ("vendor", "ceph_prophetstor"))
"""Peers that need neither normalised values nor models of others."""


def said(rows: DriveDayRows, peer: Callable[[DriveDayRows], PeerVerdict]) -> tuple[float, str]:
    """Score and alarm of the only row."""
    verdict = peer(rows)
    assert verdict.status is not None
    return float(verdict.score[0]), str(verdict.status[0])


def test_any5_counts_the_counters_above_zero_and_null_has_no_vote(tmp_path: Path) -> None:
    readings: dict[str, list[object]] = {
        "5": [1],
        "187": [0],
        "188": [None],
        "197": [8],
        "198": [8],
        "9": [100],
    }
    assert score_any5(rows_of(tmp_path, readings, 0)).score.tolist() == [3.0]


def test_any5_takes_the_low_word_of_a_packed_188(tmp_path: Path) -> None:
    # Two slow commands of 5 s and 7.5 s in the upper words, no timeout in the lowest.
    assert score_any5(rows_of(tmp_path, {"188": [(2 << 32) + (2 << 16)], "5": [0]}, 0)).score.tolist() == [
        0.0
    ]
    assert score_any5(
        rows_of(tmp_path, {"188": [(2 << 32) + (2 << 16) + 3], "5": [0]}, 0)
    ).score.tolist() == [1.0]


def test_smart_197_is_the_raw_value_of_the_day_and_none_is_nought(tmp_path: Path) -> None:
    assert smart_197(rows_of(tmp_path, {"197": [8, 16, 24]}, 1)).score.tolist() == [16.0]
    assert smart_197(rows_of(tmp_path, {"197": [None], "5": [0]}, 0)).score.tolist() == [0.0]


@pytest.mark.parametrize(("day", "score"), [(9, 0.0), (10, 1.0), (16, 1.0), (17, 0.0)])
def test_any5_rise_flags_for_seven_days_after_a_rise(tmp_path: Path, day: int, score: float) -> None:
    assert any5_rise(rows_of(tmp_path, {"187": [2] * 10 + [3] * 20, "5": [7] * 30}, day)).score.tolist() == [
        score
    ]


def test_a_fall_is_no_rise(tmp_path: Path) -> None:
    assert any5_rise(rows_of(tmp_path, {"197": [8] * 5 + [0] * 5}, 6)).score.tolist() == [0.0]


def test_only_the_drives_that_are_asked_for_are_scored(fleet: Path) -> None:
    history, truth = HistoryFiles([fleet], threads=1).read(), read_truth([fleet])
    drives = np.array(["Z001", "Z007"], dtype=object)
    (answer,) = peer_scores(
        ["level"], history, truth, DAY0 + np.array([105, 112]), split=DAY0 + 100, seed=1, drives=drives
    )
    assert answer.table is not None
    assert set(answer.table["serial_number"].to_pylist()) == {"Z001", "Z007"}


@pytest.mark.slow
def test_a_learner_learns_nothing_from_drives_that_its_truth_lacks(fleet: Path) -> None:
    history, truth = HistoryFiles([fleet], threads=1).read(), read_truth([fleet])
    known = np.arange(len(truth.serials)) % 2 == 0
    lied = replace(truth, death=np.where(known, truth.death, truth.first + 40))
    one, other = (
        peer_scores(
            ["rf5", "lgbm_plain"],
            history,
            told.select_drives(known),
            DAY0 + np.array([105]),
            split=DAY0 + 100,
            seed=1,
        )
        for told in (truth, lied)
    )
    whole = peer_scores(
        ["rf5", "lgbm_plain"], history, truth, DAY0 + np.array([105]), split=DAY0 + 100, seed=1
    )
    for taught, lied_to, all_known in zip(one, other, whole, strict=True):
        assert taught.table is not None
        assert taught.table.equals(lied_to.table)
        assert not taught.table.equals(all_known.table)


def test_lgbm_plain_sees_each_raw_value_and_its_differences_over_1_7_and_30_days(tmp_path: Path) -> None:
    readings: dict[str, list[object]] = {"5": [day * day for day in range(40)]}
    (seen,) = build_raw_features(rows_of(tmp_path, readings, 35))
    assert seen.tolist() == [35**2, 35**2 - 34**2, 35**2 - 28**2, 35**2 - 5**2]
    (early,) = build_raw_features(rows_of(tmp_path, readings, 3))
    assert early[:2].tolist() == [9.0, 5.0]
    assert np.isnan(early[2:]).all()


def test_a_row_holds_until_the_next_change(tmp_path: Path) -> None:
    pd.DataFrame(
        {
            "date": [START, START + timedelta(20)],
            "serial_number": "a",
            "model": "M",
            "smart_197_raw": [0, 8],
        }
    ).to_parquet(tmp_path / "a.parquet")
    history = HistoryFiles([tmp_path / "a.parquet"], threads=1).read()
    days = DAY0 + np.array([0, 19, 20, 99])
    assert smart_197(
        DriveDayRows.from_history(history, np.zeros(4, dtype=np.int64), days)
    ).score.tolist() == [
        0.0,
        0.0,
        8.0,
        8.0,
    ]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 drives over 150 days; a fifth dies, SMART 197 rising 15 days before; 5 is noise."""
    rng = np.random.default_rng(4)
    rows = []
    for number in range(300):
        dies = number % 5 == 0
        last = int(rng.integers(20, 150)) if dies else 149
        rows += [
            (START + timedelta(day), f"Z{number:03d}", "ST1", int(dies and day == last),
             int(rng.integers(0, 3)), 8 * max(0, day - last + 15) if dies else 0)
            for day in range(last + 1)
        ]  # fmt: skip
    path = tmp_path_factory.mktemp("fleet") / "days.parquet"
    columns = ["date", "serial_number", "model", "failure", "smart_5_raw", "smart_197_raw"]
    pd.DataFrame(rows, columns=columns).to_parquet(path)
    return path


def scores(
    path: Path, truth: Path, *, names: tuple[str, ...] = ALL, split: int = 100
) -> dict[str, pd.DataFrame]:
    history = HistoryFiles([path], threads=1).read()
    landmarks = DAY0 + np.array([105, 112])
    found = peer_scores(names, history, read_truth([truth]), landmarks, split=DAY0 + split, seed=1)
    return {
        answer.name: answer.table.to_pandas().sort_values(["serial_number", "date"])
        for answer in found
        if answer.table is not None
    }


@pytest.fixture(scope="module")
def whole(fleet: Path) -> dict[str, pd.DataFrame]:
    return scores(fleet, fleet)


@pytest.mark.slow
def test_the_learners_learn_and_say_probabilities_of_about_the_true_size(
    fleet: Path, whole: dict[str, pd.DataFrame]
) -> None:
    truth = pd.read_parquet(fleet)
    deaths = truth[truth.failure == 1].set_index("serial_number").date.to_dict()
    for name in ("rf5", "lgbm_plain", "lgbm_all_rows"):
        table = whole[name]
        left = np.array(
            [
                (deaths.get(s, date(2030, 1, 1)) - day).days
                for s, day in zip(table.serial_number, table.date, strict=True)
            ]
        )
        p = table.p_fail_30d.to_numpy()
        assert table.p_fail_30d.between(0, 1).all()
        assert p[(left > 0) & (left <= 14)].mean() > 3 * p[left > 14].mean()
        assert p[left > 0].mean() == pytest.approx(0.05, abs=0.04)


@pytest.mark.slow
def test_no_peer_sees_a_row_or_a_death_after_its_landmark_or_its_split(
    fleet: Path, whole: dict[str, pd.DataFrame], tmp_path: Path
) -> None:
    frame = pd.read_parquet(fleet)
    frame[frame.date <= START + timedelta(112)].drop(columns="failure").to_parquet(tmp_path / "cut.parquet")
    frame[frame.date <= START + timedelta(100)].to_parquet(tmp_path / "known.parquet")
    cut = scores(tmp_path / "cut.parquet", tmp_path / "known.parquet")
    for name in ALL:
        assert whole[name].reset_index(drop=True).equals(cut[name].reset_index(drop=True)), name


@pytest.fixture
def lesson(fleet: Path) -> TrainingHistory:
    """Return the training history of the small fleet with the split on day 100, asked about all drives on day 105."""
    history = HistoryFiles([fleet], threads=1).read()
    drive = np.arange(history.drives)
    asked = DriveDayRows.from_history(history, drive, np.full(history.drives, DAY0 + 105))
    return TrainingHistory(asked, read_truth([fleet]), split=DAY0 + 100, seed=7, threads=1)


@pytest.mark.slow
def test_a_booster_has_150_trees_of_at_most_8_leaves() -> None:
    rng = np.random.default_rng(3)
    x = rng.random((2000, 4), dtype=np.float32)
    booster = grow_booster(x, rng.random(2000) < x[:, 0] * x[:, 1], seed=1, threads=1)
    assert booster.num_trees() == 150
    assert max(tree["num_leaves"] for tree in booster.dump_model()["tree_info"]) == 8


def test_rows_are_known_every_third_day_where_three_days_are_asked_for(lesson: TrainingHistory) -> None:
    days = np.unique(lesson.select_known_rows(30, every=3).rows.day)
    assert days.tolist() == list(range(DAY0, DAY0 + 71, 3))


def test_a_sample_holds_20_healthy_rows_for_each_failing_one_or_every_healthy_row() -> None:
    failing = np.arange(1000) % 100 == 0
    chosen, share = sample_healthy_rows(failing, np.random.default_rng(1), 20)
    assert (failing[chosen].sum(), (~failing[chosen]).sum()) == (10, 200)
    assert share == 200 / 990
    chosen, share = sample_healthy_rows(failing, np.random.default_rng(1), None)
    assert chosen.tolist() == list(range(1000))
    assert share == 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("peer", "healthy", "leaf_hessian"), [(lgbm_plain, 20, 0.001), (lgbm_all_rows, None, 1.0)]
)
def test_a_boosted_peer_is_the_mean_of_three_seeds_on_rows_of_every_third_day(
    lesson: TrainingHistory,
    peer: Callable[[TrainingHistory], PeerVerdict],
    healthy: int | None,
    leaf_hessian: float,
) -> None:
    known, chances = lesson.select_known_rows(30, every=3), []
    for seed in (21, 22, 23):
        chosen, share = sample_healthy_rows(known.died, np.random.default_rng(seed), healthy)
        rows = build_raw_features(known.rows.select_rows(chosen))
        booster = grow_booster(rows, known.died[chosen], seed, threads=1, leaf_hessian=leaf_hessian)
        chances.append(lower_odds(np.asarray(booster.predict(build_raw_features(lesson.asked))), share))
    assert peer(lesson).score.tolist() == pytest.approx(np.mean(chances, axis=0).tolist())


@pytest.mark.slow
def test_lgbm_plain_answers_the_same_for_the_same_seed_and_otherwise_for_another(
    lesson: TrainingHistory,
) -> None:
    first, again = lgbm_plain(lesson).score, lgbm_plain(lesson).score
    assert first.tolist() == again.tolist()
    assert first.tolist() != lgbm_plain(replace(lesson, seed=8)).score.tolist()


@pytest.mark.slow
def test_a_learner_without_a_failure_to_learn_from_is_not_computable(fleet: Path) -> None:
    history, truth = HistoryFiles([fleet], threads=1).read(), read_truth([fleet])
    asked = DAY0 + np.array([105])
    found = peer_scores(["rf5", "redhat_recipe"], history, truth, asked, split=DAY0 + 20, seed=1)
    assert [(answer.table, "split later" in answer.note) for answer in found] == [(None, True)] * 2


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.integers(0, 30))
def test_rules_agree_with_a_plain_loop_over_days(
    tmp_path_factory: pytest.TempPathFactory, raw: list[int], day: int
) -> None:
    rows = rows_of(tmp_path_factory.mktemp("one"), {"187": list(raw)}, day)
    held = lambda at: raw[min(at, len(raw) - 1)] if at >= 0 else None  # noqa: E731
    now, before = held(day), held(day - 7)
    assert score_any5(rows).score.tolist() == [float(now is not None and now > 0)]
    assert any5_rise(rows).score.tolist() == [float(now is not None and before is not None and now > before)]


def test_any4_has_no_vote_for_188(tmp_path: Path) -> None:
    readings = {"5": [1], "187": [1], "188": [9], "197": [1], "198": [0]}
    assert said(rows_of(tmp_path, readings, 0), score_any4) == (3.0, "bad")
    assert said(rows_of(tmp_path, {"188": [9], "5": [0]}, 0), score_any4) == (0.0, "good")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("smart_id", "raw", "status"),
    [
        ("5", 16, "good"), ("5", 17, "bad"), ("5", 70_000, "bad"), ("5", 70_001, "warning"),
        ("10", 0, "good"), ("10", 1, "bad"), ("10", 81, "warning"),
        ("187", 1, "bad"), ("187", 121, "warning"),
        ("188", 100, "good"), ("188", 101, "bad"), ("188", 60_000, "bad"),
        ("197", 1, "good"), ("197", 2, "bad"), ("197", 1601, "warning"),
        ("198", 1, "bad"), ("198", 17, "warning"),
        ("196", 11, "good"), ("196", 12, "bad"), ("196", 20, "good"), ("196", 28, "bad"), ("196", 46, "warning"),
        ("183", 3, "bad"), ("11", 81, "warning"),
        ("199", 17, "bad"), ("199", 50, "good"), ("199", 71, "bad"), ("189", 31, "bad"),
        ("smart_184_normalized", 97, "good"), ("smart_184_normalized", 98, "bad"),
    ],
)  # fmt: skip
def test_scrutiny_fails_in_its_buckets_and_only_warns_above_the_last(
    tmp_path: Path, smart_id: str, raw: int, status: str
) -> None:
    rows = rows_of(tmp_path, {smart_id: [raw], "9": [1]}, 0)
    assert said(rows, apply_scrutiny_thresholds) == (
        {"bad": 2.0, "warning": 1.0, "good": 0.0}[status],
        status,
    )


def test_a_drive_that_scrutiny_has_failed_stays_failed_and_a_warning_does_not_last(tmp_path: Path) -> None:
    assert said(rows_of(tmp_path, {"197": [0, 8, 0, 0]}, 0), apply_scrutiny_thresholds) == (0.0, "good")
    assert said(rows_of(tmp_path, {"197": [0, 8, 0, 0]}, 3), apply_scrutiny_thresholds) == (2.0, "bad")
    assert said(rows_of(tmp_path, {"198": [99, 0]}, 0), apply_scrutiny_thresholds) == (1.0, "warning")
    assert said(rows_of(tmp_path, {"198": [99, 0]}, 1), apply_scrutiny_thresholds) == (0.0, "good")


def test_scrutiny_keeps_drives_apart(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"date": [START] * 2, "serial_number": ["a", "b"], "model": "M", "smart_197_raw": [8, 0]}
    )
    frame.to_parquet(tmp_path / "two.parquet")
    history = HistoryFiles([tmp_path / "two.parquet"], threads=1).read()
    rows = DriveDayRows.from_history(history, np.array([0, 1]), np.array([DAY0, DAY0]))
    assert apply_scrutiny_thresholds(rows).score.tolist() == [2.0, 0.0]


def test_hdsentinel_multiplies_the_shares_that_each_trouble_leaves(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, {"5": [10], "197": [5], "10": [100]}, 0)
    # 5 takes 10 %, 197 takes 3 %, 10 its limit of 60 %.
    assert said(rows, hdsentinel) == (pytest.approx(100 - 100 * 0.90 * 0.97 * 0.40), "bad")
    assert said(rows, hdsentinel_strict) == (pytest.approx(100 - 100 * 0.40 * 0.80 * 0.60), "bad")
    assert said(rows_of(tmp_path, {"5": [10]}, 0), hdsentinel) == (pytest.approx(10.0), "warning")
    assert said(rows_of(tmp_path, {"5": [0], "197": [None]}, 0), hdsentinel) == (0.0, "good")


def test_the_vendor_alarms_at_its_threshold_and_never_where_that_is_nought(tmp_path: Path) -> None:
    trips = {"smart_5_normalized": [36], "smart_10_normalized": [100], "smart_187_normalized": [0]}
    assert said(rows_of(tmp_path, trips, 0, model="ST3500418AS"), apply_vendor_thresholds) == (1.0, "bad")
    well = {"smart_5_normalized": [37], "smart_187_normalized": [0]}
    assert said(rows_of(tmp_path, well, 0, model="ST3500418AS"), apply_vendor_thresholds) == (0.0, "good")


def test_the_vendor_is_not_computable_without_normalised_values_or_thresholds(tmp_path: Path) -> None:
    with pytest.raises(NotComputable, match="no normalised values"):
        apply_vendor_thresholds(rows_of(tmp_path, {"5": [0]}, 0, model="ST3500418AS"))
    with pytest.raises(NotComputable, match="no threshold"):
        apply_vendor_thresholds(rows_of(tmp_path, {"smart_5_normalized": [1]}, 0, model="ST4000DM000"))


def test_the_red_hat_recipe_takes_mean_spread_and_ratio_of_six_days(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, {"5": [0, 1, 2, 3, 4, 5, 6]}, 6)
    mean, spread, ratio = compute_window_statistics(rows, [5], [])[0]
    assert (mean, spread) == (3.5, pytest.approx(np.std([1, 2, 3, 4, 5, 6], ddof=1)))
    assert ratio == pytest.approx(spread / mean)
    assert compute_window_statistics(rows_of(tmp_path, {"5": [0] * 7}, 6), [5], [])[0].tolist() == [
        0.0,
        0.0,
        0.0,
    ]


@pytest.mark.slow
def test_the_red_hat_recipe_flags_what_is_about_to_fail_and_says_what_it_lacks(fleet: Path) -> None:
    history = HistoryFiles([fleet], threads=1).read()
    (answer,) = peer_scores(
        ["redhat_recipe"], history, read_truth([fleet]), DAY0 + np.array([105, 112]), split=DAY0 + 100, seed=1
    )
    assert answer.table is not None
    table = answer.table.to_pandas()
    truth = pd.read_parquet(fleet)
    deaths = truth[truth.failure == 1].set_index("serial_number").date
    left = (pd.to_datetime(table.serial_number.map(deaths)) - pd.to_datetime(table.date)).dt.days
    dying, living = (left > 0) & (left < 14), left.isna()
    assert (table[dying].status == "bad").mean() > 0.8
    assert (table[living].status == "bad").mean() < 0.02
    assert "all normalised values" in answer.note


def test_a_peer_that_cannot_be_computed_reports_the_reason_and_an_unknown_peer_is_refused(
    fleet: Path,
) -> None:
    history, truth = HistoryFiles([fleet], threads=1).read(), read_truth([fleet])
    ask = {"split": DAY0 + 100, "seed": 1}
    found = peer_scores(["vendor", "ceph_prophetstor"], history, truth, np.array([DAY0 + 105]), **ask)
    assert [answer.table for answer in found] == [None, None]
    assert "normalised" in found[0].note
    assert "pickle" in found[1].note
    with pytest.raises(UnknownPeer, match="any5"):
        peer_scores(["any6"], history, truth, np.array([DAY0 + 105]), **ask)
