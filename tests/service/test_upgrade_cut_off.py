"""A store of an earlier version whose upgrade is killed: nothing is lost, and the next start brings it to its end."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import Connection
from structlog.testing import capture_logs

from predrain.data.ids import DeviceId
from predrain.data.store import migration_progress, migrations, sqlite_upgrade, store_schema
from predrain.data.store.sqlite_store import SqliteStore, version_of_file
from predrain.data.store.store_faults import StoreFull
from predrain.service.config.state_directory import StateDir
from tests.conftest import ROOT

V0_1_0 = 5
"""The version of the store of release 0.1.0."""

VICTIM = """
import os, signal, sys
from pathlib import Path
from sqlalchemy import event
from sqlalchemy.engine import Engine
from predrain.data.store import sqlite_upgrade
from predrain.data.store.sqlite_store import SqliteStore

store, where, number = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
counts = {}

def pass_by(place, *_):
    counts[place] = counts.get(place, 0) + 1
    if place == where and counts[place] == number:
        os.kill(os.getpid(), signal.SIGKILL)

sqlite_upgrade.PAGES_AT_ONCE = 4
note_copied = sqlite_upgrade.MigrationProgress.note_copied
sqlite_upgrade.MigrationProgress.note_copied = lambda *a: (pass_by("copied pages"), note_copied(*a))
replace = Path.replace
Path.replace = lambda *a: (pass_by("before the copy's name"), replace(*a), pass_by("after the copy's name"))
event.listen(Engine, "before_cursor_execute", lambda *_: pass_by("statement"))
event.listen(Engine, "commit", lambda *_: pass_by("before the commit"))
SqliteStore(store).close()
print(counts["statement"], counts["copied pages"])
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The store of release 0.1.0, as it left it."""
    state = StateDir(tmp_path / "state").ensure_exists()
    shutil.unpack_archive(ROOT / "tests" / "service" / "v0_1_0" / "state.tar.gz", state.path, filter="data")
    return state.store


def _upgrade(store: Path, where: str = "", number: int = 0) -> subprocess.CompletedProcess[str]:
    """Open the store in a process of its own, which kills itself when it passes `where` for the time `number`."""
    return subprocess.run(
        [sys.executable, "-c", VICTIM, str(store), where, str(number)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def _dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def _assert_whole(path: Path) -> None:
    opened = SqliteStore(path)
    try:
        assert [len(opened.readings(DeviceId(f"ST4000DM000_{drive}"))) for drive in "ABC"] == [8, 8, 8]
        assert len(opened.drains()) == len(opened.outcomes()) == 1
        assert [line.decided for line in opened.journal("halt")] == ["halt: storm", "lift the halt"]
        assert opened.verify_audit().broken is None
    finally:
        opened.close()


@pytest.mark.slow
def test_an_upgrade_that_is_killed_at_any_point_loses_nothing_and_is_done_by_the_next_start(
    store: Path, tmp_path: Path
) -> None:
    before = _dump(store)
    tried = tmp_path / "tried.sqlite"
    shutil.copy(store, tried)
    statements, copied = map(int, _upgrade(tried).stdout.split()[-2:])
    assert (statements > 50, copied > 2) == (True, True), "there are points enough to be killed at"
    points = [
        *(("copied pages", number) for number in (1, copied // 2)),
        ("before the copy's name", 1),
        ("after the copy's name", 1),
        *(("statement", statements * part // 6) for part in range(2, 7)),
        ("before the commit", 1),
    ]
    copy = sqlite_upgrade.name_copy(store, V0_1_0)
    for where, number in points:
        killed = _upgrade(store, where, number)
        assert killed.returncode == -signal.SIGKILL, (where, number, killed.stderr)
        assert version_of_file(store) == V0_1_0, (where, number)
        assert _dump(store) == before, (where, number)
        named = where not in ("copied pages", "before the copy's name")
        assert copy.exists() == named, (where, number)
    whole = (copy.stat().st_ino, copy.stat().st_mtime_ns)
    _assert_whole(store)
    assert (copy.stat().st_ino, copy.stat().st_mtime_ns) == whole, "the good copy is not made again"
    assert _dump(copy) == before
    assert version_of_file(store) == store_schema.VERSION


def test_a_copy_that_lacks_a_row_of_the_store_is_made_again(store: Path) -> None:
    copy = sqlite_upgrade.name_copy(store, V0_1_0)
    shutil.copy(store, copy)
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("INSERT INTO notes (room, name, document) VALUES ('later', 'x', x'00')")
    before = _dump(store)
    SqliteStore(store).close()
    assert _dump(copy) == before


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0 cut off", b"no database" * 1000])
def test_a_copy_that_is_no_store_is_made_again(store: Path, content: bytes) -> None:
    before, copy = _dump(store), sqlite_upgrade.name_copy(store, V0_1_0)
    copy.write_bytes(content)
    SqliteStore(store).close()
    assert _dump(copy) == before


def test_an_upgrade_without_the_space_is_refused_with_the_figures_and_changes_nothing(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _dump(store)
    monkeypatch.setattr(sqlite_upgrade.shutil, "disk_usage", lambda _: SimpleNamespace(free=100_000))
    with pytest.raises(
        StoreFull,
        match=r"has version 5, .* takes 3 MiB beside it \(1 MiB for a copy, .*make room.*nothing was changed",
    ):
        SqliteStore(store)
    assert _dump(store) == before
    assert sorted(one.name for one in store.parent.glob("store.sqlite.v*")) == []


def test_the_space_of_a_copy_that_is_there_is_not_asked_for_again(store: Path) -> None:
    first = sqlite_upgrade.compute_upgrade_space(store, V0_1_0, store_schema.VERSION)
    shutil.copy(store, sqlite_upgrade.name_copy(store, V0_1_0))
    then = sqlite_upgrade.compute_upgrade_space(store, V0_1_0, store_schema.VERSION)
    assert (first.copy, then.copy) == (store.stat().st_size, 0)
    assert first.needed - then.needed == store.stat().st_size


def test_an_upgrade_takes_no_more_space_than_was_said(store: Path) -> None:
    said = sqlite_upgrade.compute_upgrade_space(store, V0_1_0, store_schema.VERSION)
    size = store.stat().st_size
    opened = SqliteStore(store)
    sizes = [
        one.stat().st_size for one in store.parent.glob("store.sqlite*") if not one.name.endswith("-shm")
    ]
    opened.close()
    assert sum(sizes) - size <= said.needed


def test_the_space_is_logged_before_the_store_changes(store: Path) -> None:
    with capture_logs() as logs:
        SqliteStore(store).close()
    (line,) = logs
    assert line["event"] == "the store is brought to another version"
    assert (line["from_version"], line["to_version"]) == (V0_1_0, store_schema.VERSION)
    assert (line["copy_bytes"], line["copy"]) == (
        store.with_name("store.sqlite.v5").stat().st_size,
        f"{store}.v5",
    )
    assert line["free_bytes"] > line["copy_bytes"] + line["change_bytes"]


def test_a_long_upgrade_logs_its_progress_and_the_store_stays_readable_as_it_was(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration_progress, "PROGRESS_SECONDS", 0.01)
    versions = []
    migrate, logged = migrations.migrate_store_version, threading.Event()

    def slowly(connection: Connection, to: int, note: Callable[[int], None]) -> None:
        migrate(connection, to, note)
        versions.append(version_of_file(store))
        assert logged.wait(60)

    monkeypatch.setattr(migrations, "migrate_store_version", slowly)
    monkeypatch.setattr(
        migration_progress,
        "structlog",
        SimpleNamespace(get_logger=lambda: SimpleNamespace(info=lambda _, **said: seen(said))),
    )
    steps = set()

    def seen(said: dict[str, object]) -> None:
        steps.add(said["step"])
        if said["step"] == f"its tables have version {store_schema.VERSION}":
            logged.set()

    SqliteStore(store).close()
    assert f"its tables have version {store_schema.VERSION}" in steps
    assert versions == [V0_1_0], "another process reads the store of before until the upgrade has ended"
    assert "store version" not in {one.name for one in threading.enumerate()}
