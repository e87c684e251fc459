"""What an attack came to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Tally:
    """Invariant: tried == refused + got_through."""

    attack: str
    refused: int = 0
    got_through: int = 0

    @property
    def tried(self) -> int:
        """How often it was tried."""
        return self.refused + self.got_through

    def count(self, *, refused: bool) -> None:
        """One more try."""
        if refused:
            self.refused += 1
        else:
            self.got_through += 1
