"""The disks that were in a slot, from the record of their lives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from predrain.data.ids import DeviceId, OsdId
from predrain.data.life_cycle import LifeChange, LifeState
from predrain.data.store.store_port import Store
from predrain.service.fleet.fleet import FleetSnapshot


@dataclass(frozen=True, slots=True)
class SlotStay:
    """The stay of one disk in one slot. `changes`: the changes of its life during the stay and its end, oldest
    first.
    """

    device: DeviceId
    since: datetime | None
    """None: the stay began before the record."""
    until: datetime | None
    """None: the disk is still there."""
    changes: tuple[LifeChange, ...]


def read_stays(store: Store, snapshot: FleetSnapshot, osd: OsdId) -> tuple[SlotStay, ...]:
    """Return the stays of disks in the slot of an OSD, the present disk first, then from the newest to the
    oldest.

    Raises what the store raises.
    """
    now = {device: life.change for device, life in snapshot.lives.items() if osd in life.change.osds}
    devices = now.keys() | {change.device for change in store.read_life_changes(osd=osd)}
    stays: list[SlotStay] = []
    for device in sorted(devices):
        changes = list(reversed(store.read_life_changes(device=device)))
        newest = snapshot.lives[device].change if device in snapshot.lives else None
        if newest is not None and newest not in changes:
            changes.append(newest)  # not recorded yet
        stays += find_stays(osd, changes)
    return tuple(sorted(stays, key=lambda stay: (stay.until is None, stay.changes[-1].at), reverse=True))


def find_stays(osd: OsdId, changes: Iterable[LifeChange]) -> Sequence[SlotStay]:
    """Return the stays of one disk in the slot. changes: of its life, oldest first.

    A failed disk stays in its slot until it is retired.
    """
    stays: list[SlotStay] = []
    for change in changes:
        names_slot = osd in change.osds
        is_there = names_slot and change.state is not LifeState.RETIRED
        last = stays[-1] if stays else None
        if last is None or (is_there and last.until is not None):
            if is_there:
                stays.append(SlotStay(change.device, change.at, None, (change,)))
            elif names_slot:
                stays.append(SlotStay(change.device, None, change.at, (change,)))
            continue
        stays[-1] = replace(
            last,
            until=last.until or (None if is_there else change.at),
            changes=(*last.changes, change) if names_slot else last.changes,
        )
    return stays
