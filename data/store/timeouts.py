"""A connection to PostgreSQL that does not wait for ever on a server that stands still.

The server's own limits do not help there, and the kernel of a machine that is up says yes to all that is sent. So a
silence is broken by a question on a second connection: whoever answers that is busy, and is waited for.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any, TypeVar

import psycopg

T = TypeVar("T")

SILENT_SECONDS = 20
"""After so long without a sign of life the server is asked for another."""
CONNECT_SECONDS = 10
"""Within this it has to give it."""


class WatchedConnection(psycopg.Connection[Any]):
    """Gives up with OperationalError, and is closed then, when the server stands still."""

    _how: dict[str, Any] | None = None
    _longest: float | None = None

    @classmethod
    def to(cls, how: dict[str, Any], longest: float | None) -> WatchedConnection:
        """A connection by psycopg's words `how`. An answer may take `longest` seconds, though the server lives; None:
        any time.
        """
        made = cls.connect(**how)
        made._how, made._longest = how, longest
        return made

    def wait(
        self, gen: Generator[Any, Any, T], interval: float = 0.1, timeout: float | None = None
    ) -> T:  # as psycopg calls it for all that it asks of the server
        """What `gen` comes to."""
        return super().wait(self._watched(gen) if self._how is not None else gen, interval, timeout)

    def _watched(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        try:
            state = next(gen)
            heard = asked = time.monotonic()
            while True:
                ready = yield state
                now = time.monotonic()
                if ready:
                    heard = asked = now
                elif self._longest is not None and now - heard >= self._longest:
                    self._give_up(f"no answer for {now - heard:.0f} s, though it lets others in")
                elif now - asked >= SILENT_SECONDS:
                    self._ask()
                    asked = time.monotonic()
                state = gen.send(ready)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _ask(self) -> None:
        assert self._how is not None
        try:
            psycopg.connect(**self._how).close()
        except psycopg.errors.ConnectionTimeout:
            self._give_up(f"no sign of life for {SILENT_SECONDS:.0f} s, nor on a new connection")
        except psycopg.Error:
            pass  # it answers, if only that it is full; or its machine is gone, which our kernel finds out

    def _give_up(self, why: str) -> None:
        self.pgconn.finish()
        raise psycopg.OperationalError(why)
