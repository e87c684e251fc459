"""The key that signs what the cluster keeps: made at the first start, checked, and used by a person to adopt a list."""

from __future__ import annotations

import json
import stat
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from predrain.actions.ceph_mgr.predrain.text_signing import sign_text, verify_text
from predrain.actions.cluster.config_key_store import ConfigKeys
from predrain.actions.cluster.signed_keys import SignedKeys
from predrain.actions.controller.replication import encode_drain_copy, name_of
from predrain.data.store.sqlite_store import MEMORY, SqliteStore
from predrain.service.access.audit import AUDIT
from predrain.service.cli import main
from predrain.service.config.settings import CephTable, ServiceTable, Settings
from predrain.service.config.state_directory import StateDir
from predrain.service.doctor import ceph_checks
from predrain.service.drains.live_cluster import make_live_cluster
from predrain.service.processes import up
from predrain.service.storage.signing_key import (
    SigningKeyUnusable,
    find_key_file,
    find_or_make_signing_key,
    find_signing_key,
    read_signing_key,
)
from tests.actions.made_channel import MonInMemory
from tests.actions.made_config_keys import SIGNING_KEY
from tests.actions.test_replication import whole_drain


@dataclass
class ClosableMon(MonInMemory):
    """A mon whose channel a command closes."""

    def close(self) -> None:
        """Nothing is held."""


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    return StateDir(tmp_path / "state").ensure_exists()


def key_file(path: Path, text: str = SIGNING_KEY, mode: int = 0o600) -> Path:
    path.write_text(f"{text}\n")
    path.chmod(mode)
    return path


# -- the file --------------------------------------------------------------------------------------------------


def test_the_first_start_makes_a_key_for_its_owner_only_and_the_next_one_has_the_same(
    state: StateDir,
) -> None:
    assert find_signing_key(CephTable(), state) is None
    key = find_or_make_signing_key(CephTable(), state)
    assert stat.S_IMODE(state.signing_key.stat().st_mode) == 0o600
    assert len(key) >= 32
    assert find_or_make_signing_key(CephTable(), state) == key
    assert find_signing_key(CephTable(), state) == key
    assert [path.name for path in state.path.iterdir()] == ["signing_key"]


def test_processes_that_start_at_once_on_one_directory_have_one_key(state: StateDir) -> None:
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(find_or_make_signing_key(CephTable(), state)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_a_key_of_the_settings_comes_before_that_of_the_mgr_module_and_before_the_made_one(
    state: StateDir, tmp_path: Path
) -> None:
    find_or_make_signing_key(CephTable(), state)
    ours, hands = key_file(tmp_path / "ours"), key_file(tmp_path / "hands")
    assert find_key_file(CephTable(signing_key=ours, executor_key=hands), state) == ours
    assert find_key_file(CephTable(executor_key=hands), state) == hands
    assert find_key_file(CephTable(), state) == state.signing_key


@pytest.mark.parametrize("mode", [0o604, 0o620, 0o666, 0o641])
def test_a_key_that_others_may_read_is_refused_with_the_command_that_closes_it(
    tmp_path: Path, mode: int
) -> None:
    path = key_file(tmp_path / "key", mode=mode)
    with pytest.raises(SigningKeyUnusable, match=f"chmod 600 {path}"):
        read_signing_key(path)


def test_a_key_of_a_secret_that_a_group_may_read_is_taken(tmp_path: Path) -> None:
    assert read_signing_key(key_file(tmp_path / "key", mode=0o440)) == SIGNING_KEY


@pytest.mark.parametrize(
    "make",
    [
        lambda _: None,
        lambda path: key_file(path, ""),
        lambda path: key_file(path, "short"),
        lambda path: path.write_bytes(b"\xff" * 40),
        lambda path: path.mkdir(),
    ],
    ids=["missing", "empty", "short", "not text", "a directory"],
)
def test_a_file_that_holds_no_key_is_refused(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path / "key")
    with pytest.raises(SigningKeyUnusable):
        read_signing_key(tmp_path / "key")


def test_a_controller_signs_from_its_first_start_and_a_command_without_a_key_plans_only(
    state: StateDir, tmp_path: Path
) -> None:
    ceph = CephTable(conf=tmp_path / "ceph.conf")
    settings = Settings(service=ServiceTable(state=state.path), ceph=ceph)
    store = SqliteStore(MEMORY)
    command = make_live_cluster(ceph, store, lambda: find_signing_key(ceph, state))
    assert command is not None
    assert command.plans_only
    assert command.lease is not None
    assert "--signing-key FILE" in command.lease.why
    leader, page = up._make_controlled_cluster(settings, store), up._make_observed_cluster(settings, store)
    assert leader is not None
    assert page is not None
    for found in (leader, page):
        assert isinstance(found.keep, SignedKeys)
        assert found.keep.key == read_signing_key(state.signing_key)
        assert not found.plans_only
    store.close()


def test_without_a_cluster_no_key_is_made(
    state: StateDir, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CEPH_CONF", raising=False)
    monkeypatch.setattr("predrain.service.drains.live_cluster.ETC", tmp_path)
    store = SqliteStore(MEMORY)
    assert up._make_controlled_cluster(Settings(service=ServiceTable(state=state.path)), store) is None
    assert not state.signing_key.exists()
    store.close()


# -- adopting --------------------------------------------------------------------------------------------------


@pytest.fixture
def mon(monkeypatch: pytest.MonkeyPatch) -> ClosableMon:
    """Return a cluster with a drain, the counter and a request of an older version, and one signed text."""
    drain = whole_drain()
    texts = {
        name_of(drain): encode_drain_copy(drain),
        "steps": "7 elder",
        "requests/5": "{}",
        "halt": "smoke",
    }
    texts["ended"] = sign_text(SIGNING_KEY, "ended", "osd.9-x 3 cancelled")
    made = ClosableMon({f"predrain/{name}": text.encode() for name, text in texts.items()})
    monkeypatch.setattr("predrain.service.cli.adopt_commands.make_cluster_channel", lambda _: made)
    return made


def test_a_person_reads_the_list_confirms_it_and_all_but_requests_is_signed(
    state: StateDir, mon: ClosableMon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    SqliteStore(state.store).close()
    options = ["--state", str(state.path), "--signing-key", str(key_file(tmp_path / "key"))]
    before = dict(mon.keys)
    assert main(["ceph", "adopt", *options]) == 3
    shown = capsys.readouterr().out
    for told in (
        "predrain/drain/osd.0: unsigned",
        "osds: [0]",
        "state: draining",
        "upmap/1.3 = 0>4",
        "7 elder",
    ):
        assert told in shown, told
    assert "never signed" in shown
    assert mon.keys == before
    seen = shown.rpartition("--list-id ")[2].strip()
    assert main(["ceph", "adopt", *options, "--list-id", "0" * 16]) == 1
    assert mon.keys == before
    capsys.readouterr()
    assert main(["ceph", "adopt", *options, "--list-id", seen, "--json"]) == 3
    said = json.loads(capsys.readouterr().out)
    assert sorted(said["signed"]) == ["drain/osd.0", "steps"]
    assert [one["key"] for one in said["texts"]] == ["predrain/requests/5"]
    assert SignedKeys(ConfigKeys(mon), SIGNING_KEY).read("steps") == "7 elder"
    assert mon.keys["predrain/requests/5"] == before["predrain/requests/5"]
    store = SqliteStore(state.store)
    (line,) = store.journal(AUDIT)
    store.close()
    assert line.decided == 'ceph adopt {"signed":["drain/osd.0","steps"]}'
    del mon.keys["predrain/requests/5"]
    assert main(["ceph", "adopt", *options]) == 0
    assert "is signed" in capsys.readouterr().out


def test_texts_of_a_lost_key_are_signed_with_the_new_one_after_the_same_confirmation(
    state: StateDir, mon: ClosableMon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mon.keys = {
        "predrain/steps": sign_text("a key that was lost with its directory, alas", "steps", "7 a").encode()
    }
    options = ["--state", str(state.path), "--signing-key", str(key_file(tmp_path / "key"))]
    assert main(["ceph", "adopt", *options]) == 3
    shown = capsys.readouterr().out
    assert "predrain/steps: other key" in shown
    assert main(["ceph", "adopt", *options, "--list-id", shown.rpartition("--list-id ")[2].strip()]) == 0
    assert verify_text(SIGNING_KEY, "steps", mon.keys["predrain/steps"].decode()) == "7 a"


def test_without_a_key_nothing_can_be_adopted_and_the_sentence_says_where_one_comes_from(
    state: StateDir, mon: ClosableMon, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ceph", "adopt", "--state", str(state.path)]) == 1
    assert "start predrain there once" in capsys.readouterr().err
    assert mon.writes == 0


# -- the doctor ------------------------------------------------------------------------------------------------


def test_the_doctor_names_each_text_that_is_not_believed_and_the_cure(
    state: StateDir, mon: ClosableMon, tmp_path: Path
) -> None:
    settings = Settings(
        service=ServiceTable(state=state.path), ceph=CephTable(signing_key=key_file(tmp_path / "key"))
    )
    found = ceph_checks._check_key_signatures(mon, settings)  # type: ignore[arg-type]
    assert found.state == "wrong"
    for name in ("predrain/drain/osd.0", "predrain/requests/5", "predrain/steps", "`predrain ceph adopt`"):
        assert name in found.told
    assert "predrain/halt" not in found.told
    mon.keys = {"predrain/ended": mon.keys["predrain/ended"]}
    assert ceph_checks._check_key_signatures(mon, settings).state == "ok"  # type: ignore[arg-type]
    settings.ceph.signing_key.chmod(0o644)  # type: ignore[union-attr]
    assert "chmod 600" in ceph_checks._check_key_signatures(mon, settings).told  # type: ignore[arg-type]
