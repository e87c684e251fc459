"""Asks the admin sockets of all OSDs of a host at once. An OSD that hangs costs its own deadline only.

Protocol: each connection carries one command, which is JSON and a NUL. The answer is its length in four bytes,
big-endian, and then the content.
"""

from __future__ import annotations

import selectors
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TypeVar

Key = TypeVar("Key")

_HEADER = 4
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class SocketRequest:
    """Commands for one OSD, each a JSON object, answered in order."""

    socket: Path
    commands: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class SilentOsd:
    """The OSD did not answer every command; `why` follows the name of its socket and ends with the cure."""

    why: str


def ask_all(
    questions: Mapping[Key, SocketRequest], *, seconds: float, answer_bytes: int
) -> dict[Key, tuple[bytes, ...] | SilentOsd]:
    """Return each OSD's answers, command by command, under the key of its request.

    All OSDs together take no longer than `seconds`.

    An answer that is longer than `answer_bytes` is not read and comes back empty. Any failure of one OSD becomes its
    SilentOsd.
    """
    until = monotonic() + seconds
    with selectors.DefaultSelector() as ready:
        talks = {osd: _Talk(question, ready, answer_bytes) for osd, question in questions.items()}
        for talk in talks.values():
            talk.send_next_command()
        while ready.get_map() and (left := until - monotonic()) > 0:
            for key, _ in ready.select(left):
                key.data.receive_answer()
        for talk in talks.values():
            talk.close()
    late = f"has not answered within {seconds:g} s: look at the OSD's log and at its disk"
    return {osd: talk.outcome(late) for osd, talk in talks.items()}


class _Talk:
    """The exchange with one OSD: command after command, each on a connection of its own."""

    def __init__(self, question: SocketRequest, ready: selectors.BaseSelector, most: int) -> None:
        self._question, self._ready, self._most = question, ready, most
        self._told: list[bytes] = []
        self._wrong: str | None = None
        self._line: socket.socket | None = None
        self._heard = bytearray()

    def send_next_command(self) -> None:
        """Send the next command.

        A connection to a local socket is made at once or not at all, and commands are shorter than any socket's
        buffer.
        """
        self._heard.clear()
        line = self._line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        line.setblocking(False)
        try:
            line.connect(str(self._question.socket))
            line.sendall(self._question.commands[len(self._told)] + b"\0")
        except BlockingIOError:
            self.close()  # its backlog of connections is full: it has not taken the earlier ones
        except OSError as error:
            self._fail(_describe_socket_error(error))
        else:
            self._ready.register(line, selectors.EVENT_READ, self)

    def receive_answer(self) -> None:
        """Read more of the answer. When the answer is complete, send the next command."""
        assert self._line is not None
        try:
            chunk = self._line.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            self._fail(_describe_socket_error(error))
            return
        if not chunk:
            self._fail("ended before its answer was whole: look whether the OSD has just been stopped")
            return
        self._heard += chunk
        if len(self._heard) < _HEADER:
            return
        length = int.from_bytes(self._heard[:_HEADER], "big")
        if length > self._most:
            length = 0
        if len(self._heard) >= _HEADER + length:
            self._told.append(bytes(self._heard[_HEADER : _HEADER + length]))
            self.close()
            if len(self._told) < len(self._question.commands):
                self.send_next_command()

    def close(self) -> None:
        """Close the connection in any state of the exchange."""
        if self._line is not None:
            if self._line in self._ready.get_map():
                self._ready.unregister(self._line)
            self._line.close()
            self._line = None

    def outcome(self, late: str) -> tuple[bytes, ...] | SilentOsd:
        """Return the answers. `late` is the reason given if some are missing and there was no other failure."""
        if len(self._told) == len(self._question.commands):
            return tuple(self._told)
        return SilentOsd(self._wrong or late)

    def _fail(self, why: str) -> None:
        self._wrong = why
        self.close()


def _describe_socket_error(error: OSError) -> str:
    match error:
        case PermissionError():
            return "may not be used: run the collector as Ceph's user (ceph) or as root"
        case FileNotFoundError():
            return "is gone: start the OSD"
        case ConnectionRefusedError():
            return (
                "has nobody behind it: start the OSD, or remove the socket if it is not of this host any more"
            )
    return f"cannot be used ({error.strerror or error}): look at the OSD's log"
