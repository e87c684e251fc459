"""Stores that cannot be opened or read: damaged ones, ones of others, and places where none can be."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from predrain.data.drain import JournalEntry
from predrain.data.store import store_schema
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_faults import StoreFull, StoreUnreadable
from tests.data.store.test_store import NOON, _reading


def test_a_damaged_file_is_refused_with_the_cure(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"not a database, by any means" * 100)
    with pytest.raises(StoreUnreadable, match=r"store\.db is damaged or no store .*backup"):
        SqliteStore(path)


def test_damage_in_the_middle_of_a_file_is_refused_with_the_cure(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    store.add_readings([_reading(f"dev-{i}", NOON) for i in range(2000)])
    store.close()
    raw = bytearray(path.read_bytes())
    for page in range(2 * 4096, len(raw), 4096):
        raw[page : page + 64] = b"\xa5" * 64
    path.write_bytes(raw)
    with pytest.raises(StoreUnreadable, match="backup"):
        SqliteStore(path).latest_readings()


def test_a_document_that_cannot_be_read_is_left_out_and_reported_with_its_table(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    store.add_readings([_reading("a", NOON), _reading("b", NOON)])
    assert store.describe_damage() is None
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE latest_readings SET document = x'7b7d' WHERE device = 'a'")
    connection.close()
    assert [*store.latest_readings()] == ["b"]
    told = store.describe_damage()
    assert told is not None
    assert "1 in latest_readings" in told
    assert "missing required" in told
    assert "backup" in told
    assert (
        store.add_readings([_reading("a", NOON + timedelta(hours=1))]) == 1
    )  # the next reading takes its place
    assert [*store.latest_readings()] == ["a", "b"]
    store.close()


def test_a_journal_line_that_was_changed_behind_the_store_is_left_out_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    store.add_journal([JournalEntry("d-1", NOON, "", f"step {n}") for n in range(3)])
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE journal SET document = replace(document, 'step 1', 'step 7') WHERE number = 2"
        )
        connection.execute("UPDATE journal SET document = CAST(document AS BLOB)")
    connection.close()
    assert [line.decided for line in store.journal("d-1")] == ["step 0", "step 2"]
    assert "1 in journal (it is not what was written)" in str(store.describe_damage())
    store.close()


def test_a_store_of_a_newer_predrain_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    SqliteStore(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE alembic_version SET version_num = '{store_schema.VERSION + 1:04d}'")
    connection.close()
    with pytest.raises(
        StoreUnreadable,
        match=f"has version {store_schema.VERSION + 1} and this predrain knows {store_schema.VERSION}: update",
    ):
        SqliteStore(path)


def test_somebody_elses_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE songs (name TEXT)")
    connection.close()
    with pytest.raises(StoreUnreadable, match="is a database but not a store"):
        SqliteStore(path)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("songs",)]
    connection.close()


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreUnreadable, match="cannot be made"):
        SqliteStore(tmp_path / "file" / "store.db")
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(StoreFull, match="unable to open database file"):
        SqliteStore(tmp_path / "folder.db")
