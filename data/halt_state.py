"""A halt that is in force: its author and its reason."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class HaltAuthor(StrEnum):
    """The author of a halt."""

    PERSON = "person"
    """A person set the halt, here or in the cluster, and only a person lifts it."""
    NOBODY = "nobody"
    """Whether the cluster has a halt is not known, so nothing is sent. This ends by itself when the cluster answers."""


@dataclass(frozen=True, slots=True)
class Halt:
    """A halt that is in force. Programs read `author`; people read `reason`."""

    author: HaltAuthor
    reason: str

    @property
    def is_transient(self) -> bool:
        """True if the halt ends by itself: the cluster does not answer, and no person is known to have set one."""
        return self.author is HaltAuthor.NOBODY


def halt_by_person(reason: str | None) -> Halt | None:
    """Return the halt that a person set for the reason, or None if there is no reason and so no halt."""
    return None if reason is None else Halt(HaltAuthor.PERSON, reason)
