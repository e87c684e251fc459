"""Histories are read from any mixture of files. Implausible values are counted, and treated as not reported."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.history import (
    EPOCH,
    LIMITS,
    History,
    HistoryFiles,
    UnreadableHistory,
    believable_one,
    decode_plausible_values,
)
from predrain.data.lifespan import sources_of

SAMPLES = Path(__file__).parent / "drives"


def csv(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def day(text: str) -> int:
    return (date.fromisoformat(text) - EPOCH).days


def column(history: History, smart_id: int) -> list[float | None]:
    return [None if np.isnan(v) else float(v) for v in history.raw[smart_id]]


def test_parquet_and_csv_mix_and_a_missing_column_is_null(tmp_path: Path) -> None:
    one = csv(tmp_path, "a.csv", "date,serial_number,model,smart_5_raw\n2018-01-02,B,M,3\n2018-01-01,A,M,\n")
    table = pa.table(
        {"date": [date(2018, 1, 3)], "serial_number": ["A"], "model": ["M"], "smart_197_raw": [8]}
    )
    pq.write_table(table, tmp_path / "b.parquet")
    history = HistoryFiles([one, tmp_path / "b.parquet"], threads=1).read()
    assert history.serials.tolist() == ["A", "B"]
    assert history.start.tolist() == [0, 2, 3]
    assert history.day.tolist() == [day("2018-01-01"), day("2018-01-03"), day("2018-01-02")]
    assert column(history, 5) == [None, None, 3]
    assert column(history, 197) == [None, 8, None]


def test_of_a_repeated_day_the_last_row_wins_by_hours_and_then_by_place(tmp_path: Path) -> None:
    head = "date,serial_number,model,smart_9_raw,smart_197_raw\n"
    one = csv(tmp_path, "a.csv", head + "2018-01-01,A,M,120,7\n2018-01-01,A,M,110,5\n2018-01-02,A,M,130,1\n")
    two = csv(tmp_path, "b.csv", head + "2018-01-02,A,M,130,2\n")
    history = HistoryFiles([one, two], threads=1).read()
    assert column(history, 197) == [7, 2]
    assert history.told.duplicates == 2
    assert "last one counted" in history.told.sentences()[0]


def test_a_day_may_be_written_with_slashes_or_as_a_timestamp(tmp_path: Path) -> None:
    rows = "date,serial_number,model\n2018/1/1,A,M\n2018-01-02T10:11:12,A,M\n2018-01-03,A,M\n"
    history = HistoryFiles([csv(tmp_path, "a.csv", rows)], threads=1).read()
    assert history.day.tolist() == [day("2018-01-01"), day("2018-01-02"), day("2018-01-03")]


def test_rows_from_the_future_or_without_a_date_are_left_out_and_told(tmp_path: Path) -> None:
    rows = "date,serial_number,model\n2018-01-01,A,M\n2031-01-01,A,M\nyesterday,A,M\n1970-01-05,A,M\n"
    history = HistoryFiles([csv(tmp_path, "a.csv", rows)], threads=1).read(today=date(2018, 1, 9))
    assert history.day.tolist() == [day("2018-01-01")]
    assert (history.told.future, history.told.undated) == (1, 2)


def test_negative_and_absurd_values_are_not_reported_and_counted(tmp_path: Path) -> None:
    rows = "date,serial_number,model,smart_9_raw,smart_5_raw\n2018-01-01,A,M,260000,-1\n2018-01-02,A,M,24,x\n"
    history = HistoryFiles([csv(tmp_path, "a.csv", rows)], threads=1).read()
    assert column(history, 9) == [None, 24]
    assert column(history, 5) == [None, None]
    assert (history.told.negative, history.told.absurd) == (1, 1)


@pytest.mark.parametrize("smart_id", [5, 187, 197, 198])
def test_all_ones_are_no_count(smart_id: int) -> None:
    """Seagate's Barracuda 7200.11 count pending sectors one below none: 4294967295."""
    column, _, absurd = decode_plausible_values(smart_id, np.array([2.0**32 - 1, 2.0**32 - 2]))
    assert np.isnan(column[0])
    assert (column[1], absurd) == (2**32 - 2, 1)


def test_packed_timeouts_keep_their_low_word_and_temperature_zero_is_no_sensor() -> None:
    assert decode_plausible_values(188, np.array([4295032833.0, 65583.0, 3.0]))[0].tolist() == [1, 47, 3]
    celsius = decode_plausible_values(194, np.array([25.0, 0.0, 25 + 256 * 7.0]))[0]
    assert celsius[[0, 2]].tolist() == [25, 25]
    assert np.isnan(celsius[1])


@given(
    st.sampled_from(sorted(LIMITS)),
    st.one_of(st.integers(-5, 2**50).map(float), st.integers(0, 99_999).map(float)),
)
def test_one_value_and_a_column_of_values_pass_the_same_rule(smart_id: int, raw: float) -> None:
    column, _, _ = decode_plausible_values(smart_id, np.array([raw]))
    assert np.array([believable_one(smart_id, raw)]).tobytes() == column.tobytes()


def test_a_serial_number_that_changes_model_keeps_each_rows_own(tmp_path: Path) -> None:
    rows = "date,serial_number,model\n2018-01-01,A,ST1\n2018-01-02,A,ST2\n"
    history = HistoryFiles([csv(tmp_path, "a.csv", rows)], threads=1).read()
    assert [history.model_names[m] for m in history.model] == ["ST1", "ST2"]


def test_the_parts_of_a_history_hold_every_drive_once() -> None:
    files = HistoryFiles([SAMPLES / "daily.parquet"], threads=1)
    whole = files.read()
    parts = [files.read(part=part) for part in files.split_into_parts(1_000)]
    assert len(parts) > 3
    assert [s for p in parts for s in p.serials] == whole.serials.tolist()
    assert sum(len(p.day) for p in parts) == len(whole.day)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("no.csv", None, "There is no file"),
        ("a.parquet", b"not parquet at all", "cannot be read as parquet or CSV"),
        ("a.csv", b"when,who\n1,2\n", "lacks date, serial_number or model"),
    ],
)
def test_a_file_of_another_shape_is_refused_with_the_cure(
    tmp_path: Path, name: str, content: bytes | None, says: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UnreadableHistory, match=says):
        HistoryFiles([path], threads=1)


def test_the_day_of_death_is_the_first_row_with_failure_and_later_rows_do_not_count(tmp_path: Path) -> None:
    head = "date,serial_number,model,failure\n"
    rows = head + "2018-01-01,A,M,0\n2018-01-02,A,M,1\n2018-01-03,A,M,0\n2018-01-03,B,M,0\n"
    (source,) = sources_of([csv(tmp_path, "a.csv", rows)], threads=1)
    life = source.lifespans
    assert life.died.tolist() == [True, False]
    assert life.last.tolist() == [day("2018-01-02"), day("2018-01-03")]


def test_until_a_day_nothing_that_was_known_later_is_known() -> None:
    until = date(2015, 6, 30)
    paths = [SAMPLES / "changes.parquet", SAMPLES / "drives.parquet"]
    (now,) = sources_of(paths, until=until, threads=1)
    (later,) = sources_of(paths, threads=1)
    cut = (until - EPOCH).days
    assert now.lifespans.last.max() == cut
    at = now.lifespans.find_positions(later.lifespans.serials)
    died_later = later.lifespans.died & (later.lifespans.last > cut)
    assert died_later.any()
    known = died_later & (at >= 0)
    assert not now.lifespans.died[at[known]].any()
    assert (at[later.lifespans.first > cut] == -1).all()


def test_change_points_without_their_drives_table_cannot_train() -> None:
    with pytest.raises(UnreadableHistory, match="drives table"):
        sources_of([SAMPLES / "changes.parquet"], threads=1)
