"""Ports for test monitors, on a machine where several clusters start at once."""

from __future__ import annotations

import contextlib
import fcntl
import socket
import tempfile
from pathlib import Path
from typing import TextIO


def reserve_port(first: int = 21000, last: int = 29000) -> tuple[int, TextIO]:
    """Two free ports, this one and the next, and the lock that keeps others off them until it is closed."""
    for port in range(first, last, 2):
        lock = Path(tempfile.gettempdir(), f"predrain-ceph-port-{port}.lock").open("w")  # noqa: SIM115 - held as long as the port is
        with contextlib.suppress(OSError), socket.socket() as one, socket.socket() as two:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            one.bind(("127.0.0.1", port))
            two.bind(("127.0.0.1", port + 1))
            return port, lock
        lock.close()
    raise RuntimeError(f"no free port between {first} and {last}")
