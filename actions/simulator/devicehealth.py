"""The mgr's devicehealth module: it stores published life expectancies, and with `self_heal` outs a disk for
a short one.

As observed (ceph.md e): it checks every 10 min and acts below 4 weeks. In one step it outs the OSD and sets
its primary affinity to 0. Withdrawing the life expectancy later does not restore either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from predrain.actions.simulator.event_queue import Timeline
from predrain.data.ids import DeviceId, OsdId

_LOOKS_EVERY_SECONDS = 600.0
_OUT_BELOW = timedelta(weeks=4)


class DeviceHealth:
    """Life expectancies by device.

    now: returns the simulation's time. osds: returns the OSDs on a device. throw_out: outs an OSD at once.
    """

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
        """Return the published life expectancies: from, to."""
        return dict(self._lives)

    def publish(self, device: DeviceId, start: datetime, end: datetime | None) -> str:
        """Store a life expectancy from any sender. Return an error text, or an empty one."""
        if not self._osds(device):
            return f"Error ENOENT: device {device} not found"
        self._lives[device] = (start, end)
        if not self._looking:
            self._looking = True
            self._timeline.schedule_after(_LOOKS_EVERY_SECONDS, self._look)
        return ""

    def withdraw(self, device: DeviceId) -> str:
        """Remove a life expectancy. Return an empty text."""
        self._lives.pop(device, None)
        return ""

    def _look(self) -> None:
        self._looking = bool(self._lives)
        if not self._looking:
            return
        self._timeline.schedule_after(_LOOKS_EVERY_SECONDS, self._look)
        for device, (_, end) in self._lives.items():
            if self.self_heal and end is not None and end - self._now() < _OUT_BELOW:
                for osd in self._osds(device):
                    self._throw_out(osd)
