"""A command says whether anybody acts on what was asked; a killed controller's lease does not stand in its own way.

The commands are processes on a cluster that is played from a recording: its map never changes, its lock, its keys and
its clock are real.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from predrain.actions.cluster.lease_owner import parse_owner, write_owner
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_port import AUDIT
from predrain.service.cli import main
from predrain.service.runtime.process_identity import has_ended, name_this_process
from predrain.service.terminal.person import name_account, name_typist
from tests.service.cluster_played import shared

ROOT = Path(__file__).resolve().parents[2]
RECORDING = ROOT / "tests" / "data" / "recorded" / "tentacle-clean.zip"
PREDRAIN = Path(sys.executable).with_name("predrain")
TARGET = "osd.0"
NOBODY = "Nothing happens to drains until a controller runs; start one: predrain up"
LONG = 150.0
"""Seconds; the lease of a test stands for twice as long, so that no test waits for its end."""


@dataclass
class Operator:
    """A person at the command line of a host without a service."""

    folder: Path
    printed: pytest.CaptureFixture[str]
    begun: list[subprocess.Popen[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shared, self.settings = self.folder / "shared.json", self.folder / "predrain.toml"
        conf = self.folder / "ceph.conf"
        conf.touch()
        python = [sys.executable, str(Path(__file__).with_name("cluster_played.py")), str(RECORDING)]
        words = ", ".join(json.dumps(word) for word in [*python, str(self.shared)])
        key = self.folder / "signing_key"
        key.write_text("a key that the controllers of this cluster share\n")
        key.chmod(0o600)
        self.settings.write_text(
            f'[ceph]\nconf = "{conf}"\npython = [{words}]\nlease_seconds = 300\nsigning_key = "{key}"\n'
            "[policy]\ntick_seconds = 1\nmgr_stats_period_seconds = 1\n"
        )

    def words(self, *said: str, state: str = "state") -> list[str]:
        return [*said, "--config", str(self.settings), "--state", str(self.folder / state)]

    def run(self, *said: str, state: str = "state") -> tuple[int, str, str]:
        """The exit code, and what the command prints to stdout and stderr; in this process."""
        self.printed.readouterr()
        code = main(self.words(*said, state=state))
        return code, *self.printed.readouterr()

    def begin(self, *said: str) -> subprocess.Popen[str]:
        command = [str(PREDRAIN), *self.words(*said)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.begun.append(process)
        return process

    def seen(self) -> dict[str, Any]:
        with shared(self.shared) as state:
            return state

    def drains(self) -> list[dict[str, Any]]:
        return json.loads(self.run("drain", "list", "--json")[1])


@pytest.fixture
def operator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Operator]:
    monkeypatch.setattr("predrain.service.cli.drain_progress.PATIENCE_SECONDS", 3.0)
    monkeypatch.setenv("COLUMNS", "250")
    made = Operator(tmp_path, capsys)
    yield made
    for process in made.begun:
        with process:
            process.kill()


def until(wanted: Any, what: str) -> None:
    ends = time.monotonic() + LONG
    while not wanted():
        assert time.monotonic() < ends, what
        time.sleep(0.1)


@pytest.mark.slow
def test_without_a_controller_a_command_says_that_nothing_happens_and_how_to_start_one(
    operator: Operator,
) -> None:
    code, said, why = operator.run("drain", "apply", TARGET, "--yes")
    assert (code, said.endswith(": approved\n")) == (3, True), why
    assert NOBODY in why
    start = f"predrain up --config {operator.settings} --state {operator.folder / 'state'}"
    assert start in why
    (drain,) = operator.drains()
    assert (drain["state"], drain["acting"]["place"]) == ("approved", "nowhere")
    assert drain["requester"] == {"surface": "command line", "person": f"{name_typist()}, key signing_key"}
    assert drain["requested_by"] == f"{name_typist()}, key signing_key (command line)"
    code, said, _ = operator.run("drain", "cancel", drain["id"])
    assert (code, said) == (3, f"{drain['id']}: cancelling\n")


def test_a_request_of_a_command_without_a_service_stands_in_the_audit(operator: Operator) -> None:
    operator.run("drain", "apply", TARGET, "--yes", "--reason", "noisy")
    with closing(SqliteStore(operator.folder / "state" / "store.sqlite")) as store:
        lines = [f"{line.caller}: {line.decided}" for line in store.journal(AUDIT)]
    assert any(
        "POST /api/v1/drains" in line and '"noisy"' in line and name_account() in line for line in lines
    ), lines


@pytest.mark.slow
def test_every_listing_says_that_nobody_acts(operator: Operator) -> None:
    operator.run("drain", "apply", TARGET)
    (drain,) = operator.drains()
    for words in (("drain", "list"), ("drain", "explain", drain["id"]), ("cluster", "status")):
        code, said, _ = operator.run(*words)
        assert code == 0
        assert NOBODY in " ".join(said.split()), words


@pytest.mark.slow
def test_a_command_that_needs_no_controller_succeeds_without_one(operator: Operator) -> None:
    code, said, why = operator.run("drain", "apply", TARGET)
    drain = said.partition(":")[0]
    conf = operator.folder / "ceph.conf"
    assert (code, why) == (
        0,
        f"predrain: asked the cluster of {conf}: drain {TARGET}; accepted as {drain}\n",
    )
    assert operator.run("drain", "pause", drain)[0] == 0


@pytest.mark.slow
def test_a_cancel_that_waits_is_the_controller_and_says_who_goes_on_after_a_hold(operator: Operator) -> None:
    operator.run("drain", "apply", TARGET, "--yes")
    (drain,) = operator.drains()
    assert operator.run("drain", "cancel", drain["id"])[0] == 3
    code, said, why = operator.run("drain", "cancel", drain["id"], "--wait")
    assert (code, said) == (3, f"{drain['id']}: cancelling\n")
    assert f"{drain['id']}: The cluster was last seen" in why
    assert f"Go on with: predrain drain cancel {drain['id']} --wait --config" in why


@pytest.mark.slow
def test_a_killed_command_goes_on_at_once_with_its_own_drain(operator: Operator) -> None:
    first = operator.begin("drain", "apply", TARGET, "--yes", "--wait")
    until(
        lambda: any('"approved"' in value for value in operator.seen()["keys"].values()),
        "it keeps an approved drain",
    )
    assert operator.seen()["lock"] is not None
    acting = json.loads(operator.run("cluster", "status", "--json")[1])["acting"]
    assert (acting["place"], acting["pid"]) == ("elsewhere", first.pid)
    listed = operator.run("drain", "list", state="another")[1]
    assert f"(process {first.pid}) acts on drains and holds the lease until" in listed
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert str(first.pid) in operator.seen()["lock"]["by"][1]
    code, _, why = operator.run("drain", "apply", TARGET, "--yes", "--wait")
    assert code == 3
    assert "goes on with drain" in why
    assert "Another controller" not in why
    assert "The cluster was last seen" in why
    again = f"predrain drain apply {TARGET} --yes --wait --config {operator.settings}"
    assert f"this command was its controller and ends now. Go on with: {again}" in why
    assert len(operator.drains()) == 1


@pytest.mark.slow
def test_commands_of_another_terminal_reach_the_waiting_command_on_its_state_and_name_their_person(
    operator: Operator,
) -> None:
    first = operator.begin("drain", "apply", TARGET, "--yes", "--wait")
    until(lambda: (operator.folder / "state" / "url").exists(), "it answers")
    until(
        lambda: any('"approved"' in value for value in operator.seen()["keys"].values()),
        "it keeps an approved drain",
    )
    (drain,) = operator.drains()
    assert (drain["acting"]["place"], drain["acting"]["pid"]) == ("here", first.pid)
    for words, said in (("pause", "paused"), ("resume", "approved"), ("cancel", "cancelling")):
        code, told, why = operator.run("drain", words, TARGET)
        assert (code, told, why) == (0, f"{drain['id']}: {said}\n", "")
        assert first.poll() is None
    shown = json.loads(operator.run("drain", "explain", TARGET, "--lines", "50", "--json")[1])
    asked = {line["decision"]: line["caller"] for line in shown["journal"] if line["caller"] != "controller"}
    here = f"{name_typist()} (command line)"
    assert (asked["pause"], asked["resume"], asked["cancel"]) == (here, here, here)


@pytest.mark.slow
def test_commands_on_another_state_hand_their_request_to_the_waiting_command_and_say_so(
    operator: Operator,
) -> None:
    first = operator.begin("drain", "apply", TARGET, "--yes", "--wait")
    until(
        lambda: any('"approved"' in value for value in operator.seen()["keys"].values()),
        "it keeps an approved drain",
    )
    holder = operator.seen()["lock"]["by"]
    code, told, why = operator.run("drain", "pause", TARGET, state="another")
    assert (code, told.endswith(": paused\n")) == (0, True), why
    assert re.search(
        rf"{TARGET}: asked the controller on \S+ \(process {first.pid}\), which holds the lease", why
    )
    assert re.search(rf"{TARGET}: accepted after \d+\.\d s", why)
    assert operator.seen()["lock"]["by"] == holder
    shown = json.loads(operator.run("drain", "explain", TARGET, "--lines", "50", "--json")[1])
    (asker,) = [line["caller"] for line in shown["journal"] if line["decision"] == "pause"]
    assert asker == f"{name_typist()}, key signing_key (command line)"


@pytest.mark.slow
def test_a_command_that_waits_for_a_killed_command_shows_how_to_go_on(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("predrain.service.cli.drain_progress.PATIENCE_SECONDS", LONG)
    first = operator.begin("drain", "apply", TARGET, "--yes", "--wait")
    until(lambda: (operator.folder / "state" / "url").exists(), "it answers")
    until(lambda: bool(operator.drains()), "it has a drain")
    second = operator.begin("drain", "cancel", TARGET, "--wait")
    assert second.stdout is not None
    assert "cancelling" in second.stdout.readline()
    first.kill()
    told = second.communicate(timeout=LONG)[0]
    assert second.returncode == 1
    assert "What was asked is written down; give the same command again" in told


@pytest.mark.slow
def test_a_command_waits_for_another_short_command_on_its_state(operator: Operator) -> None:
    operator.run("drain", "apply", TARGET)
    both = [operator.begin("drain", "list") for _ in range(2)]
    told = [process.communicate(timeout=LONG)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], told


# -- which process has ended -----------------------------------------------------------------------------------


@pytest.fixture
def child() -> Iterator[subprocess.Popen[str]]:
    """A process that names itself as a controller would, then waits."""
    said = (
        "from predrain.service.runtime.process_identity import name_this_process as n; "
        "print(n(), flush=True); input()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", said], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    yield process
    with process:
        process.kill()


def test_a_killed_process_is_known_to_have_ended_even_before_its_parent_asks(
    child: subprocess.Popen[str],
) -> None:
    assert child.stdout is not None
    owner = parse_owner(child.stdout.readline().strip())
    assert owner.pid == child.pid
    assert not has_ended(owner)
    child.send_signal(signal.SIGSTOP)
    assert not has_ended(owner)
    child.kill()
    until(lambda: has_ended(owner), "it is a zombie")
    child.wait()
    assert has_ended(owner)


@pytest.mark.parametrize(
    ("changed", "ended"),
    [
        ({}, False),
        ({"started": 1}, True),
        ({"started": None}, False),
        ({"pid": 2**22 - 1}, True),
        ({"pid": 2**22 - 1, "host": "another"}, False),
        ({"pid": 2**22 - 1, "boot": "another"}, False),
        ({"pid": 2**22 - 1, "boot": None}, False),
        ({"pid": 2**22 - 1, "pid_namespace": 7}, False),
        ({"pid": 2**22 - 1, "pid_namespace": None}, False),
    ],
)
def test_only_a_process_of_this_host_boot_and_namespace_is_ever_known_to_have_ended(
    changed: dict[str, Any], ended: bool
) -> None:
    ours = parse_owner(name_this_process())
    fields = {
        name: getattr(ours, name) for name in ("host", "pid", "boot", "pid_namespace", "started")
    } | changed
    assert has_ended(parse_owner(write_owner(**fields, unique="abc"))) is ended


def test_the_name_that_an_older_release_gave_keeps_host_and_process_and_is_never_ended() -> None:
    owner = parse_owner("ceph-mon-1-4242-0a1b2c3d")
    assert (owner.host, owner.pid, owner.boot) == ("ceph-mon-1", 4242, None)
    assert not has_ended(owner)
    assert parse_owner("anything").host == "anything"
