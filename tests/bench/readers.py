"""Readers of the page without a browser: each holds an event stream and asks when, and as seldom as, the page does."""

from __future__ import annotations

import asyncio
import gzip
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

PAINT_SECONDS, REST, LONGEST_SECONDS = 0.25, 4, 10.0
"""As in the page's `live.ts`: the next round waits four times what the last one took."""
ANYWAY_SECONDS = 10.0


@dataclass
class Readers:
    """All of one address; what they saw."""

    address: str
    rounds: int = 0
    failed: int = 0
    """Answers that were neither 200 nor 304, and connections that broke."""
    waits: list[float] = field(default_factory=list)
    """Seconds of each round."""

    async def read(self, count: int, seconds: float, listening: Callable[[], None]) -> None:
        """So many at once, for so long from when all of them listen."""
        streams = [await self._listen() for _ in range(count)]
        listening()
        end = time.monotonic() + seconds
        await asyncio.gather(*(self._reader(stream, end) for stream, _ in streams))

    async def _listen(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await _connection(self.address)
        writer.write(f"GET /api/v1/events HTTP/1.1\r\nHost: {self.address}\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        return reader, writer

    async def _reader(self, stream: asyncio.StreamReader, end: float) -> None:
        asked = _Asked(self.address)
        changed = asyncio.Event()
        hearing = asyncio.create_task(self._hear(stream, changed))
        try:
            while (now := time.monotonic()) < end:
                await self._round(asked)
                took = time.monotonic() - now
                self.waits.append(took)
                self.rounds += 1
                await asyncio.sleep(min(LONGEST_SECONDS, max(PAINT_SECONDS, REST * took)))
                try:
                    await asyncio.wait_for(changed.wait(), ANYWAY_SECONDS)
                except TimeoutError:
                    continue
                changed.clear()
        finally:
            hearing.cancel()
            asked.close()

    async def _round(self, asked: _Asked) -> None:
        try:
            statuses = [await asked.get("status"), await asked.get("alerts"), await asked.osds()]
        except (OSError, asyncio.IncompleteReadError):
            statuses = [0]
        self.failed += sum(status not in (200, 304) for status in statuses)

    async def _hear(self, stream: asyncio.StreamReader, changed: asyncio.Event) -> None:
        try:
            while line := await stream.readline():
                if line.startswith(b"event: changed"):
                    changed.set()
        except OSError:
            pass
        self.failed += 1


@dataclass
class _Asked:
    """One connection, and the answers that are kept, by their tags."""

    address: str
    way: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
    tags: dict[str, str] = field(default_factory=dict)
    at: str | None = None

    async def get(self, noun: str) -> int:
        """The status of the answer."""
        return (await self._ask(noun, noun))[0]

    async def osds(self) -> int:
        """What changed of them since the last answer."""
        status, body = await self._ask(f"osds?since={self.at}" if self.at else "osds", "osds")
        if status == 200:
            plain = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
            # Two hundred browsers are two hundred machines: here is one, and it only looks where the answer ends.
            (self.at,) = re.findall(r'"at":"([^"]+)"\}$', plain[-100:].decode())
        return status

    def close(self) -> None:
        """Let the connection go."""
        if self.way is not None:
            self.way[1].close()
            self.way = None

    async def _ask(self, path: str, kept: str) -> tuple[int, bytes]:
        known = f"If-None-Match: {self.tags[kept]}\r\n" if kept in self.tags else ""
        asked = f"GET /api/v1/{path} HTTP/1.1\r\nHost: {self.address}\r\nAccept-Encoding: gzip\r\n{known}\r\n"
        if self.way is not None:
            # One that was idle for fifteen seconds is closed, and a browser, too, then asks on another one.
            try:
                return await self._answer(asked, kept, *self.way)
            except (OSError, asyncio.IncompleteReadError):
                self.close()
        self.way = await _connection(self.address)
        return await self._answer(asked, kept, *self.way)

    async def _answer(
        self, asked: str, kept: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[int, bytes]:
        writer.write(asked.encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
        body = await reader.readexactly(int(fields.get("content-length", "0")))
        if "etag" in fields:
            self.tags[kept] = fields["etag"]
        return int(head[0].split()[1]), body


async def _connection(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = address.partition(":")
    return await asyncio.open_connection(host, int(port), limit=2**22)
