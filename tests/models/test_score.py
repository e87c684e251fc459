"""Scores: one row a drive and day, never empty, ordered, and blind to the end and to the future."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from predrain.models.forecast.bundle import Bundle
from predrain.models.forecast.history_scores import score_landmark_days
from predrain.service.cli import main

DAILY = Path(__file__).parents[1] / "data" / "drives" / "daily.parquet"
FROM, TO = date(2018, 5, 3), date(2018, 5, 17)


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return Bundle.load()


def scored(
    paths: list[Path], bundle: Bundle, first: date = FROM, last: date = TO, every: int = 7
) -> pa.Table:
    parts = score_landmark_days(paths, bundle, first=first, last=last, every=every, threads=1)
    return pa.concat_tables(part.table for part in parts).sort_by(
        [("serial_number", "ascending"), ("date", "ascending")]
    )


@pytest.fixture(scope="module")
def whole(bundle: Bundle) -> pa.Table:
    return scored([DAILY], bundle)


def test_every_drive_with_a_row_in_the_week_before_has_one_row_a_landmark(whole: pa.Table) -> None:
    expected = duckdb.sql(
        f"SELECT DISTINCT serial_number::VARCHAR, day FROM '{DAILY}', "
        "(VALUES (DATE '2018-05-03'), (DATE '2018-05-10'), (DATE '2018-05-17')) v(day) "
        "WHERE date BETWEEN day - 6 AND day"
    ).fetchall()
    got = list(zip(whole["serial_number"].to_pylist(), whole["date"].to_pylist(), strict=True))
    assert len(got) == len(set(got))
    assert set(got) == set(expected)


def test_chances_are_never_empty_and_rise_with_the_horizon(whole: pa.Table) -> None:
    p = np.column_stack([whole[f"p_fail_{n}d"].to_numpy() for n in (7, 14, 30)])
    assert np.isfinite(p).all()
    assert ((p >= 0) & (p <= 1)).all()
    assert (np.diff(p, axis=1) >= 0).all()
    life = np.column_stack([whole[f"life_p{n}_days"].to_pandas().to_numpy() for n in (10, 50, 90)])
    both = np.isfinite(life[:, 0]) & np.isfinite(life[:, 1])
    assert both.any()
    assert (life[both, 0] <= life[both, 1]).all()


def test_the_failure_column_changes_nothing(whole: pa.Table, bundle: Bundle, tmp_path: Path) -> None:
    table = pq.read_table(DAILY).drop_columns(["failure"])
    pq.write_table(table, tmp_path / "blind.parquet")
    assert scored([tmp_path / "blind.parquet"], bundle).equals(whole)


def test_cutting_the_history_at_the_landmark_changes_nothing(
    bundle: Bundle, whole: pa.Table, tmp_path: Path
) -> None:
    duckdb.sql(f"COPY (SELECT * FROM '{DAILY}' WHERE date <= DATE '2018-05-10') TO '{tmp_path}/cut.parquet'")
    cut = scored([tmp_path / "cut.parquet"], bundle, last=date(2018, 5, 10))
    assert cut.equals(whole.filter(pa.compute.field("date") <= date(2018, 5, 10)))


def test_a_forecast_does_not_depend_on_which_other_drives_are_scored(
    bundle: Bundle, whole: pa.Table, tmp_path: Path
) -> None:
    duckdb.sql(f"COPY (SELECT * FROM '{DAILY}' WHERE serial_number < 'Z302') TO '{tmp_path}/some.parquet'")
    some = scored([tmp_path / "some.parquet"], bundle)
    assert len(some) > 0
    assert some.equals(whole.filter(pa.compute.field("serial_number") < "Z302"))


def test_a_drive_that_reports_nothing_gets_its_base_rate_and_says_why_and_the_batch_goes_on(
    bundle: Bundle, tmp_path: Path
) -> None:
    rows = ["date,serial_number,model,smart_9_raw,smart_5_raw,smart_197_raw"]
    for d in range(1, 11):
        rows.append(f"2018-05-{d:02d},OLD,ST4000DM000,{10000 + 24 * d},0,0")
        rows.append(f"2018-05-{d:02d},ODD,FOO 123,{10000 + 24 * d},0,0")
        rows.append(f"2018-05-{d:02d},NIL,ST4000DM000,,,")
    rows.append("2018-05-10,NEW,ST4000DM000,10,0,0")
    path = tmp_path / "h.csv"
    path.write_text("\n".join(rows) + "\n")
    table = scored([path], bundle, first=date(2018, 5, 10), last=date(2018, 5, 10)).to_pylist()
    by = {row["serial_number"]: row for row in table}
    assert {by[s]["status"] for s in ("OLD", "ODD", "NEW")} == {"good"}
    assert "No count of this model is known" in by["ODD"]["reason"]
    assert by["NIL"]["status"] == "unknown"
    assert "none of the counters" in by["NIL"]["reason"]
    assert all(0 < row["p_fail_30d"] < 0.05 for row in by.values())


def test_the_command_writes_parquet_or_csv_by_the_ending(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--from", "2018-05-03", "--to", "2018-05-03", "--threads", "1"]
    for name in ("s.parquet", "s.csv"):
        assert main(["score", str(DAILY), *options, "--out", str(tmp_path / name)]) == 0
    columns = pq.read_schema(tmp_path / "s.parquet").names
    assert columns == [
        *("serial_number", "date", "model", "p_fail_7d", "p_fail_14d", "p_fail_30d"),
        *("life_p10_days", "life_p50_days", "life_p90_days", "status", "source", "reason"),
    ]
    text = pyarrow.csv.read_csv(tmp_path / "s.csv")
    assert text.column_names == columns
    assert len(text) == pq.read_metadata(tmp_path / "s.parquet").num_rows


@pytest.mark.slow
def test_bad_usage_exits_with_two_and_what_cannot_be_done_with_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    day = ["--from", "2018-05-03", "--to", "2018-05-03"]
    out = ["--out", str(tmp_path / "s.csv")]
    assert main(["score", *day, *out]) == 2
    assert main(["score", str(DAILY), "--from", "2018-05-04", "--to", "2018-05-03", *out]) == 2
    assert main(["score", str(tmp_path / "no.parquet"), *day, *out]) == 1
    assert main(["score", str(DAILY), *day, "--out", str(tmp_path / "s.txt")]) == 1
    assert main(["score", str(DAILY), *day, *out, "--bundle", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "There is no file" in said
    assert "end it in .parquet or .csv" in said
    assert "holds no bundle" in said
    assert not (tmp_path / "s.csv").exists()
