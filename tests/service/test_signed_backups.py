"""A backup is believed by its signature, or by what a person says to trust; the restore stands in the audit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from predrain.data.refusal import Refusal
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_port import AUDIT
from predrain.service.access.credentials import CredentialBook, CredentialKind
from predrain.service.access.tokens import Scope
from predrain.service.backup.backup import take_backup
from predrain.service.backup.backup_signature import (
    BackupAuthority,
    BackupTrust,
    NotTrusted,
    classify_contents,
    signing_key,
)
from predrain.service.backup.restore import restore_backup
from predrain.service.cli import main
from predrain.service.config.state_directory import StateDir
from tests.attack.backup import _members, _packed, plant_a_token
from tests.service.conftest import NOON, SetClock


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    made = StateDir(tmp_path / "state").ensure_exists()
    store = SqliteStore(made.store)
    CredentialBook(store, SetClock()).issue_credential(CredentialKind.TOKEN, "anna", [Scope.ACT], "bert")
    store.close()
    return made


@pytest.fixture
def backup(state: StateDir, tmp_path: Path) -> Path:
    out = tmp_path / "backup.tar.gz"
    take_backup(state, out, "[service]\n", (), "0.1.0", NOON)
    return out


def key_of(state: StateDir) -> BackupAuthority:
    return BackupAuthority(state.path / "backup.pub")


def acts(state: StateDir) -> list[tuple[str, str]]:
    store = SqliteStore(state.store)
    try:
        assert store.verify_audit().broken is None
        return [(line.caller, line.decided) for line in store.journal(AUDIT)]
    finally:
        store.close()


def test_a_backup_that_its_own_key_signed_is_restored_and_the_audit_says_so(
    state: StateDir, backup: Path, tmp_path: Path
) -> None:
    there = StateDir(tmp_path / "there")
    restore_backup(backup, there, key_of(state), by="cli:anna", clock=SetClock())
    (*_, (caller, told)) = acts(there)
    assert caller == "cli:anna"
    assert json.loads(told.removeprefix("restore ")) == {
        "made_at": "2026-03-10T12:00:00+00:00",
        "predrain": "0.1.0",
        "signed_by": signing_key(state).thumbprint(),
        "trusted": [],
    }


def test_no_forged_backup_is_restored_and_nothing_of_it_is_in_place(
    state: StateDir, backup: Path, tmp_path: Path
) -> None:
    there, forged = StateDir(tmp_path / "there"), tmp_path / "forged"
    forged.mkdir()
    tally = plant_a_token(
        backup,
        forged,
        lambda file: restore_backup(file, there, key_of(state), by="anna", clock=SetClock()) and None,
    )
    assert (tally.tried, tally.got_through) == (8, 0)
    assert [one.name for one in there.path.iterdir()] == ["lock"]


def test_without_a_key_every_part_that_the_backup_brings_must_be_named(
    backup: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / "there"
    words = ["restore", str(backup), "--state", str(there)]
    assert main(words) == 1
    told = capsys.readouterr().err
    assert "nobody vouches for the backup's drains, history, settings, tokens" in told
    assert "--trust drains --trust history --trust settings --trust tokens" in told
    some = ["--trust", "drains", "--trust", "history", "--trust", "settings"]
    assert main([*words, *some]) == 1
    assert "nobody vouches for the backup's tokens:" in capsys.readouterr().err
    assert {one.name for one in there.iterdir()} == {"lock"}
    assert main([*words, *some, "--trust", "tokens"]) == 0
    (_, (_, told)) = acts(StateDir(there))
    said = json.loads(told.removeprefix("restore "))
    assert (said["signed_by"], said["trusted"]) == (None, ["drains", "history", "settings", "tokens"])


def test_a_backup_of_version_0_1_0_has_no_signature_and_is_restored_by_what_is_trusted(
    state: StateDir, backup: Path, tmp_path: Path
) -> None:
    members = _members(backup)
    del members["manifest.sig"]
    members["manifest.json"] = json.dumps(json.loads(members["manifest.json"]) | {"format": 1}).encode()
    old = tmp_path / "old.tar.gz"
    old.write_bytes(_packed(members))
    with pytest.raises(Refusal, match="has no signature"):
        restore_backup(old, StateDir(tmp_path / "there"), key_of(state), by="me", clock=SetClock())
    every = BackupAuthority(trusted=frozenset(BackupTrust))
    restore_backup(old, StateDir(tmp_path / "there"), every, by="me", clock=SetClock())


def test_the_key_that_signs_is_its_owner_s_in_no_backup_and_may_lie_elsewhere(
    state: StateDir, backup: Path, tmp_path: Path
) -> None:
    private = state.path / "backup.key"
    assert private.stat().st_mode & 0o777 == 0o600
    assert not [name for name in _members(backup) if "backup." in name]
    elsewhere = tmp_path / "elsewhere.key"
    private.rename(elsewhere)
    out = tmp_path / "second.tar.gz"
    take_backup(state, out, "", (), "0.1.0", NOON, elsewhere)
    assert not private.exists(), "no other key is made where one is named"
    restore_backup(out, StateDir(tmp_path / "there"), key_of(state), by="me", clock=SetClock())
    elsewhere.chmod(0o644)
    with pytest.raises(Refusal, match="chmod 600"):
        take_backup(state, tmp_path / "third.tar.gz", "", (), "0.1.0", NOON, elsewhere)
    assert not (tmp_path / "third.tar.gz").exists()


@pytest.mark.parametrize(
    "content", [b"", b"no key", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"]
)
def test_a_key_that_is_none_checks_nothing(backup: Path, tmp_path: Path, content: bytes) -> None:
    key = tmp_path / "key.pem"
    key.write_bytes(content)
    for path in (key, tmp_path / "missing.pem"):
        with pytest.raises(Refusal, match=r"holds no Ed25519 key|cannot be read"):
            restore_backup(
                backup, StateDir(tmp_path / "there"), BackupAuthority(path), by="me", clock=SetClock()
            )


def test_trust_without_proof_counts_for_nothing_where_a_key_is_named(
    state: StateDir, backup: Path, tmp_path: Path
) -> None:
    other = StateDir(tmp_path / "other").ensure_exists()
    signing_key(other)
    both = replace(key_of(other), trusted=frozenset(BackupTrust))
    with pytest.raises(Refusal, match="not signed by the key that you named"):
        restore_backup(backup, StateDir(tmp_path / "there"), both, by="me", clock=SetClock())


def test_every_file_of_a_backup_brings_something_that_is_to_be_trusted() -> None:
    assert classify_contents(["store.sqlite"]) == {
        BackupTrust.TOKENS,
        BackupTrust.DRAINS,
        BackupTrust.HISTORY,
    }
    assert classify_contents(["log.sqlite", "settings.toml", "bundles/a/trees.txt"]) == {
        BackupTrust.HISTORY,
        BackupTrust.SETTINGS,
        BackupTrust.BUNDLES,
    }
    assert classify_contents([]) == set()
    with pytest.raises(NotTrusted):
        BackupAuthority().check(b"", None, ["store.sqlite"])
