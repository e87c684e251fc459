"""The present state of every disk: computed for the disks of which something changed, and recorded.

`LifeBook.assess_lives` gives the same answer to every reader of one snapshot. The answer depends only on the
snapshot and the records in the store, so that processes that share a store agree.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.data.drain import Drain
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.life_cycle import DiskLife, LifeChange, LifeState
from predrain.data.life_decision import (
    SETTLING,
    DiskFacts,
    KnownCluster,
    LifeClock,
    OsdPlace,
    concerning_drains,
    decide_life,
    osds_of_drains,
    places_of_disks,
    places_told_by_readings,
    settling_statements,
)
from predrain.data.outcome import Outcome
from predrain.data.outlook import Outlook
from predrain.data.reading import Reading, Unreadable
from predrain.data.store.store_port import Store
from predrain.service.fleet.differing_keys import find_differing_keys

_NEVER = datetime.max.replace(tzinfo=UTC)


class LifeBook:
    """The lives of all disks. Thread-safe.

    began: the time since which this process runs. stale_after: a disk without a reading for this time is silent.
    """

    def __init__(self, store: Store, began: datetime, stale_after: timedelta) -> None:
        self._store, self._began, self._stale_after = store, began, stale_after
        self._lock, self._hearing = threading.Lock(), True
        self._mark, recorded = store.last_life_changes()
        self._own = store.get_cluster()
        self._recorded = dict(recorded)
        self._unrecorded = set[DeviceId]()
        self._lives: dict[DeviceId, DiskLife] = {}
        self._shown: Mapping[DeviceId, DiskLife] = {}
        self._touched = set[DeviceId](self._recorded)
        self._watched = set[DeviceId]()
        """The disks that the time may change before `_due`, and those decided since the time was last applied."""
        self._due = _NEVER
        """The time at which the first of the other disks becomes late."""
        self._awake: dict[HostName, datetime] = {}
        """The time since which each host delivers without a pause."""
        self._newest: dict[HostName, datetime] = {}
        self._readings: Mapping[DeviceId, Reading] = {}
        self._outlooks: Mapping[DeviceId, Outlook] = {}
        self._drains: tuple[Drain, ...] = ()
        self._concerning: Mapping[DeviceId, Drain] = {}
        self._drained: Mapping[DeviceId, tuple[OsdId, ...]] = {}
        self._statements: Mapping[DeviceId, Outcome] = {}
        self._view: ClusterView | None = None
        self._cluster = KnownCluster()
        self._places: Mapping[DeviceId, tuple[OsdPlace, ...]] = {}
        self._hear(store.outcomes())

    def update_outcomes(self, outcomes: Iterable[Outcome]) -> None:
        """Take over all statements about the ends of disks, in order of time."""
        with self._lock:
            self._hear(outcomes)

    @property
    def current_lives(self) -> Mapping[DeviceId, DiskLife]:
        """The lives by the last assessment or ageing; another object once any of them changed."""
        return self._shown

    def assess_lives(
        self,
        readings: Mapping[DeviceId, Reading],
        outlooks: Mapping[DeviceId, Outlook],
        drains: tuple[Drain, ...],
        view: ClusterView | None,
        now: datetime,
    ) -> Mapping[DeviceId, DiskLife]:
        """Return the life of each disk by all known facts; the same object while nothing changed.

        Only disks of which something changed are computed again; `apply_elapsed_time` does so for those that time
        changes.
        """
        with self._lock:
            self._take_readings(readings, outlooks, now)
            self._take_drains(drains)
            self._take_view(view)
            self._decide(now)
            return self._shown

    def apply_elapsed_time(self, now: datetime, *, hearing: bool = True) -> None:
        """Compute again the disks that the time alone may change.

        hearing: whether readings are consumed from the log, so that a missing reading means something.
        """
        with self._lock:
            self._hearing = hearing
            stale = [host for host, newest in self._newest.items() if now - newest > self._stale_after]
            fallen_silent = {host for host in stale if self._awake.pop(host, None) is not None}
            if self._view is None:
                self._take_places(places_told_by_readings(self._readings, self._own))
            if now > self._due or fallen_silent:
                self._watched, self._due = set(self._lives), _NEVER
            self._touched |= self._find_disks_that_time_changes(now, fallen_silent)
            self._decide(now)

    def _find_disks_that_time_changes(self, now: datetime, fallen_silent: set[HostName]) -> set[DeviceId]:
        """Return those of the watched disks that the time may change now. The others are watched from `_due` on."""
        found = set[DeviceId]()
        for device in self._watched:
            life, reading = self._lives.get(device), self._readings.get(device)
            if life is None:
                continue
            is_late = reading is not None and (
                now - reading.taken_at > self._stale_after or isinstance(reading.seen, Unreadable)
            )
            is_left_alone = reading is not None and reading.host in fallen_silent
            if (is_late and life.is_living) or life.state is LifeState.SILENT or is_left_alone:
                found.add(device)
            elif reading is not None and life.is_living:
                self._due = min(self._due, reading.taken_at + self._stale_after)
        self._watched.clear()  # a disk that is decided now is watched again
        return found

    def load_recorded_changes(self) -> None:
        """Take over what other processes recorded. Raises what the store raises."""
        own = self._store.get_cluster()
        mark, changes = self._store.last_life_changes(self._mark)
        with self._lock:
            self._mark, self._own = mark, own
            self._recorded.update(changes)
            self._touched |= changes.keys()

    def record(self) -> tuple[LifeChange, ...]:
        """Record what is not recorded yet. Raises what the store raises; then the next call does it."""
        with self._lock:
            news = [
                life.change for device in self._unrecorded if (life := self._lives.get(device)) is not None
            ]
        changes = tuple(sorted(news, key=lambda change: (change.at, change.device)))
        if changes:
            self._store.add_life_changes(changes)
        with self._lock:
            for change in changes:
                self._recorded[change.device] = change
                life = self._lives.get(change.device)
                if life is not None and life.change == change:
                    self._unrecorded.discard(change.device)
        return changes

    def _hear(self, outcomes: Iterable[Outcome]) -> None:
        statements = settling_statements(outcomes)
        self._touched |= find_differing_keys(statements, self._statements)
        self._statements = statements

    def _take_readings(
        self, readings: Mapping[DeviceId, Reading], outlooks: Mapping[DeviceId, Outlook], now: datetime
    ) -> None:
        fresh = find_differing_keys(readings, self._readings)
        self._touched |= fresh | find_differing_keys(outlooks, self._outlooks)
        first = not self._readings
        self._readings, self._outlooks = readings, outlooks
        for device in fresh:
            reading = readings.get(device)
            if reading is None or reading.taken_at <= self._newest.get(
                reading.host, reading.taken_at - SETTLING
            ):
                continue
            self._newest[reading.host] = reading.taken_at
            if now - reading.taken_at <= self._stale_after:
                self._awake.setdefault(reading.host, now)
        if first and self._view is None:
            self._take_places(places_told_by_readings(readings, self._own))

    def _take_drains(self, drains: tuple[Drain, ...]) -> None:
        if drains == self._drains:
            return
        concerning, drained = concerning_drains(drains), osds_of_drains(drains)
        self._touched |= find_differing_keys(concerning, self._concerning) | find_differing_keys(
            drained, self._drained
        )
        self._drains, self._concerning, self._drained = drains, concerning, drained

    def _take_view(self, view: ClusterView | None) -> None:
        if view is None or view is self._view:
            return
        first, self._view = self._view is None, view
        places = {
            osd.id: OsdPlace(
                osd.id,
                osd.host,
                osd.device,
                osd.up,
                osd.up and osd.reweight > 0 and osd.crush_weight > 0,
                osd.shared_devices,
            )
            for osd in view.osds.values()
        }
        self._take_places(KnownCluster(places, view.as_of, view.fsid or self._own))
        if first:
            self._touched |= self._lives.keys()

    def _take_places(self, cluster: KnownCluster) -> None:
        places = places_of_disks(cluster)
        moved = {
            osd
            for osd in cluster.places.keys() | self._cluster.places.keys()
            if _find_osd_device(cluster, osd) != _find_osd_device(self._cluster, osd)
        }
        changed = {device for device in places.keys() | self._places.keys()
                   if places.get(device) != self._places.get(device)}  # fmt: skip
        self._cluster, self._places = cluster, places
        self._touched |= changed
        if moved:
            self._touched |= {
                device for device, life in self._lives.items() if not moved.isdisjoint(life.change.osds)
            }

    def _decide(self, now: datetime) -> None:
        if not self._touched:
            return
        clock = LifeClock(now, self._stale_after, self._hearing and now - self._began >= SETTLING)
        changed = False
        for device in self._touched:
            facts = self._facts_of(device)
            if facts is None:
                continue
            held, life = self._lives.get(device), decide_life(facts, self._cluster, clock)
            if (
                held is not None
                and facts.before != life.change
                and held.change.state_key == life.change.state_key
            ):
                life = DiskLife(held.change, life.severity)
            if life.change == facts.before:
                self._unrecorded.discard(device)
            else:
                self._unrecorded.add(device)
            if life != held:
                self._lives[device], changed = life, True
        self._watched |= self._touched
        self._touched.clear()
        if changed:
            self._shown = dict(self._lives)

    def _facts_of(self, device: DeviceId) -> DiskFacts | None:
        """Return the known facts of a disk; None if there are none and nothing is recorded."""
        reading, places = self._readings.get(device), self._places.get(device, ())
        before = self._recorded.get(device)
        if reading is None and not places and before is None:
            held = self._lives.get(device)
            before = held.change if held is not None else None
            if before is None:
                return None
        return DiskFacts(
            device,
            reading,
            self._outlooks.get(device),
            places,
            self._concerning.get(device),
            self._drained.get(device, ()),
            self._statements.get(device),
            self._awake.get(reading.host) if reading is not None else None,
            before,
        )


def _find_osd_device(cluster: KnownCluster, osd: OsdId) -> DeviceId | None:
    place = cluster.places.get(osd)
    return place.device if place is not None else None
