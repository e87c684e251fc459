"""Callers that take all there is of something: event streams, threads that wait for a provider, room on the disk."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from tests.attack.outcome import AttackOutcome
from tests.attack.target import Target, Watch, read_all, status_of

BUSY = (429, 503)


def open_event_streams(target: Target, streams: int = 3_000) -> AttackOutcome:
    """One caller opens thousands of event streams and keeps them; those above the caller's share are refused."""
    watch = Watch(target, "event streams of one caller")
    held: list[socket.socket] = []
    ask = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
    try:
        for _ in range(streams):
            connection = target.connect(seconds=30)
            held.append(connection)
            connection.sendall(ask)
            answer = b""
            with suppress(TimeoutError, ConnectionResetError):
                answer = connection.recv(4096)
            watch.count(answer, refused=BUSY)
            if status_of(answer) in BUSY:
                held.pop().close()
    finally:
        outcome = watch.end()
        for connection in held:
            connection.close()
    return outcome


class SilentProvider:
    """A provider of sign-ins that takes connections and never answers; a context manager."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._held: list[socket.socket] = []
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._take, daemon=True).start()

    def __enter__(self) -> SilentProvider:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        for connection in self._held:
            connection.close()

    def _take(self) -> None:
        with suppress(OSError):
            while True:
                self._held.append(self._listener.accept()[0])


def crowd_sign_ins(target: Target, browsers: int = 45) -> tuple[AttackOutcome, float]:
    """Let browsers begin to sign in at a provider that never answers, and halt everything meanwhile.

    Return the outcome and the seconds that the halt took.
    """
    watch = Watch(target, "sign-ins at a silent provider")

    def sign_in() -> None:
        with suppress(OSError), target.connect(seconds=20) as connection:
            connection.sendall(b"GET /sign-in HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            read_all(connection)

    with ThreadPoolExecutor(browsers) as pool:
        waiting = [pool.submit(sign_in) for _ in range(browsers)]
        time.sleep(1.0)
        begun = time.monotonic()
        answer = target.post("/api/v1/halt", b'{"reason": "sign-ins wait"}', token=target.token)
        seconds = time.monotonic() - begun
        # The halt is what is tried: it is refused to the attacker when it gets through.
        watch.count(answer, refused=(200,))
        outcome = watch.end()
        for one in waiting:
            one.result()
    return outcome, seconds
