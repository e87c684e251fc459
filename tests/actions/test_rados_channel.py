"""The rados channel's deadlines and faults, with librados played; the real one is in tests/system/ceph."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from predrain.actions.cluster.child_process import PROGRAM
from predrain.actions.cluster.cluster_port import ClusterUnreachable
from predrain.actions.cluster.rados_connection import Connection, NotConnected, Rados
from tests.deadlines import idle_seconds
from tests.processes import ends, freeze_process

PLAYED = (sys.executable, str(Path(__file__).with_name("librados_played.py")))
Open = Callable[..., Rados]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Channels on the played librados; restarts are not held back unless the test says so."""
    every: list[Rados] = []

    def begin(*how: str, conf: str = "", seconds: float = 10, restart_seconds: float = 0) -> Rados:
        connection = Connection(conf=conf, interpreter=(*PLAYED, *how))
        every.append(Rados(connection, seconds=seconds, restart_seconds=restart_seconds))
        return every[-1]

    yield begin
    for channel in every:
        channel.close()


def _pid(channel: Rados) -> int:
    assert channel._child is not None
    return channel._child._process.pid


def _gone(pid: int) -> bool:
    until = idle_seconds() + 5
    while idle_seconds() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def test_a_command_and_its_bytes_reach_the_mon_and_come_back(opened: Open) -> None:
    reply = opened().ask("mon", "osd reweight", {"id": 3, "weight": 0.5}, given=b"\x00\n\xff")
    assert (reply.rc, reply.err) == (0, "done osd reweight")
    assert json.loads(reply.out) == [{"prefix": "osd reweight", "id": 3, "weight": 0.5}, "\x00\n\xff"]


def test_each_command_goes_to_the_daemon_that_was_named(opened: Open) -> None:
    channel = opened()
    assert channel.ask("mgr", "balancer off").out == b"the mgr's"
    assert channel.ask("osd.12", "perf dump").out == b"osd.12's"
    with pytest.raises(ValueError, match="takes no commands"):
        channel.ask("mds.a", "status")


def test_a_refusal_is_an_answer(opened: Open) -> None:
    channel = opened()
    assert channel.ask("mon", "x", {"rc": -22}).rc == -22
    assert channel.ask("mon", "raise").rc == -13
    assert not channel.ask("mon", "raise").ok


@pytest.mark.parametrize("rc", [-110, 110])
def test_where_librados_gave_up_waiting_it_is_not_known_what_was_done(opened: Open, rc: int) -> None:
    with pytest.raises(ClusterUnreachable, match="in time"):
        opened().ask("mon", "x", {"rc": rc})
    with pytest.raises(ClusterUnreachable, match="in time"):
        opened().ask_all((("mon", "y", {}), ("mon", "x", {"rc": rc})))


def test_an_answer_of_ten_million_bytes_comes_whole(opened: Open) -> None:
    assert opened().ask("mon", "large").out == bytes(range(256)) * 40_000


def test_several_commands_are_under_way_at_once_and_answered_in_order(opened: Open) -> None:
    replies = opened().ask_all(tuple(("mon", "together", {"n": n}) for n in range(3)))
    assert [json.loads(reply.out)[0]["n"] for reply in replies] == [0, 1, 2]


def test_no_commands_ask_nothing(opened: Open) -> None:
    assert opened("dies at once").ask_all(()) == ()


def test_at_its_deadline_a_call_ends_and_its_child_is_gone(opened: Open) -> None:
    channel = opened()
    channel.ask("mon", "x")
    pid, begun, begun_idle = _pid(channel), time.monotonic(), idle_seconds()
    with pytest.raises(ClusterUnreachable, match="did not answer in time"):
        channel.ask("mon", "hang", seconds=0.3)
    assert time.monotonic() - begun >= 0.3
    assert idle_seconds() - begun_idle < 5
    assert _gone(pid)


def test_a_stopped_child_cannot_hold_a_call_up_even_while_it_is_being_written_to(opened: Open) -> None:
    channel = opened()
    channel.ask("mon", "x")
    freeze_process(_pid(channel))
    begun = idle_seconds()
    with pytest.raises(ClusterUnreachable, match="in time"):
        channel.ask("mon", "x", given=bytes(10_000_000), seconds=0.3)
    assert idle_seconds() - begun < 5


@pytest.mark.slow
def test_a_late_answer_is_never_taken_for_the_next_ones(opened: Open) -> None:
    channel = opened()
    channel.ask("mon", "x")
    for number in range(5):
        with pytest.raises(ClusterUnreachable):
            channel.ask("mon", "late", {"seconds": 0.15}, seconds=0.1)
        time.sleep(0.1)
        assert json.loads(channel.ask("mon", "after", {"n": number}).out)[0] == {
            "prefix": "after",
            "n": number,
        }


def test_after_a_kill_the_next_call_starts_a_new_child(opened: Open) -> None:
    channel = opened()
    channel.ask("mon", "x")
    first = _pid(channel)
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    assert channel.ask("mon", "x").ok
    assert _pid(channel) != first


def test_a_child_that_dies_under_way_is_told_with_its_last_words(opened: Open) -> None:
    with pytest.raises(ClusterUnreachable, match="the child process ended: the last words"):
        opened().ask("mon", "fall")


@pytest.mark.slow
def test_new_children_are_started_only_so_often(opened: Open) -> None:
    channel = opened(restart_seconds=2.0)
    channel.ask("mon", "x")
    with pytest.raises(ClusterUnreachable):
        channel.ask("mon", "fall")
    with pytest.raises(ClusterUnreachable, match=r"next try in \d\.\d s; last: the child process ended"):
        channel.ask("mon", "x")
    time.sleep(2.0)
    assert channel.ask("mon", "x").ok


def test_output_that_a_library_prints_does_not_come_between_the_messages(opened: Open) -> None:
    channel = opened()
    assert channel.ask("mon", "chatter").err == "done chatter"
    assert channel.ask("mon", "chatter").err == "done chatter"


def test_a_flood_on_stderr_neither_blocks_nor_grows(opened: Open) -> None:
    channel = opened()
    assert channel.ask("mon", "flood").ok
    assert channel._child is not None
    assert len(channel._child._words) <= 4096


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("dies at once", "the child process ended: no such thing"),
        ("garbage", "said what no answer looks like"),
        ("half a line", "the child process ended"),
        ("fewer bytes than said", "the child process ended"),
        ("answers another question", "an answer to 1, asked was 2"),
        ("a line without an end", "a line without an end"),
        ("no head", "said what no answer looks like"),
    ],
)
def test_a_child_that_speaks_otherwise_is_given_up(opened: Open, how: str, says: str) -> None:
    with pytest.raises(ClusterUnreachable, match=says):
        opened(how).ask("mon", "x")


def test_a_hanging_connection_ends_by_the_deadline(opened: Open) -> None:
    with pytest.raises(ClusterUnreachable, match="in time"):
        opened(conf="hangs", seconds=0.5).ask("mon", "x")


@pytest.mark.parametrize(
    ("conf", "says"), [("refused", "does not accept the key"), ("nowhere", "cannot be read")]
)
def test_a_connection_fault_that_waiting_does_not_cure_is_reported_in_one_sentence_with_the_cure(
    opened: Open, conf: str, says: str
) -> None:
    with pytest.raises(NotConnected, match=says) as refusal:
        opened(conf=conf).ask("mon", "x")
    assert "[ceph]" in str(refusal.value) or "predrain ceph auth" in str(refusal.value)


def test_an_interpreter_without_rados_is_told_so() -> None:
    channel = Rados(Connection(interpreter=(sys.executable,)))
    with pytest.raises(NotConnected, match=r"has no rados module.*install python3-rados"):
        channel.ask("mon", "x")


def test_an_interpreter_that_is_not_there_is_told_so() -> None:
    channel = Rados(Connection(interpreter=("/no/such/python",)))
    with pytest.raises(NotConnected, match=r"/no/such/python cannot be run.*\[ceph\] python"):
        channel.ask("mon", "x")


def test_calls_of_many_threads_take_turns_and_each_gets_its_own_answer(opened: Open) -> None:
    channel, got = opened(), {}

    def ask(number: int) -> None:
        got[number] = json.loads(channel.ask("mon", "x", {"n": number}).out)[0]["n"]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert got == {number: number for number in range(20)}


@pytest.mark.slow
def test_a_call_that_gets_no_turn_ends_by_its_deadline(opened: Open) -> None:
    channel = opened()
    channel.ask("mon", "x")
    long = threading.Thread(target=lambda: channel.ask("mon", "late", {"seconds": 1}))
    long.start()
    time.sleep(0.1)
    with pytest.raises(ClusterUnreachable, match="no turn"):
        channel.ask("mon", "x", seconds=0.2)
    long.join()


def test_a_hanging_child_ends_when_we_do(tmp_path: Path) -> None:
    code = (
        "import sys, threading, time; from predrain.actions.cluster.rados_connection import Connection, Rados\n"
        f"channel = Rados(Connection(interpreter={PLAYED!r}), seconds=600); channel.ask('mon', 'x')\n"
        "threading.Thread(target=lambda: channel.ask('mon', 'hang'), daemon=True).start(); time.sleep(0.3)\n"
        "print(channel._child._process.pid, flush=True); time.sleep(600)"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=PROGRAM.parents[2]
    )
    assert owner.stdout is not None
    child = int(owner.stdout.readline())
    owner.kill()
    owner.communicate()
    assert ends(child)


def test_the_child_is_python_3_9_and_imports_only_the_standard_library() -> None:
    tree = ast.parse(PROGRAM.read_text(), feature_version=(3, 9))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names] if isinstance(node, ast.Import)
            else [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        )
    }  # fmt: skip
    assert imported <= sys.stdlib_module_names
