"""A peer that speaks TCP and says exactly what a test tells it to: what a lying service would send."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


def http(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    """A whole answer."""
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    if "Content_Length" not in headers:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


@contextmanager
def saying(*pieces: bytes, every: float = 0.0, seen: list[bytes] | None = None) -> Iterator[str]:
    """Each connection is answered by `pieces`, `every` seconds apart; yields the address."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.1)
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            with contextlib.suppress(OSError):
                peer, _ = listener.accept()
                with peer:
                    asked = peer.recv(65536)
                    if seen is not None:
                        seen.append(asked)
                    _say(peer, pieces, every, over)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        thread.join()
        listener.close()


def _say(peer: socket.socket, pieces: Iterable[bytes], every: float, over: threading.Event) -> None:
    for piece in pieces:
        if over.is_set():
            return
        peer.sendall(piece)
        time.sleep(every)
