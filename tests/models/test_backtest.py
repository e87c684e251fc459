"""A backtest learns only from before its split, judges each day once, and finds a forecast that looks ahead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import predrain.models.lab.backtest.backtest_origin as one_origin
from predrain.data.history import EPOCH
from predrain.models.evaluate import Report, read_truth
from predrain.models.evaluate.cohort import gather_cohort
from predrain.models.forecast.bundle import Bundle
from predrain.models.forecast.history_scores import Scored, score_landmark_days
from predrain.models.forecast.provenance import digest_histories
from predrain.models.lab.backtest import (
    BacktestPlan,
    NothingTried,
    fleets_of,
    origins_of,
    run_backtest,
    without_fates,
)
from predrain.models.lab.backtest.backtest_origin import Tried, try_origin
from predrain.service.cli import main

DRIVES = Path(__file__).resolve().parents[1] / "data" / "drives"
DAILY, CHANGES, TABLE = (DRIVES / f"{name}.parquet" for name in ("daily", "changes", "drives"))
START, END = date(2018, 1, 1), date(2018, 12, 31)
DAYS = st.dates(START, END)


@given(
    st.sets(DAYS, max_size=5),
    st.integers(1, 5),
    st.integers(1, 120),
    st.integers(0, 40),
    st.integers(1, 14),
)
def test_each_landmark_is_after_its_split_and_its_embargo_and_is_judged_once(
    splits: set[date], count: int, judge_days: int, embargo: int, every: int
) -> None:
    origins = origins_of(
        START, END, splits=tuple(splits), count=count, judge_days=judge_days, embargo=embargo, every=every
    )
    days = [int(day) for origin in origins for day in origin.landmarks]
    assert len(days) == len(set(days))
    for origin in origins:
        first = (origin.split - EPOCH).days + 1 + embargo
        assert origin.split >= START
        assert all(first <= day < first + judge_days for day in origin.landmarks)
        assert all(day <= (END - EPOCH).days for day in origin.landmarks)
        assert len(origin.landmarks)
    assert [origin.split for origin in origins] == sorted(
        split for split in (splits or {o.split for o in origins}) if START <= split < END - timedelta(embargo)
    )


def test_without_splits_the_last_judged_day_is_the_last_of_the_history() -> None:
    origins = origins_of(START, END, count=3, judge_days=30, embargo=5)
    assert [origin.last for origin in origins] == [END - timedelta(60), END - timedelta(30), END]
    assert all(origin.first - origin.split == timedelta(6) for origin in origins)


def test_a_landmark_belongs_to_the_latest_split_that_permits_it() -> None:
    early, late = origins_of(
        START, END, splits=(date(2018, 3, 1), date(2018, 4, 1)), judge_days=90, embargo=10
    )
    assert (early.last, late.first) == (date(2018, 4, 11), date(2018, 4, 12))


def test_daily_files_and_change_points_are_two_fleets_with_their_own_truth() -> None:
    daily, changes = fleets_of([CHANGES, DAILY, TABLE], threads=1)
    assert (daily.name, daily.readings, daily.truth) == ("daily", (DAILY,), (DAILY,))
    assert (changes.name, changes.readings, changes.truth) == ("changes", (CHANGES,), (CHANGES, TABLE))
    assert (daily.start, daily.end) == (date(2018, 1, 1), date(2018, 6, 30))


def test_the_scored_readings_hold_no_fate_and_repeat_each_drives_last_row_at_each_landmark(
    tmp_path: Path,
) -> None:
    truth = read_truth([CHANGES, TABLE])
    landmarks = np.array([(date(2015, 7, 1) - EPOCH).days, (date(2015, 7, 8) - EPOCH).days])
    without_fates([CHANGES], tmp_path / "readings.parquet", truth, landmarks)
    source, seen = pd.read_parquet(CHANGES), pd.read_parquet(tmp_path / "readings.parquet")
    carried = seen[seen.snapshot]
    in_service = pd.read_parquet(TABLE)
    for day in (date(2015, 7, 1), date(2015, 7, 8)):
        alive = in_service[(in_service.first_date <= day) & (in_service.last_date > day)]
        rows = carried[carried.date == day]
        assert set(rows.serial_number) == set(alive.serial_number)
        held = source[(source.date <= day) & source.serial_number.isin(rows.serial_number)]
        last = held.sort_values(["serial_number", "date", "smart_9_raw"], kind="stable").groupby(
            "serial_number", observed=True
        )
        expected = last.smart_197_raw.last().astype(float)
        found = rows.set_index("serial_number").smart_197_raw.astype(float)
        assert found.dropna().sort_index().equals(expected[found.dropna().index].sort_index())
    assert len(seen) == len(source) + len(carried)


def test_a_daily_history_is_scored_as_it_is_without_its_failure_column(tmp_path: Path) -> None:
    without_fates([DAILY], tmp_path / "r.parquet", read_truth([DAILY]), np.array([17700]))
    assert pd.read_parquet(tmp_path / "r.parquet").equals(pd.read_parquet(DAILY).drop(columns="failure"))


SPLIT = date(2018, 3, 31)
SMALL = BacktestPlan(
    splits=(SPLIT,), judge_days=90, peers=("any5", "ceph_prophetstor"), resamples=20, threads=1
)


def tried_on(learned_from: list[Path], place: Path) -> Tried:
    (fleet,) = fleets_of([DAILY], threads=1)
    (origin,) = origins_of(fleet.start, fleet.end, splits=(SPLIT,), judge_days=90)
    return try_origin(fleet, read_truth([DAILY]), learned_from, origin, SMALL, place, lambda _: None)


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Tried:
    """One origin on 86 real drives, learned from them and from 650 of an earlier fleet."""
    return tried_on([DAILY, CHANGES, TABLE], tmp_path_factory.mktemp("whole"))


@pytest.mark.slow
def test_a_history_that_ends_on_the_split_teaches_the_same(tried: Tried, tmp_path: Path) -> None:
    frame = pd.read_parquet(DAILY)
    frame[frame.date <= SPLIT].to_parquet(tmp_path / "daily.parquet", index=False)
    cut = tried_on([tmp_path / "daily.parquet", CHANGES, TABLE], tmp_path / "cut")
    assert cut.trial.learned_from == tried.trial.learned_from
    assert cut.trial.thresholds == tried.trial.thresholds
    ours, theirs = (pd.read_parquet(one.trial.scores) for one in (tried, cut))
    assert ours.equals(theirs)


@pytest.mark.slow
def test_an_honest_forecast_does_not_look_ahead(tried: Tried) -> None:
    assert tried.trial.looked_ahead.rows > 50
    assert tried.trial.looked_ahead.differences == ()


@pytest.fixture
def bundle_at_hand(tried: Tried, monkeypatch: pytest.MonkeyPatch) -> None:
    """Training takes seconds: the bundle of `tried` is taken instead."""
    bundle = Bundle.load(tried.trial.scores.parent / "bundle")
    facts = bundle.facts
    monkeypatch.setattr(
        one_origin, "train_forecaster", lambda *_args, **_options: type("Trained", (), {"facts": facts})
    )
    monkeypatch.setattr(one_origin, "save_trained_bundle", lambda *_args: None)
    monkeypatch.setattr(one_origin.Bundle, "load", lambda _place: bundle)


@pytest.mark.slow
@pytest.mark.usefixtures("bundle_at_hand")
def test_a_forecast_that_looks_ahead_is_found_and_ends_the_command_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def peeking(paths: list[Path], *options: object, **named: object) -> Iterator[Scored]:
        """Raises the chance of drives whose last row in the file is a day before the data's end."""
        frame = pd.read_parquet(paths[0], columns=["serial_number", "date"])
        ends = frame.groupby("serial_number").date.max()
        doomed = set(ends[ends < frame.date.max()].index)
        for part in score_landmark_days(paths, *options, **named):  # type: ignore[arg-type]
            table = part.table.to_pandas()
            p = np.where(table.serial_number.isin(doomed), 0.9, table.p_fail_30d)
            at = part.table.column_names.index("p_fail_30d")
            yield Scored(part.table.set_column(at, "p_fail_30d", [p.tolist()]), part.told)

    monkeypatch.setattr(one_origin, "score_landmark_days", peeking)
    asked = ["backtest", str(DAILY), "--split", SPLIT.isoformat(), "--judge-days", "90", "--peers", "any5",
             "--resamples", "5", "--threads", "1", "--out", str(tmp_path / "trial")]  # fmt: skip
    assert main(asked) == 1
    assert "looks ahead" in capsys.readouterr().err
    page = (tmp_path / "trial" / "report.html").read_text()
    assert "The forecast looked ahead" in page
    assert "Trust nothing" in page


@pytest.mark.slow
@pytest.mark.usefixtures("bundle_at_hand")
@pytest.mark.filterwarnings("ignore")
def test_a_tracked_backtest_is_a_run_with_our_figures_and_those_of_each_peer(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="the extra `tracking` is not installed")
    track = f"sqlite:///{tmp_path / 'runs.sqlite'}"
    asked = ["backtest", str(DAILY), "--split", SPLIT.isoformat(), "--judge-days", "60", "--peers", "any5",
             "--resamples", "5", "--threads", "1", "--tracking-uri", track]  # fmt: skip
    assert main(asked) == 0
    client = mlflow.MlflowClient(tracking_uri=track)
    (run,) = client.search_runs([client.get_experiment_by_name("predrain").experiment_id])
    assert run.data.tags["kind"] == "backtest"
    assert run.data.params["splits"] == SPLIT.isoformat()
    assert run.data.params["histories_sha256"] == digest_histories([DAILY])
    for figure in ("recall_at_0.1pct", "recall_at_1pct", "pr_auc"):
        assert 0 <= run.data.metrics[figure] <= 1
        assert 0 <= run.data.metrics[f"any5/{figure}"] <= 1
    assert {"brier_skill_30d", "expected_over_observed_30d", "failures"} <= run.data.metrics.keys()


@pytest.mark.slow
@pytest.mark.usefixtures("bundle_at_hand")
def test_the_report_and_its_json_say_the_same_and_what_is_no_evidence(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text('[policy]\nmode = "act"\n')
    asked = ["backtest", str(DAILY), "--split", SPLIT.isoformat(), "2018-05-10", "--judge-days", "60", "--peers",
             "any5", "ceph_prophetstor", "--policy", str(tmp_path / "policy.toml"), "--resamples", "5",
             "--threads", "1", "--out", str(tmp_path / "trial")]  # fmt: skip
    assert main(asked) == 0
    told = msgspec.json.decode((tmp_path / "trial" / "backtest.json").read_bytes())
    page = (tmp_path / "trial" / "report.html").read_text()
    (fleet,) = told["backtest"]["fleets"]
    assert [one["origin"]["split"] for one in fleet["origins"]] == ["2018-03-31", "2018-05-10"]
    counts = fleet["report"]["counts"]
    by_origin = [one["report"]["counts"]["rows"] for one in fleet["origins"]]
    assert counts["rows"] == sum(by_origin)
    assert f"Of {counts['failures']} failures" in page
    assert counts["failures"] < 30
    assert "no figure below is evidence" in page
    assert "ceph_prophetstor: its 75 support vector machines" in page
    assert {judged["name"] for judged in fleet["report"]["judged"]} == {"predrain", "any5"}
    assert len(told["worth"]["daily"]) == 5
    assert "Worth in bytes" in page
    assert page.count("<svg") == page.count("<figure") == 7
    assert "<script" not in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_a_split_outside_every_history_is_refused_with_their_spans(tmp_path: Path) -> None:
    with pytest.raises(NothingTried, match="daily 2018-01-01 to 2018-06-30"):
        run_backtest([DAILY], BacktestPlan(splits=(date(2019, 1, 1),)), tmp_path)


def test_a_split_with_too_few_deaths_before_it_is_left_out_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(NothingTried, match="give a history with 20 or more"):
        run_backtest([DAILY], BacktestPlan(splits=(date(2018, 1, 20),), threads=1), tmp_path)


def test_an_unknown_peer_is_refused_before_anything_is_trained(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["backtest", str(DAILY), "--peers", "any6"]) == 1
    assert "any6" in capsys.readouterr().err


@pytest.mark.slow
def test_a_recipe_taught_other_drives_fates_forecasts_no_better_than_chance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = BacktestPlan(
        splits=(date(2014, 12, 31),), judge_days=420, every=14, peers=(), resamples=5, threads=1
    )

    def trial(name: str) -> Report:
        return run_backtest([CHANGES, TABLE], plan, tmp_path / name).fleets[0].report

    honest = one_origin.train_forecaster
    frame = pd.read_parquet(TABLE)
    fate = ["last_date", "failure"]
    frame[fate] = frame[fate].sample(frac=1, random_state=0).reset_index(drop=True)
    frame.to_parquet(tmp_path / "shuffled.parquet")
    learned = trial("as it was")
    lied_to = [CHANGES, tmp_path / "shuffled.parquet"]
    monkeypatch.setattr(one_origin, "train_forecaster", lambda _paths, **options: honest(lied_to, **options))
    misled = trial("shuffled")
    base = misled.counts.positive_rows / misled.counts.rows
    assert learned.judged[0].figures["recall_at_1pct"].value > 0.15
    assert learned.judged[0].figures["pr_auc"].value > 5 * base
    assert misled.judged[0].figures["recall_at_1pct"].value < 0.08
    assert misled.judged[0].figures["pr_auc"].value < 2 * base
    assert misled.judged[0].figures["brier_skill_30d"].value < 0.01


@pytest.mark.slow
@pytest.mark.usefixtures("bundle_at_hand")
def test_the_same_days_are_judged_daily_beside_weekly_with_one_bundle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["backtest", str(DAILY), "--split", SPLIT.isoformat(), "--judge-days", "60", "--also-every", "1", "7",
             "--peers", "level", "--resamples", "5", "--threads", "1", "--out", str(tmp_path / "trial")]  # fmt: skip
    assert main(asked) == 0
    (fleet,) = msgspec.json.decode((tmp_path / "trial" / "backtest.json").read_bytes())["backtest"]["fleets"]
    weekly, (daily,) = fleet["report"], fleet["also_every"].values()
    assert list(fleet["also_every"]) == ["1"]
    assert (weekly["counts"]["landmarks"], daily["counts"]["landmarks"]) == (9, 60)
    assert daily["counts"]["first_landmark"] == weekly["counts"]["first_landmark"]
    assert daily["counts"]["rows"] > 6 * weekly["counts"]["rows"]
    # A week is what a drive's death may hide between weekly landmarks, no more.
    assert daily["counts"]["failures"] >= weekly["counts"]["failures"]
    assert [one["name"] for one in daily["judged"]] == ["predrain", "level"]
    assert all(one["missing"] == 0 for one in daily["judged"])
    shown, page = capsys.readouterr().out, (tmp_path / "trial" / "report.html").read_text()
    for text in (shown, page):
        assert "The same days at other landmarks" in text
        assert "daily: level" in text
        assert "weekly: level" in text


def test_a_weekly_carried_row_is_enough_for_daily_scores_of_change_points(tmp_path: Path) -> None:
    (fleet,) = fleets_of([CHANGES, TABLE], threads=1)
    (origin,) = origins_of(fleet.start, fleet.end, splits=(date(2015, 6, 30),), judge_days=30)
    truth = read_truth(fleet.truth)
    daily = replace(origin, every=1)
    scores = []
    for name, days in (("week", origin.landmarks), ("day", daily.landmarks)):
        without_fates(fleet.readings, tmp_path / f"{name}.parquet", truth, days)
        parts = score_landmark_days(
            [tmp_path / f"{name}.parquet"], Bundle.load(), first=origin.first, last=origin.last, threads=1
        )
        scores.append(
            pd.concat([part.table.to_pandas() for part in parts]).set_index(["serial_number", "date"])
        )
    weekly, every_day = scores
    cohort = gather_cohort(truth, daily.landmarks)
    at_risk = pd.MultiIndex.from_arrays([
        truth.serials[cohort.truth_drive[cohort.drive]],
        [EPOCH + timedelta(int(day)) for day in cohort.landmark],
    ])  # fmt: skip
    assert weekly.loc[at_risk].p_fail_30d.tolist() == every_day.loc[at_risk].p_fail_30d.tolist()
