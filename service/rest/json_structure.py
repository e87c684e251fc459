"""The structure of a JSON text, counted over its bytes while they arrive and before any object is built.

A parser turns two bytes (`1,`) into a pointer and an object of tens of bytes, so only the structure of a text shows the
memory that it takes. The counter is no parser. In a text that is not JSON it counts what a parser would build up to its
first error; the parser then reports the error.
"""

from __future__ import annotations

from dataclasses import dataclass

SLICE_BYTES = 1 << 16
"""The bytes that are counted without a pause: less than 2 ms of processor time for any content."""

_COMMA, _OPENERS = ord(","), b"[{"
_NOT_STRUCTURAL = bytes(byte for byte in range(256) if byte not in b"[]{},")


@dataclass(frozen=True, slots=True)
class StructureLimits:
    """The limits of one JSON text."""

    depth: int
    """Arrays and objects inside one another."""
    values: int
    """Numbers, strings, arrays and objects at all depths; an object's key counts with its value, and an
    empty array or object twice."""
    items: int
    """Members of the outermost array or object."""
    item_values: int
    """Values of one such member."""


@dataclass(frozen=True, slots=True)
class StructureExcess:
    """A limit that a text exceeds."""

    limit: str
    """As words for people: `32 levels of arrays and objects`."""
    divisible: bool
    """True if the same content passes in several texts."""


class StructureCounter:
    """Counts one text, which is fed in pieces of any size. Memory does not grow with the text."""

    def __init__(self, limits: StructureLimits) -> None:
        self._limits = limits
        self._in_string = False
        self._escape = b""
        """The backslash at the end of the last piece: the next piece begins with the escaped character."""
        self._depth = self._values = self._items = self._values_before_item = 0

    def feed(self, piece: bytes) -> StructureExcess | None:
        """Count `piece`. Return the limit that the text exceeds, or None."""
        for start in range(0, len(piece), SLICE_BYTES):
            if excess := self._count(piece[start : start + SLICE_BYTES]):
                return excess
        return None

    def _count(self, piece: bytes) -> StructureExcess | None:
        structural = self._structural(piece)
        limits = self._limits
        openers = structural.count(b"[") + structural.count(b"{")
        if self._values + openers + structural.count(b",") > limits.values:
            return StructureExcess(f"{limits.values:,} values", divisible=True)
        for byte in structural:
            if byte == _COMMA:
                self._values += 1
                if self._depth == 1:
                    self._items += 1
                    self._values_before_item = self._values
                    if self._items >= limits.items:
                        return StructureExcess(f"{limits.items:,} items", divisible=True)
                elif self._values - self._values_before_item > limits.item_values:
                    return StructureExcess(f"{limits.item_values:,} values in one item", divisible=False)
            elif byte in _OPENERS:
                self._values += 1
                self._depth += 1
                if self._depth > limits.depth:
                    return StructureExcess(f"{limits.depth} levels of arrays and objects", divisible=False)
            else:
                self._depth -= 1
        return None

    def _structural(self, piece: bytes) -> bytes:
        """Return the brackets, braces and commas of `piece` that are outside of strings."""
        piece = self._escape + piece
        backslashes = len(piece) - len(piece.rstrip(b"\\"))
        self._escape = b"\\" if backslashes % 2 else b""
        if self._escape:
            piece = piece[:-1]
        if b"\\" in piece:
            piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = piece.split(b'"')
        outside = b"".join(parts[int(self._in_string) :: 2])
        if len(parts) % 2 == 0:
            self._in_string = not self._in_string
        return outside.translate(None, _NOT_STRUCTURAL)
