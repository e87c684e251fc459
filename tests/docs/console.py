"""Runs the ```console blocks of a page: lines with `$ ` are typed into one shell, the others are what it prints.

`...` stands for anything on its line, and on a line of its own for any lines. How many spaces there are does not
matter. A command that only looks is typed again until it prints what is awaited, as a person would.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tests.deadlines import idle_seconds
from tests.docs.pages import blocks

PATIENCE_SECONDS = 180.0
"""The seconds for which a command that only reads is repeated until it prints the awaited text."""
LIFE_SECONDS = 1200.0
"""After this the shell and all that it started is killed: a page that hangs fails, and leaves nothing behind."""
LOOKS = re.compile(
    r"^(cat|ls|curl -s|predrain (causes|cluster status|doctor|drain (list|plan|explain)|models list))\b"
)
_OVER = "\x1e"


@dataclass(frozen=True, slots=True)
class Typed:
    """A command and what it should print."""

    place: str
    command: str
    awaited: str

    def printed(self, text: str) -> bool:
        """Return whether `text` is the awaited text."""
        lines = [".*" if line == "..." else _on_a_line(line) for line in _plain(self.awaited)]
        return re.fullmatch("\n".join(lines), "\n".join(_plain(text)), re.DOTALL) is not None


def typed(page: Path) -> Iterator[Typed]:
    """The commands of a page in order. A line that begins with `> ` goes on with the command above it."""
    for block in blocks(page, "console"):
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, *answer = part.splitlines()
            while answer and answer[0].startswith("> "):
                command += "\n" + answer.pop(0)[2:]
            yield Typed(block.place, command, "\n".join(answer))


class Shell:
    """One bash in one folder; what it started dies with the context."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            ["/bin/bash", "--norc"], cwd=folder, env=dict(environment), text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._watch = threading.Timer(LIFE_SECONDS, self._kill, [signal.SIGKILL])

    def __enter__(self) -> Shell:
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.cancel()
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._kill(signal.SIGTERM)
        try:
            self._process.stdout.read()  # ends when the last of them has gone
        finally:
            self._kill(signal.SIGKILL)
            self._process.stdout.close()
            self._process.wait()

    def type(self, command: str) -> str:
        """Type a command; what it printed."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{command}\nprintf '\\n{_OVER}\\n'\n")
        self._process.stdin.flush()
        lines: list[str] = []
        while (line := self._process.stdout.readline()) != f"{_OVER}\n":
            if not line:
                raise AssertionError(f"the shell ended while it ran: {command}\n{''.join(lines)}")
            lines.append(line)
        return "".join(lines).removesuffix("\n")

    def await_(self, one: Typed) -> str:
        """Type `one`, a look again and again until it prints what is awaited; what was printed last."""
        until = idle_seconds() + PATIENCE_SECONDS
        while not one.printed(text := self.type(one.command)):
            if not LOOKS.match(one.command) or idle_seconds() > until:
                break
            time.sleep(0.5)
        return text

    def _kill(self, how: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, how)
        except ProcessLookupError:
            return


def _plain(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.rstrip().splitlines()]


def _on_a_line(line: str) -> str:
    return "[^\n]*".join(re.escape(part) for part in line.split("..."))
