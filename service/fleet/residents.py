"""Route readings to the history of the disk and host to which they belong, as a worker follows the disks' hosts.

The residence of a disk that only one host ever named follows from its newest reading, which also holds for every
store of version 0.1.0. The residences of other disks are in the store's notes, beside people's answers (`predrain
disk host`) and the cluster's device list. The rule itself is data.residence.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

import msgspec

from predrain.data.ids import DeviceId, HostName
from predrain.data.reading import Reading
from predrain.data.residence import (
    MOST_CLAIMS,
    Placement,
    Residence,
    ResidenceLimits,
    ResidenceState,
    ResidenceVerdict,
    SettledBy,
    begin_residence,
    boundary_of,
    confirm_home,
    decide_residence,
    is_apart,
    move_home,
    name_apart,
    place_reading,
)
from predrain.data.store.store_port import Store
from predrain.data.wire import NotAccepted
from predrain.data.wire.strict_json import JsonShape

RESIDENCES, LISTED, ANSWERED = "residences", "residence-listed", "residence-answered"
"""Rooms of the store's notes, by device: its residence, the hosts in the cluster's list, the host that a person
named.
"""
_RESIDENCE: Final = JsonShape(Residence)
_HOSTS: Final = msgspec.json.Decoder(list[HostName])


@dataclass
class RoutedReadings:
    """Readings under the names of the histories to which they belong, up to the reading that makes a disk move."""

    readings: list[Reading] = field(default_factory=list[Reading])
    refused: list[tuple[int, NotAccepted]] = field(default_factory=list[tuple[int, NotAccepted]])
    """The refused readings, by their index in the routed sequence."""
    residences: dict[DeviceId, Residence] = field(default_factory=dict[DeviceId, Residence])
    """The residences of the disks after these readings."""
    named: set[DeviceId] = field(default_factory=set[DeviceId])
    """The names of separate histories to which readings were filed."""
    move: tuple[DeviceId, ResidenceVerdict] | None = None
    done: int = 0
    """The number of routed readings; the next one is to be routed after the move."""


def read_residences(store: Store) -> dict[DeviceId, Residence]:
    """Return the residence of every disk that more than one host ever named. Raises what the store raises."""
    return {DeviceId(name): _RESIDENCE.read(raw) for name, raw in store.read_notes(RESIDENCES).items()}


def note_listed(store: Store, listed: Mapping[DeviceId, Collection[HostName]]) -> None:
    """Store the hosts in the cluster's device list for the disks whose home their readings do not settle."""
    held = {name: frozenset(_HOSTS.decode(raw)) for name, raw in store.read_notes(LISTED).items()}
    changes: dict[str, bytes | None] = {
        device: msgspec.json.encode(sorted(hosts))
        for device, hosts in listed.items()
        if held.get(device) != frozenset(hosts)
    }
    changes |= dict.fromkeys(held.keys() - listed.keys())
    if changes:
        store.write_notes(LISTED, changes)


def note_answer(store: Store, device: DeviceId, host: HostName) -> None:
    """Store the host of a disk that a person named; the worker that has the disk takes it over."""
    store.write_notes(ANSWERED, {device: host.encode()})


class ResidentDrives:
    """The residences of the disks of a worker. For one thread: the worker's."""

    def __init__(self, store: Store, limits: ResidenceLimits) -> None:
        self._store, self._limits = store, limits
        self._known: dict[DeviceId, Residence] = {}
        self._contested: set[DeviceId] = set()
        """Known disks that another host than the home claims."""
        self._whole = False
        self._listed: Mapping[str, frozenset[HostName]] = {}

    def forget(self) -> None:
        """Forget everything, since other processes may have read on from here."""
        self._known.clear()
        self._contested.clear()
        self._whole = False

    def load(self, latest: Mapping[DeviceId, Reading], *, whole: bool) -> frozenset[DeviceId]:
        """Load the residences of the devices of `latest` (their newest readings); `whole`: of every device.

        Returns separate histories without a claim: a crash came between the end of a claim and its cleanup.
        """
        held = read_residences(self._store)
        for device in held.keys() | latest.keys() if whole else latest.keys():
            if is_apart(device):
                continue
            residence, last = held.get(device), latest.get(device)
            if residence is None:
                assert last is not None
                residence = begin_residence(last)
            elif last is not None and last.host == residence.home:
                newest, heard = max(residence.newest, last.taken_at), max(residence.heard, last.received_at)
                residence = replace(residence, newest=newest, heard=heard)
            self._set(device, residence)
        self._whole = whole
        if not whole:
            return frozenset()
        claimed = {
            name_apart(device, host) for device, one in self._known.items() for host in one.hosts_apart
        }
        return frozenset(device for device in latest if is_apart(device) and device not in claimed)

    def get_residence(self, device: DeviceId) -> Residence:
        """Return the residence of a disk that was routed or loaded. Raises KeyError."""
        return self._known[device]

    def find_residence(self, device: DeviceId) -> Residence | None:
        """Return the residence of a disk; None before its first reading."""
        return self._known.get(device)

    def list_settled(self, now: datetime) -> tuple[tuple[DeviceId, ResidenceVerdict], ...]:
        """Return the disks whose host the cluster's list or a person has settled since, with the verdict."""
        if not self._contested:
            return ()
        self._listed = {
            name: frozenset(_HOSTS.decode(raw)) for name, raw in self._store.read_notes(LISTED).items()
        }
        answers = self._store.read_notes(ANSWERED)
        found: list[tuple[DeviceId, ResidenceVerdict]] = []
        # A verdict from the readings alone was applied when the deciding reading was routed.
        for device in sorted(self._contested & (answers.keys() | self._listed.keys())):
            residence = self._known[device]
            if device in answers:
                host = HostName(answers[device].decode())
                if host in {residence.home, *residence.hosts_apart}:
                    found.append((device, ResidenceVerdict(ResidenceState.SETTLED, host, SettledBy.PERSON)))
                else:
                    self.clear_answer(device)  # the claim of that host is over
                continue
            verdict = self._decide(device, residence, now)
            if verdict.state is ResidenceState.SETTLED and verdict.home != residence.home:
                found.append((device, verdict))
        return tuple(found)

    def clear_answer(self, device: DeviceId) -> None:
        """Delete a person's answer about a disk after it was applied."""
        self._store.write_notes(ANSWERED, {device: None})

    def refile_readings(
        self, device: DeviceId, verdict: ResidenceVerdict
    ) -> tuple[Residence, list[Reading], tuple[DeviceId, ...]]:
        """Give the disk's history to the host that the verdict names.

        Returns the residence after that, the readings that came into the disk's history (oldest first), and the
        devices whose history changed. The call may be repeated: until the residence is stored, the move stays
        due.
        """
        residence, host, store = self._known[device], verdict.home, self._store
        if host == residence.home:
            return confirm_home(residence), [], ()
        apart, elder = name_apart(device, host), name_apart(device, residence.home)
        history = store.readings(device)
        until = boundary_of(residence, host, verdict.by, history)
        left = [one for one in history if one.host == residence.home and one.taken_at > until]
        came = [one for one in store.readings(apart) if one.taken_at > until]
        if left:
            store.forget_newest(device)  # the newest record of the disk may be of its previous home
            store.refile_readings(left, elder)
        store.refile_readings(came, device)
        store.forget_newest(apart)
        after = move_home(residence, host, verdict.by, until)
        return after, [replace(one, device=device) for one in came], (apart, elder, device)

    def route_readings(self, readings: Sequence[Reading], now: datetime) -> RoutedReadings:
        """Route readings, in the order in which they were accepted, up to one that makes a disk move."""
        routed = RoutedReadings()
        # A set minus the keys of a dict would walk over all disks for each batch.
        unknown = {one.device for one in readings if one.device not in self._known}
        if unknown and not self._whole:
            self.load(self._store.latest_readings(unknown), whole=False)
        for place, reading in enumerate(readings):
            device = reading.device
            before = routed.residences.get(device) or self._known.get(device)
            if before is None:
                routed.residences[device] = begin_residence(reading)
                routed.readings.append(reading)
                routed.done = place + 1
                continue
            after, placement = place_reading(before, reading, self._limits)
            if after is not before:
                routed.residences[device] = after
            if after.claims:
                verdict = self._decide(device, after, now)
                if verdict.state is ResidenceState.SETTLED and verdict.home != after.home:
                    routed.move = device, verdict
                    return routed
            match placement:
                case Placement.HOME:
                    routed.readings.append(reading)
                case Placement.APART:
                    name = name_apart(device, reading.host)
                    routed.named.add(name)
                    routed.readings.append(replace(reading, device=name))
                case Placement.ABSENT:
                    pass
                case Placement.BACKDATED:
                    told = f"{reading.host} sent a reading of {device} of a time before the disk moved there"
                    routed.refused.append((place, NotAccepted(f"{told}: set that host's clock (NTP)")))
                case Placement.CROWDED:
                    told = f"{reading.host} names {device}, as {MOST_CLAIMS + 1} other hosts do"
                    routed.refused.append((place, NotAccepted(f"{told}: look at which of them has the disk")))
            routed.done = place + 1
        return routed

    def keep_residences(self, residences: Mapping[DeviceId, Residence]) -> None:
        """Remember the residences, and store those that do not follow from a disk's newest reading."""
        changes: dict[str, bytes | None] = {}
        for device, residence in residences.items():
            before = self._known.get(device)
            if residence.claims or _extract_lasting_facts(residence) != (
                _extract_lasting_facts(before) if before else _NOTHING
            ):
                noted = bool(residence.claims or residence.tenures)
                if noted or (before is not None and (before.claims or before.tenures)):
                    changes[device] = _RESIDENCE.write(residence) if noted else None
            self._set(device, residence)
        if changes:
            self._store.write_notes(RESIDENCES, changes)

    def _set(self, device: DeviceId, residence: Residence) -> None:
        self._known[device] = residence
        if residence.claims:
            self._contested.add(device)
        else:
            self._contested.discard(device)

    def _decide(self, device: DeviceId, residence: Residence, now: datetime) -> ResidenceVerdict:
        return decide_residence(residence, self._listed.get(device, ()), now, self._limits)


_NOTHING: Final = (None, (), ())


def _extract_lasting_facts(residence: Residence) -> tuple[object, ...]:
    """Return the part of a residence that the home's readings do not change, as long as no other host claims the
    disk.
    """
    if not residence.claims and not residence.tenures:
        return _NOTHING
    return residence.home, residence.tenures, residence.claims
