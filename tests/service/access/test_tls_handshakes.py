"""Connections to the TLS port that never shake hands take an open file each, and keep no other client out."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
import trustme

from tests.deadlines import idle_seconds

FILES = 80
SERVING = """
import asyncio, resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_NOFILE, ({files}, {files}))
from predrain.data.clock import SystemClock
from predrain.service.http import connections
from predrain.service.http.server import ServedApplication, bind_listening_socket, url_of
from predrain.service.config.settings import ServiceTable

connections.SHAKE_SECONDS = {seconds}

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await send({{"type": "lifespan.startup.complete"}})
        await receive()
        await send({{"type": "lifespan.shutdown.complete"}})
    else:
        with open("/dev/null"):  # what answers needs files of its own
            await send({{"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}})
            await send({{"type": "http.response.body", "body": b"hi"}})

service = ServiceTable(port=0, tls_certificate=Path("chain.pem"), tls_key=Path("key.pem"))
listener = bind_listening_socket(service)
port = listener.getsockname()[1]
server = ServedApplication(app, listener, service, SystemClock(), started=lambda: print(port, flush=True))
server.config.loop = "{loop}"
server.serve_here()
"""


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@contextmanager
def serving(
    authority: trustme.CA, folder: Path, *, seconds: float, loop: str = "auto"
) -> Iterator[tuple[int, Callable[[], int]]]:
    """The port of a server with few files, and how many sockets it has open."""
    issued = authority.issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(folder / "chain.pem")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    code = SERVING.format(files=FILES, seconds=seconds, loop=loop)
    home = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        env={"PYTHONPATH": str(home)},
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            folder = Path(f"/proc/{server.pid}/fd")
            yield port, lambda: sum(one.is_socket() for one in folder.iterdir())
        finally:
            server.terminate()


def answered(authority: trustme.CA, port: int, within: float) -> bool:
    """Return whether a client that shakes hands gets an answer in `within` seconds.

    The client tries again each time that the server closes its connection.
    """
    context = ssl.create_default_context()
    authority.configure_trust(context)
    until = idle_seconds() + within
    while (left := until - idle_seconds()) > 0:
        with (
            suppress(OSError),
            socket.create_connection(("127.0.0.1", port), timeout=left) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as hand,
        ):
            hand.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            if hand.recv(100).startswith(b"HTTP/1.1 200 "):
                return True
        time.sleep(0.05)
    return False


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1000) == b""
    except ConnectionResetError:
        return True


@pytest.mark.slow
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_silent_connections_keep_nobody_out_who_shakes_hands(
    authority: trustme.CA, tmp_path: Path, loop: str
) -> None:
    with serving(authority, tmp_path, seconds=60, loop=loop) as (port, sockets), ExitStack() as held:
        for _ in range(4 * FILES):
            held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
        assert answered(authority, port, within=30)
        assert sockets() < FILES * 0.9, "what serves has files left"


@pytest.mark.slow
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_connection_that_is_silent_too_long_or_speaks_no_tls_is_closed_and_its_file_is_free(
    authority: trustme.CA, tmp_path: Path, loop: str
) -> None:
    with serving(authority, tmp_path, seconds=1, loop=loop) as (port, sockets), ExitStack() as held:
        before = sockets()
        silent, wrong = (
            [held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60)) for _ in range(9)]
            for _ in range(2)
        )
        for one in wrong:
            one.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert all(is_closed(one) for one in silent)
        assert all(one.recv(1000) is not None and is_closed(one) for one in wrong)
        until = idle_seconds() + 10
        while sockets() > before and idle_seconds() < until:
            time.sleep(0.05)
        assert sockets() <= before
