"""The parent's side of the rados channel: one child process behind a socket, which is killed when an answer is late."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("rados_child.py")
PIECE = 1 << 20
LONGEST_HEAD = 1 << 22
KEPT_WORDS = 4096


class ChildSilent(Exception):
    """There is no answer: it is late, the child ended, or the answer has another form. The child cannot be used any
    more.
    """


class Child:
    """A process that runs `rados_child.py`. It takes one request at a time. After `ChildSilent` only
    `kill` is useful.
    """

    def __init__(self, interpreter: tuple[str, ...], now: Callable[[], float]) -> None:
        """Start the process. Raises OSError if the interpreter cannot be run."""
        self._now = now
        self._socket, theirs = socket.socketpair()
        try:
            # -I: nothing of our own environment reaches the interpreter, which may be another Python.
            self._process: subprocess.Popen[bytes] = subprocess.Popen(  # noqa: S603 - the operator names it
                [*interpreter, "-I", "-c", PROGRAM.read_text()],
                stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        except OSError:
            self._socket.close()
            raise
        finally:
            theirs.close()
        self._unread = b""
        self._number = 0
        self._words = b""
        self._drain = threading.Thread(target=self._read_words, daemon=True)
        self._drain.start()

    def alive(self) -> bool:
        """Return whether the process runs."""
        return self._process.poll() is None

    def request(self, asked: Mapping[str, Any], given: bytes, until: float) -> tuple[dict[str, Any], bytes]:
        """Send a request. Return the head and the bytes of the answer. Raises ChildSilent."""
        self._number += 1
        head = json.dumps({**asked, "id": self._number, "size": len(given)}).encode()
        try:
            self._socket.settimeout(self._left(until))
            self._socket.sendall(head + b"\n" + given)
            answer = self._head(until)
            return answer, self._bytes(answer["size"], until)
        except TimeoutError:
            raise ChildSilent("it did not answer in time") from None
        except (ConnectionError, EOFError):
            raise ChildSilent(f"the child process ended{self._last_words()}") from None
        except (ValueError, KeyError, TypeError) as error:
            raise ChildSilent(f"the child process said what no answer looks like ({error})") from None

    def kill(self) -> None:
        """End the process and all that it started."""
        self._socket.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(2)
        self._drain.join(2)

    def _head(self, until: float) -> dict[str, Any]:
        while b"\n" not in self._unread:
            if len(self._unread) > LONGEST_HEAD:
                raise ValueError("a line without an end")
            self._unread += self._receive(until)
        line, _, self._unread = self._unread.partition(b"\n")
        head = json.loads(line)
        if head["id"] != self._number:
            raise ValueError(f"an answer to {head['id']}, asked was {self._number}")
        if not (
            isinstance(head["rc"], int) and isinstance(head["err"], str) and isinstance(head["size"], int)
        ):
            raise TypeError(f"rc, err, size: {line[:200]!r}")
        return dict(head)

    def _bytes(self, size: int, until: float) -> bytes:
        pieces, have = [self._unread[:size]], len(self._unread[:size])
        self._unread = self._unread[size:]
        while have < size:
            piece = self._receive(until, size - have)
            pieces.append(piece)
            have += len(piece)
        return b"".join(pieces)

    def _receive(self, until: float, most: int = PIECE) -> bytes:
        self._socket.settimeout(self._left(until))
        if piece := self._socket.recv(min(most, PIECE)):
            return piece
        raise EOFError

    def _left(self, until: float) -> float:
        if (left := until - self._now()) > 0:
            return left
        raise TimeoutError

    def _read_words(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as pipe:
            while piece := os.read(pipe.fileno(), 65536):
                self._words = (self._words + piece)[-KEPT_WORDS:]

    def _last_words(self) -> str:
        self._drain.join(0.5)
        lines = self._words.decode(errors="replace").strip().splitlines()
        return f": {lines[-1][:300]}" if lines else ""
