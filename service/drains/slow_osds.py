"""Find slow OSDs in the store's latencies, read periodically for the controller."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import structlog

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.data.clock import is_within_last
from predrain.data.host_names import choose_tellers
from predrain.data.ids import HostName, OsdId
from predrain.data.slow_osd import Slowness
from predrain.data.store.store_port import Store

if TYPE_CHECKING:
    from predrain.models.slow.live_detector import LiveWatch

HISTORY = timedelta(days=5)
"""The history that is read after a start: the three days of a verdict, the day before them, and today."""
READ_EVERY = timedelta(minutes=30)
_GRAIN = timedelta(microseconds=1)


@dataclass(slots=True)
class SlowOsds:
    """Follows the latency of every OSD. For one thread."""

    store: Store
    _watch: LiveWatch | None = None
    _read: dict[HostName, datetime] = field(default_factory=dict)
    _looked: datetime | None = None
    _said: Slowness = field(default_factory=Slowness)
    _hosts: frozenset[HostName] = frozenset()

    def poll_slowness(self, view: ClusterView, now: datetime) -> Slowness:
        """Return the OSDs and hosts that are slow by now.

        The store is read at most every half hour. A slow host is logged once.
        """
        if self._looked is not None and is_within_last(self._looked, now, READ_EVERY):
            return self._said
        self._looked = now
        if self._watch is None:
            if not self.store.has_latency():
                return self._said
            from predrain.models.slow.live_detector import LiveWatch

            self._watch = LiveWatch()
        hosts = self.store.latency_hosts()
        classes = _find_classes(view, hosts)
        for host in hosts:
            told = self.store.host_latency(host, self._read.get(host, now - HISTORY))
            if told:
                self._watch.add_windows(told, classes.get(host, {}))
                self._read[host] = told[-1].window_start + _GRAIN
        self._said = self._watch.judge_elapsed_periods(now)
        self._tell()
        return self._said

    def _tell(self) -> None:
        for host in self._said.hosts:
            if host.host not in self._hosts:
                structlog.get_logger().warning("a whole host is slow", host=host.host, reason=host.reason)
        self._hosts = frozenset(host.host for host in self._said.hosts)


def _find_classes(
    view: ClusterView, hosts: tuple[HostName, ...]
) -> Mapping[HostName, Mapping[OsdId, str | None]]:
    """Return, by host, the device classes of the OSDs whose latencies that host reports."""
    machines = view.machines
    on: dict[HostName | None, dict[OsdId, str | None]] = defaultdict(dict)
    for osd in view.osds.values():
        on[osd.machine][osd.id] = osd.device_class
    found: dict[HostName, dict[OsdId, str | None]] = defaultdict(dict)
    for machine, classes in on.items():
        for host in choose_tellers(machine, machines, hosts):
            found[host] |= classes
    return found
