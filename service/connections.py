"""Connections that nobody can hold for ever: bounds on their number, on how long shaking hands by TLS and a request's
head may take and how large a head may be, and on how long a client may not read.

uvicorn has none of these by itself. A body's deadline is the door's (service.rest.guarding).
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
"""Open files that are asked for, where the system allows as many; Linux gives 1,024 to who does not ask."""


def room() -> int:
    """How many connections there may be at once: three of four files that may be open, after asking for more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return (FILES if soft == resource.RLIM_INFINITY else soft) * 3 // 4


class Entrance:
    """Where hands are shaken by TLS. Who has not done so takes a file too, and uvicorn does not know of it; so it
    counts here, and where there are `most` connections, who takes longest makes room for who comes.
    """

    _PAUSE_SECONDS = 0.1

    def __init__(
        self, made: Callable[[], asyncio.Protocol], inside: Sized, tls: ssl.SSLContext, most: int
    ) -> None:
        """made: makes the protocol of one connection. inside: those that have shaken hands."""
        self._made, self._inside, self._tls, self._most = made, inside, tls, most
        self._shaking: dict[asyncio.Task[None], None] = {}

    async def take_from(self, listener: socket.socket) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    connection, _ = await loop.sock_accept(listener)
                except OSError:
                    await asyncio.sleep(self._PAUSE_SECONDS)  # all files are taken, by something else
                else:
                    self._take(connection)
                    await asyncio.sleep(0)  # those inside have their turn too, however many stand outside
        finally:
            for greeting in self._shaking:
                greeting.cancel()

    def _take(self, connection: socket.socket) -> None:
        if self._shaking and len(self._inside) + len(self._shaking) >= self._most:
            longest = next(iter(self._shaking))
            del self._shaking[longest]
            longest.cancel()
        greeting = asyncio.create_task(self._greet(connection))
        self._shaking[greeting] = None
        greeting.add_done_callback(lambda over: self._shaking.pop(over, None))

    async def _greet(self, connection: socket.socket) -> None:
        with suppress(OSError):  # it went, spoke no TLS or took too long; the loop closed it
            await asyncio.get_running_loop().connect_accepted_socket(
                self._made, connection, ssl=self._tls, ssl_handshake_timeout=SHAKE_SECONDS
            )


class Bounded(HttpToolsProtocol):
    """One connection. `head_seconds` and the like are attributes, so that a test need not wait."""

    head_bytes, head_seconds, stuck_seconds = HEAD_BYTES, HEAD_SECONDS, STUCK_SECONDS
    most = FILES * 3 // 4
    _head_timer: asyncio.TimerHandle | None = None
    _stuck_timer: asyncio.TimerHandle | None = None
    _head = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there; its request's head must follow soon."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.abort()
            return
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody waits any longer."""
        self._cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes of a head are counted until it is whole; those of a body are the door's to count."""
        if self._head_timer is not None:
            self._head += len(data)
        super().data_received(data)
        if self._head_timer is not None and self._head > self.head_bytes:
            self._too_large()

    def on_message_begin(self) -> None:
        """Another request on this connection, perhaps before the last one was answered."""
        super().on_message_begin()
        super()._unset_keepalive_if_required()
        if self._head_timer is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        """The head is whole."""
        if self._head_timer is not None:
            self._head_timer.cancel()
        self._head_timer, self._head = None, 0
        super()._unset_keepalive_if_required()  # the answer before may have ended since the head began
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """The client does not read what it asked for; a while it may."""
        super().pause_writing()
        self._stuck_timer = self.loop.call_later(self.stuck_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """It reads again."""
        if self._stuck_timer is not None:
            self._stuck_timer.cancel()
        super().resume_writing()

    def _unset_keepalive_if_required(self) -> None:
        """uvicorn's, for any bytes that come. Only a request ends a rest: with a line break, or with a bit of a body
        that no route reads, a client would keep its connection for ever.
        """

    def _await_head(self) -> None:
        self._head = 0
        self._head_timer = self.loop.call_later(self.head_seconds, self.transport.abort)

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


def bounded(**bounds: Any) -> type[Bounded]:
    """The protocol with bounds of its own."""
    return type("Bounded", (Bounded,), bounds)
