"""Two controllers of one real cluster: what a person asks of one is done by the one that leads, killed or not."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from predrain.actions.cluster.config_key_store import ConfigKeys
from predrain.actions.cluster.lease_owner import parse_owner
from predrain.actions.cluster.signed_keys import SignedKeys
from predrain.actions.controller.forwarded_requests import ANSWERS, REQUESTS
from predrain.data.store.sqlite_store import SqliteStore
from tests.actions.made_config_keys import SIGNING_KEY
from tests.system.ceph.minicluster import MiniCluster
from tests.system.ceph.surviving import World, small

PREDRAIN = Path(sys.executable).parent / "predrain"
SETTINGS = """[ceph]
conf = {conf}
name = {name}
keyring = {keyring}
python = {python}
signing_key = {signing_key}
lease_seconds = 15

[policy]
tick_seconds = 1
mgr_stats_period_seconds = 1
out_share_max = 0.5
"""


@pytest.fixture(scope="module")
def kept(release: str) -> Iterator[MiniCluster]:
    yield from small(release, pgs=8)


@dataclass
class Machines:
    """Machines that may control the cluster, each with predrain's own cephx key, the signing key that all share, and a
    state of its own.
    """

    world: World
    folder: Path
    services: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        least = self.world.cluster.least()
        self.config, key = self.folder / "predrain.toml", self.folder / "signing_key"
        key.touch(mode=0o600)
        key.write_text(f"{SIGNING_KEY}\n")
        self.config.write_text(
            SETTINGS.format(
                conf=json.dumps(least.conf),
                name=json.dumps(least.name),
                keyring=json.dumps(least.keyring),
                python=json.dumps(list(least.interpreter)),
                signing_key=json.dumps(str(key)),
            )
        )

    def without_key(self, machine: str, *words: str) -> subprocess.CompletedProcess[str]:
        """A `predrain drain` command on a machine to which nobody gave the signing key."""
        config = self.folder / f"{machine}.toml"
        lines = self.config.read_text().splitlines()
        config.write_text("\n".join(line for line in lines if not line.startswith("signing_key")))
        options = ["--config", str(config), "--state", str(self.folder / machine)]
        command = [str(PREDRAIN), "drain", *words, *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    def asked(self, machine: str, *words: str) -> subprocess.CompletedProcess[str]:
        """A `predrain drain` command there, to its end."""
        options = ["--config", str(self.config), "--state", str(self.folder / machine), "--json"]
        command = [str(PREDRAIN), "drain", *words, *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    def adopt(self, machine: str, *words: str) -> subprocess.CompletedProcess[str]:
        """`predrain ceph adopt` there, to its end."""
        options = ["--config", str(self.config), "--state", str(self.folder / machine)]
        command = [str(PREDRAIN), "ceph", "adopt", *words, *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    def start_apply(self, machine: str, target: str) -> subprocess.Popen[bytes]:
        """`predrain drain apply --wait` there, under way."""
        options = ["--config", str(self.config), "--state", str(self.folder / machine)]
        with (self.folder / f"{machine}.log").open("ab") as said:
            command = [str(PREDRAIN), "drain", "apply", target, "--yes", "--wait", *options]
            process = subprocess.Popen(command, stdout=said, stderr=said)
        self.services.append(process)
        return process

    def states(self, machine: str) -> set[str]:
        """Of every drain that the store there has."""
        store = SqliteStore(self.folder / machine / "store.sqlite")
        try:
            return {drain.state.value for drain in store.drains()}
        finally:
            store.close()

    def answered(self, machine: str, *words: str) -> Any:
        """Run a `predrain drain` command there, check that it succeeds, and return what it printed."""
        done = self.asked(machine, *words)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def leader(self, machine: str) -> subprocess.Popen[bytes]:
        """A service there that has acted as the leader: it counts steps."""
        options = ["--config", str(self.config), "--state", str(self.folder / machine), "--port", "0"]
        with (self.folder / f"{machine}.log").open("wb") as said:
            service = subprocess.Popen([PREDRAIN, "up", *options], stdout=subprocess.DEVNULL, stderr=said)
        self.services.append(service)
        self.world.cluster.wait(lambda: self.last_leader() == service.pid, 120, f"{machine} leads")
        return service

    def last_leader(self) -> int | None:
        """The id of the process that counted the last step."""
        return parse_owner((ConfigKeys(self.world.channel).read("steps") or "").rpartition(" ")[2]).pid

    def state(self, machine: str, drain: str) -> str:
        """Return the state of the drain in the store there; an empty text if the store has no such drain."""
        store = SqliteStore(self.folder / machine / "store.sqlite")
        try:
            found = store.drain(drain)
            return found.state.value if found is not None else ""
        finally:
            store.close()

    def shown(self, machine: str, drain: str) -> Any:
        """Return the drain as the command `list` shows it there."""
        return {one["id"]: one for one in self.answered(machine, "list")}[drain]

    def left(self) -> list[str]:
        """Requests and answers that still lie in the cluster."""
        names = ConfigKeys(self.world.channel).names()
        return [name for name in names if name.startswith((REQUESTS, ANSWERS))]


@pytest.fixture
def machines(world: World, tmp_path: Path) -> Iterator[Machines]:
    made = Machines(world, tmp_path)
    yield made
    for service in made.services:
        service.kill()
        service.wait()


@pytest.mark.release
@pytest.mark.slow
def test_a_request_from_another_machine_is_done_by_the_leader_and_after_a_kill_by_the_next_leader(
    machines: Machines,
) -> None:
    world = machines.world
    first = machines.leader("one")
    (drain,) = machines.answered("desk", "apply", "osd.1", "--yes", "--reason", "noisy")
    assert drain["state"] in ("approved", "preparing", "draining")
    world.cluster.wait(lambda: machines.state("one", drain["id"]) == "draining", 120, "the leader drains")
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert machines.answered("desk", "pause", drain["id"])["state"] == "paused"
    blind = machines.without_key("stranger", "list")
    assert (blind.returncode, "no drains that can be verified here" in blind.stdout) == (3, True), (
        blind.stdout
    )
    refused = machines.asked("desk", "apply", "osd.1")
    assert (refused.returncode, "osd.1 already has drain" in refused.stderr) == (3, True), refused.stderr
    machines.leader("two")
    assert machines.answered("desk", "resume", drain["id"])["state"] in ("draining", "holding")

    def done() -> bool:
        return bool(machines.shown("desk", drain["id"])["state"] == "verified")

    world.cluster.wait(done, 240, "the desk sees the drain's end")
    assert machines.shown("desk", drain["id"])["progress"]["moved_pgs"] > 0
    world.cluster.wait_clean()
    assert world.empty(1)
    assert machines.answered("desk", "cancel", drain["id"])["state"] in ("cancelling", "cancelled")
    world.cluster.wait(lambda: machines.state("two", drain["id"]) == "cancelled", 240, "all put back")
    world.cluster.wait_clean()
    assert world.map() == world.before
    assert world.cluster.read_back("rep") == world.written
    assert machines.left() == []


@pytest.mark.release
@pytest.mark.slow
def test_where_no_controller_runs_the_command_line_says_that_nothing_happens_and_goes_on_after_its_own_death(
    machines: Machines,
) -> None:
    world = machines.world
    asked = machines.asked("lone", "apply", "osd.2", "--yes")
    assert (asked.returncode, "predrain up" in asked.stderr) == (3, True), asked.stderr
    (drain,) = json.loads(asked.stdout)
    cancelled = machines.asked("lone", "cancel", drain["id"])
    assert (cancelled.returncode, "predrain up" in cancelled.stderr) == (3, True), cancelled.stderr
    killed = machines.start_apply("lone", "osd.3")
    world.cluster.wait(lambda: "draining" in machines.states("lone"), 120, "the command drains")
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    again = machines.asked("lone", "apply", "osd.3", "--yes", "--wait")
    assert again.returncode == 0, again.stderr
    assert world.empty(3)


@pytest.mark.release
def test_a_text_of_an_older_version_is_signed_once_a_person_has_seen_the_list(machines: Machines) -> None:
    machines.world.cluster.command("config-key set", key="predrain/steps", val="7 elder")
    shown = machines.adopt("desk")
    assert shown.returncode == 3, shown.stderr
    assert "predrain/steps: unsigned" in shown.stdout
    assert "7 elder" in shown.stdout
    assert machines.adopt("desk", "--list-id", "0" * 16).returncode == 1
    seen = shown.stdout.rpartition("--list-id ")[2].strip()
    signed = machines.adopt("desk", "--list-id", seen)
    assert signed.returncode == 0, (signed.stdout, signed.stderr)
    kept = SignedKeys(ConfigKeys(machines.world.channel), SIGNING_KEY)
    assert kept.read("steps") == "7 elder"
    assert "is signed" in machines.adopt("desk").stdout
    machines.world.cluster.command("config-key rm", key="predrain/steps")
