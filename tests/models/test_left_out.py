"""A left-out set is judged by a forecaster that has learned from none of its drives, and each drive once."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import predrain.models.lab.backtest.backtest_origin as one_origin
from predrain.data.history import EPOCH
from predrain.models.evaluate import FailureTruth, evaluate_forecasts, read_scores, read_truth
from predrain.models.forecast.bundle import Bundle
from predrain.models.forecast.training import TooLittleHistory, Trained, train_forecaster
from predrain.models.lab.backtest import (
    Backtest,
    BacktestPlan,
    LeaveOutKind,
    LeftOutTrial,
    UnknownLeaveOut,
    parse_leave_out,
    run_backtest,
)
from predrain.models.lab.backtest.left_out_drives import LeftOutSet, find_left_out_sets
from predrain.models.lab.backtest.unseen_drives import KNOWING, POOLED
from predrain.models.lab.report.left_out_rows import compute_kept_share, find_better_rule, left_out_tables
from predrain.service.cli import main

DRIVES = Path(__file__).resolve().parents[1] / "data" / "drives"
DAILY, CHANGES, TABLE = (DRIVES / f"{name}.parquet" for name in ("daily", "changes", "drives"))
SPLIT = date(2015, 6, 30)
SPLIT_DAY = (SPLIT - EPOCH).days
LANDMARKS = np.arange(SPLIT_DAY + 1, SPLIT_DAY + 120, 7)
NAMES = (
    "ST4000DM000", "ST31500541AS", "Hitachi HDS722020ALA330", "HGST HMS5C4040ALE640", "WDC WD30EFRX",
    "WDC WD10EADS", "TOSHIBA MD04ABA400V", "SAMSUNG HD154UI", "X100",
)  # fmt: skip


def truth_of(drives: list[tuple[str, int, int | None]]) -> FailureTruth:
    """drives: model, days from the split to the first day in service, days from the split to death or None."""
    n = len(drives)
    end = SPLIT_DAY + 200
    death = np.array([2**19 if died is None else SPLIT_DAY + died for _, _, died in drives])
    return FailureTruth(
        serials=np.array([f"s{number}" for number in range(n)], dtype=object),
        models=np.array([model for model, _, _ in drives], dtype=object),
        first=np.array([SPLIT_DAY + first for _, first, _ in drives]),
        last=np.minimum(death, end),
        death=death,
        daily=np.zeros(n, dtype=bool),
        left_out=np.zeros(n, dtype=bool),
        end=end,
        reading_key=np.empty(0, np.int64),
        symptomatic=np.empty(0, bool),
        hours=np.empty(0),
    )


def sets_of(truth: FailureTruth, *wanted: str, models: tuple[str, ...] = ()) -> dict[str, LeftOutSet]:
    asked = [parse_leave_out(text) for text in wanted]
    return {one.name: one for one in find_left_out_sets(asked, truth, LANDMARKS, models, SPLIT, SPLIT_DAY)}


def dying(model: str, deaths: int) -> list[tuple[str, int, int | None]]:
    """So many drives that die in the judged days, and one that lives."""
    return [(model, -100, 50)] * deaths + [(model, -100, None)]


def test_hitachi_and_hgst_are_one_maker_and_makers_with_few_deaths_are_one_set() -> None:
    truth = truth_of([
        *dying("Hitachi HDS722020ALA330", 10), *dying("HGST HMS5C4040ALE640", 10), *dying("ST4000DM000", 30),
        *dying("WDC WD30EFRX", 19), *dying("TOSHIBA MD04ABA400V", 2),
    ])  # fmt: skip
    sets = sets_of(truth, "maker")
    assert sets.keys() == {"HGST", "Seagate", "other makers"}
    assert sets["HGST"].models == {"Hitachi HDS722020ALA330", "HGST HMS5C4040ALE640"}
    assert sets["other makers"].models == {"WDC WD30EFRX", "TOSHIBA MD04ABA400V"}


def test_models_with_few_deaths_are_left_out_with_their_makers_others_and_what_is_still_rare_together() -> (
    None
):
    truth = truth_of([
        *dying("ST4000DM000", 20), *dying("ST31500541AS", 15), *dying("ST3000DM001", 15),
        *dying("WDC WD30EFRX", 10), *dying("HGST HMS5C4040ALE640", 3),
    ])  # fmt: skip
    sets = sets_of(truth, "model")
    assert {name: one.models for name, one in sets.items()} == {
        "ST4000DM000": {"ST4000DM000"},
        "other Seagate models": {"ST31500541AS", "ST3000DM001"},
        "other models": {"WDC WD30EFRX", "HGST HMS5C4040ALE640"},
    }


def test_a_set_holds_models_that_only_a_history_to_learn_from_has() -> None:
    truth = truth_of([*dying("ST4000DM000", 20), *dying("WDC WD30EFRX", 20)])
    assert sets_of(truth, "maker", models=("ST12000NM0007",))["Seagate"].models == {
        "ST4000DM000",
        "ST12000NM0007",
    }


def test_a_death_before_the_judged_days_does_not_make_a_set() -> None:
    truth = truth_of([("WDC WD30EFRX", -100, -1)] * 30 + dying("WDC WD30EFRX", 1) + dying("ST4000DM000", 20))
    assert sets_of(truth, "maker").keys() == {"Seagate", "other makers"}


def test_an_era_is_the_models_of_which_no_drive_was_in_service_by_the_split() -> None:
    truth = truth_of([
        ("ST4000DM000", -5, None), ("ST4000DM000", 10, 60), ("ST8000DM002", 0, None), ("ST6000DX000", 1, 70),
    ])  # fmt: skip
    assert [one.models for one in sets_of(truth, "era").values()] == [{"ST6000DX000"}]


def test_one_set_is_left_out_by_its_name_and_an_unknown_one_is_refused_with_the_known() -> None:
    truth = truth_of([*dying("ST4000DM000", 20), *dying("WDC WD30EFRX", 20)])
    assert sets_of(truth, "maker=WDC").keys() == {"WDC"}
    with pytest.raises(UnknownLeaveOut, match="no left-out maker Maxtor; known are Seagate, WDC"):
        sets_of(truth, "maker=Maxtor")


@pytest.mark.parametrize("text", ["vendor", "maker=", "", "era2"])
def test_a_group_that_is_neither_maker_nor_model_nor_era_cannot_be_left_out(text: str) -> None:
    with pytest.raises(UnknownLeaveOut, match="give maker, model or era"):
        parse_leave_out(text)


@given(
    st.lists(
        st.tuples(st.sampled_from(NAMES), st.integers(-50, 5), st.none() | st.integers(-40, 150)),
        max_size=120,
    ),
    st.sampled_from(["maker", "model"]),
)
def test_every_drive_at_risk_belongs_to_one_set_and_a_model_to_no_two(
    drives: list[tuple[str, int, int | None]], kind: str
) -> None:
    truth = truth_of([(model, first, died) for model, first, died in drives if died is None or died > first])
    sets = list(sets_of(truth, kind).values())
    held = (
        np.sum([one.find_member_drives(truth) for one in sets], axis=0)
        if sets
        else np.zeros(len(truth.serials))
    )
    assert (held <= 1).all()
    at_risk = (truth.first <= LANDMARKS[-1]) & (truth.last > np.maximum(LANDMARKS[0], truth.first + 6))
    assert (held[at_risk] == 1).all()


def test_the_truth_of_some_drives_alone_is_that_of_files_with_only_these(tmp_path: Path) -> None:
    whole = read_truth([CHANGES, TABLE])
    kept = np.arange(len(whole.serials)) % 3 == 0
    for path in (CHANGES, TABLE):
        frame = pd.read_parquet(path)
        frame[frame.serial_number.isin(whole.serials[kept])].to_parquet(tmp_path / path.name)
    few, expected = whole.select_drives(kept), read_truth([tmp_path / CHANGES.name, tmp_path / TABLE.name])
    order, other = np.argsort(few.serials), np.argsort(expected.serials)
    for name in ("serials", "models", "first", "last", "death", "left_out"):
        assert getattr(few, name)[order].tolist() == getattr(expected, name)[other].tolist()
    day = np.full(len(order), (date(2015, 7, 1) - EPOCH).days)
    seen, known = few.find_latest_readings(order, day), expected.find_latest_readings(other, day)
    assert few.hours[seen].tolist() == expected.hours[known].tolist()
    assert (np.diff(few.reading_key) >= 0).all()


def test_a_history_of_which_every_drive_is_excluded_leaves_nothing_to_learn_from() -> None:
    everyone = frozenset(pd.read_parquet(DAILY).serial_number)
    with pytest.raises(TooLittleHistory, match="No drive is left"):
        train_forecaster([DAILY], name="nobody", exclude=everyone, threads=1)


@pytest.mark.slow
def test_a_source_of_which_every_drive_is_excluded_sets_no_thresholds() -> None:
    everyone = frozenset(pd.read_parquet(DAILY).serial_number)
    both = train_forecaster(
        [DAILY, CHANGES, TABLE], name="one", until=date(2018, 3, 31), exclude=everyone, threads=1
    )
    alone = train_forecaster(
        [CHANGES, TABLE], name="one", until=date(2018, 3, 31), exclude=everyone, threads=1
    )
    assert both.facts.thresholds == alone.facts.thresholds
    assert both.booster.model_to_string() == alone.booster.model_to_string()


PLAN = BacktestPlan(
    splits=(date(2014, 6, 30),),
    judge_days=600,
    every=14,
    peers=("level", "rise", "rf5"),
    leave_out=(parse_leave_out("model"), parse_leave_out("era")),
    resamples=5,
    threads=1,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("left_out")


@pytest.fixture(scope="module")
def tried(folder: Path) -> Backtest:
    """650 real drives of many models, one kind of set after the other left out."""
    return run_backtest([CHANGES, TABLE], PLAN, folder)


def trials_of(tried: Backtest) -> dict[str, LeftOutTrial]:
    (fleet,) = tried.fleets
    return {trial.left_out.name: trial for trial in fleet.origins[0].left_out}


@pytest.mark.slow
def test_each_set_is_judged_on_its_own_drives_and_all_sets_together_on_all_of_them(tried: Backtest) -> None:
    trials = trials_of(tried)
    of_models = [one for one in trials.values() if one.left_out.kind is LeaveOutKind.MODEL]
    (pooled,) = (one for one in of_models if one.left_out.name == POOLED)
    single = [one for one in of_models if one is not pooled]
    assert {one.left_out.name for one in single} == {
        "ST4000DM000",
        "ST3000DM001",
        "other Seagate models",
        "other models",
    }
    counts = tried.fleets[0].report.counts
    assert (
        sum(one.report.counts.failures for one in single) == pooled.report.counts.failures == counts.failures
    )
    assert sum(one.report.counts.rows for one in single) == pooled.report.counts.rows == counts.rows
    for one in of_models:
        assert [judged.name for judged in one.report.judged] == ["predrain", KNOWING, "level", "rise", "rf5"]


def _read_trees(bundle: Bundle | Trained) -> str:
    """The trees alone: the header names the columns' ranges, and those of the left-out drives differ."""
    return bundle.booster.model_to_string().partition("\nTree=0\n")[2].partition("\nend of trees")[0]


@pytest.mark.slow
def test_a_forecaster_learns_the_same_where_the_left_out_drives_are_in_no_file(
    tried: Backtest, folder: Path, tmp_path: Path
) -> None:
    table, changes = pd.read_parquet(TABLE), pd.read_parquet(CHANGES)
    gone = set(changes[changes.model == "ST4000DM000"].serial_number)
    for frame, path in ((table, TABLE), (changes, CHANGES)):
        frame[~frame.serial_number.isin(gone)].to_parquet(tmp_path / path.name)
    alone = train_forecaster(
        [tmp_path / CHANGES.name, tmp_path / TABLE.name], name="alone", until=PLAN.splits[0], threads=1
    )
    kept = Bundle.load(folder / "changes" / "2014-06-30" / "leave-out" / "model" / "ST4000DM000" / "bundle")
    assert kept.facts.counts["excluded"] == len(gone)
    assert kept.facts.counts["deaths"] == alone.facts.counts["deaths"]
    assert kept.facts.thresholds == alone.facts.thresholds
    assert "ST4000DM000" not in kept.facts.rates.models
    assert _read_trees(kept) == _read_trees(alone)


@pytest.mark.slow
def test_an_era_is_judged_with_the_bundle_of_all_and_without_a_second_training(
    tried: Backtest, folder: Path
) -> None:
    trial = trials_of(tried)["models first seen after 2014-06-30"]
    assert KNOWING not in {one.name for one in trial.report.judged}
    assert not (folder / "changes" / "2014-06-30" / "leave-out" / "era").exists()
    truth = read_truth([CHANGES, TABLE])
    scores = read_scores(tried.fleets[0].origins[0].scores)
    again = evaluate_forecasts(
        truth.select_drives(trial.left_out.find_member_drives(truth)),
        [("ours", scores)],
        resamples=1,
        landmarks=tried.fleets[0].origins[0].origin.landmarks,
    )
    assert again.counts == trial.report.counts
    assert again.judged[0].figures["pr_auc"].value == trial.report.judged[0].figures["pr_auc"].value


@pytest.mark.slow
def test_a_run_that_resumes_trains_nothing_again_and_says_the_same(
    tried: Backtest, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(one_origin, "train_forecaster", refuse)
    again = run_backtest([CHANGES, TABLE], replace(PLAN, resume=True), folder)
    for name, trial in trials_of(tried).items():
        # An unknown figure is no number, which equals nothing: the texts are compared.
        assert str(trials_of(again)[name].report) == str(trial.report)


@pytest.mark.slow
def test_a_bundle_of_another_split_or_of_other_drives_is_not_taken_up(folder: Path, tried: Backtest) -> None:
    place = folder / "changes" / "2014-06-30" / "bundle"
    known = Bundle.load(place).facts
    assert tried.fleets
    load = one_origin.load_kept_bundle
    assert load(place, known.name, PLAN.splits[0], 0) is not None
    assert load(place, "another", PLAN.splits[0], 0) is None
    assert load(place, known.name, date(2014, 7, 1), 0) is None
    assert load(place, known.name, PLAN.splits[0], 1) is None
    assert load(folder / "nothing", known.name, PLAN.splits[0], 0) is None


@pytest.mark.slow
def test_the_tables_hold_a_row_for_each_set_and_name_the_better_rule(tried: Backtest) -> None:
    (fleet,) = tried.fleets
    figures, differences, of_era, _ = left_out_tables(fleet)
    assert [row[0] for row in figures.rows] == [
        "ST3000DM001", "ST4000DM000", "other Seagate models", "other models", POOLED,
    ]  # fmt: skip
    assert [row[0] for row in of_era.rows] == ["models first seen after 2014-06-30"]
    assert len(differences.rows) == 5 * 4
    for trial, row in zip(fleet.origins[0].left_out, figures.rows, strict=False):
        values = {one.name: one.figures["recall_at_1pct"].value for one in trial.report.judged}
        rule = find_better_rule(trial.report, "recall_at_1pct")
        assert rule in ("level", "rise")
        assert values[rule] == max(values["level"], values["rise"])
        assert rule in row[5]
        share = compute_kept_share(trial.report, "recall_at_1pct")
        assert np.isnan(share) or share == values["predrain"] / values[KNOWING]


@pytest.mark.slow
def test_the_command_judges_one_set_by_its_name_and_its_page_shows_it(
    tried: Backtest, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tried.fleets
    asked = ["backtest", str(CHANGES), str(TABLE), "--split", "2014-06-30", "--judge-days", "600", "--every", "14",
             "--peers", "level", "--leave-out", "model=ST4000DM000", "--resume", "--resamples", "5", "--threads", "1",
             "--out", str(folder)]  # fmt: skip
    assert main(asked) == 0
    assert "Models left out of the training" in capsys.readouterr().out
    assert "On drives that it has not learned from" in (folder / "report.html").read_text()
    (fleet,) = msgspec.json.decode((folder / "backtest.json").read_bytes())["backtest"]["fleets"]
    (trial,) = fleet["origins"][0]["left_out"]
    assert (trial["left_out"]["kind"], trial["left_out"]["name"]) == ("model", "ST4000DM000")


@pytest.mark.slow
def test_a_set_without_which_too_few_deaths_are_known_is_told_and_the_others_are_judged(
    tried: Backtest, folder: Path
) -> None:
    assert tried.fleets
    plan = replace(PLAN, leave_out=(parse_leave_out("maker=Seagate"), parse_leave_out("era")), resume=True)
    again = run_backtest([CHANGES, TABLE], plan, folder)
    assert "without maker Seagate: Only" in " ".join(again.left_out)
    assert trials_of(again).keys() == {"models first seen after 2014-06-30"}
