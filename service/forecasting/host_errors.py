"""Attribute I/O errors: those of several disks of one host at once come from the host, its controller or a cable.

A worker that shares the topic sees only its part of a host's disks, so it may miss that the host is at fault.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from predrain.data.ids import DeviceId, HostName
from predrain.data.reading import Reading

AT_ONCE: Final = timedelta(hours=1)
"""Two disks whose errors were read within this time have them at once. A round over all disks of a host is
shorter.
"""
DISKS: Final = 3
"""The number of disks of a host with errors at once from which the host is at fault. Two disks may well fail in
one hour.
"""


class HostErrors:
    """Recent I/O errors: time and disk, by host. For one thread: the worker's."""

    def __init__(self) -> None:
        self._seen: dict[HostName, list[tuple[datetime, DeviceId]]] = defaultdict(list)

    def mark_shared(self, readings: Iterable[Reading]) -> list[Reading]:
        """Return the readings, oldest first; I/O errors that several disks of a host had at once are marked as
        shared.
        """
        ordered = sorted(readings, key=lambda reading: reading.taken_at)
        hosts = set[HostName]()
        for reading in ordered:
            if reading.kernel_errors:
                hosts.add(reading.host)
                self._seen[reading.host].append((reading.taken_at, reading.device))
        marked = [
            replace(one, kernel_errors_shared=True) if one.kernel_errors and self._is_shared(one) else one
            for one in ordered
        ]
        for host in hosts:
            seen = self._seen[host]
            newest = max(at for at, _ in seen)
            self._seen[host] = [one for one in dict.fromkeys(seen) if one[0] > newest - 2 * AT_ONCE]
        return marked

    def _is_shared(self, reading: Reading) -> bool:
        near = {device for at, device in self._seen[reading.host] if abs(at - reading.taken_at) <= AT_ONCE}
        return len(near) >= DISKS
