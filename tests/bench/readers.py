"""Readers of the page without a browser: each holds an event stream and asks when, and as seldom as, the page does."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field

PAINT_SECONDS, REST, LONGEST_SECONDS = 0.25, 4, 10.0
"""As in the page's `live.ts`: the next round waits four times what the last one took."""
ANYWAY_SECONDS = 10.0


@dataclass
class RoundSize:
    """Bytes of the answers of one round, without their heads."""

    packed: int = 0
    """The bytes as they came over the connection, compressed or not."""
    plain: int = 0
    whole: bool = False
    """True if the whole list of OSDs was among them."""


@dataclass
class Readers:
    """All of one address; what they saw.

    parses: they parse every answer, as a browser does, which takes time between two pages.
    tears: they request the whole list again whenever it changed between two of its pages.
    """

    address: str
    parses: bool = False
    tears: bool = False
    rounds: int = 0
    failed: int = 0
    """Answers that were neither 200 nor 304, and connections that broke."""
    waits: list[float] = field(default_factory=list)
    """Seconds of each round."""
    sizes: list[RoundSize] = field(default_factory=list)

    async def read(self, count: int, seconds: float, listening: Callable[[], None]) -> None:
        """So many at once, for so long from when all of them listen."""
        streams = [await self._listen() for _ in range(count)]
        listening()
        end = time.monotonic() + seconds
        await asyncio.gather(*(self._reader(stream, end) for stream, _ in streams))

    async def read_once(self) -> None:
        """Ask for everything once, without an event stream."""
        asked = _Asked(self.address, self.parses, self.tears)
        try:
            await self._timed_round(asked)
        finally:
            asked.close()

    async def _listen(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await _connection(self.address)
        writer.write(f"GET /api/v1/events HTTP/1.1\r\nHost: {self.address}\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        return reader, writer

    async def _reader(self, stream: asyncio.StreamReader, end: float) -> None:
        asked = _Asked(self.address, self.parses, self.tears)
        changed = asyncio.Event()
        hearing = asyncio.create_task(self._hear(stream, changed))
        try:
            while time.monotonic() < end:
                took = await self._timed_round(asked)
                await asyncio.sleep(min(LONGEST_SECONDS, max(PAINT_SECONDS, REST * took)))
                try:
                    await asyncio.wait_for(changed.wait(), ANYWAY_SECONDS)
                except TimeoutError:
                    continue
                changed.clear()
        finally:
            hearing.cancel()
            asked.close()

    async def _timed_round(self, asked: _Asked) -> float:
        began = time.monotonic()
        await self._round(asked)
        self.waits.append(time.monotonic() - began)
        self.sizes.append(asked.size)
        asked.size = RoundSize()
        self.rounds += 1
        return self.waits[-1]

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
    parses: bool = False
    tears: bool = False
    way: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
    tags: dict[str, str] = field(default_factory=dict)
    at: str | None = None
    size: RoundSize = field(default_factory=RoundSize)

    async def get(self, noun: str) -> int:
        """The status of the answer."""
        return (await self._ask(noun, noun))[0]

    async def osds(self) -> int:
        """Ask for the OSDs that changed since the last answer, page by page. Return the status of the last page."""
        since = f"since={self.at}" if self.at else ""
        status, plain = await self._list(f"osds?{since}")
        if status != 200:
            return status
        first = page = self._end_of(plain)
        torn = False
        while page.next is not None:
            kept = "" if first.full else f"&{since}"
            status, plain = await self._list(f"osds?cursor={page.next}{kept}")
            if status != 200:
                return status
            page = self._end_of(plain)
            torn |= page.at != first.at
        self.size.whole |= first.full
        self.at = None if torn and self.tears else first.at
        return status

    async def _list(self, path: str) -> tuple[int, bytes]:
        status, body = await self._ask(path)
        return status, gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body

    def _end_of(self, plain: bytes) -> _PageEnd:
        # Two hundred browsers are two hundred machines: here is one, and it only looks where the answer ends.
        told = json.loads(plain if self.parses else b"{" + plain[plain.rindex(b'"next":') :])
        return _PageEnd(told["next"], told["full"], told["at"])

    def close(self) -> None:
        """Let the connection go."""
        if self.way is not None:
            self.way[1].close()
            self.way = None

    async def _ask(self, path: str, kept: str | None = None) -> tuple[int, bytes]:
        """The status and the body of the answer. kept: the name under which its tag is kept; None: it is not."""
        known = f"If-None-Match: {self.tags[kept]}\r\n" if kept is not None and kept in self.tags else ""
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
        self, asked: str, kept: str | None, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[int, bytes]:
        writer.write(asked.encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
        body = await reader.readexactly(int(fields.get("content-length", "0")))
        self.size.packed += len(body)
        packed = fields.get("content-encoding") == "gzip"
        self.size.plain += int.from_bytes(body[-4:], "little") if packed else len(body)
        if kept is not None and "etag" in fields:
            self.tags[kept] = fields["etag"]
        return int(head[0].split()[1]), body


@dataclass(frozen=True)
class _PageEnd:
    """The fields that follow the items on a page of a numbered list."""

    next: str | None
    full: bool
    at: str


async def _connection(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = address.partition(":")
    return await asyncio.open_connection(host, int(port), limit=2**22)
