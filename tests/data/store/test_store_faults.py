"""The store on disk under real faults: kill -9, a full disk, several processes at one new file."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from predrain.data.drain import DrainState
from predrain.data.store.sqlite_store import SqliteStore

ROOT = Path(__file__).resolve().parents[3]

PRELUDE = """
import json, resource, sys, time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from predrain.data.drain import Drain, DrainState, Intent, JournalEntry
from predrain.data.log.sqlite_log import SqliteLog
from predrain.data.refusal import Refusal
from predrain.data.store.store_port import RevisionConflict
from predrain.data.store.sqlite_store import SqliteStore
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DRAIN = Drain("d-1", None, (3,), DrainState.DRAINING, Intent.REPLACE, "me", "why", NOON, NOON)
path = Path(sys.argv[1])
def say(*words):
    print(json.dumps(words), flush=True)
"""


@contextmanager
def _process(program: str, path: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + program, str(path), *arguments],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
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


@pytest.mark.slow
def test_a_revision_that_was_saved_survives_kill_9_with_the_journal_before_it(tmp_path: Path) -> None:
    program = """
store = SqliteStore(path)
for revision in range(10**9):
    store.add_journal([JournalEntry("d-1", NOON, "", f"step {revision}")])
    store.save_drain(replace(DRAIN, revision=revision))
    say(revision)
"""
    path = tmp_path / "store.db"
    with _process(program, path) as process:
        saved = -1
        while saved < 25:
            (saved,) = _said(process)
        process.send_signal(signal.SIGKILL)
        process.wait()
    store = SqliteStore(path)
    drain = store.drain("d-1")
    assert drain is not None
    assert drain.state is DrainState.DRAINING
    assert drain.revision >= saved
    journal = [line.decided for line in store.journal("d-1")]
    assert journal == [f"step {n}" for n in range(len(journal))]
    assert len(journal) > drain.revision
    store.close()


@pytest.mark.slow
def test_of_two_processes_that_save_the_same_revision_one_is_told(tmp_path: Path) -> None:
    program = """
store = SqliteStore(path)
won = []
for revision in range(1, 60):
    try:
        store.save_drain(replace(DRAIN, revision=revision, asked_by=sys.argv[2]))
        won.append(revision)
    except RevisionConflict:
        pass
say(won)
"""
    path = tmp_path / "store.db"
    with _process(program, path, "x") as first, _process(program, path, "y") as second:
        (won_first,), (won_second,) = _said(first), _said(second)
    assert not set(won_first) & set(won_second)
    assert max(won_first + won_second) == 59


@pytest.mark.slow
def test_a_full_disk_refuses_the_save_keeps_the_rest_and_works_again(tmp_path: Path) -> None:
    program = """
store = SqliteStore(path)
store.save_drain(DRAIN)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
lines = 0
try:
    while True:
        store.add_journal([JournalEntry("d-1", NOON, str(lines), "x" * 5000)])
        lines += 1
except Refusal as refusal:
    say(lines, type(refusal).__name__, str(refusal))
say(store.drain("d-1") == DRAIN, len(store.journal("d-1")))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.add_journal([JournalEntry("d-1", NOON, "after", "")])
say(len(store.journal("d-1")))
"""
    with _process(program, tmp_path / "store.db") as process:
        lines, kind, sentence = _said(process)
        assert (kind, lines > 0) == ("StoreFull", True)
        assert "make room on its disk" in sentence
        assert _said(process) == [True, lines]
        assert _said(process) == [lines + 1]


@pytest.mark.slow
def test_processes_that_start_together_on_new_files_all_open_them(tmp_path: Path) -> None:
    program = """
say("ready")
while time.time() < float(sys.argv[2]):
    pass
for number in range(12):
    SqliteStore(path / f"store.{number}").close()
    SqliteLog(path / f"log.{number}").close()
say("open")
"""
    start = str(time.time() + 1.5)
    with (
        _process(program, tmp_path, start) as first,
        _process(program, tmp_path, start) as second,
        _process(program, tmp_path, start) as third,
    ):
        for said in ("ready", "open"):
            for process in (first, second, third):
                assert _said(process) == [said]
