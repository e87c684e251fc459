"""Hard disks that are too hot: on one host a fan fails, in one rack its cooling, in several racks that of the
room.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from urllib.parse import quote

from predrain.data.reading import Reading, Smart
from predrain.service.notifications.cause import (
    AlertCause,
    AlertCauseKind,
    AlertSnapshot,
    CausePart,
    Severity,
)

HOT_C = 55
"""Makers of hard disks allow 60 °C while they run. Flash is not judged, since it may be far hotter."""
SEVERAL = 3
"""Fewer hot disks on a host are a problem of those disks, which the forecast sees."""
SEVERAL_IN_A_RACK = 5


def hot_disks(snapshot: AlertSnapshot) -> Iterator[AlertCause]:
    """Yield one cause per host, one per rack with hot disks on several hosts, or one for everything if several
    racks are hot.
    """
    rack_of_host = snapshot.fleet.racks_of_hosts()
    racks: dict[str | None, list[Reading]] = defaultdict(list)
    for reading in snapshot.fleet.readings.values():
        fresh = snapshot.now - reading.taken_at <= snapshot.stale_after
        if fresh and is_hot(reading) and snapshot.fleet.is_living(reading.device):
            racks[rack_of_host.get(reading.host)].append(reading)
    wide = {
        rack: hot
        for rack, hot in racks.items()
        if rack and len(hot) >= SEVERAL_IN_A_RACK and _count_hosts(hot) > 1
    }
    if len(wide) > 1:
        hot = [reading for rack in racks.values() for reading in rack]
        title = f"{len(hot)} disks on {_count_hosts(hot)} hosts in {len(wide)} racks are too hot"
        yield _build_heat_cause("hot", title, hot, "Look at the room's cooling.", "/fleet", Severity.URGENT)
        return
    for rack, hot in wide.items():
        title = f"{len(hot)} disks on {_count_hosts(hot)} hosts of rack {rack} are too hot"
        todo = "Look at the rack's cooling: doors, blanking plates, the air in front of it."
        yield _build_heat_cause(f"hot:rack:{rack}", title, hot, todo, "/fleet", Severity.URGENT)
    hosts: dict[str, list[Reading]] = defaultdict(list)
    for reading in (reading for rack, hot in racks.items() if rack not in wide for reading in hot):
        hosts[reading.host].append(reading)
    for host, hot in sorted(hosts.items()):
        if len(hot) >= SEVERAL:
            title, todo = f"{len(hot)} disks on {host} are too hot", "Look at the host's fans and filters."
            yield _build_heat_cause(
                f"hot:{host}", title, hot, todo, f"/fleet?q={quote(host)}", Severity.NOTICE, host
            )


def is_hot(reading: Reading) -> bool:
    """Return whether the reading is of a hard disk that was too hot."""
    return _read_disk_celsius(reading) >= HOT_C


def _build_heat_cause(
    key: str,
    title: str,
    hot: list[Reading],
    todo: str,
    path: str,
    severity: Severity,
    host: str | None = None,
) -> AlertCause:
    worst = sorted(hot, key=lambda reading: (-_read_disk_celsius(reading), reading.device))
    points = tuple(
        CausePart(
            f"hot:{one.device}",
            f"{one.device} on {one.host}: {_read_disk_celsius(one)} °C.",
            severity,
            one.host,
            one.seen.identity.model if isinstance(one.seen, Smart) else None,
        )
        for one in worst
    )
    return AlertCause(key, title, points, todo, path, host, kind=AlertCauseKind.HOT_DISKS)


def _read_disk_celsius(reading: Reading) -> int:
    """Return the temperature in °C that a hard disk reported; otherwise a value far below any limit."""
    seen = reading.seen
    if not isinstance(seen, Smart) or not seen.identity.rotation_rpm or seen.temperature_c is None:
        return -1000
    return seen.temperature_c


def _count_hosts(hot: list[Reading]) -> int:
    return len({reading.host for reading in hot})
