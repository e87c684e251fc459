"""`predrain evaluate` as it is typed: exit codes, JSON, the table, a whole report kept as a golden file."""

from __future__ import annotations

import json
import os
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from predrain.service.cli import main

START = date(2018, 1, 1)
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "evaluate"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400 drives, 120 days; every tenth dies, half of these with SMART 187 rising first; some are removed."""
    folder = tmp_path_factory.mktemp("fleet")
    rng = np.random.default_rng(2018)
    history, scored = [], []
    for number in range(400):
        serial = f"Z{number:04d}"
        dies = number % 10 == 0
        last = int(rng.integers(35, 119)) if dies else int(rng.integers(20, 119)) if number % 7 == 3 else 119
        rises = (
            last - 20 if dies and number % 20 == 0 else int(rng.integers(0, 119)) if number % 31 == 5 else 999
        )
        history += [
            (
                START + timedelta(day),
                serial,
                "ST1",
                int(dies and day == last),
                3 * max(0, day - rises),
                day * 24,
            )
            for day in range(last + 1)
        ]
        for day in range(0, min(last, 116), 7):
            p30 = 0.4 if day > rises else 0.02 + 0.0001 * (number % 9)
            life = (3.0, 20.0, 70.0) if day > rises else (100.0, 900.0, 3000.0)
            scored.append((serial, START + timedelta(day), p30 / 4, p30 / 2, p30, *life))
    pd.DataFrame(
        history, columns=["date", "serial_number", "model", "failure", "smart_187_raw", "smart_9_raw"]
    ).to_parquet(folder / "truth.parquet")
    columns = ["serial_number", "date", "p_fail_7d", "p_fail_14d", "p_fail_30d"]
    columns += ["life_p10_days", "life_p50_days", "life_p90_days"]
    scores = pd.DataFrame(scored, columns=columns)
    scores.to_parquet(folder / "scores.parquet")
    scores.to_csv(folder / "scores.csv", index=False)
    scores[["serial_number", "date"]].assign(p_fail_30d=0.5).to_parquet(folder / "constant.parquet")
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["evaluate", *(str(argument) for argument in arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def beside_a_constant(fleet: Path) -> list[Path | str]:
    return [
        fleet / "scores.parquet",
        "--truth",
        fleet / "truth.parquet",
        "--baseline",
        fleet / "constant.parquet",
    ]


def test_the_report_of_a_small_fleet_is_the_golden_one(
    fleet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, *beside_a_constant(fleet), "--resamples", 50, "--json")
    assert code == 0
    if os.environ.get("PREDRAIN_REWRITE_GOLDEN"):
        (GOLDEN / "small_fleet.json").write_text(json.dumps(json.loads(out), indent=1) + "\n")
    known = json.loads((GOLDEN / "small_fleet.json").read_text())
    assert_same(json.loads(out), known, "report")


def assert_same(found: object, known: object, where: str) -> None:
    if isinstance(known, dict):
        assert isinstance(found, dict)
        assert found.keys() == known.keys(), where
        for key, value in known.items():
            assert_same(found[key], value, f"{where}.{key}")
    elif isinstance(known, list):
        assert isinstance(found, list)
        assert len(found) == len(known), where
        for number, value in enumerate(known):
            assert_same(found[number], value, f"{where}[{number}]")
    elif isinstance(known, float):
        assert found == pytest.approx(known, rel=1e-6, abs=1e-9), where
    else:
        assert found == known, where


def test_a_constant_scorer_has_recall_equal_to_the_false_alarm_rate(
    fleet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(
        capsys, fleet / "constant.parquet", "--truth", fleet / "truth.parquet", "--resamples", 0, "--json"
    )
    figures = json.loads(out)["report"]["judged"][0]["figures"]
    assert figures["recall_at_0.1pct"]["value"] == pytest.approx(0.001)
    assert figures["recall_at_1pct"]["value"] == pytest.approx(0.01)
    assert figures["row_far_at_1pct"]["value"] == pytest.approx(0.01)
    counts = json.loads(out)["report"]["counts"]
    assert figures["pr_auc"]["value"] == pytest.approx(counts["positive_rows"] / counts["rows"])
    assert figures["concordance_p_fail_30d_inside"]["value"] == pytest.approx(0.5)


def test_csv_and_parquet_scores_are_judged_alike(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = []
    for name in ("scores.parquet", "scores.csv"):
        _, out, _ = run(capsys, fleet / name, "--truth", fleet / "truth.parquet", "--resamples", 3, "--json")
        answers.append(json.loads(out.replace(name, "scores")))
    assert_same(answers[1], answers[0], "report")


def test_a_table_for_people_says_what_was_judged_and_how_sure(
    fleet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, *beside_a_constant(fleet), "--resamples", 20)
    assert code == 0
    for word in (
        "failures (",
        "silent",
        "healthy windows",
        "PR-AUC",
        "Brier skill",
        "life_p10_to_p90",
        "real",
    ):
        assert word in out
    assert "(no evidence)" in out
    assert "nan" not in out


def test_a_drive_scored_twice_on_a_day_is_a_usage_error(
    fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = pd.read_parquet(fleet / "scores.parquet")
    pd.concat([scores, scores.tail(1)]).to_parquet(tmp_path / "twice.parquet")
    code, out, err = run(capsys, tmp_path / "twice.parquet", "--truth", fleet / "truth.parquet")
    assert code == 2
    assert out == ""
    assert "more than once" in err


def test_a_truncated_run_is_called_equal_or_its_differences_are_listed(
    fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = pd.read_parquet(fleet / "scores.parquet").query("date == @START")
    cut.to_parquet(tmp_path / "cut.parquet")
    ask = (fleet / "scores.parquet", "--truth", fleet / "truth.parquet", "--resamples", 0, "--truncated")
    code, out, _ = run(capsys, *ask, tmp_path / "cut.parquet")
    assert code == 0
    assert "Truncation: equal on 400 rows." in out
    cut.assign(p_fail_30d=cut.p_fail_30d.where(cut.serial_number != "Z0007", 0.3)).to_parquet(
        tmp_path / "cut.parquet"
    )
    code, out, _ = run(capsys, *ask, tmp_path / "cut.parquet")
    assert code == 1
    assert "Z0007 on 2018-01-01: p_fail_30d" in out


def test_lacking_drives_are_counted_and_hurt(
    fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = pd.read_parquet(fleet / "scores.parquet")
    scores[scores.p_fail_30d < 0.1].to_parquet(tmp_path / "quiet.parquet")
    ask = ("--truth", fleet / "truth.parquet", "--resamples", 0, "--json")
    _, out, _ = run(capsys, fleet / "scores.parquet", *ask)
    whole = json.loads(out)["report"]["judged"][0]
    _, out, _ = run(capsys, tmp_path / "quiet.parquet", *ask)
    quiet = json.loads(out)["report"]["judged"][0]
    assert (whole["missing"], quiet["missing"]) == (0, int((scores.p_fail_30d > 0.1).sum()))
    assert quiet["figures"]["pr_auc"]["value"] < whole["figures"]["pr_auc"]["value"] / 2


def test_known_ends_years_later_judge_the_life_expectancies_again(
    fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    serials = pd.read_parquet(fleet / "scores.parquet").serial_number.unique()
    ends = pd.DataFrame(
        {"serial_number": serials, "end_date": START + timedelta(3000), "event": "in service"}
    )
    ends.loc[:99, ["end_date", "event"]] = [START + timedelta(150), "failed"]
    ends.to_parquet(tmp_path / "ends.parquet")
    ask = (
        fleet / "scores.parquet",
        "--truth",
        fleet / "truth.parquet",
        "--resamples",
        0,
        "--json",
        "--life-long",
    )
    _, out, _ = run(capsys, *ask, tmp_path / "ends.parquet")
    life = json.loads(out)["report"]["judged"][0]["life"]
    assert life["life_below_p50_long"]["estimate"] == pytest.approx(0.25, abs=0.02)
    assert life["life_below_p50_long"]["rows"] > life["life_below_p50_inside"]["rows"]
    ends.assign(event="gone").to_parquet(tmp_path / "ends.parquet")
    code, _, err = run(capsys, *ask, tmp_path / "ends.parquet")
    assert code == 1
    assert "'gone'" in err


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (pd.DataFrame({"date": [START], "serial_number": ["a"]}), "has no column p_fail_30d"),
        (pd.DataFrame({"date": [START], "serial_number": ["nobody"], "p_fail_30d": [0.5]}), None),
        (pd.DataFrame({"date": ["soon"], "serial_number": ["a"], "p_fail_30d": [0.5]}), "'soon' is no date"),
        (
            pd.DataFrame({"date": [START + timedelta(110)], "serial_number": ["a"], "p_fail_30d": [1.0]}),
            "No drive",
        ),
    ],
)
def test_scores_that_cannot_be_judged_get_one_sentence(
    broken: pd.DataFrame, says: str | None, fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken.to_parquet(tmp_path / "broken.parquet")
    code, _, err = run(
        capsys, tmp_path / "broken.parquet", "--truth", fleet / "truth.parquet", "--resamples", 0
    )
    assert code == (0 if says is None else 1)
    assert (says or "") in err
