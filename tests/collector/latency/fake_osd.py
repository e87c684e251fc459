"""A stand-in for an OSD's admin socket: it answers what a real one was recorded to answer, or fails in a chosen way."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

SAMPLES = Path(__file__).parent / "samples"
RELEASES = ("pacific", "reef", "tentacle")


def looks(release: str) -> list[dict[str, Any]]:
    """Two looks at one OSD, between which clients wrote and read: `answers` by command, and what it counted itself."""
    recorded: list[dict[str, Any]] = json.loads((SAMPLES / f"{release}.json").read_text())["looks"]
    return recorded


def answers_of(look: Mapping[str, Any]) -> dict[str, bytes]:
    """Answers by command; `perf` commands with their logger."""
    return {name: text.encode() for name, text in look["answers"].items()}


class FakeOsd:
    """Listens until it is stopped. `answers` and `fault` may be changed while it runs.

    fault: what it does with a connection in place of answering.
    """

    def __init__(self, path: Path, answers: Mapping[str, bytes]) -> None:
        self.path, self.answers = path, dict(answers)
        self.fault: Callable[[socket.socket], None] | None = None
        self.asked: list[str] = []
        self._held: list[socket.socket] = []
        self.start()

    def start(self) -> None:
        """Make the socket and listen, as a process that was started again."""
        self._ear = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._ear.bind(str(self.path))
        self._ear.listen(5)
        self._thread = threading.Thread(target=self._serve, args=(self._ear,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End as a killed process does: the socket's file stays, nobody is behind it."""
        if self._ear.fileno() < 0:
            return  # once is enough
        self._ear.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._ear.close()
        for line in self._held:
            line.close()
        self._held.clear()

    def hold(self, line: socket.socket) -> None:
        """A fault: keep the connection and say nothing."""
        self._held.append(line.dup())

    def _serve(self, ear: socket.socket) -> None:
        while True:
            try:
                line, _ = ear.accept()
            except OSError:
                return
            with line:
                asked = line.recv(1 << 16)
                if self.fault is not None:
                    self.fault(line)
                    continue
                told = self._answer(json.loads(asked.rstrip(b"\0")))
                with suppress(ConnectionError):  # who asked may have been killed
                    line.sendall(len(told).to_bytes(4, "big") + told)

    def _answer(self, command: Mapping[str, str]) -> bytes:
        name = command["prefix"]
        self.asked.append(name)
        if "logger" in command:
            name += f":{command['logger']}"
        return self.answers.get(
            name, f"ERROR: (22) Invalid argument\nunknown command prefix {name}\n".encode()
        )


def garbage(line: socket.socket) -> None:
    """A fault: what comes is no JSON."""
    line.sendall((7).to_bytes(4, "big") + b"\x00\xff{{]] ")


def cut(line: socket.socket) -> None:
    """A fault: the line ends within the answer."""
    line.sendall((1000).to_bytes(4, "big") + b'{"osd"')


def huge(line: socket.socket) -> None:
    """A fault: four billion bytes are announced."""
    line.sendall(b"\xff\xff\xff\xff" + b"x" * 1000)
