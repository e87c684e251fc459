"""What is known now of every disk and OSD, held in memory: a projection of store and cluster.

The store stays the truth; the fleet is rebuilt from it at each start, then fed by worker and controller, and by
what other processes store (service.process_sync).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from predrain.actions.cluster.view import ClusterView
from predrain.data.drain import Drain, DrainState
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.life_cycle import DiskLife
from predrain.data.outlook import Outlook, Status
from predrain.data.reading import Reading
from predrain.data.residence import Residence, name_apart
from predrain.data.store.port import Store
from predrain.service.drains.lasting import Past
from predrain.service.lifecycle.book import LifeBook
from predrain.service.scoring.residents import read_residences

WEEK = timedelta(days=7)
OVER = frozenset({DrainState.CANCELLED, DrainState.HANDED_OVER})


class Seats:
    """Which OSDs live on which device, and where on their host: worked out once a view, however many sights ask."""

    def __init__(self) -> None:
        self._of: tuple[ClusterView | None, Mapping[DeviceId, tuple[OsdId, ...]], Mapping[OsdId, int]] = (
            None,
            {},
            {},
        )

    def devices(self, view: ClusterView | None) -> Mapping[DeviceId, tuple[OsdId, ...]]:
        """The OSDs that live on each device."""
        return self._in(view)[1]

    def slots(self, view: ClusterView | None) -> Mapping[OsdId, int]:
        """Each OSD's place among those of its host, from 0 in order of their ids."""
        return self._in(view)[2]

    def _in(
        self, view: ClusterView | None
    ) -> tuple[ClusterView | None, Mapping[DeviceId, tuple[OsdId, ...]], Mapping[OsdId, int]]:
        known = self._of
        if known[0] is not view:
            devices: dict[DeviceId, tuple[OsdId, ...]] = {}
            hosts: dict[HostName, int] = {}
            slots: dict[OsdId, int] = {}
            for _, osd in sorted(view.osds.items()) if view else ():
                if osd.device is not None:
                    devices[osd.device] = (*devices.get(osd.device, ()), osd.id)
                slots[osd.id] = hosts.get(osd.host, 0)
                hosts[osd.host] = slots[osd.id] + 1
            known = self._of = view, devices, slots
        return known


@dataclass(frozen=True, slots=True)
class FleetSnapshot:
    """Everything at one instant. Mappings are copies that nobody changes."""

    readings: Mapping[DeviceId, Reading]
    outlooks: Mapping[DeviceId, Outlook]
    week_ago: Mapping[DeviceId, float]
    """`p_fail_30d` as it was seven days before the newest outlook, where it is known."""
    drains: tuple[Drain, ...]
    """Newest first."""
    halted: str | None
    view: ClusterView | None
    residences: Mapping[DeviceId, Residence] = field(default_factory=dict)
    """Of disks that more than one host ever named."""

    lives: Mapping[DeviceId, DiskLife] = field(default_factory=dict)
    """How every disk stands (service.lifecycle): its state and its severity."""

    seats: Seats = field(default_factory=Seats, compare=False)

    def is_living(self, device: DeviceId) -> bool:
        """Whether a disk is known that neither failed nor is retired."""
        life = self.lives.get(device)
        return life is not None and life.is_living

    def severity(self, device: DeviceId) -> Status | None:
        """How ill a disk is; None where this is not asked: it failed, is retired, or is not known."""
        life = self.lives.get(device)
        return life.severity if life is not None else None

    def osds_of(self) -> Mapping[DeviceId, tuple[OsdId, ...]]:
        """The OSDs that live on each device."""
        return self.seats.devices(self.view)

    def slots(self) -> Mapping[OsdId, int]:
        """Each OSD's place among those of its host, from 0 in order of their ids."""
        return self.seats.slots(self.view)

    def racks_of_hosts(self) -> Mapping[HostName, str]:
        """The rack of each host that the cluster has in one."""
        return {osd.host: osd.rack for osd in self.view.osds.values() if osd.rack} if self.view else {}

    def drain_of(self) -> Mapping[OsdId, Drain]:
        """The drain that concerns each OSD now: its newest, unless that is over."""
        found: dict[OsdId, Drain] = {}
        for drain in reversed(self.drains):
            for osd in drain.osds:
                found[osd] = drain
        return {osd: drain for osd, drain in found.items() if drain.state not in OVER}


class Fleet:
    """Thread-safe. Writers hand in what is new; readers take a `FleetSnapshot`."""

    def __init__(self, store: Store, *, whole: bool = True) -> None:
        """whole: begin with every device of the store; else with none, as who works on a part of them does."""
        self._store, self.past = store, Past(store)
        self._lock = threading.Lock()
        self._view: ClusterView | None = None
        news = store.news() if whole else None
        self.mark = news.mark if news else None
        """Of the store as this fleet began with it."""
        self._readings = {one.device: one for one in news.readings} if news else {}
        self._outlooks = {one.device: one for one in news.outlooks} if news else {}
        self._residences = read_residences(store) if whole else {}
        self._days: dict[DeviceId, dict[date, float]] = {}
        self._week_ago: dict[DeviceId, float] = {}
        self._seats = Seats()
        for device, outlook in self._outlooks.items():
            # A week of every disk would be read for nothing: the question is asked of those in trouble.
            troubled = outlook.severity in (Status.WARNING, Status.BAD)
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

    def sight(self, halted: str | None, lives: LifeBook, now: datetime) -> FleetSnapshot:
        """Everything at this instant. halted: why nothing may move."""
        drains = self._store.drains()
        with self._lock:
            readings, outlooks, week_ago = dict(self._readings), dict(self._outlooks), dict(self._week_ago)
            residences, view = dict(self._residences), self._view
        standing = lives.survey(readings, outlooks, drains, view, now)
        return FleetSnapshot(
            readings, outlooks, week_ago, drains, halted, view, residences, standing, seats=self._seats
        )

    def residences(self) -> Mapping[DeviceId, Residence]:
        """What is known of where disks live that more than one host ever named."""
        with self._lock:
            return dict(self._residences)

    def settle(self, residences: Mapping[DeviceId, Residence]) -> None:
        """Where disks live now; a history that is kept apart no more is forgotten."""
        for device, residence in residences.items():
            before = self._residences.get(device)
            with self._lock:
                if residence.claims or residence.tenures:
                    self._residences[device] = residence
                else:
                    self._residences.pop(device, None)
            for host in before.hosts_apart - residence.hosts_apart if before else ():
                self.forget(name_apart(device, host))

    def forget(self, device: DeviceId) -> None:
        """A device that is one no more, or that is to be judged anew."""
        with self._lock:
            for held in (self._readings, self._outlooks, self._days, self._week_ago):
                held.pop(device, None)  # pyright: ignore[reportArgumentType]

    def _remember(self, outlooks: Iterable[Outlook]) -> None:
        """The day's last probability, for eight days, and what it was a week before the newest outlook."""
        for outlook in outlooks:
            oldest = _day(outlook.as_of - WEEK)
            days = self._days.setdefault(outlook.device, {})
            if outlook.p_fail_30d is not None:
                days[_day(outlook.as_of)] = outlook.p_fail_30d
            for day in [day for day in days if day < oldest]:
                del days[day]
            if (p := days.get(oldest)) is not None:
                self._week_ago[outlook.device] = p
            else:
                self._week_ago.pop(outlook.device, None)


def _day(at: datetime) -> date:
    return at.astimezone(UTC).date()
