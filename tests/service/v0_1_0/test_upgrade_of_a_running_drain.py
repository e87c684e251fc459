"""The upgrade from 0.1.0 while a drain moves data, by processes, and the ways back at each point."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from predrain.actions.cluster.config_key_store import ConfigKeys
from predrain.actions.cluster.signed_keys import SignedKeys, compute_digest
from predrain.data.drain import Drain, DrainState
from predrain.data.ids import DeviceId
from predrain.data.outcome import DriveFate
from predrain.data.store import documents, store_schema
from predrain.data.store.sqlite_store import SqliteStore, version_of_file
from predrain.data.wire import encode_envelope
from predrain.service.cli import main
from predrain.service.config.state_directory import StateDir
from tests.actions.made_channel import MonInMemory
from tests.actions.made_config_keys import SIGNING_KEY
from tests.conftest import ROOT
from tests.service.cluster_apart import ClusterApart, hold_cluster
from tests.service.conftest import smart_reading
from tests.service.test_drains import seated
from tests.service.test_up import acting, until
from tests.service.v0_1_0.test_0_1_0 import HERE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
RELEASED, PRESENT = 5, store_schema.VERSION
"""Versions of the store: of 0.1.0, and of this predrain."""


@dataclass(frozen=True)
class Upgrade:
    """The state directory of 0.1.0, the drain in it, and the cluster on which that drain moves data."""

    state: StateDir
    drain: Drain
    apart: ClusterApart
    socket: Path

    @contextmanager
    def run(self) -> Iterator[Callable[[str], Any]]:
        """Run this predrain's service on both; gives what answers a GET of REST. SIGTERM ends the service."""
        with (self.state.path.parent / "log").open("a") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.service.cluster_apart", self.socket, "up", "--port", "0",
                 "--state", self.state.path, "--config", self.state.path.parent / "settings.toml"],
                stderr=log, cwd=ROOT,
            )  # fmt: skip
        try:
            assert until(120, lambda: self.state.url.exists() or process.poll() is not None)
            assert process.poll() is None, (self.state.path.parent / "log").read_text()[-2000:]
            yield lambda path: httpx2.get(self.url + path, timeout=60).json()
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()

    @property
    def url(self) -> str:
        """The address of REST."""
        return self.state.url.read_text().strip() + "/api/v1/"

    def list_lost(self, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
        """Return the list that `predrain store rollback` prints for programs."""
        capsys.readouterr()
        main(["store", "rollback", "--json", "--state", str(self.state.path)])
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found


@pytest.fixture
def upgrade(tmp_path: Path) -> Iterator[Upgrade]:
    """Yield the state and the cluster that 0.1.0 left, a minute after its last step.

    A person has confirmed the keys in the cluster.
    """
    state = StateDir(tmp_path / "state").ensure_exists()
    shutil.unpack_archive(HERE / "state.tar.gz", state.path, filter="data")
    kept = json.loads((HERE / "cluster_keys.json").read_text())
    mon = MonInMemory({name: text.encode() for name, text in kept.items()})
    keys = SignedKeys(ConfigKeys(mon), SIGNING_KEY)
    keys.adopt(compute_digest(keys.find_unverified()))
    with closing(sqlite3.connect(state.store)) as connection:
        (raw,) = connection.execute("SELECT document FROM drains").fetchone()
    drain = documents.DRAIN.read(raw)
    cluster = seated()
    cluster.advance((drain.updated_at - cluster.now).total_seconds() + 60)
    (tmp_path / "settings.toml").write_text("[policy]\ntick_seconds = 0.01\n")
    apart, socket = ClusterApart(cluster, mon), tmp_path / "cluster"
    with hold_cluster(apart, socket):
        yield Upgrade(state, drain, apart, socket)


def test_a_drain_goes_on_through_the_upgrade_and_each_way_back_says_what_it_costs(
    upgrade: Upgrade, capsys: pytest.CaptureFixture[str]
) -> None:
    state, drain = upgrade.state, upgrade.drain
    assert (version_of_file(state.store), drain.state) == (RELEASED, DrainState.DRAINING)

    with upgrade.run() as get:
        before = _count_steps(get, drain)
        assert until(120, lambda: _count_steps(get, drain) > before), "the new controller goes on"
        assert get(f"drains/{drain.id}")["state"] in ("draining", "holding")
    assert version_of_file(state.store) == PRESENT
    assert version_of_file(state.store.with_name(f"store.sqlite.v{RELEASED}")) == RELEASED
    told = upgrade.list_lost(capsys)
    assert told["under_way"] == [drain.id]
    assert main(["store", "rollback", "--list-id", told["list_id"], "--state", str(state.path)]) == 1
    assert f"drain {drain.id} of osd.0 is " in capsys.readouterr().err
    assert version_of_file(state.store) == PRESENT

    with upgrade.run() as get:
        reading = smart_reading("E", upgrade.apart.now() - timedelta(minutes=1))
        sent = httpx2.post(
            f"{upgrade.url}readings",
            json=[
                json.loads(encode_envelope(reading, producer="test", sequence=0, sent_at=reading.taken_at))
            ],
            headers=acting(state.path),
        )
        assert sent.json() == {"accepted": 1, "refused": []}
        assert until(400, lambda: get(f"drains/{drain.id}")["state"] == "verified"), get(f"drains/{drain.id}")
        assert until(60, lambda: len(get("outlooks")["items"]) == 5), "the log's last reading and the new one"
        answer = httpx2.post(
            f"{upgrade.url}drains/{drain.id}/hand_over", headers=acting(state.path), timeout=60
        )
        assert answer.status_code == 200, answer.text
        assert until(60, lambda: get(f"drains/{drain.id}")["state"] == "handed_over")
    view = upgrade.apart.view()
    assert [pg for pg in view.pgs.values() if 0 in pg.up or 0 in pg.acting] == []

    told = upgrade.list_lost(capsys)
    assert (told["under_way"], [one["now"] for one in told["drains"]]) == ([], ["handed_over"])
    assert told["readings"]["count"] == 2, "the log's last reading of 0.1.0 and the new one"
    requests = [act["request"] for act in told["acts"]]
    assert any(request.endswith(f"/drains/{drain.id}/hand_over") for request in requests), requests
    assert main(["store", "rollback", "--list-id", told["list_id"], "--state", str(state.path)]) == 1
    assert "have ended since: drain " in capsys.readouterr().err, "0.1.0 would begin the drain again"
    _assert_nothing_lost(state, drain)
    assert main(["store", "migrate", "--to", str(RELEASED), "--state", str(state.path)]) == 0
    assert version_of_file(state.store) == RELEASED
    assert version_of_file(state.store.with_name(f"store.sqlite.v{PRESENT}")) == PRESENT


def _count_steps(get: Callable[[str], Any], drain: Drain) -> int:
    """The lines of the drain's journal."""
    return len(get(f"drains/{drain.id}/journal")["items"])


def _assert_nothing_lost(state: StateDir, drain: Drain) -> None:
    """All that 0.1.0 had is in the store of this predrain, with what came since."""
    store = SqliteStore(state.store)
    try:
        assert [len(store.readings(DeviceId(f"ST4000DM000_{drive}"))) for drive in "ABCDE"] == [8, 8, 8, 1, 1]
        assert [one.fate for one in store.outcomes()] == [DriveFate.FAILED]
        assert [one.id for one in store.drains()] == [drain.id]
        assert [line.decided for line in store.journal("halt")] == ["halt: storm", "lift the halt"]
        assert "operator" in {line.caller for line in store.journal(drain.id)}
    finally:
        store.close()
