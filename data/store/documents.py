"""Documents as the store keeps them: the JSON of data.wire.bodies, compressed to a third, and as it ever was kept."""

from __future__ import annotations

import hashlib
import zlib
from threading import local
from typing import Final, Generic, TypeVar

import zstandard

from predrain.data.wire import bodies
from predrain.data.wire.bodies import BodyCodec
from predrain.data.wire.shape import Misshapen

T = TypeVar("T")

LONGEST: Final = 64 << 20
"""Bytes of a document; damaged ones may claim any number."""
_LEVEL: Final = 1
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_ZLIB: Final = b"x"


def digest(document: bytes) -> bytes:
    """The SHA-256 by which a document is known to be what was written."""
    return hashlib.sha256(document).digest()


class _Mine(local):
    """Neither may be used by two threads at once."""

    def __init__(self) -> None:
        # Four bytes a document: else a flipped bit may come back as another reading.
        self.packer = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        self.unpacker = zstandard.ZstdDecompressor()


_mine = _Mine()


class Document(Generic[T]):
    """Values of one kind as compressed documents and back. Both raise Misshapen."""

    def __init__(self, body: BodyCodec[T]) -> None:
        self._body = body

    def write(self, value: T) -> bytes:
        """The document of `value`."""
        return packed(self._body.write(value))

    def read(self, raw: bytes) -> T:
        """The value of a document, of this release or any earlier one."""
        return self._body.read(unpacked(raw))


def packed(plain: bytes) -> bytes:
    """Bytes as they are kept: one frame of zstd."""
    return _mine.packer.compress(plain)


def unpacked(raw: bytes) -> bytes:
    """What is kept in `raw`: by zstd, by zlib (histories up to version 4) or plain (what was newest of a device up to
    version 4). Raises Misshapen."""
    try:
        if raw.startswith(_ZSTD):
            if zstandard.frame_content_size(raw) > LONGEST:
                raise Misshapen("it cannot be unpacked (it claims to be longer than any)")
            return _mine.unpacker.decompress(raw, LONGEST)
        return zlib.decompress(raw) if raw.startswith(_ZLIB) else raw
    except (zstandard.ZstdError, zlib.error) as error:
        raise Misshapen(f"it cannot be unpacked ({error})") from error


READING: Final = Document(bodies.READING)
OUTLOOK: Final = Document(bodies.OUTLOOK)
DRAIN: Final = Document(bodies.DRAIN)
