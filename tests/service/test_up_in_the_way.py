"""`predrain up` on what it cannot use ends with exit code 1 and one sentence, and loses nothing."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from predrain.data.log.log_port import Record, Topic
from predrain.data.log.sqlite_log import SqliteLog
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.cli import main
from predrain.service.config.state_directory import StateDir
from tests.service.conftest import smart_reading

PAGE = 4096


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    """A state directory with some history."""
    made = StateDir(tmp_path / "state").ensure_exists()
    now = datetime.now(UTC)
    store, log = SqliteStore(made.store), SqliteLog(made.log)
    store.add_readings(smart_reading(f"{n % 40}", now - timedelta(hours=n)) for n in range(1200))
    log.append(Topic.READINGS, [Record("ST4000DM000_0", b"waiting")] * 50)
    store.close()
    log.close()
    return made


@pytest.mark.parametrize("what", ["store", "log"])
def test_a_file_that_is_no_database(state: StateDir, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    path: Path = getattr(state, what)
    for file in state.path.glob(f"{path.name}-*"):
        file.unlink()
    path.write_bytes(b"no database, by any means. " * 400)
    _refused(state, f"{path.name} is damaged or no", capsys)


def test_a_store_with_damage_in_its_middle(state: StateDir, capsys: pytest.CaptureFixture[str]) -> None:
    raw = bytearray(state.store.read_bytes())
    for page in range(2 * PAGE, len(raw), PAGE):
        raw[page : page + 64] = b"\xa5" * 64
    state.store.write_bytes(raw)
    _refused(state, "backup", capsys)


def test_a_store_that_was_cut_short(state: StateDir, capsys: pytest.CaptureFixture[str]) -> None:
    state.store.write_bytes(state.store.read_bytes()[: 3 * PAGE])
    _refused(state, "store.sqlite is damaged", capsys)


def test_a_store_of_a_newer_predrain(state: StateDir, capsys: pytest.CaptureFixture[str]) -> None:
    import sqlite3

    with sqlite3.connect(state.store) as file:
        file.execute("UPDATE alembic_version SET version_num = '0099'")
    file.close()
    _refused(state, "update predrain", capsys)


def test_a_port_in_use(state: StateDir, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        told = _refused(state, f"port {port} of 127.0.0.1 is in use", capsys, "--port", port)
        assert "give --port another one" in told


def _refused(state: StateDir, word: str, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["up", "--state", str(state.path), *(options or ("--port", "0"))]) == 1
    told = capsys.readouterr().err
    assert word in told
    assert told.startswith("predrain: ")
    assert told.count("\n") == 1
    return told
