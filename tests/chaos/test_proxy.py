"""The proxy by which the network is cut, before a real server that answers each line with the same line."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.chaos.proxy import Cut, TcpProxy

HEARD: list[bytes] = []


class EchoHandler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        with suppress(ConnectionResetError):
            for line in self.rfile:
                HEARD.append(line)
                self.wfile.write(line)


@pytest.fixture
def proxy() -> Iterator[TcpProxy]:
    HEARD.clear()
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), EchoHandler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        proxy = TcpProxy(server.server_address[1])
        try:
            yield proxy
        finally:
            proxy.close()
            server.shutdown()
            thread.join()


def connect(proxy: TcpProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=10)


def ask(connection: socket.socket, line: bytes) -> bytes:
    connection.sendall(line)
    return connection.recv(100)


def test_a_whole_network_carries_requests_and_answers(proxy: TcpProxy) -> None:
    with connect(proxy) as connection:
        assert ask(connection, b"one\n") == b"one\n"


def test_a_line_sent_over_a_stalled_network_arrives_after_the_stall(proxy: TcpProxy) -> None:
    with connect(proxy) as connection:
        assert ask(connection, b"one\n") == b"one\n"
        proxy.cut(Cut.STALLED)
        connection.sendall(b"two\n")
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(100)
        assert HEARD == [b"one\n"]
        proxy.cut(None)
        connection.settimeout(10)
        assert connection.recv(100) == b"two\n"


def test_a_reset_network_ends_the_connections_that_there_are_and_new_ones(proxy: TcpProxy) -> None:
    with connect(proxy) as connection:
        assert ask(connection, b"one\n") == b"one\n"
        proxy.cut(Cut.RESET)
        with pytest.raises(ConnectionResetError):
            ask(connection, b"two\n")
    with pytest.raises(ConnectionResetError), connect(proxy) as late:
        ask(late, b"three\n")
    proxy.cut(None)
    with connect(proxy) as connection:
        assert ask(connection, b"four\n") == b"four\n"


def test_a_request_whose_answer_is_lost_has_arrived_and_its_connection_is_reset_afterwards(
    proxy: TcpProxy,
) -> None:
    with connect(proxy) as connection:
        assert ask(connection, b"one\n") == b"one\n"
        proxy.cut(Cut.ANSWERS_LOST)
        connection.sendall(b"two\n")
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(100)
        assert HEARD == [b"one\n", b"two\n"]
        proxy.cut(None)
        connection.settimeout(10)
        with pytest.raises(ConnectionResetError):
            connection.recv(100)
