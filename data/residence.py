"""Decides in which host a disk lives if more than one host names the disk. Pure functions of values.

Two hosts may name one serial number because the disk moved, because two drives carry the same serial number, because
both hosts reach the disk, or because one host sends false data. Until the home is decided, the readings of each host
are a history of their own: the home's under the device id, any other host's under `name_apart(device, host)`.
Readings of another host never change the home's history.

`place_reading` decides where one reading belongs and updates the residence, `decide_residence` decides which host is
the home now, and `move_home` updates the residence after a move. All three depend only on readings, the cluster's
list and people's answers, so any batching of the same readings gives the same result.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from predrain.data.host_names import is_same_host
from predrain.data.ids import DeviceId, HostName
from predrain.data.reading import Reading, Unreadable

UNKNOWN_HOST = HostName("unknown")
"""The host of readings whose sender names none; every host that has a name takes precedence over it."""
BETWEEN = " on "
"""Text between device id and host in the name of a history that is kept apart; no device id may hold it."""
MOST_CLAIMS = 8
"""Hosts beside the home whose histories of one disk are kept."""
MOST_TENURES = 4
"""Earlier homes whose late readings are still taken into the disk's history."""


class Placement(StrEnum):
    """The history to which a reading belongs."""

    HOME = "home"
    """The reading belongs to the disk's own history."""
    APART = "apart"
    """The reading belongs to the history of the host that sent it."""
    ABSENT = "absent"
    """The reading belongs to no history: a host that is not the home reports that it lacks the disk."""
    BACKDATED = "backdated"
    """The reading belongs to no history: the home sent it for a time before the disk moved there."""
    CROWDED = "crowded"
    """The reading belongs to no history: too many hosts name the disk."""


class ResidenceState(StrEnum):
    """The certainty about the host in which a disk lives."""

    SETTLED = "settled"
    MOVING = "moving"
    """Another host reads the disk, and the home has sent nothing since: the home's silence will settle it."""
    CONTESTED = "contested"
    """The home and another host name the disk at the same time: they count as two disks until it is settled."""
    ASKED = "asked"
    """The home is contested for so long that a person has to name the host that has the disk."""


class SettledBy(StrEnum):
    """The observation or person that settled a residence."""

    NOBODY_ELSE = "nobody_else"
    CLUSTER = "cluster"
    SILENCE = "silence"
    """The home was silent for `ResidenceLimits.silence`, or reported that the disk is gone before the other host had
    it."""
    PERSON = "person"


@dataclass(frozen=True, slots=True)
class ResidenceLimits:
    """The named times of the rule."""

    silence: timedelta = timedelta(hours=6)
    """Silence of the home after which the one other host that reads the disk becomes its home."""
    ask: timedelta = timedelta(hours=24)
    """Length of a contest after which a person is asked, and time after which a claim that was not repeated is over."""


@dataclass(frozen=True, slots=True)
class HostClaim:
    """A host that is not the home and names the disk."""

    host: HostName
    since: datetime
    """Time when the host's first reading was received."""
    heard: datetime
    """Time when the host's newest reading was taken: a backdated reading is no proof that the host has the disk now."""
    overlaps: bool = False
    """True if the home named the disk after `since`."""
    distinct: bool = False
    """True if a person said that this host's disk is another one."""


@dataclass(frozen=True, slots=True)
class HomePeriod:
    """The time in which a host was the home: after `after` (None: from the beginning), up to and including `until`."""

    host: HostName
    after: datetime | None
    until: datetime


@dataclass(frozen=True, slots=True)
class Residence:
    """The knowledge about the home of one disk."""

    home: HostName
    newest: datetime
    """Time when the newest reading of the disk's own history was taken."""
    heard: datetime
    """Time when the home last named the disk, by the time of receipt."""
    after: datetime | None = None
    """The home's readings count if they are later than this time; None: all count."""
    gone: bool = False
    """True if the home last reported that it lacks the disk."""
    claims: tuple[HostClaim, ...] = ()
    tenures: tuple[HomePeriod, ...] = ()
    """Earlier homes, oldest first."""

    @property
    def hosts_apart(self) -> frozenset[HostName]:
        """Hosts whose histories of this disk are kept apart."""
        return frozenset(claim.host for claim in self.claims)


@dataclass(frozen=True, slots=True)
class ResidenceVerdict:
    """The home of a disk, and how certain it is."""

    state: ResidenceState
    home: HostName
    by: SettledBy = SettledBy.NOBODY_ELSE
    """The reason by which the home was settled; meaningless if it is not settled."""
    rivals: tuple[HostName, ...] = ()
    """Other hosts that may have the disk, in order."""
    since: datetime | None = None
    """Time since which the home is not settled."""

    @property
    def is_contested(self) -> bool:
        """True if two hosts name the disk at the same time, and nothing has settled which of them has it."""
        return self.state in (ResidenceState.CONTESTED, ResidenceState.ASKED)


def name_apart(device: DeviceId, host: HostName) -> DeviceId:
    """Return the name of the history of `device` that `host` sends while another host is the disk's home."""
    return DeviceId(f"{device}{BETWEEN}{host}")


def is_apart(device: DeviceId) -> bool:
    """Return whether the name is that of a history that is kept apart."""
    return BETWEEN in device


def begin_residence(reading: Reading) -> Residence:
    """Begin the residence of a disk with its first reading, or with the newest one that a store has of it."""
    return Residence(reading.host, reading.taken_at, reading.received_at, gone=_says_gone(reading))


def place_reading(
    residence: Residence, reading: Reading, limits: ResidenceLimits
) -> tuple[Residence, Placement]:
    """Return the residence after a reading, and the history to which the reading belongs."""
    if reading.host == residence.home:
        if residence.after is not None and reading.taken_at <= residence.after:
            within = _is_of_an_earlier_home(residence, reading)
            return residence, Placement.HOME if within else Placement.BACKDATED
        return _after_home(residence, reading, limits), Placement.HOME
    if _is_of_an_earlier_home(residence, reading):
        return residence, Placement.HOME
    known = next((claim for claim in residence.claims if claim.host == reading.host), None)
    if _says_gone(reading):
        left = tuple(claim for claim in residence.claims if claim is not known)
        return replace(residence, claims=left) if known else residence, Placement.ABSENT
    if known is None and len(residence.claims) >= MOST_CLAIMS:
        return residence, Placement.CROWDED
    if known is None:
        new = HostClaim(reading.host, reading.received_at, reading.taken_at)
        return replace(residence, claims=(*residence.claims, new)), Placement.APART
    heard = replace(
        known, heard=max(known.heard, reading.taken_at), since=min(known.since, reading.received_at)
    )
    claims = tuple(heard if claim is known else claim for claim in residence.claims)
    return replace(residence, claims=claims), Placement.APART


def decide_residence(
    residence: Residence | None, listed: Collection[HostName], now: datetime, limits: ResidenceLimits
) -> ResidenceVerdict:
    """Decide which host is the home of the disk.

    `residence` is None if only one host ever named the disk; then `listed` is not empty. `listed` holds the hosts in
    which the cluster's own device list has the disk; it is empty without a cluster. The list decides if it names
    exactly one of the hosts that name the disk. If it names several, they are two disks of one name. `now` only
    decides whether it is time to ask a person.
    """
    if residence is None:
        first, *others = sorted(listed)
        state = ResidenceState.CONTESTED if others else ResidenceState.SETTLED
        return ResidenceVerdict(state, first, SettledBy.CLUSTER, tuple(others))
    home = residence.home
    open_claims = tuple(claim for claim in residence.claims if not claim.distinct)
    hosts = {home, *residence.hosts_apart}
    named = {host for host in hosts if any(is_same_host(host, one) for one in listed)}
    if len(named) == 1:
        return ResidenceVerdict(ResidenceState.SETTLED, named.pop(), SettledBy.CLUSTER)
    if not open_claims:
        by = SettledBy.PERSON if residence.claims else SettledBy.NOBODY_ELSE
        return ResidenceVerdict(ResidenceState.SETTLED, home, by)
    newest = max(open_claims, key=lambda claim: (claim.heard, claim.host))
    live = [claim for claim in open_claims if newest.heard - claim.heard < limits.silence]
    if len(named) < 2 and len(live) == 1 and _has_home_moved(residence, newest, limits):
        return ResidenceVerdict(ResidenceState.SETTLED, newest.host, SettledBy.SILENCE)
    since = min(claim.since for claim in open_claims)
    at_once = len(live) > 1 or len(named) > 1 or any(claim.overlaps for claim in open_claims)
    state = ResidenceState.MOVING
    if at_once:
        state = ResidenceState.ASKED if now - since >= limits.ask else ResidenceState.CONTESTED
    rivals = tuple(sorted(claim.host for claim in open_claims))
    return ResidenceVerdict(state, home, rivals=rivals, since=since)


def move_home(residence: Residence, host: HostName, by: SettledBy, at: datetime) -> Residence:
    """Return the residence after `host`, which had a claim, became the home.

    The new home takes over the history of the old home up to `at`, which is the result of `boundary_of`. Later
    readings of the old home are kept apart; if a person decided, they are of another disk.
    """
    claim = next(one for one in residence.claims if one.host == host)
    by_person = by is SettledBy.PERSON
    others = tuple(
        replace(one, overlaps=False, distinct=by_person or one.distinct)
        for one in residence.claims
        if one is not claim
    )
    if claim.overlaps or by is not SettledBy.SILENCE:
        others = (*others, HostClaim(residence.home, claim.since, residence.newest, distinct=by_person))
    undone = _find_undone_tenure(residence, host, by)
    tenure = HomePeriod(residence.home, residence.after, at)
    return Residence(
        home=host,
        newest=max(claim.heard, at),
        heard=max(claim.heard, claim.since),
        after=undone.after if undone else at,
        claims=others,
        tenures=residence.tenures[:-1] if undone else (*residence.tenures, tenure)[-MOST_TENURES:],
    )


def boundary_of(
    residence: Residence, host: HostName, by: SettledBy, history: Collection[Reading]
) -> datetime:
    """Return the last instant of the old home's readings that stay in the disk's history after a move to `host`.

    `history` is the disk's own history. A move by silence leaves all of it. If both hosts named the disk at the same
    time, they were two disks since the claim began. If an earlier home is put back, they were two since the old
    home's tenure began.
    """
    claim = next(one for one in residence.claims if one.host == host)
    if (undone := _find_undone_tenure(residence, host, by)) is not None:
        return undone.until
    if by is SettledBy.SILENCE or not claim.overlaps:
        return residence.newest
    earlier = [one.taken_at for one in history if one.taken_at <= claim.since]
    return max(earlier, default=claim.since)


def _find_undone_tenure(residence: Residence, host: HostName, by: SettledBy) -> HomePeriod | None:
    """Return the previous home's tenure if a decision puts that home back, or None."""
    last = residence.tenures[-1] if residence.tenures else None
    return last if last is not None and last.host == host and by is not SettledBy.SILENCE else None


def confirm_home(residence: Residence) -> Residence:
    """Return the residence after a person confirmed the home: every other host's disk is another one."""
    return replace(residence, claims=tuple(replace(claim, distinct=True) for claim in residence.claims))


def _after_home(residence: Residence, reading: Reading, limits: ResidenceLimits) -> Residence:
    newest, received = max(residence.newest, reading.taken_at), reading.received_at
    if _says_gone(reading):
        # A late reading does not take back a later statement of the home.
        return replace(residence, newest=newest, gone=residence.gone or reading.taken_at >= residence.newest)
    gone = residence.gone and reading.taken_at < residence.newest
    heard = max(residence.heard, received)
    if not residence.claims:  # the usual case
        return Residence(residence.home, newest, heard, residence.after, gone, (), residence.tenures)
    claims = tuple(
        claim if claim.overlaps or received <= claim.since else replace(claim, overlaps=True)
        for claim in residence.claims
        if claim.distinct or heard - claim.heard <= limits.ask
    )
    return replace(residence, newest=newest, heard=heard, gone=gone, claims=claims)


def _has_home_moved(residence: Residence, claim: HostClaim, limits: ResidenceLimits) -> bool:
    """Return whether the disk has left the home for the one other host that reads it."""
    if residence.home == UNKNOWN_HOST:
        return True
    if claim.heard - residence.heard >= limits.silence:
        return True
    return residence.gone and not claim.overlaps and claim.heard > residence.heard


def _is_of_an_earlier_home(residence: Residence, reading: Reading) -> bool:
    return any(
        one.host == reading.host
        and reading.taken_at <= one.until
        and (one.after is None or reading.taken_at > one.after)
        for one in residence.tenures
    )


def _says_gone(reading: Reading) -> bool:
    return isinstance(reading.seen, Unreadable) and not reading.seen.cause.names_disk
