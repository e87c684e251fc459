"""Admin sockets are asked side by side: the others answer, also when one hangs, fails or sends garbage."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from predrain.collector.latency.admin_sockets import SilentOsd, SocketRequest, ask_all
from predrain.data.ids import OsdId
from tests.collector.latency.fake_osd import FakeOsd, cut, garbage, huge

HELLO, AGAIN = b'{"prefix":"hello"}', b'{"prefix":"again"}'
SICK, WELL = OsdId(1), OsdId(2)

Start = Callable[[str], FakeOsd]


@pytest.fixture
def osd(tmp_path: Path) -> Iterator[Start]:
    running: list[FakeOsd] = []

    def start(name: str) -> FakeOsd:
        running.append(FakeOsd(tmp_path / name, {"hello": b'"one"', "again": b'"two"'}))
        return running[-1]

    yield start
    for one in running:
        one.stop()


def ask(
    sick: Path, well: Path, seconds: float = 5
) -> tuple[tuple[bytes, ...] | SilentOsd, tuple[bytes, ...] | SilentOsd]:
    questions = {SICK: SocketRequest(sick, (HELLO, AGAIN)), WELL: SocketRequest(well, (HELLO, AGAIN))}
    told = ask_all(questions, seconds=seconds, answer_bytes=10_000)
    return told[SICK], told[WELL]


def test_answers_come_in_the_order_of_the_commands(osd: Start) -> None:
    assert ask(osd("a").path, osd("b").path) == ((b'"one"', b'"two"'),) * 2


def test_an_answer_in_pieces_is_put_together(osd: Start) -> None:
    long = b'"' + b"x" * 9_000 + b'"'
    sick = osd("a")

    def in_pieces(line: socket.socket) -> None:
        told = len(long).to_bytes(4, "big") + long
        for at in range(0, len(told), 700):
            line.sendall(told[at : at + 700])

    sick.fault = in_pieces
    assert ask(sick.path, osd("b").path)[0] == (long, long)


def test_sockets_that_hang_share_one_deadline(osd: Start) -> None:
    hanging = [osd(f"h{n}") for n in range(20)]
    for one in hanging:
        one.fault = one.hold
    well = osd("well")
    questions = {OsdId(n): SocketRequest(one.path, (HELLO,)) for n, one in enumerate((*hanging, well))}
    told = ask_all(questions, seconds=0.5, answer_bytes=10_000)
    assert told.pop(OsdId(20)) == (b'"one"',)
    assert set(told.values()) == {
        SilentOsd("has not answered within 0.5 s: look at the OSD's log and at its disk")
    }


@pytest.mark.slow
def test_a_socket_whose_queue_of_calls_is_full_has_not_answered(tmp_path: Path, osd: Start) -> None:
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(tmp_path / "deaf"))
        deaf.listen(0)
        sick = ()
        for _ in range(3):
            sick, well = ask(tmp_path / "deaf", osd(f"w{_}").path, seconds=0.7)
            assert well == (b'"one"', b'"two"')
    assert isinstance(sick, SilentOsd)
    assert sick.why.startswith("has not answered")


@pytest.mark.slow
def test_one_that_trickles_is_cut_off_at_the_deadline(osd: Start) -> None:
    sick = osd("a")

    def trickle(line: socket.socket) -> None:
        line.sendall(b"\x00\x00\x03\xe8" + b"x")
        sick.hold(line)

    sick.fault = trickle
    told, well = ask(sick.path, osd("b").path, seconds=1.0)
    assert isinstance(told, SilentOsd)
    assert well == (b'"one"', b'"two"')


def test_an_answer_that_is_too_long_is_not_read(osd: Start) -> None:
    sick = osd("a")
    sick.fault = huge
    assert ask(sick.path, osd("b").path) == ((b"", b""), (b'"one"', b'"two"'))


def test_garbage_is_handed_on_as_it_came(osd: Start) -> None:
    sick = osd("a")
    sick.fault = garbage
    assert ask(sick.path, osd("b").path) == ((b"\x00\xff{{]] ",) * 2, (b'"one"', b'"two"'))


def test_a_line_that_ends_early_is_said(osd: Start) -> None:
    sick = osd("a")
    sick.fault = cut
    told, _ = ask(sick.path, osd("b").path)
    assert told == SilentOsd("ended before its answer was whole: look whether the OSD has just been stopped")


def test_a_socket_that_is_gone_or_left_behind_is_said(tmp_path: Path, osd: Start) -> None:
    gone, _ = ask(tmp_path / "nowhere", osd("b").path)
    assert gone == SilentOsd("is gone: start the OSD")
    stopped = osd("c")
    stopped.stop()
    left, _ = ask(stopped.path, osd("d").path)
    assert isinstance(left, SilentOsd)
    assert left.why.startswith("has nobody behind it: start the OSD")


def test_a_socket_that_may_not_be_used_is_told_with_the_cure(
    osd: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    sick, well, connect = osd("a"), osd("b"), socket.socket.connect

    def refused(self: socket.socket, address: str) -> None:
        if address == str(sick.path):
            raise PermissionError(
                13, "Permission denied"
            )  # root, who runs the tests in CI, is refused nothing
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", refused)
    told, other = ask(sick.path, well.path)
    assert told == SilentOsd("may not be used: run the collector as Ceph's user (ceph) or as root")
    assert other == (b'"one"', b'"two"')
