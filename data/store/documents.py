"""Documents as the store keeps them: the JSON of data.wire.wire_bodies, compressed by zstd, and all older forms.

Readings and outlooks are many and alike, so they are compressed with a dictionary: the names and sentences that nearly
all of them have. A frame names its dictionary by number. The file of a dictionary never changes, and stays in the
package for as long as a store may hold a document that needs it. A new dictionary gets the next number and a new
version of the store (decision 0053).
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from functools import cache
from pathlib import Path
from threading import local
from typing import Final, Generic, TypeVar

import msgspec
import zstandard

from predrain.data.outlook import Outlook, SurvivalCurve
from predrain.data.wire import wire_bodies
from predrain.data.wire.strict_json import InvalidValue, JsonShape
from predrain.data.wire.wire_bodies import BodyCodec

T = TypeVar("T")

LONGEST: Final = 64 << 20
"""Bytes of a document; damaged ones may claim any number."""
NO_DICTIONARY: Final = 0
"""The number by which a frame of zstd says that it needs no dictionary."""
NEWEST_DICTIONARY: Final = 1
_DICTIONARIES: Final = Path(__file__).with_name("dictionaries")
_LEVEL: Final = {NO_DICTIONARY: 1, NEWEST_DICTIONARY: 3}
"""Level 3 makes a reading with a dictionary 3 % smaller than level 1, in the same time."""
_CURVE: Final = b"\xc5crv"
"""The first bytes of an outlook with its survival curve. The curve follows, then the document without the curve."""
_CURVE_HEAD: Final = struct.Struct("<4sIH")
"""`_CURVE`, the CRC-32 of the points, and their number. Each point is a C float, in the order of amd64 and arm64."""
_POINT_BYTES: Final = 4
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_ZLIB: Final = b"x"


def compute_document_digest(document: bytes) -> bytes:
    """Return the SHA-256 that shows that a document is the one that was written."""
    return hashlib.sha256(document).digest()


@cache
def _load_dictionary(number: int, level: int | None = None) -> zstandard.ZstdCompressionDict | None:
    """Return the dictionary of that number, None for NO_DICTIONARY. Raises InvalidValue if it is not known here.

    level: that of the compressors that use it; None for decompressors.
    """
    if number == NO_DICTIONARY:
        return None
    if number > NEWEST_DICTIONARY:
        raise InvalidValue(
            f"it needs dictionary {number}, and this predrain knows dictionaries up to {NEWEST_DICTIONARY}:"
            " update predrain"
        )
    found = zstandard.ZstdCompressionDict((_DICTIONARIES / f"{number}.zstd-dictionary").read_bytes())
    if level is not None:
        found.precompute_compress(level=level)
    return found


class _Mine(local):
    """The compressors and decompressors of one thread, by dictionary: two threads must not use either at once."""

    def __init__(self) -> None:
        self._packers: dict[int, zstandard.ZstdCompressor] = {}
        self._unpackers: dict[int, zstandard.ZstdDecompressor] = {}

    def get_packer(self, number: int) -> zstandard.ZstdCompressor:
        """Return the compressor with a dictionary."""
        found = self._packers.get(number)
        if found is None:
            level = _LEVEL[number]
            # Four bytes for each document: otherwise a flipped bit may come back as another reading.
            found = self._packers[number] = zstandard.ZstdCompressor(
                level=level, dict_data=_load_dictionary(number, level), write_checksum=True
            )
        return found

    def get_unpacker(self, number: int) -> zstandard.ZstdDecompressor:
        """Return the decompressor with a dictionary. Raises InvalidValue if the dictionary is not known here."""
        if number not in self._unpackers:
            self._unpackers[number] = zstandard.ZstdDecompressor(dict_data=_load_dictionary(number))
        return self._unpackers[number]


_mine = _Mine()


class Document(Generic[T]):
    """Converts values of one kind to compressed documents and back. Both methods raise InvalidValue."""

    def __init__(self, body: BodyCodec[T], dictionary: int = NO_DICTIONARY) -> None:
        self._body, self._dictionary = body, dictionary

    def write(self, value: T) -> bytes:
        """Return the document of `value`."""
        return compress_document(self._body.write(value), self._dictionary)

    def read(self, raw: bytes) -> T:
        """Return the value of a document, of this release or any earlier one."""
        return self._body.read(decompress_document(raw))


class OutlookDocument(Document[Outlook]):
    """Converts outlooks: to documents with their survival curve, and to those of a history without it.

    The points of a curve are bytes before the document: as 4 kB of digits they took 55 us to write, 46 us to read and
    980 B more (decision 0077). Up to version 11 they were digits, and are read as before.
    """

    def __init__(self, shape: JsonShape[Outlook], dictionary: int) -> None:
        super().__init__(shape, dictionary)
        self._shape = shape

    def write(self, value: Outlook) -> bytes:
        """Return the document of `value` with its curve."""
        return add_curve(self.write_past(value), value.survival)

    def write_past(self, outlook: Outlook) -> bytes:
        """Return the document without the curve, as a history keeps it. Raises InvalidValue."""
        form = self._shape.build_form(outlook)
        if outlook.survival is not None:
            form = msgspec.structs.replace(form, survival=None)
        return compress_document(self._shape.write_form(form), self._dictionary)

    def read(self, raw: bytes) -> Outlook:
        """Return the outlook of a document, of this release or any earlier one."""
        past, curve = split_curve(raw)
        plain = decompress_document(past)
        return self._shape.read(plain) if curve is None else self._shape.read(plain, survival=curve)


def add_curve(past: bytes, curve: SurvivalCurve | None) -> bytes:
    """Return the document of an outlook with its curve, made of the document without the curve."""
    if curve is None:
        return past
    points = curve.pack_failure_chances()
    return _CURVE_HEAD.pack(_CURVE, zlib.crc32(points), len(curve)) + points + past


def split_curve(raw: bytes) -> tuple[bytes, SurvivalCurve | None]:
    """Return an outlook's document without the curve, and the curve if it was beside it. Raises InvalidValue."""
    if not raw.startswith(_CURVE):
        return raw, None
    try:
        _, crc, count = _CURVE_HEAD.unpack_from(raw)
    except struct.error as error:
        raise InvalidValue(f"it cannot be unpacked ({error})") from error
    end = _CURVE_HEAD.size + count * _POINT_BYTES
    points = raw[_CURVE_HEAD.size : end]
    if zlib.crc32(points) != crc:
        raise InvalidValue("it cannot be unpacked (its survival curve is damaged)")
    return raw[end:], SurvivalCurve.from_failure_chances(points)


def compress_document(plain: bytes, dictionary: int = NO_DICTIONARY) -> bytes:
    """Compress bytes into one frame of zstd, as they are stored."""
    return _mine.get_packer(dictionary).compress(plain)


def decompress_document(raw: bytes) -> bytes:
    """Return the content of `raw`. Raises InvalidValue.

    `raw` has no curve before it (`split_curve`). It is packed by zstd (up to version 10 without a dictionary), by zlib
    (histories up to version 4) or plain (a device's newest rows up to version 4).
    """
    try:
        if raw.startswith(_ZSTD):
            frame = zstandard.get_frame_parameters(raw)
            if LONGEST < frame.content_size != zstandard.CONTENTSIZE_UNKNOWN:
                raise InvalidValue("it cannot be unpacked (it claims to be longer than any)")
            return _mine.get_unpacker(frame.dict_id).decompress(raw, LONGEST)
        return zlib.decompress(raw) if raw.startswith(_ZLIB) else raw
    except (zstandard.ZstdError, zlib.error) as error:
        raise InvalidValue(f"it cannot be unpacked ({error})") from error


READING: Final = Document(wire_bodies.READING, NEWEST_DICTIONARY)
OUTLOOK: Final = OutlookDocument(wire_bodies.OUTLOOK, NEWEST_DICTIONARY)
DRAIN: Final = Document(wire_bodies.DRAIN)
