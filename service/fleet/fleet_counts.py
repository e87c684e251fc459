"""Counts of disks: all, those read in time, and those expected to fail.

Only present disks count: those under the cluster's OSDs, or, before any view of the cluster, those that were read
lately. A swapped disk stays in the store and in the list of devices, but not in the sums.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Final

from predrain.data.ids import DeviceId
from predrain.data.outlook import Outlook, Status
from predrain.service.fleet.fleet import FleetSnapshot

UNHEARD = timedelta(days=7)
"""The time for which an unread disk counts as present if there is no cluster view (at least four times
`stale_after`). The time is long enough that a host's silence over a weekend still shows as unread disks.
"""
BACKGROUND = frozenset({"base-rate", "as-sata"})
"""Codes of reasons that describe the basis of a chance and not the disk itself (models.forecast.explanations)."""
WITHOUT_SYMPTOM = BACKGROUND | {"model-lately", "no-symptom", "not-reported"}
"""Codes of reasons that name no symptom (models.forecast.explanations)."""
# The sums are over all disks of a fleet, several times a second: no function of Python is called for each.
_GET_SEVERITY: Final = attrgetter("severity")
_GET_CHANCE: Final = attrgetter("p_fail_30d")
_GET_CODE: Final = attrgetter("code")


@dataclass(frozen=True, slots=True)
class FleetTally:
    """Sums over the present disks."""

    total: int
    fresh: int
    """The present disks whose newest reading is not stale."""
    statuses: Mapping[Status, int]
    expected_30d: float | None
    """Failures expected within 30 days; None if no disk has a probability."""
    expected_silent_30d: float | None
    """The part of `expected_30d` of disks that show no symptom now."""


def count_fleet_disks(snapshot: FleetSnapshot, now: datetime, stale_after: timedelta) -> FleetTally:
    """Count the disks of `snapshot` at `now`. A reading is stale once it is older than `stale_after`."""
    there, nameless = _find_present_disks(snapshot, now - max(UNHEARD, 4 * stale_after))
    fresh_since, lives = now - stale_after, snapshot.lives
    outlooks = [
        outlook
        for device, outlook in snapshot.outlooks.items()
        if device in there and (life := lives.get(device)) is not None and life.severity is not None
    ]
    judged = [outlook for outlook in outlooks if outlook.p_fail_30d is not None]
    silent = filter(has_no_symptom, judged)
    return FleetTally(
        total=len(there) + nameless,
        fresh=sum(
            reading.taken_at >= fresh_since
            for device, reading in snapshot.readings.items()
            if device in there
        ),
        statuses=Counter(map(_GET_SEVERITY, outlooks)),
        expected_30d=sum(map(_GET_CHANCE, judged)) if judged else None,
        expected_silent_30d=sum(map(_GET_CHANCE, silent)) if judged else None,
    )


def has_no_symptom(outlook: Outlook) -> bool:
    """Return whether no reason of the outlook names a symptom of the disk."""
    return WITHOUT_SYMPTOM.issuperset(map(_GET_CODE, outlook.reasons))


def _find_present_disks(snapshot: FleetSnapshot, heard_since: datetime) -> tuple[frozenset[DeviceId], int]:
    """Return the present disks, and the number of further OSDs whose disk the cluster does not name."""
    if snapshot.view is None:
        heard = (device for device, reading in snapshot.readings.items() if reading.taken_at >= heard_since)
        return frozenset(heard), 0
    devices = [osd.device for osd in snapshot.view.osds.values()]
    return frozenset(device for device in devices if device is not None), devices.count(None)
