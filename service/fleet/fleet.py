"""The present state of every disk and OSD in memory: a projection of store and cluster.

The store stays the truth. The fleet is rebuilt from it at each start. Worker and controller update it, and so
does what other processes store (service.app.process_sync).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.data.drain import Drain, DrainState
from predrain.data.halt_state import Halt
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.life_cycle import DiskLife
from predrain.data.outlook import Outlook, Status
from predrain.data.reading import Reading
from predrain.data.residence import Residence, name_apart
from predrain.data.store.store_port import Store
from predrain.service.fleet.drain_durations import DrainDurations
from predrain.service.fleet.life_book import LifeBook
from predrain.service.fleet.residents import read_residences

WEEK = timedelta(days=7)
OVER = frozenset({DrainState.CANCELLED, DrainState.HANDED_OVER})


class OsdPlacement:
    """The OSDs on each device, and the slot of each OSD in its host; computed once per cluster view."""

    def __init__(self) -> None:
        self._of: tuple[ClusterView | None, Mapping[DeviceId, tuple[OsdId, ...]], Mapping[OsdId, int]] = (
            None,
            {},
            {},
        )

    def find_osds_by_device(self, view: ClusterView | None) -> Mapping[DeviceId, tuple[OsdId, ...]]:
        """Return the OSDs on each device."""
        return self._in(view)[1]

    def find_slots_by_osd(self, view: ClusterView | None) -> Mapping[OsdId, int]:
        """Return each OSD's place among those of its host, from 0 in order of their ids."""
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


@dataclass(frozen=True, slots=True, weakref_slot=True)
class FleetSnapshot:
    """The fleet at one instant. The mappings are copies that never change.

    A value that is cached for a snapshot refers to the snapshot weakly: an old snapshot keeps old readings and outlooks
    in memory.
    """

    readings: Mapping[DeviceId, Reading]
    outlooks: Mapping[DeviceId, Outlook]
    week_ago: Mapping[DeviceId, float]
    """`p_fail_30d` seven days before the newest outlook, where it is known."""
    drains: tuple[Drain, ...]
    """Newest first."""
    halt: Halt | None
    view: ClusterView | None
    residences: Mapping[DeviceId, Residence] = field(default_factory=dict)
    """The residences of disks that more than one host ever named."""

    lives: Mapping[DeviceId, DiskLife] = field(default_factory=dict)
    """The state and the severity of every disk (service.fleet)."""

    placement: OsdPlacement = field(default_factory=OsdPlacement, compare=False)

    @property
    def halted(self) -> str | None:
        """The reason of the halt in force, or None."""
        return None if self.halt is None else self.halt.reason

    def is_living(self, device: DeviceId) -> bool:
        """Return whether the disk is known and is neither failed nor retired."""
        life = self.lives.get(device)
        return life is not None and life.is_living

    def severity(self, device: DeviceId) -> Status | None:
        """Return the severity of a disk, or None if the disk failed, is retired or is unknown."""
        life = self.lives.get(device)
        return life.severity if life is not None else None

    def osds_of(self) -> Mapping[DeviceId, tuple[OsdId, ...]]:
        """Return the OSDs on each device."""
        return self.placement.find_osds_by_device(self.view)

    def find_slots_by_osd(self) -> Mapping[OsdId, int]:
        """Return each OSD's place among those of its host, from 0 in order of their ids."""
        return self.placement.find_slots_by_osd(self.view)

    def racks_of_hosts(self) -> Mapping[HostName, str]:
        """Return the rack of each host that the cluster has in a rack."""
        return {osd.host: osd.rack for osd in self.view.osds.values() if osd.rack} if self.view else {}

    def drain_of(self) -> Mapping[OsdId, Drain]:
        """Return the newest drain of each OSD, unless that drain is over."""
        found: dict[OsdId, Drain] = {}
        for drain in reversed(self.drains):
            for osd in drain.osds:
                found[osd] = drain
        return {osd: drain for osd, drain in found.items() if drain.state not in OVER}


class Fleet:
    """The thread-safe state of the fleet. Writers pass updates; readers take a `FleetSnapshot`."""

    def __init__(self, store: Store, *, whole: bool = True) -> None:
        """Begin with the state in the store.

        whole: begin with every device of the store; otherwise with none, for a process that works on part of
        them.
        """
        self._store, self.past = store, DrainDurations(store)
        self._lock = threading.Lock()
        self._view: ClusterView | None = None
        news = store.read_changes() if whole else None
        self.mark = news.mark if news else None
        """The store's mark at the time when this fleet was read."""
        self._readings = {one.device: one for one in news.readings} if news else {}
        self._outlooks = {one.device: one for one in news.outlooks} if news else {}
        self._residences = read_residences(store) if whole else {}
        self._days: dict[DeviceId, dict[date, float]] = {}
        self._week_ago: dict[DeviceId, float] = {}
        self._placement = OsdPlacement()
        # Reading a week for every disk is wasted: only disks in trouble are asked for it.
        weeks = {
            device: outlook.as_of - WEEK - timedelta(days=1)
            for device, outlook in self._outlooks.items()
            if outlook.severity in (Status.WARNING, Status.BAD)
        }
        self._remember(outlook for device, outlook in self._outlooks.items() if device not in weeks)
        for _, week in store.iterate_outlooks(weeks):
            self._remember(week)

    def update_newest(self, readings: Iterable[Reading], outlooks: Iterable[Outlook]) -> None:
        """Replace older readings and outlooks by newer ones; an older one changes nothing."""
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

    def update_view(self, view: ClusterView) -> None:
        """Take over the view of the cluster that the controller polled."""
        self._view = view

    @property
    def view(self) -> ClusterView | None:
        """The last view of the cluster, of any age."""
        return self._view

    def reading(self, device: DeviceId) -> Reading | None:
        """Return the newest reading of one device."""
        with self._lock:
            return self._readings.get(device)

    def get_readings(self) -> Mapping[DeviceId, Reading]:
        """Return every device's newest reading."""
        with self._lock:
            return dict(self._readings)

    def outlook(self, device: DeviceId) -> Outlook | None:
        """Return the newest outlook of one device."""
        with self._lock:
            return self._outlooks.get(device)

    def outlooks(self) -> Mapping[DeviceId, Outlook]:
        """Return every device's newest outlook."""
        with self._lock:
            return dict(self._outlooks)

    def build_snapshot(self, halt: Halt | None, lives: LifeBook, now: datetime) -> FleetSnapshot:
        """Build the snapshot of this instant, with the halt that is in force."""
        drains = self._store.drains()
        with self._lock:
            readings, outlooks, week_ago = dict(self._readings), dict(self._outlooks), dict(self._week_ago)
            residences, view = dict(self._residences), self._view
        standing = lives.assess_lives(readings, outlooks, drains, view, now)
        return FleetSnapshot(
            readings, outlooks, week_ago, drains, halt, view, residences, standing, placement=self._placement
        )

    def residences(self) -> Mapping[DeviceId, Residence]:
        """Return the residences of the disks that more than one host ever named."""
        with self._lock:
            return dict(self._residences)

    def update_residences(self, residences: Mapping[DeviceId, Residence]) -> None:
        """Take over new residences, and forget a separate history that was joined again."""
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
        """Forget a device that is no longer a separate one, or that is to be judged again."""
        with self._lock:
            for held in (self._readings, self._outlooks, self._days, self._week_ago):
                held.pop(device, None)  # pyright: ignore[reportArgumentType]

    def _remember(self, outlooks: Iterable[Outlook]) -> None:
        """Keep the last probability of each day for eight days, and that of a week before the newest outlook."""
        for outlook in outlooks:
            oldest = _to_utc_date(outlook.as_of - WEEK)
            days = self._days.setdefault(outlook.device, {})
            if outlook.p_fail_30d is not None:
                days[_to_utc_date(outlook.as_of)] = outlook.p_fail_30d
            for day in [day for day in days if day < oldest]:
                del days[day]
            if (p := days.get(oldest)) is not None:
                self._week_ago[outlook.device] = p
            else:
                self._week_ago.pop(outlook.device, None)


def _to_utc_date(at: datetime) -> date:
    return at.astimezone(UTC).date()
