"""The slots of a cluster: the drive in each slot, the slots that are out, and the days on which disks are
swapped.

Every slot is filled from the first day on. Before its drive comes, after the drive was removed alive, and
`SWAP_DAYS` after it died or was emptied, another disk of the model is there, about which nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from predrain.actions.cluster.cluster_view import Osd
from predrain.actions.cost_benefit.replay_input import DriveFates, DriveLayout, Ints
from predrain.data.ids import DeviceId, HostName, OsdId

SWAP_DAYS = 7


@dataclass(slots=True)
class OsdSlots:
    """The slots. OSD n is the slot of the n-th of `members`, which are numbers of drives."""

    members: Ints
    fates: DriveFates
    layout: DriveLayout
    happenings: Mapping[int, list[OsdId]]
    """Day -> OSDs whose drive comes, dies or leaves on it."""
    _osds: dict[OsdId, Osd] = field(default_factory=dict)
    _swaps: dict[OsdId, int] = field(default_factory=dict)
    """OSDs that are out, and the day on which another disk takes their place."""

    @classmethod
    def from_fates(cls, members: Ints, fates: DriveFates, layout: DriveLayout, first_day: int) -> OsdSlots:
        """Return the slots as they are on the first day."""
        happenings: dict[int, list[OsdId]] = {}
        for place, drive in enumerate(members):
            for day in {int(fates.first[drive]), _find_leaving_day(fates, int(drive))}:
                happenings.setdefault(day, []).append(OsdId(place))
        slots = cls(members, fates, layout, happenings)
        for place, drive in enumerate(members):
            there = fates.first[drive] <= first_day < _find_leaving_day(fates, int(drive))
            slots._plug(OsdId(place), str(fates.devices[drive]) if there else f"other than {drive}")
        return slots

    def osds(self) -> dict[OsdId, Osd]:
        """Return the OSDs as a view shows them."""
        return dict(self._osds)

    def drive(self, osd: OsdId) -> int:
        """Return the number of the drive that the slot is for."""
        return int(self.members[osd])

    def device(self, osd: OsdId) -> DeviceId:
        """Return the device id of the drive that the slot is for."""
        return DeviceId(str(self.fates.devices[self.members[osd]]))

    def has_fatal_end(self, osd: OsdId) -> bool:
        """Return whether the life of the slot's drive ends by death."""
        return bool(self.fates.died[self.members[osd]])

    def used_bytes(self, osd: OsdId) -> int:
        """Return the bytes on the slot's drive before anything is moved."""
        return int(self.layout.used_bytes[self.members[osd]])

    def is_serving(self, osd: OsdId) -> bool:
        """Return whether the drive itself is in its slot, and in."""
        return osd not in self._swaps and self._osds[osd].device == self.device(osd)

    def swapped_on(self, day: int) -> list[OsdId]:
        """Put another disk into each slot that has been out for `SWAP_DAYS`. Return these slots."""
        due = [osd for osd, on in self._swaps.items() if on <= day]
        for osd in due:
            del self._swaps[osd]
            self._plug(osd, f"swapped in on {day} for {self.members[osd]}")
        return due

    def happening_on(self, day: int) -> list[OsdId]:
        """Put arriving drives into their slots. Return the serving ones whose drives die or are removed on
        this day.
        """
        ends: list[OsdId] = []
        for osd in self.happenings.get(day, ()):
            drive = self.drive(osd)
            if day == self.fates.first[drive] and day < _find_leaving_day(self.fates, drive):
                self._plug(osd, self.device(osd))
            elif self.is_serving(osd):
                ends.append(osd)
        return ends

    def mark_out(self, osd: OsdId, day: int, *, up: bool) -> None:
        """Mark an OSD out whose drive is dead (not up) or empty, until another disk takes its place."""
        self._osds[osd] = replace(self._osds[osd], up=up, reweight=0.0)
        self._swaps[osd] = day + SWAP_DAYS

    def replace_taken_drive(self, osd: OsdId) -> None:
        """Put another disk at once into the slot of a drive that was removed alive."""
        self._plug(osd, f"next after {self.members[osd]}")

    def _plug(self, osd: OsdId, device: str) -> None:
        drive = self.drive(osd)
        self._osds[osd] = Osd(
            id=osd,
            host=HostName(f"host-{self.layout.host[drive]}"),
            rack=f"rack-{self.layout.rack[drive]}",
            device=DeviceId(device),
            up=True,
            reweight=1.0,
            crush_weight=1.0,
            size_bytes=int(self.layout.size_bytes[drive]),
            used_bytes=int(self.layout.used_bytes[drive]),
            model=str(self.fates.models[drive]),
        )


def _find_leaving_day(fates: DriveFates, drive: int) -> int:
    """Return the first day on which the drive no longer serves: that of its death, or the day after its last
    reading.
    """
    last = int(fates.last[drive])
    return last if fates.died[drive] else last + 1
