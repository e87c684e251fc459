"""Where what was told is remembered: what the teller asks of a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Notes(Protocol):
    """Small things that are remembered by name (data.store.port.Store)."""

    def notes(self, room: str) -> Mapping[str, bytes]:
        """All that is noted in `room`, by name."""
        ...

    def note(self, room: str, changes: Mapping[str, bytes | None]) -> None:
        """Note, or with None forget, in one transaction."""
        ...
