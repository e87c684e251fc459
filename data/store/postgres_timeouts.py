"""A connection to PostgreSQL with bounded waits, also for a server that hangs.

The server's own limits do not help in this case, and the kernel of a running machine accepts everything that is sent.
So after a silence a second connection is tried. A server that answers it is busy, and the first connection goes on
waiting.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any, TypeVar

import psycopg

T = TypeVar("T")

SILENT_SECONDS = 20
"""Seconds without a sign of life after which the server is tried on a second connection."""
CONNECT_SECONDS = 10
"""Seconds in which the server has to answer on the second connection."""


class WatchedConnection(psycopg.Connection[Any]):
    """Raises OperationalError, and is closed then, if the server hangs."""

    _how: dict[str, Any] | None = None
    _longest: float | None = None

    @classmethod
    def connect_watched(cls, how: dict[str, Any], longest: float | None) -> WatchedConnection:
        """Connect with psycopg's parameters `how`.

        An answer may take `longest` seconds from a live server; None: any time.
        """
        made = cls.connect(**how)
        made._how, made._longest = how, longest
        return made

    def wait(
        self, gen: Generator[Any, Any, T], interval: float = 0.1, timeout: float | None = None
    ) -> T:  # psycopg calls it for every request to the server
        """Return the result of `gen`."""
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
            pass  # it answers, if only that it is full; or its machine is gone, which the kernel detects

    def _give_up(self, why: str) -> None:
        self.pgconn.finish()
        raise psycopg.OperationalError(why)
