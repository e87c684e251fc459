"""Check the pages of the store's file: at the start if that is quick, in the background every day."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from predrain.data.sqlite_file import find_damage
from predrain.data.store.store_faults import StoreUnreadable, describe_damage

CHECKED_AT_START: Final = 32 << 20
"""Bytes of a file for which a start waits: 0.1 s from memory, about 1 s from a slow disk."""


def check_pages(path: Path) -> None:
    """Raise StoreUnreadable if a page of the SQLite file `path` is damaged. A missing or locked file passes."""
    if not path.is_file() or not path.stat().st_size:
        return
    try:
        damage = find_damage(path)
    except sqlite3.Error:
        return  # the code that opens the file reports the obstacle
    if damage is not None:
        raise StoreUnreadable(describe_damage(str(path), damage))


def check_small(path: Path) -> None:
    """Check like `check_pages`, but only a file for which a start can wait; a larger one is checked in the
    background.
    """
    if path.is_file() and path.stat().st_size <= CHECKED_AT_START:
        check_pages(path)


class PageCheck:
    """The daily check of a running service. A damaged file counts as damaged until it is replaced."""

    def __init__(self, place: Path | str) -> None:
        """place: of the store; a database on a server checks its own pages."""
        self._place = place
        self._damage: StoreUnreadable | None = None

    def run(self) -> None:
        """Check once. Raises StoreUnreadable, also without a check once damage was found."""
        if self._damage is not None:
            raise self._damage
        if isinstance(self._place, str):
            return
        try:
            check_pages(self._place)
        except StoreUnreadable as damage:
            self._damage = damage
            raise
