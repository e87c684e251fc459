"""The port of the store for the notifier's memory of what was sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class NoteStore(Protocol):
    """Small values that are remembered by name (data.store.store_port.Store)."""

    def read_notes(self, room: str) -> Mapping[str, bytes]:
        """Return all notes in `room`, by name."""
        ...

    def write_notes(self, room: str, changes: Mapping[str, bytes | None]) -> None:
        """Write notes, or delete those with None, in one transaction."""
        ...
