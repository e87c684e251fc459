"""A backup that could not be restored, or has a wrong path, is refused when it is taken and not when it is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.access.tokens import load_admin_tokens
from predrain.service.backup.backup import CannotBackUp
from predrain.service.config.state_directory import StateDir
from tests.service.test_backup import taken


def test_a_store_that_is_no_database_any_more_is_not_backed_up(tmp_path: Path) -> None:
    state = StateDir(tmp_path / "state").ensure_exists()
    state.store.write_bytes(b"\xa5" * 8192)
    with pytest.raises(CannotBackUp, match=r"store\.sqlite is damaged"):
        taken(state, tmp_path / "backup.tar.gz")


def test_a_folder_that_holds_no_state_makes_no_backup(tmp_path: Path) -> None:
    (tmp_path / "srv" / "state").mkdir(parents=True)
    load_admin_tokens(tmp_path / "srv" / "state" / "token")
    with pytest.raises(CannotBackUp, match="holds no state"):
        taken(StateDir(tmp_path / "srv"), tmp_path / "backup.tar.gz")


def test_no_backup_is_put_into_the_state_that_it_is_of(tmp_path: Path) -> None:
    state = StateDir(tmp_path / "state").ensure_exists()
    SqliteStore(state.store).close()
    with pytest.raises(CannotBackUp, match="give --out a place outside"):
        taken(state, state.path / "backup.tar.gz")
