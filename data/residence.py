"""Which host a disk lives in, where more than one host names the disk. Pure functions of values.

Two hosts may name one serial number because the disk moved, because two drives carry the same serial number, because
both hosts reach the disk, or because one host sends what is not true. Until it is settled which host is the home, the
readings of each host are a history of their own: the home's under the device id, any other host's under
`name_apart(device, host)`. Nothing that another host sends changes the home's history.

`place_reading` says where one reading belongs and what is known after it, `decide_residence` which host is the home
now, `move_home` what is known after a move. All three depend on readings, the cluster's list and people's answers
alone, so that any batching of the same readings gives the same result.
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
"""The host of readings whose sender names none; every host that has a name goes before it."""
BETWEEN = " on "
"""Between device id and host in the name of a history that is kept apart; no device id may hold it."""
MOST_CLAIMS = 8
"""Hosts beside the home whose histories of one disk are kept."""
MOST_TENURES = 4
"""Earlier homes of which late readings are still taken into the disk's history."""


class Placement(StrEnum):
    """Where a reading belongs."""

    HOME = "home"
    """In the disk's own history."""
    APART = "apart"
    """In the history of the host that sent it."""
    ABSENT = "absent"
    """Nowhere: a host that is not the home says that it lacks the disk."""
    BACKDATED = "backdated"
    """Nowhere: the home sent it, of a time before the disk moved there."""
    CROWDED = "crowded"
    """Nowhere: too many hosts name the disk."""


class ResidenceState(StrEnum):
    """How sure it is which host a disk lives in."""

    SETTLED = "settled"
    MOVING = "moving"
    """Another host reads the disk, and the home has not spoken since: the home's silence will settle it."""
    CONTESTED = "contested"
    """The home and another host name the disk at the same time: they are two disks until it is settled."""
    ASKED = "asked"
    """Contested for so long that a person has to say which host has the disk."""


class Settler(StrEnum):
    """What settled a residence."""

    NOBODY_ELSE = "nobody_else"
    CLUSTER = "cluster"
    SILENCE = "silence"
    """The home was silent for `ResidenceLimits.silence`, or said that the disk is gone before the other host had it."""
    PERSON = "person"


@dataclass(frozen=True, slots=True)
class ResidenceLimits:
    """The named times of the rule."""

    silence: timedelta = timedelta(hours=6)
    """After so long a silence of the home, the one other host that reads the disk is its home."""
    ask: timedelta = timedelta(hours=24)
    """After so long a contest a person is asked; a claim that was not repeated for so long is over."""


@dataclass(frozen=True, slots=True)
class HostClaim:
    """A host that is not the home and names the disk."""

    host: HostName
    since: datetime
    """When its first reading was received."""
    heard: datetime
    """When its newest reading was taken: a backdated reading is no proof that the host has the disk now."""
    overlaps: bool = False
    """Whether the home spoke of the disk after `since`."""
    distinct: bool = False
    """Whether a person said that this host's disk is another one."""


@dataclass(frozen=True, slots=True)
class Tenure:
    """The time in which a host was the home: after `after` (None: ever), up to and including `until`."""

    host: HostName
    after: datetime | None
    until: datetime


@dataclass(frozen=True, slots=True)
class Residence:
    """What is known of where one disk lives."""

    home: HostName
    newest: datetime
    """When the newest reading of the disk's own history was taken."""
    heard: datetime
    """When the home last named the disk, by the time of receipt."""
    after: datetime | None = None
    """The home's readings count from after then on; None: ever."""
    gone: bool = False
    """Whether the home's last word is that it lacks the disk."""
    claims: tuple[HostClaim, ...] = ()
    tenures: tuple[Tenure, ...] = ()
    """Earlier homes, oldest first."""

    @property
    def hosts_apart(self) -> frozenset[HostName]:
        """Hosts whose histories of this disk are kept apart."""
        return frozenset(claim.host for claim in self.claims)


@dataclass(frozen=True, slots=True)
class ResidenceVerdict:
    """Which host a disk lives in, and how sure that is."""

    state: ResidenceState
    home: HostName
    by: Settler = Settler.NOBODY_ELSE
    """What settled it; of no meaning where it is not settled."""
    rivals: tuple[HostName, ...] = ()
    """Other hosts that may have the disk, in order."""
    since: datetime | None = None
    """Since when it is not settled."""

    @property
    def is_contested(self) -> bool:
        """Whether two hosts name the disk at the same time, and nothing has settled which of them has it."""
        return self.state in (ResidenceState.CONTESTED, ResidenceState.ASKED)


def name_apart(device: DeviceId, host: HostName) -> DeviceId:
    """The name of the history of `device` that `host` sends while another host is the disk's home."""
    return DeviceId(f"{device}{BETWEEN}{host}")


def is_apart(device: DeviceId) -> bool:
    """Whether the name is one of a history that is kept apart."""
    return BETWEEN in device


def begin_residence(reading: Reading) -> Residence:
    """What is known after the first reading of a disk, or after the newest one that a store has of it."""
    return Residence(reading.host, reading.taken_at, reading.received_at, gone=_says_gone(reading))


def place_reading(
    residence: Residence, reading: Reading, limits: ResidenceLimits
) -> tuple[Residence, Placement]:
    """What is known after a reading, and where it belongs."""
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
    """Which host the disk lives in.

    residence: None where only one host ever named the disk; then `listed` is not empty.
    listed: hosts in which the cluster's own device list has the disk; empty without a cluster. The list decides where
    it names exactly one of the hosts that name the disk; where it names several, they are two disks of one name.
    `now` tells only whether a person is asked by now.
    """
    if residence is None:
        first, *others = sorted(listed)
        state = ResidenceState.CONTESTED if others else ResidenceState.SETTLED
        return ResidenceVerdict(state, first, Settler.CLUSTER, tuple(others))
    home = residence.home
    open_claims = tuple(claim for claim in residence.claims if not claim.distinct)
    hosts = {home, *residence.hosts_apart}
    named = {host for host in hosts if any(is_same_host(host, one) for one in listed)}
    if len(named) == 1:
        return ResidenceVerdict(ResidenceState.SETTLED, named.pop(), Settler.CLUSTER)
    if not open_claims:
        by = Settler.PERSON if residence.claims else Settler.NOBODY_ELSE
        return ResidenceVerdict(ResidenceState.SETTLED, home, by)
    newest = max(open_claims, key=lambda claim: (claim.heard, claim.host))
    live = [claim for claim in open_claims if newest.heard - claim.heard < limits.silence]
    if len(named) < 2 and len(live) == 1 and _succeeds(residence, newest, limits):
        return ResidenceVerdict(ResidenceState.SETTLED, newest.host, Settler.SILENCE)
    since = min(claim.since for claim in open_claims)
    at_once = len(live) > 1 or len(named) > 1 or any(claim.overlaps for claim in open_claims)
    state = ResidenceState.MOVING
    if at_once:
        state = ResidenceState.ASKED if now - since >= limits.ask else ResidenceState.CONTESTED
    rivals = tuple(sorted(claim.host for claim in open_claims))
    return ResidenceVerdict(state, home, rivals=rivals, since=since)


def move_home(residence: Residence, host: HostName, by: Settler, at: datetime) -> Residence:
    """What is known after `host`, which had a claim, became the home; it takes over the elder home's past up to `at`.

    at: what `boundary_of` says. What the elder home sends of a later time is kept apart; where a person decided, it is
    of another disk.
    """
    claim = next(one for one in residence.claims if one.host == host)
    by_person = by is Settler.PERSON
    others = tuple(
        replace(one, overlaps=False, distinct=by_person or one.distinct)
        for one in residence.claims
        if one is not claim
    )
    if claim.overlaps or by is not Settler.SILENCE:
        others = (*others, HostClaim(residence.home, claim.since, residence.newest, distinct=by_person))
    undone = _undone(residence, host, by)
    tenure = Tenure(residence.home, residence.after, at)
    return Residence(
        home=host,
        newest=max(claim.heard, at),
        heard=max(claim.heard, claim.since),
        after=undone.after if undone else at,
        claims=others,
        tenures=residence.tenures[:-1] if undone else (*residence.tenures, tenure)[-MOST_TENURES:],
    )


def boundary_of(residence: Residence, host: HostName, by: Settler, history: Collection[Reading]) -> datetime:
    """The last instant of the elder home's readings that stay in the disk's history after a move to `host`.

    history: the disk's own history. A move by silence leaves all of it. Where both hosts spoke at the same time, they
    were two disks from the claim's begin on; where an earlier home is put back, from the elder home's begin on.
    """
    claim = next(one for one in residence.claims if one.host == host)
    if (undone := _undone(residence, host, by)) is not None:
        return undone.until
    if by is Settler.SILENCE or not claim.overlaps:
        return residence.newest
    earlier = [one.taken_at for one in history if one.taken_at <= claim.since]
    return max(earlier, default=claim.since)


def _undone(residence: Residence, host: HostName, by: Settler) -> Tenure | None:
    """The tenure that a decision for the last home before this one puts back."""
    last = residence.tenures[-1] if residence.tenures else None
    return last if last is not None and last.host == host and by is not Settler.SILENCE else None


def confirm_home(residence: Residence) -> Residence:
    """What is known after a person said that the home is right: every other host's disk is another one."""
    return replace(residence, claims=tuple(replace(claim, distinct=True) for claim in residence.claims))


def _after_home(residence: Residence, reading: Reading, limits: ResidenceLimits) -> Residence:
    newest, received = max(residence.newest, reading.taken_at), reading.received_at
    if _says_gone(reading):
        # A reading that comes late does not take back what the home said later.
        return replace(residence, newest=newest, gone=residence.gone or reading.taken_at >= residence.newest)
    gone = residence.gone and reading.taken_at < residence.newest
    heard = max(residence.heard, received)
    if not residence.claims:
        return replace(residence, newest=newest, heard=heard, gone=gone)
    claims = tuple(
        claim if claim.overlaps or received <= claim.since else replace(claim, overlaps=True)
        for claim in residence.claims
        if claim.distinct or heard - claim.heard <= limits.ask
    )
    return replace(residence, newest=newest, heard=heard, gone=gone, claims=claims)


def _succeeds(residence: Residence, claim: HostClaim, limits: ResidenceLimits) -> bool:
    """Whether the home has left the disk to the one other host that reads it."""
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
