"""The places of disks and OSDs by all that is known now, for events, which lack them."""

from __future__ import annotations

from predrain.service.events.event import CurrentPlaces
from predrain.service.fleet.fleet import FleetSnapshot


def find_current_places(snapshot: FleetSnapshot) -> CurrentPlaces:
    """Return the places of disks and OSDs. An ended disk has its last place."""
    osds = snapshot.view.osds.values() if snapshot.view is not None else ()
    lives = {device: life.change for device, life in snapshot.lives.items()}
    last_slots = {device: change.osds[0] for device, change in lives.items() if change.osds}
    last_hosts = {device: change.host for device, change in lives.items() if change.host is not None}
    return CurrentPlaces(
        {osd.id: osd.host for osd in osds},
        {osd.id: osd.device for osd in osds if osd.device is not None},
        last_slots | {device: of[0] for device, of in snapshot.osds_of().items() if of},
        last_hosts | {device: reading.host for device, reading in snapshot.readings.items()},
    )
