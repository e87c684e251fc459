"""From files of scores and truth to what they were worth, and policies read from files of their own."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from predrain.actions.core.drain_policy import Policy
from predrain.actions.cost_benefit import HERE
from predrain.models.evaluate import FailureTruth, Scores, read_scores, read_truth
from predrain.models.forecast.calibration import Thresholds
from predrain.service.config.settings import BadSettings, read_policy
from predrain.service.forecasting.score_cost_benefit import (
    SIZE_BYTES,
    TB,
    prepare_replay_inputs,
    sizes_of,
    worth_of_scores,
)

FIRST = date(2018, 5, 1)
DAYS = 61
THRESHOLDS = Thresholds(warning=0.02, bad=0.1)


def day(number: int) -> date:
    """The n-th day of the half-year."""
    return FIRST + timedelta(days=number)


@pytest.fixture
def truth(tmp_path: Path) -> FailureTruth:
    """A dies on day 20, B leaves alive after day 29, C and eight others live on; X is gone before the first day."""
    ends = {"A": 20, "B": 29, "C": DAYS - 1, **{f"D{n}": DAYS - 1 for n in range(8)}}
    rows = [
        (serial, day(n), int(serial == "A" and n == 20)) for serial, n in ends.items() for n in range(n + 1)
    ]
    rows.append(("X", day(-1), 0))
    serials, days, failures = (list(column) for column in zip(*rows, strict=True))
    table = {
        "serial_number": serials,
        "date": days,
        "model": ["ST4000DM000"] * len(rows),
        "failure": failures,
    }
    pq.write_table(pa.table(table), tmp_path / "truth.parquet")
    return read_truth([tmp_path / "truth.parquet"])


def scored(tmp_path: Path, rows: list[tuple[str, int, float, str]]) -> Scores:
    """A file of scores: serial, day, p_fail_30d, status."""
    serials, days, p, status = (list(column) for column in zip(*rows, strict=True))
    table = {"serial_number": serials, "date": [day(n) for n in days], "p_fail_30d": p, "status": status}
    pq.write_table(pa.table(table), tmp_path / "scores.parquet")
    return read_scores(tmp_path / "scores.parquet")


def weekly(tmp_path: Path, drives: dict[str, float], status: str = "good") -> Scores:
    """The same score for each drive on every seventh day."""
    return scored(tmp_path, [(s, n, p, status) for n in range(0, DAYS, 7) for s, p in drives.items()])


def test_scores_and_truth_give_the_worth_at_every_cost(tmp_path: Path, truth: FailureTruth) -> None:
    scores = weekly(tmp_path, {"A": 0.3, "B": 0.001, "C": 0.06, "D0": 0.001})
    cost_rows = worth_of_scores(scores, truth, Policy(), THRESHOLDS, resamples=10)
    at = {cost_row.name: cost_row.worth for cost_row in cost_rows}
    own = at[f"failure_cost {HERE}"]
    assert own.migration_rate.value == 1.0
    assert own.failing_bytes == int(SIZE_BYTES * 0.69)
    assert own.for_nothing == 0
    assert own.cost_saved.value == pytest.approx(0.9)
    assert at["failure_cost x 2"].for_nothing == 1  # C
    assert at["failure_cost x 1/4"].drains == 0
    told = msgspec.json.decode(msgspec.json.encode(cost_rows))
    assert told[2]["worth"]["safe_bytes"] == int(SIZE_BYTES * 0.69)


def test_weekly_scores_stand_until_the_next_and_the_truth_says_who_is_there(
    tmp_path: Path, truth: FailureTruth
) -> None:
    forecasts, fates, layout = prepare_replay_inputs(weekly(tmp_path, {"A": 0.3, "E": 0.2}), truth)
    assert fates.devices.tolist() == ["A", "B", "C", *(f"D{n}" for n in range(8))]
    assert fates.died.tolist() == [True] + [False] * 10
    assert (fates.last - fates.last[0]).tolist() == [0, 9, *[40] * 9]
    assert forecasts.days == 63
    assert (forecasts.p_fail_30d[0] > 0.29).all()
    assert (forecasts.p_fail_30d[1] != forecasts.p_fail_30d[1]).all()  # nothing was forecast of B
    assert layout.size_bytes.tolist() == [SIZE_BYTES] * 11


def test_a_drive_of_status_unknown_is_never_drained_whatever_its_prior_says(
    tmp_path: Path, truth: FailureTruth
) -> None:
    scores = weekly(tmp_path, {"A": 0.3, "B": 0.001, "C": 0.001}, status="unknown")
    cost_rows = worth_of_scores(scores, truth, Policy(), THRESHOLDS, resamples=10)
    assert [cost_row.worth.drains for cost_row in cost_rows] == [0] * 5


def test_sizes_come_from_the_files_that_tell_them_and_absurd_ones_do_not_count(tmp_path: Path) -> None:
    table = pa.table({"serial_number": ["A", "B"], "capacity_tb": [3.0, None]})
    pq.write_table(table, tmp_path / "drives.parquet")
    daily = pa.table({"serial_number": ["C", "C", "D"], "capacity_bytes": [TB, TB, 600_000_000_000_000_000]})
    pq.write_table(daily, tmp_path / "daily.parquet")
    pq.write_table(pa.table({"serial_number": ["E"]}), tmp_path / "bare.parquet")
    paths = [
        tmp_path / "drives.parquet",
        tmp_path / "daily.parquet",
        tmp_path / "bare.parquet",
        Path("x.csv"),
    ]
    assert sizes_of(paths) == {"A": 3 * TB, "C": TB}


@pytest.mark.parametrize("heading", ["", "[policy]\n"])
def test_a_policy_file_has_the_keys_of_the_settings_policy_table(tmp_path: Path, heading: str) -> None:
    (tmp_path / "p.toml").write_text(f"{heading}drains_per_cluster = 9\nmass_suspicion_window_days = 2\n")
    policy = read_policy(tmp_path / "p.toml")
    assert (policy.drains_per_cluster, policy.mass_suspicion_window) == (9, timedelta(days=2))
    assert policy.drains_per_host == Policy().drains_per_host


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("drains_per_hots = 2", "unknown key policy.drains_per_hots; did you mean policy.drains_per_host?"),
        ("out_share_max = 2", "out_share_max: .*less than or equal to 1"),
        ("[service]\nport = 1", "unknown key policy.service"),
        ("drains", "is not TOML"),
    ],
)
def test_a_policy_file_that_cannot_be_meant_is_refused_with_the_nearest_key(
    tmp_path: Path, text: str, told: str
) -> None:
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(BadSettings, match=told):
        read_policy(tmp_path / "p.toml")
