"""`predrain data import` takes readings through acceptance into the store, resumes at any line, and reports counts."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from predrain.data.clock import SystemClock
from predrain.data.ids import HostName
from predrain.data.importing import ImportPart, backblaze_import
from predrain.data.log.log_port import Topic
from predrain.data.log.memory_log import MemoryLog
from predrain.data.reading import Reading
from predrain.data.store.sqlite_store import MEMORY, SqliteStore
from predrain.service.cli import main
from predrain.service.storage.record_sender import RecordSender
from predrain.service.streams.history_import import BATCH, Importer
from tests.service.conftest import SetClock

HOST = HostName("dc1")
ROWS = 4_321


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("table") / "days.csv"
    rows = ["date,serial_number,model,failure,smart_5_raw,smart_9_raw"]
    for number in range(ROWS):
        day = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=number // 50)
        failed = int(number == ROWS - 1)
        rows.append(f"{day:%Y-%m-%d},S{number % 50:03},ST4000DM000,{failed},{number % 7},{100 + number}")
    file.write_text("\n".join(rows) + "\n")
    return file


def _kept(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path / "store.sqlite")) as connection:
        kept = connection.execute("SELECT * FROM readings ORDER BY device, taken_at").fetchall()
        ends = connection.execute("SELECT count(*) FROM outcomes").fetchall()
    return [*kept, *ends]


def _parts(table: Path) -> Iterable[ImportPart]:
    return backblaze_import.list_backblaze_import_parts([table], HOST)


class Dying(SqliteStore):
    """Dies in the `last`th save, before or after it was made."""

    def __init__(self, path: Path, last: int, *, before: bool) -> None:
        super().__init__(path)
        self.left, self.before = last, before

    def add_readings(self, readings: Iterable[Reading]) -> int:
        self.left -= 1
        if not self.left and self.before:
            raise KeyboardInterrupt
        new = super().add_readings(readings)
        if not self.left:
            raise KeyboardInterrupt
        return new


@pytest.mark.slow
@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("last", [1, 2, 5])
def test_an_import_that_died_at_a_save_goes_on_and_keeps_the_same(
    table: Path, tmp_path: Path, last: int, before: bool
) -> None:
    whole, died = tmp_path / "whole", tmp_path / "died"
    for path in (whole, died):
        path.mkdir()
    store = SqliteStore(whole / "store.sqlite")
    Importer("backblaze", SystemClock(), store).run(_parts(table))
    dying = Dying(died / "store.sqlite", last, before=before)
    with pytest.raises(KeyboardInterrupt):
        Importer("backblaze", SystemClock(), dying).run(_parts(table))
    again = SqliteStore(died / "store.sqlite")
    done = Importer("backblaze", SystemClock(), again).run(_parts(table))
    assert _kept(died) == _kept(whole)
    assert done.total.new + done.total.known == ROWS
    assert done.total.known <= BATCH
    for one in (store, dying, again):
        one.close()


@pytest.mark.slow
def test_an_import_that_was_killed_goes_on_and_keeps_the_same(table: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        "from predrain.service.cli import run; run()",
        "data",
        "import",
        "backblaze",
        str(table),
    ]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    started = subprocess.Popen([*command, "--state", str(killed)], stdout=subprocess.DEVNULL)
    while started.poll() is None and not _noted(killed):
        time.sleep(0.005)
    os.kill(started.pid, signal.SIGKILL)
    started.wait()
    for state in (killed, whole):
        subprocess.run([*command, "--state", str(state)], check=True, stdout=subprocess.DEVNULL)
    assert _kept(killed) == _kept(whole)
    assert len(_kept(whole)) == ROWS + 1


def _noted(state: Path) -> bool:
    try:
        with closing(sqlite3.connect(f"file:{state / 'store.sqlite'}?mode=ro", uri=True)) as connection:
            return bool(connection.execute("SELECT count(*) FROM notes WHERE room = 'imports'").fetchone()[0])
    except sqlite3.OperationalError:
        return False


@pytest.mark.slow
def test_a_second_run_reads_nothing_again_and_tells_the_same(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = []
    for _ in range(2):
        assert main(["data", "import", "backblaze", str(table), "--state", str(tmp_path), "--json"]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[0] == told[1] | {"parts_before": 0}
    assert (told[0]["readings"], told[0]["outcomes"], told[1]["parts_before"]) == (ROWS, 1, 1)


@pytest.mark.slow
def test_a_store_that_was_begun_anew_is_given_all_of_it_again(table: Path, tmp_path: Path) -> None:
    for _ in range(2):
        for file in tmp_path.glob("store.sqlite*"):
            file.unlink()
        assert main(["data", "import", "backblaze", str(table), "--state", str(tmp_path)]) == 0
        assert len(_kept(tmp_path)) == ROWS + 1


def test_readings_that_are_older_than_history_is_kept_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, today = tmp_path / "days.csv", datetime.now(UTC)
    days = (today - timedelta(days=number) for number in (500, 401, 399, 1))
    file.write_text(
        "date,serial_number,model,smart_5_raw\n" + "".join(f"{day:%Y-%m-%d},S1,ST1,0\n" for day in days)
    )
    assert main(["data", "import", "backblaze", str(file), "--state", str(tmp_path / "state")]) == 0
    assert "2 are older than the 400 days that history is kept" in capsys.readouterr().out


def test_a_file_that_changed_is_read_anew_and_its_known_rows_are_ignored(table: Path, tmp_path: Path) -> None:
    file = tmp_path / "days.csv"
    file.write_text("".join(table.read_text().splitlines(keepends=True)[:11]))
    store = SqliteStore(MEMORY)
    assert Importer("backblaze", SystemClock(), store).run(_parts(file)).total.new == 10
    file.write_text("".join(table.read_text().splitlines(keepends=True)[:13]))
    total = Importer("backblaze", SystemClock(), store).run(_parts(file)).total
    assert (total.new, total.known) == (2, 10)


def test_a_refused_row_is_reported_with_its_place_and_the_import_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "days.csv"
    tomorrow = datetime.now(UTC) + timedelta(days=2)
    file.write_text(
        "date,serial_number,model,smart_5_raw\n2020-01-01,S1,ST1,0\n2020-01-01,,ST1,0\n"
        f"{tomorrow:%Y-%m-%d},S2,ST1,0\n2020-01-02,S1,ST1,1\n"
    )
    assert main(["data", "import", "backblaze", str(file), "--state", str(tmp_path / "state")]) == 3
    said = capsys.readouterr()
    assert "2 readings taken in" in said.out
    assert "2 refused" in said.out
    assert "days.csv row 2: the row names no device" in said.err
    assert "in the future" in said.err


@pytest.mark.slow
def test_a_dry_run_judges_all_and_makes_nothing(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "state"
    assert main(["data", "import", "backblaze", str(table), "--state", str(state), "--dry-run"]) == 0
    assert f"{ROWS:,} readings would be taken in" in capsys.readouterr().out
    assert not state.exists()


@pytest.mark.slow
def test_one_part_that_cannot_be_read_does_not_stop_the_next(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "a.parquet"
    broken.write_bytes(b"PAR1 and nothing")
    code = main(["data", "import", "backblaze", str(broken), str(table), "--state", str(tmp_path / "s")])
    said = capsys.readouterr()
    assert code == 3
    assert f"{ROWS:,} readings taken in" in said.out
    assert "a.parquet cannot be read" in said.err


@pytest.mark.parametrize(
    "arguments",
    [["backblaze"], ["smartctl-json"], ["smartctl-text"]],
)
def test_an_import_of_nothing_is_a_usage_error(arguments: list[str]) -> None:
    assert main(["data", "import", *arguments]) == 2


def test_an_unknown_zone_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.txt"
    file.write_text("smartctl 7.3\n")
    assert main(["data", "import", "smartctl-text", str(file), "--timezone", "Mars/Olympus"]) == 1
    assert "there is no time zone Mars/Olympus" in capsys.readouterr().err


@pytest.mark.slow
def test_fresh_readings_are_handed_to_the_worker_once_each_and_old_ones_are_not(
    table: Path, tmp_path: Path
) -> None:
    store, log = SqliteStore(MEMORY), MemoryLog()
    importer = Importer("backblaze", SystemClock(), store)
    importer.run(_parts(table))
    newest = max(reading.taken_at for reading in store.latest_readings().values())
    sender = RecordSender("import", SystemClock())
    assert importer.hand_over(log, sender) == 0
    later = Importer("backblaze", SetClock(newest + timedelta(days=1)), store)
    later.run(_parts(table))
    assert later.hand_over(log, sender) == 50
    assert len(log.read(Topic.READINGS, "worker", 1000)) == 50
