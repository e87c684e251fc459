"""Connections between two requests: a client may be idle for a limited time, and only a request keeps it connected."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import Any

import pytest

from tests.deadlines import idle_seconds
from tests.service.access.test_http_attacks import connect, impatient

GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
EVENTS = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
UNREAD = b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"


def read_answer(connection: socket.socket) -> bytes:
    """One whole answer with its body: head and body may come apart."""
    came = b""
    while b"\r\n\r\n" not in came:
        came += connection.recv(65_536)
    head, _, body = came.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65_536)
    return head + b"\r\n\r\n" + body


def dripping(connection: socket.socket, drop: bytes, seconds: float) -> bool:
    """Send `drop` again and again; whether the service left meanwhile."""
    connection.settimeout(0.1)
    until = idle_seconds() + seconds
    while idle_seconds() < until:
        with suppress(TimeoutError):
            try:
                connection.sendall(drop)
                if not connection.recv(65_536):
                    return True
            except OSError as gone:
                if isinstance(gone, TimeoutError):
                    raise
                return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize(("asked", "drop"), [(GET, b"\r\n"), (UNREAD, b"x")])
def test_no_connection_is_kept_by_bytes_that_are_no_request(
    application: Any, asked: bytes, drop: bytes
) -> None:
    with impatient(application, "t" * 40, rest=0.5) as client, connect(client) as held:
        held.sendall(asked)
        assert dripping(held, drop, 10.0)


@pytest.mark.slow
def test_one_that_goes_on_asking_is_kept(application: Any) -> None:
    with impatient(application, "t" * 40, rest=0.5) as client, connect(client) as busy:
        for _ in range(6):
            busy.sendall(GET)
            assert read_answer(busy).startswith(b"HTTP/1.1 200 ")
            time.sleep(0.2)


@pytest.mark.slow
def test_a_request_whose_head_began_before_the_last_answer_is_not_cut_off(application: Any) -> None:
    with impatient(application, "t" * 40, rest=0.3) as client, connect(client) as busy:
        busy.sendall(GET + EVENTS[:20])
        assert read_answer(busy).startswith(b"HTTP/1.1 200 ")
        busy.sendall(EVENTS[20:])
        assert busy.recv(65_536).startswith(b"HTTP/1.1 200 ")
        assert not dripping(busy, b"", 1.0)
