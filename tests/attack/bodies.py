"""Bodies of requests that cost the service more than their sender: large, wide, deep, endless, or many at once."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from tests.attack.outcome import AttackOutcome
from tests.attack.target import Target, Watch, read_all

MIB = 1 << 20
ANONYMOUS_ROUTES = ("/api/v1/session", "/api/v1/enrolment")
REFUSED = (400, 401, 403, 408, 413, 415, 422, 429, 503)


def post_anonymous_keys(target: Target, rounds: int = 3) -> AttackOutcome:
    """Without a token, 12 MB of JSON with a million keys that no route knows."""
    keys = b",".join(b'"k%07d":0' % number for number in range(12 * MIB // 13))
    return _post_anonymous(target, "12 MB of unknown keys without a token", b"{" + keys + b"}", rounds)


def post_anonymous_values(target: Target, rounds: int = 3) -> AttackOutcome:
    """Without a token, 12 MB of `[1,1,1...]` where an object is expected."""
    body = b"[" + b"1," * (6 * MIB) + b"1]"
    return _post_anonymous(target, "12 MB of numbers without a token", body, rounds)


def post_anonymous_small_keys(target: Target, rounds: int = 50) -> AttackOutcome:
    """Without a token, as many unknown keys as a small body holds: each may make an error of its own."""
    keys = b",".join(b'"%d":0' % number for number in range(900))
    return _post_anonymous(target, "8 KiB of unknown keys without a token", b"{" + keys + b"}", rounds)


def _post_anonymous(target: Target, name: str, body: bytes, rounds: int) -> AttackOutcome:
    watch = Watch(target, name)
    for _ in range(rounds):
        for path in ANONYMOUS_ROUTES:
            watch.count(target.post(path, body), refused=REFUSED)
    return watch.end()


def post_anonymous_chunks(target: Target, megabytes: int = 12) -> AttackOutcome:
    """Post up to `megabytes` MiB of blanks to each anonymous route, in chunks, without a token and without a length."""
    watch = Watch(target, "chunks without a token and without an end")
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    for path in ANONYMOUS_ROUTES:
        with target.connect() as connection:
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(target.head("POST", path, None))
                for _ in range(megabytes * MIB // 0x10000):
                    connection.sendall(chunk)
            watch.count(read_all(connection) or b"HTTP/1.1 413 cut off", refused=REFUSED)
    return watch.end()


def post_ingest_numbers(target: Target, connections: int = 4, seconds: float = 12.0) -> AttackOutcome:
    """With a collector's rights, four connections that post 16 MiB of `[1,1,1...]` again and again."""
    body = b"[" + b"1," * (8 * MIB - 2) + b"1]"
    return _post_ingest(target, "16 MiB of numbers with a token", body, connections, seconds)


def post_ingest_wide_item(target: Target, connections: int = 4, seconds: float = 6.0) -> AttackOutcome:
    """With a collector's rights, one item that holds eight million values."""
    body = b'[{"smartctl":[' + b"1," * (8 * MIB - 20) + b"1]}]"
    return _post_ingest(target, "16 MiB in one item with a token", body, connections, seconds)


def post_ingest_deep(target: Target, connections: int = 4, seconds: float = 6.0) -> AttackOutcome:
    """With a collector's rights, arrays inside one another to a depth of millions."""
    return _post_ingest(target, "16 MiB of brackets with a token", b"[" * (16 * MIB), connections, seconds)


def _post_ingest(target: Target, name: str, body: bytes, connections: int, seconds: float) -> AttackOutcome:
    watch, end = Watch(target, name), time.monotonic() + seconds

    def again() -> None:
        while time.monotonic() < end:
            answer = target.post("/api/v1/readings", body, token=target.token)
            watch.count(answer or b"HTTP/1.1 413 cut off", refused=REFUSED)

    with ThreadPoolExecutor(connections) as pool:
        for attempt in [pool.submit(again) for _ in range(connections)]:
            attempt.result()
    return watch.end()


def hold_ingest_bodies(target: Target, connections: int = 12) -> AttackOutcome:
    """With a collector's rights, bodies of blanks that all but end, over as many connections as it takes to fill the
    service's memory; then one byte of each is missing."""
    watch = Watch(target, "bodies that never end with a token")
    length = 16 * MIB
    held: list[socket.socket] = []

    def hold(connection: socket.socket) -> None:
        with suppress(OSError):
            connection.sendall(target.head("POST", "/api/v1/readings", length, token=target.token))
            connection.sendall(b" " * (length - 1))

    threads = []
    for _ in range(connections):
        held.append(target.connect())
        threads.append(threading.Thread(target=hold, args=(held[-1],), daemon=True))
        threads[-1].start()
    for thread in threads:
        thread.join(20)
    for connection in held:
        connection.settimeout(3)
        with suppress(OSError):
            answer = connection.recv(1 << 16)
            if answer:
                watch.count(answer, refused=REFUSED)
        connection.close()
    return watch.end()
