"""Odd rows of one drive stop neither `predrain score` nor `predrain train`; a sentence names each unreadable file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from predrain.data.history import HistoryFiles
from predrain.models.forecast.bundle import Bundle, trees_hash
from predrain.models.forecast.hazard import Recipe
from predrain.models.forecast.training import train_forecaster
from predrain.service.cli import main

SAMPLES = Path(__file__).parents[1] / "data" / "drives"
DAILY = SAMPLES / "daily.parquet"
DAY = date(2018, 5, 10)
COLUMNS = "date,serial_number,model,capacity_bytes,smart_5_raw,smart_9_raw,smart_187_raw,smart_197_raw"
ODD = "ODD"
"""The drive that something is wrong with; it sorts among the others."""


def row(day: date | str, *, model: str = "ST4000DM000", size: str = "4000787030016", **raw: object) -> str:
    values = {"five": 0, "hours": 9_000, "reported": 0, "pending": 0} | raw
    return ",".join(map(str, (day, ODD, model, size, *values.values())))


def days(count: int, last: date = DAY) -> list[date]:
    return [last - timedelta(days=back) for back in reversed(range(count))]


def rows(count: int = 20, **raw: object) -> list[str]:
    return [row(day, hours=9_000 + 24 * at, **raw) for at, day in enumerate(days(count))]


@dataclass(frozen=True)
class Odd:
    """Rows of one drive, and what becomes of it."""

    name: str
    rows: list[str]
    status: str | None
    """None: the drive is not scored."""
    reason: str = ""
    said: str = ""
    exit_code: int = 0


CASES = [
    Odd("a gap of ten days", [*rows(20)[:5], *rows(20)[15:]], "good"),
    Odd("a counter that goes back to zero", [*rows(20, five=8)[:10], *rows(20)[10:]], "good"),
    Odd("rows from last to first", rows(20)[::-1], "good"),
    Odd("every day twice", [*rows(20), *rows(20)], "good", said="20 rows repeated a drive's day"),
    Odd(
        "rows without a value",
        [f"{day},{ODD},ST4000DM000,,,,," for day in days(20)],
        "unknown",
        reason="none of the counters",
    ),
    Odd("rows without a value after good ones", [*rows(20), f"{DAY},{ODD},,,,,,"], "good"),
    Odd("a capacity of 6e17", rows(20, size="600332565813390450"), "good"),
    Odd(
        "260,000 power-on hours", [row(d, hours=260_000) for d in days(20)], "good",
        said="20 values were implausible",
    ),
    Odd(
        "counts of all ones", [row(d, reported=18446744073709551615) for d in days(20)], "good",
        said="20 values were implausible",
    ),
    Odd("negative counts", rows(20, pending=-1), "good", said="20 values were negative"),
    Odd("words for numbers", rows(20, pending="many"), "good", said="20 values were not numbers"),
    Odd(
        "infinities", rows(20, pending="inf", reported="-inf", five="nan"), "unknown",
        reason="none of the counters", said="20 values were implausible",
    ),
    Odd(
        "another model half-way",
        [*rows(20)[:10], *(line.replace("ST4000DM000", "ST4000DX000") for line in rows(20)[10:])],
        "good",
        said="1 drives changed their model",
    ),
    Odd(
        "a maker that nobody knows", [line.replace("ST4000DM000", "FOO 12") for line in rows(20)], "good",
        reason="No count of this model is known",
    ),
    Odd("two days of readings", rows(2), "good", reason="No symptom"),
    Odd(
        "rows from the future", [*rows(20), row("2931-01-01", pending=9_999)], "good",
        said="1 rows were dated in the future", exit_code=3,
    ),
    Odd(
        "rows without a date", [*rows(20), row("some day"), row("1970-01-05")], "good",
        said="2 rows had no date that can be true", exit_code=3,
    ),
    Odd("rows from the future alone", [row("2931-01-01")], None, said="dated in the future", exit_code=3),
    Odd(
        "rows without a serial number", [*rows(20), f"{DAY},,ST4000DM000,,0,1,0,0"], "good",
        said="1 rows had no serial number", exit_code=3,
    ),
    Odd(
        "a line that is not text", [*rows(20), f"{DAY},\udcff\udcfe,M,,0,1,0,0"], "good",
        said="1 lines could not be taken apart", exit_code=3,
    ),
    Odd("a serial number with quotes", [line.replace(ODD, "O'DD") for line in rows(20)], None),
]  # fmt: skip


def written(folder: Path, lines: list[str]) -> Path:
    path = folder / "odd.csv"
    path.write_text("\n".join([COLUMNS, *lines]) + "\n", encoding="utf-8", errors="surrogateescape")
    return path


def scored(out: Path, *files: Path) -> tuple[int, pa.Table]:
    code = main(
        ["score", *map(str, files), "--from", str(DAY), "--to", str(DAY), "--out", str(out), "--threads", "1"]
    )
    return code, pq.read_table(out)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    """The scores of the drives that nothing is wrong with."""
    return scored(tmp_path_factory.mktemp("alone") / "scores.parquet", DAILY)[1]


@pytest.mark.slow
@pytest.mark.parametrize("odd", CASES, ids=lambda odd: odd.name)
def test_an_odd_drive_is_scored_or_told_and_no_other_score_changes(
    odd: Odd, alone: pa.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, table = scored(tmp_path / "scores.parquet", DAILY, written(tmp_path, odd.rows))
    assert code == odd.exit_code
    assert odd.said in capsys.readouterr().err
    mine = pa.compute.equal(table["serial_number"], ODD)
    assert table.filter(pa.compute.is_in(table["serial_number"], alone["serial_number"])).equals(alone)
    found = table.filter(mine).to_pylist()
    assert [one["status"] for one in found] == ([] if odd.status is None else [odd.status])
    assert all(odd.reason in one["reason"] for one in found)
    assert all(np.isfinite(one["p_fail_30d"]) for one in found)


PLAIN = {"date": [DAY], "serial_number": ["A"], "model": ["M"]}
BROKEN = {
    "empty.parquet": (b"", "is empty"),
    "empty.csv": (b"", "is empty"),
    "text.parquet": (b"not parquet at all", "cannot be read"),
    "cut.parquet": (DAILY.read_bytes()[: DAILY.stat().st_size // 2], "cannot be read"),
    "noise.csv": (bytes(range(256)) * 50, "cannot be read"),
    "other.csv": (b"when,who\n1,2\n", "lacks date, serial_number or model"),
    "wide.csv": ("date,serial_number,model\n2018-01-01,A,M\n".encode("utf-16"), "lacks date"),
    "lists.parquet": (PLAIN | {"smart_5_raw": [[1, 2]]}, "keeps smart_5_raw as BIGINT[]; give numbers"),
    "numbers.parquet": (PLAIN | {"date": [20180510]}, "keeps date as BIGINT; give days such as 2018-01-31"),
    "nested.parquet": (PLAIN | {"serial_number": [{"a": 1}]}, "give text"),
    "absent.csv": (None, "There is no file"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_cannot_be_read_is_told_by_name_and_the_others_are_scored(
    name: str, alone: pa.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, (content, says) = tmp_path / name, BROKEN[name]
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, dict):
        pq.write_table(pa.table(content), path)
    code, table = scored(tmp_path / "scores.parquet", path, DAILY)
    said = capsys.readouterr().err
    assert (code, str(path) in said, says in said) == (3, True, True)
    assert table.equals(alone)
    assert main(["score", str(path), "--from", str(DAY), "--to", str(DAY), "--out", f"{tmp_path}/s.csv"]) == 1
    assert main(["train", str(path), str(DAILY), "--out", str(tmp_path / "bundle")]) == 1
    assert says in capsys.readouterr().err
    assert not (tmp_path / "bundle").exists()


def test_a_file_that_breaks_off_while_it_is_read_ends_in_a_sentence_that_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = bytearray(DAILY.read_bytes())
    for at in range(4_000, len(damaged) - 20_000, 97):
        damaged[at] ^= 0xFF
    path = tmp_path / "damaged.parquet"
    path.write_bytes(damaged)
    asked = ["--from", str(DAY), "--to", str(DAY), "--out", str(tmp_path / "s.parquet")]
    assert main(["score", str(DAILY), str(path), *asked]) == 1
    assert f"{path} cannot be read" in capsys.readouterr().err
    assert not (tmp_path / "s.parquet").exists()


def test_a_history_with_a_header_alone_gives_no_score_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, table = scored(tmp_path / "s.parquet", written(tmp_path, []))
    assert (code, len(table)) == (0, 0)
    assert "no drive has a row in the week before" in capsys.readouterr().err


def odd_deaths(folder: Path) -> Path:
    """Every odd drive under its own name, some of which die, as daily rows that training takes."""
    path = folder / "deaths.csv"
    lines = [f"{COLUMNS},failure"]
    for number, odd in enumerate(CASES):
        mine = [line.replace(f",{ODD},", f",ODD{number},") for line in odd.rows]
        lines += [f"{line},{int(number % 3 == 0 and line == mine[-1])}" for line in mine]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogateescape")
    return path


@pytest.mark.slow
def test_training_takes_odd_drives_in_its_stride_and_rows_from_the_future_change_nothing(
    tmp_path: Path,
) -> None:
    odd, small = odd_deaths(tmp_path), Recipe(rounds=10, least=20)
    plain = tmp_path / "plain.csv"
    text = odd.read_text(encoding="utf-8", errors="surrogateescape")
    plain.write_text(
        "".join(line for line in text.splitlines(keepends=True) if "2931" not in line),
        encoding="utf-8", errors="surrogateescape",
    )  # fmt: skip
    made = [
        train_forecaster([DAILY, path], name="odd", threads=1, recipe=small, today=date(2026, 1, 1))
        for path in (odd, plain)
    ]
    assert trees_hash(made[0].booster.model_to_string()) == trees_hash(made[1].booster.model_to_string())
    assert made[0].facts.thresholds == made[1].facts.thresholds
    assert np.isfinite(made[0].booster.predict(np.zeros((1, made[0].booster.num_feature()))).item())


@pytest.mark.slow
def test_the_training_command_counts_what_it_left_out_and_exits_with_three(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(DAILY), str(odd_deaths(tmp_path))]
    assert main(["train", *files, "--out", str(tmp_path / "bundle"), "--threads", "1"]) == 3
    said = capsys.readouterr().err
    assert "2 rows were dated in the future" in said
    assert "had no date that can be true" in said
    assert Bundle.load(tmp_path / "bundle").facts.counts["deaths"] >= 20


def test_reading_a_part_and_the_survey_count_the_same_rows_out(tmp_path: Path) -> None:
    files = HistoryFiles([odd_deaths(tmp_path)])
    today = date(2026, 1, 1)
    whole, survey = files.read(today=today).told, files.find_defects(today=today)
    assert survey.refused_rows == whole.refused_rows > 0
    read = [files.read(part=part, today=today).told for part in files.split_into_parts(60)]
    assert len(read) > 3
    assert sum(read[1:], read[0]) == whole
