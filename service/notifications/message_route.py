"""A route: the points of causes that one channel takes."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from predrain.service.notifications.cause import AlertCause, CausePart, Severity


@dataclass(frozen=True, slots=True)
class MessageRoute:
    """Takes points by severity, host and rack; an empty tuple takes all. Patterns are those of the shell.

    A point without a host or a rack, such as a halt, has an empty name, which only the pattern `*` takes.
    """

    min_severity: Severity = Severity.NOTICE
    hosts: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()

    def takes(self, cause: AlertCause, point: CausePart) -> bool:
        """Return whether the channel takes `point` of `cause`."""
        return (
            point.severity.reaches(self.min_severity)
            and is_name_matched(point.host or cause.host or "", self.hosts)
            and is_name_matched(point.rack or "", self.racks)
        )


def is_name_matched(name: str, patterns: tuple[str, ...]) -> bool:
    """Return whether one of the shell patterns fits `name`, or there is none."""
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
