"""Ports of loopback for the servers of tests. Each port belongs to its test until the process of the test ends."""

from __future__ import annotations

import socket

_held: list[socket.socket] = []


def hold_port() -> int:
    """Return a port of 127.0.0.1 on which a server that sets SO_REUSEADDR can listen.

    A socket that does not listen stays bound to the port: while no server listens, connections are refused, and the
    kernel gives the port to no other program that takes any free port. A port that is free again could go to a server
    of another test, and the test would then speak to that server.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    _held.append(holder)
    port: int = holder.getsockname()[1]
    return port
