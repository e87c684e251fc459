"""How many disks there are, how many were read in time, and how many are expected to fail.

Only disks that are there count: those under the cluster's OSDs, or, while no cluster has been seen, those that
were heard of lately. A disk that was swapped stays in the store and in the list of devices, not in the sums.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from predrain.data.ids import DeviceId
from predrain.data.outlook import Outlook, Status
from predrain.service.fleet import FleetSnapshot

UNHEARD = timedelta(days=7)
"""Without a cluster to ask, a disk counts as long as it was read within this (or within four stale times):
long enough that a host's silence over a weekend still shows as disks that were not read."""
BACKGROUND = frozenset({"base-rate", "as-sata"})
"""Codes of reasons that say what a chance rests on, and nothing of the disk itself (models.explain)."""
WITHOUT_SYMPTOM = BACKGROUND | {"model-lately", "no-symptom", "not-reported"}
"""Codes of reasons that name no symptom (models.explain)."""


@dataclass(frozen=True, slots=True)
class FleetTally:
    """Sums over the disks that are there."""

    total: int
    fresh: int
    """Of them, those whose newest reading is not stale."""
    statuses: Mapping[Status, int]
    expected_30d: float | None
    """Failures expected within 30 days; None while no disk has a probability."""
    expected_silent_30d: float | None
    """Of them, those of disks that show no symptom now."""


def tally(sight: FleetSnapshot, now: datetime, stale_after: timedelta) -> FleetTally:
    """Count `sight` at `now`. A reading is stale once it is older than `stale_after`."""
    there, nameless = _there(sight, now - max(UNHEARD, 4 * stale_after))
    readings = [reading for device, reading in sight.readings.items() if device in there]
    outlooks = [
        outlook for device, outlook in sight.outlooks.items() if device in there and sight.is_living(device)
    ]
    judged = [(outlook, outlook.p_fail_30d) for outlook in outlooks if outlook.p_fail_30d is not None]
    return FleetTally(
        total=len(there) + nameless,
        fresh=sum(now - reading.taken_at <= stale_after for reading in readings),
        statuses=Counter(outlook.severity for outlook in outlooks),
        expected_30d=sum(p for _, p in judged) if judged else None,
        expected_silent_30d=sum(p for outlook, p in judged if silent(outlook)) if judged else None,
    )


def silent(outlook: Outlook) -> bool:
    """Whether nothing that the disk says speaks against it."""
    return all(reason.code in WITHOUT_SYMPTOM for reason in outlook.reasons)


def _there(sight: FleetSnapshot, heard_since: datetime) -> tuple[frozenset[DeviceId], int]:
    """The disks that are there, and how many more OSDs have a disk that the cluster does not name."""
    if sight.view is None:
        heard = (device for device, reading in sight.readings.items() if reading.taken_at >= heard_since)
        return frozenset(heard), 0
    devices = [osd.device for osd in sight.view.osds.values()]
    return frozenset(device for device in devices if device is not None), devices.count(None)
