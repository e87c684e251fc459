"""What is known now of every disk and OSD, held in memory: a projection of store and cluster.

The store stays the truth; the fleet is rebuilt from it at each start, then fed by worker and controller.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from actions.cluster.view import ClusterView
from data.drain import Drain, DrainState
from data.ids import DeviceId, OsdId
from data.outlook import Outlook, Status
from data.reading import Reading
from data.store.port import Store

WEEK = timedelta(days=7)
OVER = frozenset({DrainState.CANCELLED, DrainState.HANDED_OVER})


@dataclass(frozen=True, slots=True)
class Sight:
    """Everything at one instant. Mappings are copies that nobody changes."""

    readings: Mapping[DeviceId, Reading]
    outlooks: Mapping[DeviceId, Outlook]
    week_ago: Mapping[DeviceId, float]
    """`p_fail_30d` as it was seven days before the newest outlook, where it is known."""
    drains: tuple[Drain, ...]
    """Newest first."""
    halted: str | None
    view: ClusterView | None

    def osds_of(self) -> Mapping[DeviceId, tuple[OsdId, ...]]:
        """The OSDs that live on each device."""
        found: dict[DeviceId, list[OsdId]] = {}
        for osd in self.view.osds.values() if self.view else ():
            if osd.device is not None:
                found.setdefault(osd.device, []).append(osd.id)
        return {device: tuple(sorted(osds)) for device, osds in found.items()}

    def drain_of(self) -> Mapping[OsdId, Drain]:
        """The drain that concerns each OSD now: its newest, unless that is over."""
        found: dict[OsdId, Drain] = {}
        for drain in reversed(self.drains):
            for osd in drain.osds:
                found[osd] = drain
        return {osd: drain for osd, drain in found.items() if drain.state not in OVER}


class Fleet:
    """Thread-safe. Writers hand in what is new; readers take a `Sight`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._view: ClusterView | None = None
        self._readings = dict(store.latest_readings())
        self._outlooks = dict(store.latest_outlooks())
        self._days: dict[DeviceId, dict[date, float]] = {}
        for device, outlook in self._outlooks.items():
            # A week of every disk would be read for nothing: the question is asked of those in trouble.
            troubled = outlook.status in (Status.WARNING, Status.BAD)
            since = outlook.as_of - WEEK - timedelta(days=1)
            self._remember(store.outlooks(device, since) if troubled else (outlook,))

    def take(self, readings: Iterable[Reading], outlooks: Iterable[Outlook]) -> None:
        """Newer ones replace older ones; an older one changes nothing."""
        with self._lock:
            for reading in readings:
                known = self._readings.get(reading.device)
                if known is None or known.taken_at <= reading.taken_at:
                    self._readings[reading.device] = reading
            fresh = []
            for outlook in outlooks:
                before = self._outlooks.get(outlook.device)
                if before is None or before.as_of <= outlook.as_of:
                    self._outlooks[outlook.device] = outlook
                    fresh.append(outlook)
            self._remember(fresh)

    def look(self, view: ClusterView) -> None:
        """The controller saw the cluster."""
        self._view = view

    @property
    def view(self) -> ClusterView | None:
        """The last view of the cluster, whatever its age."""
        return self._view

    def reading(self, device: DeviceId) -> Reading | None:
        """The newest reading of one device."""
        with self._lock:
            return self._readings.get(device)

    def outlook(self, device: DeviceId) -> Outlook | None:
        """The newest outlook of one device."""
        with self._lock:
            return self._outlooks.get(device)

    def outlooks(self) -> Mapping[DeviceId, Outlook]:
        """Every device's newest outlook."""
        with self._lock:
            return dict(self._outlooks)

    def sight(self) -> Sight:
        """Everything at this instant."""
        drains, halted = self._store.drains(), self._store.halt_reason()
        with self._lock:
            week_ago = {
                device: p
                for device, outlook in self._outlooks.items()
                if (p := self._days.get(device, {}).get((outlook.as_of.astimezone(UTC) - WEEK).date()))
                is not None
            }
            return Sight(dict(self._readings), dict(self._outlooks), week_ago, drains, halted, self._view)

    def _remember(self, outlooks: Iterable[Outlook]) -> None:
        """The day's last probability, for eight days."""
        for outlook in outlooks:
            if outlook.p_fail_30d is None:
                continue
            days = self._days.setdefault(outlook.device, {})
            days[_day(outlook.as_of)] = outlook.p_fail_30d
            oldest = _day(outlook.as_of - WEEK)
            for day in [day for day in days if day < oldest]:
                del days[day]


def _day(at: datetime) -> date:
    return at.astimezone(UTC).date()
