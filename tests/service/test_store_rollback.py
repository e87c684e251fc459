"""`predrain store rollback`: back to the copy that an upgrade made, after a list of what that loses."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from predrain.data.drain import DrainState
from predrain.data.ids import DeviceId
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.store import store_schema
from predrain.data.store.sqlite_store import SqliteStore, version_of_file
from predrain.data.store.store_port import AUDIT
from predrain.service.access.audit import AuditedCall, audit_line
from predrain.service.backup.store_rollback import CannotGoBack, find_rollback
from predrain.service.cli import main
from predrain.service.config.state_directory import StateDir
from predrain.service.storage.audit_ends import find_restores
from predrain.service.storage.store_identity import read_identity
from tests.conftest import ROOT
from tests.service.conftest import NOON, smart_reading

DRAIN_STATES = "UPDATE drains SET revision = revision + 1, document = ?"


@pytest.fixture(params=[5, 10])
def version(request: pytest.FixtureRequest) -> int:
    """The version of the store of release 0.1.0, and the last one before the present."""
    return int(request.param)


@pytest.fixture
def state(version: int, tmp_path: Path) -> StateDir:
    """A state of an earlier release, whose drain is cancelled, and that this release has upgraded and used since."""
    found = StateDir(tmp_path / "state").ensure_exists()
    archive = (
        ROOT / "tests" / "service" / "v0_1_0" / "state.tar.gz"
        if version == 5
        else ROOT / "tests" / "samples" / f"state-v{version}.tar.gz"
    )
    shutil.unpack_archive(archive, found.path, filter="data")
    return found


def _put_drain(path: Path, drain_state: DrainState) -> None:
    """Give the only drain another state, with the next revision, in a store of any version."""
    from predrain.data.store import documents

    with closing(sqlite3.connect(path)) as connection, connection:
        (raw,) = connection.execute("SELECT document FROM drains").fetchone()
        drain = documents.DRAIN.read(raw)
        changed = replace(drain, state=drain_state, revision=drain.revision + 1)
        connection.execute(DRAIN_STATES, (documents.DRAIN.write(changed),))


def _use(state: StateDir) -> None:
    """A few acts and readings after the upgrade."""
    store = SqliteStore(state.store)
    store.note_once("store", "identity", b"the-store")
    store.add_readings([smart_reading("E", NOON + timedelta(days=30, hours=hour)) for hour in range(3)])
    store.add_outcome(Outcome(DeviceId("ST4000DM000_E"), NOON + timedelta(days=31), DriveFate.FAILED, "ann"))
    at = NOON + timedelta(days=32)
    store.add_journal(
        [
            audit_line(AuditedCall("ann", "10.0.0.1", "POST /api/v1/halt", "200"), at),
            audit_line(AuditedCall("bob", "10.0.0.2", "POST /api/v1/drains", "409"), at + timedelta(hours=1)),
        ]
    )
    store.set_halt("storm")
    store.close()


def _list(state: StateDir, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    main(["store", "rollback", "--json", "--state", str(state.path)])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_acts_and_readings_since_the_upgrade_are_listed_and_the_store_is_not_changed(
    state: StateDir, version: int, capsys: pytest.CaptureFixture[str]
) -> None:
    _put_drain(state.store, DrainState.CANCELLED)
    _use(state)
    before = state.store.read_bytes()
    told = _list(state, capsys)
    assert (told["version"], told["to"], told["kept_as"]) == (store_schema.VERSION, version, None)
    assert told["readings"] == {"count": 3, "newest": (NOON + timedelta(days=30, hours=2)).isoformat()}
    assert told["outcomes"] == {"count": 1, "newest": (NOON + timedelta(days=31)).isoformat()}
    assert (told["audit"], [act["caller"] for act in told["acts"]]) == (2, ["ann"])
    assert (told["drains"], told["under_way"], told["halt"]) == ([], [], "storm")
    assert state.store.read_bytes() == before
    assert main(["store", "rollback", "--state", str(state.path)]) == 0
    said = capsys.readouterr().out
    assert "readings: 3, the newest of" in said
    assert "ann  POST /api/v1/halt  -> 200" in said
    assert f"predrain store rollback --list-id {told['list_id']}" in said


def test_the_copy_takes_the_place_of_the_store_and_the_newer_store_is_kept(
    state: StateDir, version: int, capsys: pytest.CaptureFixture[str]
) -> None:
    _put_drain(state.store, DrainState.CANCELLED)
    _use(state)
    told = _list(state, capsys)
    assert main(["store", "rollback", "--list-id", told["list_id"], "--state", str(state.path)]) == 0
    assert version_of_file(state.store) == version
    kept = state.path / "store.sqlite.v12"
    assert version_of_file(kept) == store_schema.VERSION
    assert sorted(one.name for one in state.path.glob("store.sqlite*")) == ["store.sqlite", kept.name]
    newer = SqliteStore(kept)
    assert len(newer.readings(DeviceId("ST4000DM000_E"))) == 3
    newer.close()
    again = SqliteStore(state.store)  # the upgrade after going back
    try:
        assert again.readings(DeviceId("ST4000DM000_E")) == ()
        assert [len(again.readings(DeviceId(f"ST4000DM000_{drive}"))) for drive in "ABC"] == [8, 8, 8]
        assert again.halt_reason() == "storm", "a halt is not lifted by going back"
        assert read_identity(again) == "the-store", "the log beside it goes on to know the store"
        assert again.verify_audit().broken is None
        (restore,) = find_restores(again.journal(AUDIT))
        assert restore.made_at.isoformat() == told["made_at"]
        assert restore.by.startswith("cli:")
    finally:
        again.close()


def test_going_back_is_refused_while_a_drain_is_under_way(
    state: StateDir, version: int, capsys: pytest.CaptureFixture[str]
) -> None:
    _use(state)
    before = state.store.read_bytes()
    told = _list(state, capsys)
    (drain,) = told["under_way"]
    for more in ([], ["--list-id", told["list_id"]]):
        assert main(["store", "rollback", *more, "--state", str(state.path)]) == 1
        assert f"drain {drain} of osd.0 is draining" in capsys.readouterr().err
    assert state.store.read_bytes() == before


def test_going_back_is_refused_if_the_copy_would_begin_a_drain_again_that_has_ended(
    state: StateDir, version: int, capsys: pytest.CaptureFixture[str]
) -> None:
    _use(state)
    _put_drain(state.store, DrainState.HANDED_OVER)
    told = _list(state, capsys)
    assert (told["under_way"], [one["now"] for one in told["drains"]]) == ([], ["handed_over"])
    assert main(["store", "rollback", "--list-id", told["list_id"], "--state", str(state.path)]) == 1
    assert "have ended since: drain " in capsys.readouterr().err
    assert version_of_file(state.store) == store_schema.VERSION


def test_another_list_than_the_one_confirmed_is_not_carried_out(
    state: StateDir, version: int, capsys: pytest.CaptureFixture[str]
) -> None:
    _put_drain(state.store, DrainState.CANCELLED)
    _use(state)
    told = _list(state, capsys)
    store = SqliteStore(state.store)
    store.add_readings([smart_reading("E", NOON + timedelta(days=40))])
    store.close()
    assert main(["store", "rollback", "--list-id", told["list_id"], "--state", str(state.path)]) == 1
    assert "the list is another one by now" in capsys.readouterr().err
    assert version_of_file(state.store) == store_schema.VERSION


def test_going_back_is_refused_beside_a_service_that_runs(
    state: StateDir, version: int, capsys: pytest.CaptureFixture[str]
) -> None:
    _put_drain(state.store, DrainState.CANCELLED)
    _use(state)
    told = _list(state, capsys)
    with state:
        assert main(["store", "rollback", "--list-id", told["list_id"], "--state", str(state.path)]) == 1
    assert "in use by process" in capsys.readouterr().err
    assert version_of_file(state.store) == store_schema.VERSION


def test_a_damaged_copy_is_not_put_in_place(
    state: StateDir, version: int, capsys: pytest.CaptureFixture[str]
) -> None:
    _put_drain(state.store, DrainState.CANCELLED)
    _use(state)
    told = _list(state, capsys)
    copy = Path(told["copy"])
    made_at = copy.stat().st_mtime_ns
    with closing(sqlite3.connect(copy)) as connection:  # a page of a table that the list does not read
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'checkpoints'"
        ).fetchone()
    damaged = bytearray(copy.read_bytes())
    damaged[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    copy.write_bytes(damaged)
    os.utime(copy, ns=(made_at, made_at))
    assert main(["store", "rollback", "--list-id", told["list_id"], "--state", str(state.path)]) == 1
    assert f"{copy} is damaged" in capsys.readouterr().err
    assert version_of_file(state.store) == store_schema.VERSION


def test_going_back_that_is_cut_off_leaves_the_newer_store_and_can_be_done_again(
    state: StateDir, version: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _put_drain(state.store, DrainState.CANCELLED)
    _use(state)
    told = _list(state, capsys)
    replace_file = Path.replace

    def cut_off(file: Path, target: Path) -> Path:
        if target == state.store:
            raise KeyboardInterrupt
        return replace_file(file, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", cut_off)
        with pytest.raises(SystemExit):
            main(["store", "rollback", "--list-id", told["list_id"], "--state", str(state.path)])
    store = SqliteStore(state.store)
    assert len(store.readings(DeviceId("ST4000DM000_E"))) == 3
    store.close()
    told = _list(state, capsys)
    assert main(["store", "rollback", "--list-id", told["list_id"], "--state", str(state.path)]) == 0
    assert version_of_file(state.store) == version
    assert sorted(one.name for one in state.path.glob("store.sqlite*")) == [
        "store.sqlite",
        "store.sqlite.v12",
    ]


def test_without_a_copy_the_way_back_is_named(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "store.sqlite").close()
    with pytest.raises(
        CannotGoBack, match=r"no copy of an earlier version .*there is none.*store migrate --to"
    ):
        find_rollback(tmp_path / "store.sqlite", None)


def test_a_database_has_no_copy_and_the_cure_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    settings = tmp_path / "predrain.toml"
    settings.write_text('[store]\nurl = "postgresql://predrain@127.0.0.1:1/none"\n')
    assert main(["store", "rollback", "--config", str(settings)]) == 1
    assert "pg_restore" in capsys.readouterr().err


def test_a_halt_beside_an_older_release_is_written_and_changes_no_format(
    state: StateDir, version: int
) -> None:
    assert main(["halt", "--reason", "smoke", "--state", str(state.path)]) == 3
    assert version_of_file(state.store) == version
    with closing(sqlite3.connect(state.store)) as connection:
        assert connection.execute("SELECT why FROM halt").fetchone() == ("smoke",)
    assert main(["unhalt", "--state", str(state.path)]) == 3
    with closing(sqlite3.connect(state.store)) as connection:
        assert connection.execute("SELECT why FROM halt").fetchone() is None
