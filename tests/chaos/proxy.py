"""A TCP proxy between two parts, by which the network between them is cut."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from contextlib import suppress
from enum import StrEnum

_PIECE = 1 << 16
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER that makes a close send a reset."""


class Cut(StrEnum):
    """A fault of the network."""

    STALLED = "nothing passes, and what was sent arrives afterwards"
    RESET = "connections are reset, new ones too"
    ANSWERS_LOST = "requests arrive, answers are lost, and connections are reset afterwards"


class TcpProxy:
    """Listens on a free port of loopback from the beginning, and forwards to `target` once it is set."""

    def __init__(self, target: int | None = None) -> None:
        self.target = target
        self.connections = 0
        """The number of connections that the proxy has taken."""
        self._cut: Cut | None = None
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._whole = asyncio.Event()
        self._whole.set()
        self._pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._serve, name=f"proxy-{self.port}", daemon=True)
        self._thread.start()

    def cut(self, how: Cut | None) -> None:
        """Cut the network, or mend it (None). Returns when it is done."""
        asyncio.run_coroutine_threadsafe(self._change(how), self._loop).result()

    def close(self) -> None:
        """Reset all connections, and listen no more."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._server = self._loop.run_until_complete(asyncio.start_server(self._take, sock=self._listener))
        self._loop.run_forever()

    async def _change(self, how: Cut | None) -> None:
        before, self._cut = self._cut, how
        if Cut.RESET in (before, how) or before is Cut.ANSWERS_LOST:
            self._reset_all()
        if how in (None, Cut.RESET):
            self._whole.set()
        else:
            self._whole.clear()

    async def _end(self) -> None:
        self._server.close()
        self._reset_all()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _reset_all(self) -> None:
        for pair in tuple(self._pairs):
            for writer in pair:
                _reset(writer)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            await self._connect(reader, writer)
        except (OSError, asyncio.CancelledError):
            _reset(writer)
        finally:
            self._tasks.discard(task)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._cut is Cut.STALLED:
            await self._whole.wait()
        if self._cut is Cut.RESET or self.target is None:
            _reset(writer)
            return
        there, away = await asyncio.open_connection("127.0.0.1", self.target)
        pair = writer, away
        self._pairs.add(pair)
        try:
            await asyncio.gather(
                self._forward(reader, away, is_answer=False), self._forward(there, writer, is_answer=True)
            )
        finally:
            self._pairs.discard(pair)
            for one in pair:
                one.close()

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool
    ) -> None:
        with suppress(OSError):
            while piece := await reader.read(_PIECE):
                while self._cut is Cut.STALLED or (is_answer and self._cut is Cut.ANSWERS_LOST):
                    await self._whole.wait()
                writer.write(piece)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection as a peer that is gone does."""
    found: socket.socket | None = writer.get_extra_info("socket")
    with suppress(OSError, ValueError):
        if found is not None:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
