"""Strict reading of JSON from outside. Every field has a type and bounds; one invalid field rejects the whole
document.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .service_requests import sanitize_line


class InvalidField(Exception):
    """A field is missing or invalid. The text names the field."""


class Fields:
    """The fields of one JSON object. `where` names the object in error texts. Each method raises InvalidField."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise InvalidField(f"{where} is no object")
        self._value, self._where = value, where

    def text(self, name: str, most: int = 300) -> str:
        """Return a text, sanitized for a terminal and cut at `most` letters."""
        found = self._value.get(name)
        if not isinstance(found, str):
            raise self._wrong(name, "no text")
        return sanitize_line(found, most)

    def maybe_text(self, name: str, most: int = 300) -> str | None:
        """Return a text, or None if the field is null or missing."""
        return None if self._value.get(name) is None else self.text(name, most)

    def exact_text(self, name: str, most: int) -> str:
        """Return a text of at most `most` letters unchanged, because it will be sent back. Reject one that needs
        sanitizing.
        """
        found = self._value.get(name)
        if not isinstance(found, str) or len(found) > most or not found.isprintable():
            raise self._wrong(name, f"no text of at most {most} plain letters")
        return found

    def one_of(self, name: str, known: Sequence[str]) -> str:
        """Return a word of a closed list."""
        found = self._value.get(name)
        if not isinstance(found, str) or found not in known:
            raise self._wrong(name, "not one of " + ", ".join(known))
        return found

    def whole_number(self, name: str, low: int, high: int) -> int:
        """Return a whole number in [low, high]."""
        found = self._value.get(name)
        if not isinstance(found, int) or isinstance(found, bool) or not low <= found <= high:
            raise self._wrong(name, f"no whole number from {low} to {high}")
        return found

    def number(self, name: str, low: float, high: float) -> float:
        """Return a finite number in [low, high]."""
        found = self._value.get(name)
        if not isinstance(found, (int, float)) or isinstance(found, bool) or not math.isfinite(found):
            raise self._wrong(name, "no number")
        if not low <= found <= high:
            raise self._wrong(name, f"not from {low} to {high}")
        return float(found)

    def maybe_number(self, name: str, low: float, high: float) -> float | None:
        """Return a finite number, or None (unknown) if the field is null or missing."""
        return None if self._value.get(name) is None else self.number(name, low, high)

    def inner(self, name: str) -> Fields:
        """Return a nested object."""
        return Fields(self._value.get(name), f"{name} of {self._where}")

    def maybe_inner(self, name: str) -> Fields | None:
        """Return a nested object, or None if the field is null or missing."""
        return None if self._value.get(name) is None else self.inner(name)

    def rows(self, name: str, most: int) -> list[Fields]:
        """Return a list of objects."""
        return [Fields(row, f"{name} {at} of {self._where}") for at, row in enumerate(self._list(name, most))]

    def maybe_rows(self, name: str, most: int) -> list[Fields]:
        """Return a list of objects; an empty one if the field is null or missing."""
        return [] if self._value.get(name) is None else self.rows(name, most)

    def texts(self, name: str, most: int, letters: int = 300) -> list[str]:
        """Return a list of texts."""
        found = self._list(name, most)
        if not all(isinstance(one, str) for one in found):
            raise self._wrong(name, "no list of texts")
        return [sanitize_line(one, letters) for one in found]

    def whole_numbers(self, name: str, most: int) -> list[int]:
        """Return a list of whole numbers that are not negative."""
        found = self._list(name, most)
        if not all(
            isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 1 << 31 for one in found
        ):
            raise self._wrong(name, "no list of ids")
        return list(found)

    def _list(self, name: str, most: int) -> list[Any]:
        found = self._value.get(name)
        if not isinstance(found, list) or len(found) > most:
            raise self._wrong(name, f"no list of at most {most}")
        return found

    def _wrong(self, name: str, what: str) -> InvalidField:
        return InvalidField(f"{name} of {self._where} is {what}")
