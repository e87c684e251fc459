"""The log on disk under real faults: kill -9, a full disk, many processes, a damaged file."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from predrain.data.log.log_port import Delivered, LogFull, Record, Topic
from predrain.data.log.sqlite_log import DiskFull, LogUnreadable, SqliteLog
from predrain.data.refusal import Refusal

ROOT = Path(__file__).resolve().parents[2]

PRELUDE = """
import json, resource, sys
from pathlib import Path
from predrain.data.log.log_port import LogFull, Record, Topic
from predrain.data.log.sqlite_log import SqliteLog
log = SqliteLog(Path(sys.argv[1]))
def say(*words):
    print(json.dumps(words), flush=True)
"""


@contextmanager
def _process(program: str, path: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process of its own that has opened the log at `path`."""
    process = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + program, str(path), *arguments],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _said(process: subprocess.Popen[str]) -> list[Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "the process ended before it said anything"
    said: list[Any] = json.loads(line)
    return said


def _values(log: SqliteLog, group: str = "worker") -> list[str]:
    return [delivered.value.decode() for delivered in log.read(Topic.READINGS, group, 10**6)]


def test_an_acknowledged_batch_survives_kill_9_and_each_stored_batch_is_whole(tmp_path: Path) -> None:
    program = """
for batch in range(10**9):
    log.append(Topic.READINGS, [Record("k", f"{batch}.{i}".encode()) for i in range(7)])
    say(batch)
"""
    path = tmp_path / "log.db"
    with _process(program, path) as process:
        acknowledged = -1
        while acknowledged < 25:
            (acknowledged,) = _said(process)
        process.send_signal(signal.SIGKILL)
        process.wait()
    log = SqliteLog(path)
    values = _values(log)
    assert len(values) % 7 == 0
    assert len(values) >= 7 * (acknowledged + 1)
    assert values == [f"{n // 7}.{n % 7}" for n in range(len(values))]
    log.close()


def test_a_reader_killed_between_read_and_commit_is_given_the_same_records_again(tmp_path: Path) -> None:
    program = """
log.commit(Topic.READINGS, "worker", log.read(Topic.READINGS, "worker", 2))
say(*[delivered.value.decode() for delivered in log.read(Topic.READINGS, "worker", 2)])
sys.stdin.read()
"""
    path = tmp_path / "log.db"
    log = SqliteLog(path)
    log.append(Topic.READINGS, [Record("k", name.encode()) for name in "abcde"])
    with _process(program, path) as process:
        assert _said(process) == ["c", "d"]
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert _values(log) == ["c", "d", "e"]
    log.close()


def test_a_process_killed_inside_its_transaction_leaves_nothing_behind(tmp_path: Path) -> None:
    program = """
with log._writing() as connection:
    connection.execute("INSERT INTO records (topic, key, value) VALUES ('readings', 'k', x'00')")
    say("written, not committed")
    sys.stdin.read()
"""
    path = tmp_path / "log.db"
    log = SqliteLog(path)
    log.append(Topic.READINGS, [Record("k", b"a")])
    with _process(program, path) as process:
        _said(process)
        process.send_signal(signal.SIGKILL)
        process.wait()
    log.append(Topic.READINGS, [Record("k", b"b")])
    assert _values(log) == ["a", "b"]
    log.close()


def test_several_processes_append_to_one_log_without_loss(tmp_path: Path) -> None:
    program = """
for batch in range(20):
    log.append(Topic.READINGS, [Record(sys.argv[2], f"{sys.argv[2]}.{batch}.{i}".encode()) for i in range(5)])
say("done")
"""
    path = tmp_path / "log.db"
    with (
        _process(program, path, "x") as first,
        _process(program, path, "y") as second,
        _process(program, path, "z") as third,
    ):
        for process in (first, second, third):
            assert _said(process) == ["done"]
    log = SqliteLog(path)
    values = _values(log)
    for name in "xyz":
        own = [value for value in values if value.startswith(name)]
        assert own == [f"{name}.{batch}.{i}" for batch in range(20) for i in range(5)]
    log.close()


def test_a_disk_that_fills_up_refuses_the_batch_keeps_the_rest_and_works_again(tmp_path: Path) -> None:
    """The disk is one of a child: RLIMIT_FSIZE stops its files from growing, as a full disk does."""
    program = """
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
accepted = 0
try:
    while True:
        log.append(Topic.READINGS, [Record("k", b"%d" % (accepted + i) + b" " * 5000) for i in range(3)])
        accepted += 3
except LogFull as error:
    say(accepted, type(error).__name__, str(error))
try:
    log.append(Topic.READINGS, [Record("k", b"x" * 400_000)])
except LogFull as error:
    say("refused again")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
log.append(Topic.READINGS, [Record("k", b"after")])
say([int(d.value) for d in log.read(Topic.READINGS, "worker", 10**6) if d.value != b"after"])
"""
    path = tmp_path / "log.db"
    with _process(program, path) as process:
        accepted, kind, sentence = _said(process)
        assert kind == "DiskFull"
        assert "make room on its disk" in sentence
        assert str(path) in sentence
        assert _said(process) == ["refused again"]
        (kept,) = _said(process)
    assert accepted > 0
    assert kept == list(range(accepted))
    log = SqliteLog(path)
    assert _values(log)[-1] == "after"
    log.close()


def test_a_log_at_its_page_limit_refuses_and_takes_again_what_trimming_made_room_for(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path / "log.db")
    log._connection.execute("PRAGMA max_page_count = 100").fetchall()
    batch = [Record("k", b"x" * 3000)] * 10
    for _ in range(8):
        log.append(Topic.READINGS, batch)
    with pytest.raises(DiskFull, match=r"log\.db cannot be written .*full.*make room") as refused:
        log.append(Topic.READINGS, batch * 10)
    assert isinstance(refused.value, LogFull)
    assert isinstance(refused.value, Refusal)
    delivered = log.read(Topic.READINGS, "worker", 10**6)
    assert len(delivered) == 80
    log.commit(Topic.READINGS, "worker", delivered)
    assert log.trim(Topic.READINGS, delivered[-1].offset + 1) == 80
    log.append(Topic.READINGS, batch)
    assert len(log.read(Topic.READINGS, "worker", 10**6)) == len(batch)
    log.close()


def test_trimming_gives_room_back_to_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = SqliteLog(path)
    log.append(Topic.READINGS, [Record("k", b"x" * 3000)] * 1000)
    log.commit(Topic.READINGS, "worker", [Delivered(10**9, "", b"")])
    log.trim(Topic.READINGS, 10**9)
    log.close()
    assert path.stat().st_size < 100_000


def test_a_damaged_log_is_refused_with_the_cure(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(LogUnreadable, match=r"log\.db is damaged or no log .*move it away"):
        SqliteLog(path)


def test_a_log_of_a_newer_predrain_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    SqliteLog(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 9")
    connection.close()
    with pytest.raises(LogUnreadable, match="has format 9 and this predrain knows 1: update"):
        SqliteLog(path)


def test_somebody_elses_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "songs.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE songs (name TEXT)")
    connection.close()
    with pytest.raises(LogUnreadable, match="is a database but not a log"):
        SqliteLog(path)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("songs",)]
    connection.close()


def test_a_path_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LogUnreadable, match="cannot be made"):
        SqliteLog(tmp_path / "file" / "log.db")
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(DiskFull, match="unable to open database file"):
        SqliteLog(tmp_path / "folder.db")
