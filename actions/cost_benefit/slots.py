"""The slots of a cluster: which drive serves in each, which are out, and when another disk is in their place.

Every slot is filled from the first day on: before its drive comes, after it was taken away alive, and `SWAP_DAYS` after
it died or was emptied, another disk of the model is there, of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from predrain.actions.cluster.view import Osd
from predrain.actions.cost_benefit.given import Fates, Ints, Layout
from predrain.data.ids import DeviceId, HostName, OsdId

SWAP_DAYS = 7


@dataclass(slots=True)
class Slots:
    """OSD n is the slot of the n-th of `members`, which are numbers of drives."""

    members: Ints
    fates: Fates
    layout: Layout
    happenings: Mapping[int, list[OsdId]]
    """Day -> OSDs whose drive comes, dies or goes on it."""
    _osds: dict[OsdId, Osd] = field(default_factory=dict)
    _swaps: dict[OsdId, int] = field(default_factory=dict)
    """OSDs that are out, and the day on which another disk is in their place."""

    @classmethod
    def of(cls, members: Ints, fates: Fates, layout: Layout, first_day: int) -> Slots:
        """The slots as they stand on the first day."""
        happenings: dict[int, list[OsdId]] = {}
        for place, drive in enumerate(members):
            for day in {int(fates.first[drive]), _leaves(fates, int(drive))}:
                happenings.setdefault(day, []).append(OsdId(place))
        slots = cls(members, fates, layout, happenings)
        for place, drive in enumerate(members):
            there = fates.first[drive] <= first_day < _leaves(fates, int(drive))
            slots._plug(OsdId(place), str(fates.devices[drive]) if there else f"other than {drive}")
        return slots

    def osds(self) -> dict[OsdId, Osd]:
        """The OSDs as a view shows them."""
        return dict(self._osds)

    def drive(self, osd: OsdId) -> int:
        """Number of the drive that the slot is for."""
        return int(self.members[osd])

    def device(self, osd: OsdId) -> DeviceId:
        """Its name."""
        return DeviceId(str(self.fates.devices[self.members[osd]]))

    def died(self, osd: OsdId) -> bool:
        """Whether its life ends by death."""
        return bool(self.fates.died[self.members[osd]])

    def used_bytes(self, osd: OsdId) -> int:
        """What it holds before anything is moved."""
        return int(self.layout.used_bytes[self.members[osd]])

    def serves(self, osd: OsdId) -> bool:
        """Whether the drive itself is in its slot, and in."""
        return osd not in self._swaps and self._osds[osd].device == self.device(osd)

    def swapped_on(self, day: int) -> list[OsdId]:
        """Put another disk where one has been out for long enough; which slots these are."""
        due = [osd for osd, on in self._swaps.items() if on <= day]
        for osd in due:
            del self._swaps[osd]
            self._plug(osd, f"swapped in on {day} for {self.members[osd]}")
        return due

    def happening_on(self, day: int) -> list[OsdId]:
        """Put drives that come into their slots; of those that serve, which ones die or are taken away."""
        ends: list[OsdId] = []
        for osd in self.happenings.get(day, ()):
            drive = self.drive(osd)
            if day == self.fates.first[drive] and day < _leaves(self.fates, drive):
                self._plug(osd, self.device(osd))
            elif self.serves(osd):
                ends.append(osd)
        return ends

    def out(self, osd: OsdId, day: int, *, up: bool) -> None:
        """Its drive is dead (not up) or empty: out until another disk is in its place."""
        self._osds[osd] = replace(self._osds[osd], up=up, reweight=0.0)
        self._swaps[osd] = day + SWAP_DAYS

    def taken(self, osd: OsdId) -> None:
        """Its drive was taken away alive; another disk is in its place at once."""
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


def _leaves(fates: Fates, drive: int) -> int:
    """The day from which on the drive serves no more: of its death, or after its last reading."""
    last = int(fates.last[drive])
    return last if fates.died[drive] else last + 1
