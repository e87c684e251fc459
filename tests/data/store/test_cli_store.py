"""`predrain store`: bring it up, look at it, take it out."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from predrain.data.store import store_schema
from predrain.data.store.sqlite_store import SqliteStore, version_of_file
from predrain.data.store.store_opening import open_store
from predrain.service.cli import main
from predrain.service.config.state_directory import StateDir
from tests.data.store import written
from tests.system.postgres.server import Server


def _filled(folder: Path) -> str:
    store = open_store(folder / "store.sqlite")
    written.fill(store)
    store.close()
    return str(folder)


def test_a_file_goes_down_for_an_older_predrain_and_up_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = _filled(tmp_path)
    assert main(["store", "migrate", "--to", "2", "--state", state]) == 0
    assert f"was of version {store_schema.VERSION} and is of version 2 now" in capsys.readouterr().out
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as connection:
        assert connection.execute("SELECT version FROM schema_version").fetchall() == [(2,)]
    assert main(["store", "migrate", "--state", state]) == 0
    assert main(["store", "migrate", "--state", state]) == 0
    assert f"version {store_schema.VERSION}: nothing to do" in capsys.readouterr().out
    store = open_store(tmp_path / "store.sqlite")
    written.assert_whole(store, life_changes=False, events=False, outlook_events=False)
    store.close()


def test_no_store_is_migrated_beneath_a_service_that_runs_on_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with StateDir(tmp_path) as state:
        SqliteStore(state.store).close()
        assert main(["store", "migrate", "--to", "4", "--state", str(tmp_path)]) == 1
        assert "in use by process" in capsys.readouterr().err
        SqliteStore(state.store).close()
        assert list(tmp_path.glob("store.sqlite.v*")) == []


def test_status_says_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = _filled(tmp_path)
    assert main(["store", "status", "--state", state]) == 0
    assert (
        f"version {store_schema.VERSION}: 2 devices, 2026-03-01 to 2026-03-01, 1 drains, 1 outcomes"
        in capsys.readouterr().out
    )
    assert main(["store", "status", "--json", "--state", state]) == 0
    assert json.loads(capsys.readouterr().out)["devices"] == 2


def test_status_and_doctor_leave_a_store_that_was_taken_back_for_an_older_predrain_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = _filled(tmp_path)
    assert main(["store", "migrate", "--to", "4", "--state", state]) == 0
    assert main(["store", "status", "--state", state]) == 0
    told = capsys.readouterr().out
    assert "version 4, for an earlier predrain: `predrain store migrate`" in told
    assert "which takes 3 MiB beside it (1 MiB for a copy, up to 2 MiB for the change)" in told
    assert main(["store", "status", "--json", "--state", state]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["free_bytes"] > figures["upgrade_bytes"] > (tmp_path / "store.sqlite").stat().st_size
    assert main(["doctor", "--state", state, "--json"]) == 1
    store = next(one for one in json.loads(capsys.readouterr().out) if one["what"] == "store")
    assert (store["state"], "is of version 4" in store["told"]) == ("wrong", True)
    assert not (tmp_path / "store.sqlite.v4").exists()  # what bringing it up would have left


def test_a_command_beside_a_start_leaves_an_older_store_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = _filled(tmp_path)
    assert main(["store", "migrate", "--to", "4", "--state", state]) == 0
    for command in (["token", "list"], ["store", "export", "--out", str(tmp_path / "out")]):
        assert main([*command, "--state", state]) == 1
        assert "is of version 4, for an earlier predrain" in capsys.readouterr().err
    assert version_of_file(tmp_path / "store.sqlite") == 4


def test_export_writes_and_says_what_it_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = _filled(tmp_path)
    for told in ("1 rows", "nothing new"):
        assert main(["store", "export", "--out", str(tmp_path / "out"), "--state", state]) == 0
        assert f"month=2026-03/part.parquet: {told}" in capsys.readouterr().out


def test_without_a_store_and_with_a_wrong_version_it_says_what_to_give(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command, sentence in (
        (["status"], "holds no store"),
        (["migrate", "--to", "99"], "there is no version 99"),
    ):
        assert main(["store", *command, "--state", str(tmp_path)]) == 1
        assert sentence in capsys.readouterr().err


@pytest.mark.system
def test_an_empty_database_is_made_ready(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    url = server.url(server.database())
    assert main(["store", "status", "--url", url]) == 1
    assert "has no tables yet" in capsys.readouterr().err
    assert main(["store", "migrate", "--url", url]) == 0
    assert f"the store is new and is of version {store_schema.VERSION} now" in capsys.readouterr().out
    assert main(["store", "status", "--url", url]) == 0
    assert "0 devices, no readings yet" in capsys.readouterr().out


@pytest.mark.system
def test_the_settings_name_the_database_and_no_command_prints_its_password(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = server.url(server.database(), "postgres:correct-horse")
    settings = tmp_path / "predrain.toml"
    settings.write_text(f'[store]\nurl = "{url}"\n')
    for command in (["store", "migrate"], ["store", "status"], ["config", "check"]):
        assert main([*command, "--config", str(settings)]) == 0
    said = capsys.readouterr()
    assert "the store is new" in said.out
    assert "correct-horse" not in said.out + said.err
