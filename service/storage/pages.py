"""Whether the pages of the store's file are whole: at the start where that is quick, in the background every day."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from predrain.data.sqlite_file import find_damage
from predrain.data.store.faults import StoreUnreadable, describe_damage

CHECKED_AT_START: Final = 32 << 20
"""Bytes of a file that a start waits for: 0.1 s from memory, about 1 s from a slow disk."""


def check_pages(path: Path) -> None:
    """Raise StoreUnreadable where a page of the SQLite file `path` is damaged. A missing or held file passes."""
    if not path.is_file() or not path.stat().st_size:
        return
    try:
        damage = find_damage(path)
    except sqlite3.Error:
        return  # whoever opens it says what is in the way
    if damage is not None:
        raise StoreUnreadable(describe_damage(str(path), damage))


def check_small(path: Path) -> None:
    """The same for a file of which a start can wait; a larger one is left to the background."""
    if path.is_file() and path.stat().st_size <= CHECKED_AT_START:
        check_pages(path)


class PageCheck:
    """The daily look of a service that runs. What is damaged stays so until another file is put in its place."""

    def __init__(self, place: Path | str) -> None:
        """place: of the store; a database on a server looks after its own pages."""
        self._place = place
        self._damage: StoreUnreadable | None = None

    def run(self) -> None:
        """Look once. Raises StoreUnreadable, and the same again without a look once damage was found."""
        if self._damage is not None:
            raise self._damage
        if isinstance(self._place, str):
            return
        try:
            check_pages(self._place)
        except StoreUnreadable as damage:
            self._damage = damage
            raise
