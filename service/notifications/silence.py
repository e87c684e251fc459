"""A silence: what a person does not want to hear of for a while, and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

from predrain.service.notifications.cause import AlertCause, CausePart


@dataclass(frozen=True, slots=True)
class Silence:
    """Covers points by cause, host, drive model and name; what is empty covers all. Patterns are the shell's."""

    id: str
    until: datetime
    by: str
    why: str
    cause: str = ""
    """Of the cause's key: `silent:*`, `disks:*`."""
    host: str = ""
    """Of the point's host, whether the cause is that host's alone or not; `model` likewise."""
    model: str = ""
    name: str = ""
    """Of the point's name: `disk:ST4000DM000*`, `part:worker`."""

    def covers(self, cause: AlertCause, point: CausePart) -> bool:
        """Whether `point` of `cause` is not to be told."""
        asked = (
            (self.cause, cause.key),
            (self.host, point.host or cause.host or ""),
            (self.model, point.model or cause.model or ""),
            (self.name, point.name),
        )
        return all(not pattern or fnmatchcase(value, pattern) for pattern, value in asked)
