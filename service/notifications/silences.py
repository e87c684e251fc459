"""A silence: the notifications that a person does not want for a while, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

from predrain.data.ids import DeviceId
from predrain.data.reading import Reading, Smart
from predrain.service.notifications.cause import AlertCause, AlertSnapshot, CausePart, Severity

DISK_POINTS = ("disk", "hot", "unreadable", "twice")
"""The kinds of points that are disks: the first part of the point's name."""


@dataclass(frozen=True, slots=True)
class Silence:
    """Covers points by cause, host, drive model, name, rack and severity; an empty field covers all. Patterns are those
    of the shell.
    """

    id: str
    until: datetime
    by: str
    why: str
    cause: str = ""
    """A pattern for the cause's key: `silent:*`, `disks:*`."""
    host: str = ""
    """A pattern for the point's host, even if the cause affects other hosts too; `model` and `rack` likewise."""
    model: str = ""
    name: str = ""
    """A pattern for the point's name: `disk:ST4000DM000*`, `part:worker`."""
    rack: str = ""
    severity: Severity | None = None
    """The severity of the point; None: both. A notice that becomes urgent is no longer covered."""

    def covers(self, cause: AlertCause, point: CausePart) -> bool:
        """Return whether `point` of `cause` is silenced."""
        asked = (
            (self.cause, cause.key),
            (self.host, point.host or cause.host or ""),
            (self.model, point.model or cause.model or ""),
            (self.name, point.name),
            (self.rack, point.rack or ""),
        )
        return (self.severity is None or point.severity is self.severity) and all(
            not pattern or fnmatchcase(value, pattern) for pattern, value in asked
        )

    def covers_disk(self, reading: Reading, rack: str | None) -> bool:
        """Return whether any message about this disk would be silenced, of any cause."""
        model = reading.seen.identity.model if isinstance(reading.seen, Smart) else None
        asked = ((self.host, reading.host), (self.model, model or ""), (self.rack, rack or ""))
        names = [f"{kind}:{reading.device}" for kind in DISK_POINTS]
        return (
            not self.cause
            and self.severity is None
            and all(not pattern or fnmatchcase(value, pattern) for pattern, value in asked)
            and (not self.name or any(fnmatchcase(name, self.name) for name in names))
        )


@dataclass(frozen=True, slots=True)
class SilencePreview:
    """The points and disks that a silence would cover now."""

    points: tuple[tuple[AlertCause, CausePart], ...]
    """Points of present causes."""
    disks: tuple[DeviceId, ...]
    """Disks about which no message would be sent: those of the points, and those that the patterns name while nothing
    is wrong with them.
    """


def preview_silence(
    silence: Silence, snapshot: AlertSnapshot, causes: Sequence[AlertCause]
) -> SilencePreview:
    """Return what `silence` would cover of `causes` and of the disks of the snapshot."""
    points = tuple(
        (cause, point) for cause in causes for point in cause.points if silence.covers(cause, point)
    )
    named = {point.name for _, point in points}
    racks = snapshot.fleet.racks_of_hosts()
    disks = [
        device
        for device, reading in sorted(snapshot.fleet.readings.items())
        if snapshot.fleet.is_living(device)
        and (
            any(f"{kind}:{device}" in named for kind in DISK_POINTS)
            or silence.covers_disk(reading, racks.get(reading.host))
        )
    ]
    return SilencePreview(points, tuple(disks))
