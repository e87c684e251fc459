"""The mgr's devicehealth: it keeps published life expectancies, and with `self_heal` outs a disk for a short one.

As seen (ceph.md e): every ten minutes, below four weeks, in one step, its primary affinity to 0 as well; withdrawing
the life afterwards leaves both as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from predrain.actions.simulator.events import Timeline
from predrain.data.ids import DeviceId, OsdId

_LOOKS_EVERY_SECONDS = 600.0
_OUT_BELOW = timedelta(weeks=4)


class DeviceHealth:
    """Lives by device. `now`: the simulation's time; `osds`: those on a device; `throw_out`: at once."""

    def __init__(
        self,
        timeline: Timeline,
        now: Callable[[], datetime],
        osds: Callable[[DeviceId], tuple[OsdId, ...]],
        throw_out: Callable[[OsdId], None],
        *,
        self_heal: bool,
    ) -> None:
        self.self_heal = self_heal
        self._timeline, self._now, self._osds, self._throw_out = timeline, now, osds, throw_out
        self._lives: dict[DeviceId, tuple[datetime, datetime | None]] = {}
        self._looking = False

    @property
    def lives(self) -> Mapping[DeviceId, tuple[datetime, datetime | None]]:
        """What is published: from, to."""
        return dict(self._lives)

    def publish(self, device: DeviceId, start: datetime, end: datetime | None) -> str:
        """Keep a life, whoever says it."""
        if not self._osds(device):
            return f"Error ENOENT: device {device} not found"
        self._lives[device] = (start, end)
        if not self._looking:
            self._looking = True
            self._timeline.after(_LOOKS_EVERY_SECONDS, self._look)
        return ""

    def withdraw(self, device: DeviceId) -> str:
        """Forget a life."""
        self._lives.pop(device, None)
        return ""

    def _look(self) -> None:
        self._looking = bool(self._lives)
        if not self._looking:
            return
        self._timeline.after(_LOOKS_EVERY_SECONDS, self._look)
        for device, (_, end) in self._lives.items():
            if self.self_heal and end is not None and end - self._now() < _OUT_BELOW:
                for osd in self._osds(device):
                    self._throw_out(osd)
