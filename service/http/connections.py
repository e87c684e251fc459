"""Bounds on connections, so that no client holds one for ever.

The bounds limit the number of connections, the time of the TLS handshake, the time and size of a request's head,
and the time in which a client does not read. uvicorn has none of these by itself. The deadline of a body is set
in service.rest.authentication.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
from collections.abc import Callable, Sized
from contextlib import suppress
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 64 * 1024
SHAKE_SECONDS = 20.0
HEAD_SECONDS = 20.0
STUCK_SECONDS = 60.0
FILES = 16_384
"""Open files to ask for, if the system allows as many; Linux gives 1,024 to a process that does not ask."""


def raise_connection_limit() -> int:
    """Ask for more open files; return the largest number of connections: three quarters of the allowed open
    files.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return (FILES if soft == resource.RLIM_INFINITY else soft) * 3 // 4


class TlsHandshakeLimit:
    """Accepts connections and limits those in the TLS handshake.

    A connection in the handshake takes an open file too, and uvicorn does not know of it, so it is counted here.
    At `most` connections, the one that has been in the handshake longest is dropped for a new one.
    """

    _PAUSE_SECONDS = 0.1

    def __init__(
        self, made: Callable[[], asyncio.Protocol], inside: Sized, tls: ssl.SSLContext, most: int
    ) -> None:
        """Set the limits.

        made: makes the protocol of one connection. inside: the connections after their handshake.
        """
        self._made, self._inside, self._tls, self._most = made, inside, tls, most
        self._shaking: dict[asyncio.Task[None], None] = {}

    async def take_from(self, listener: socket.socket) -> None:
        """Accept connections from `listener` until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    connection, _ = await loop.sock_accept(listener)
                except OSError:
                    await asyncio.sleep(self._PAUSE_SECONDS)  # another part of the process holds all files
                else:
                    self._take(connection)
                    await asyncio.sleep(0)  # open connections get their turn however many clients wait
        finally:
            for handshake in self._shaking:
                handshake.cancel()

    def _take(self, connection: socket.socket) -> None:
        if self._shaking and len(self._inside) + len(self._shaking) >= self._most:
            longest = next(iter(self._shaking))
            del self._shaking[longest]
            longest.cancel()
        handshake = asyncio.create_task(self._greet(connection))
        self._shaking[handshake] = None
        handshake.add_done_callback(lambda over: self._shaking.pop(over, None))

    async def _greet(self, connection: socket.socket) -> None:
        with suppress(OSError):  # the client left, spoke no TLS or took too long; the loop closed it
            await asyncio.get_running_loop().connect_accepted_socket(
                self._made, connection, ssl=self._tls, ssl_handshake_timeout=SHAKE_SECONDS
            )


class BoundedConnection(HttpToolsProtocol):
    """One connection with bounds. `head_seconds` and the like are attributes, so that a test need not wait."""

    head_bytes, head_seconds, stuck_seconds = HEAD_BYTES, HEAD_SECONDS, STUCK_SECONDS
    most = FILES * 3 // 4
    _head_timer: asyncio.TimerHandle | None = None
    _stuck_timer: asyncio.TimerHandle | None = None
    _head = 0
    _in_body = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline for the head of the first request; abort the connection if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.abort()
            return
        self._await_head(self.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel all deadlines."""
        self._cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count the bytes of a head until it is complete; service.rest.authentication counts those of a body.

        The rest of a body that was refused comes after the answer and is no head.
        """
        if self._head_timer is not None and not self._in_body:
            self._head += len(data)
        super().data_received(data)
        if self._head_timer is not None and self._head > self.head_bytes:
            self._too_large()
        elif self._head_timer is None and self.cycle is not None and self.cycle.response_complete:
            # uvicorn takes any byte for the next request and ends the timeout of an idle connection. Line breaks, or
            # a body that no route reads, would keep a connection for ever.
            self._await_head(self.timeout_keep_alive)

    def on_message_begin(self) -> None:
        """Start the deadline of the next request, which may begin before the last one was answered."""
        super().on_message_begin()
        if self._head_timer is None:
            self._await_head(self.head_seconds)

    def on_headers_complete(self) -> None:
        """Cancel the deadline of the head."""
        if self._head_timer is not None:
            self._head_timer.cancel()
        self._head_timer, self._head, self._in_body = None, 0, True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note the end of the body."""
        self._in_body = False
        super().on_message_complete()

    def pause_writing(self) -> None:
        """Start the deadline for a client that does not read its answer."""
        super().pause_writing()
        self._stuck_timer = self.loop.call_later(self.stuck_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Cancel the deadline once the client reads again."""
        if self._stuck_timer is not None:
            self._stuck_timer.cancel()
        super().resume_writing()

    def _await_head(self, seconds: float) -> None:
        self._head = 0
        self._head_timer = self.loop.call_later(seconds, self.transport.abort)

    def _too_large(self) -> None:
        told = b"The request's head is larger than %d bytes." % self.head_bytes
        self.transport.write(
            b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain\r\nconnection: close\r\n"
            b"content-length: %d\r\n\r\n%s" % (len(told), told)
        )
        self.transport.close()

    def _cancel(self) -> None:
        for timer in (self._head_timer, self._stuck_timer):
            if timer is not None:
                timer.cancel()
        self._head_timer = self._stuck_timer = None


def make_bounded_protocol(**bounds: Any) -> type[BoundedConnection]:
    """Make a protocol class with these bounds."""
    return type("Bounded", (BoundedConnection,), bounds)
