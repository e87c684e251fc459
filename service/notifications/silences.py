"""A silence: the notifications that a person does not want for a while, and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

from predrain.service.notifications.cause import AlertCause, CausePart


@dataclass(frozen=True, slots=True)
class Silence:
    """Covers points by cause, host, drive model and name; an empty field covers all. Patterns are those of the
    shell.
    """

    id: str
    until: datetime
    by: str
    why: str
    cause: str = ""
    """A pattern for the cause's key: `silent:*`, `disks:*`."""
    host: str = ""
    """A pattern for the point's host, even if the cause affects other hosts too; `model` likewise."""
    model: str = ""
    name: str = ""
    """A pattern for the point's name: `disk:ST4000DM000*`, `part:worker`."""

    def covers(self, cause: AlertCause, point: CausePart) -> bool:
        """Return whether `point` of `cause` is silenced."""
        asked = (
            (self.cause, cause.key),
            (self.host, point.host or cause.host or ""),
            (self.model, point.model or cause.model or ""),
            (self.name, point.name),
        )
        return all(not pattern or fnmatchcase(value, pattern) for pattern, value in asked)
