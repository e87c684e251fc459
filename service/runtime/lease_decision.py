"""Which of the services that share a store is the active one: a pure function of the lease's rows and the time.

The lease is two notes of the store. `ActiveService` changes with each term, and `LeaseBeat` with each renewal. A
standby measures on its own clock how long both stay as they are, so that no clocks of two machines are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, StrEnum

import msgspec

LEASE_SECONDS = 15.0
"""Seconds without a renewal after which another service takes the lease."""
RENEWAL_SECONDS = 3.0
"""Seconds between two reads of the lease, and between two renewals."""
OWN_SECONDS = 10.0
"""Seconds for which the active service trusts a renewal, counted from before the renewal was requested."""
UNSEEN_SECONDS = 7.5
"""Seconds between two reads after which a standby measures from the start: it stood still, or the store was away, and
the active service may have been unable to renew for the same reason."""


class LeaseRank(IntEnum):
    """The parts of the work that a process can do; a higher rank takes the lease from a lower one at once."""

    SHOWS = 0
    """The process never acts on a cluster (`predrain serve`)."""
    ACTS = 1
    """The process acts on a cluster if it holds the cluster's lease."""
    LEADS = 2
    """The process holds the cluster's lease."""


class ActiveService(msgspec.Struct, frozen=True):
    """The service that was made the active one. `name`: of its process, empty after it gave the lease back. `url`: the
    address at which it answers, empty if it answers at none.
    """

    name: str
    term: int
    since: datetime
    url: str = ""


class LeaseBeat(msgspec.Struct, frozen=True):
    """The last renewal of a term."""

    term: int
    count: int
    rank: int


@dataclass(frozen=True, slots=True)
class LeaseRows:
    """The lease as the store has it; a new store has neither row."""

    active: ActiveService | None = None
    beat: LeaseBeat | None = None


@dataclass(frozen=True, slots=True)
class ObservedLease:
    """The lease as one process has read it. Times are seconds of that process's monotonic clock.

    since: when these rows were first read. read_at: when they were last read.
    """

    rows: LeaseRows
    since: float
    read_at: float


class LeaseStep(StrEnum):
    """The next step of a process."""

    RENEW = "renew"
    TAKE = "take"
    WAIT = "wait"


def observe_lease(before: ObservedLease | None, rows: LeaseRows, now: float) -> ObservedLease:
    """Return what is known of the lease after it was read as `rows` at `now`."""
    if before is None or before.rows != rows or not 0 <= now - before.read_at <= UNSEEN_SECONDS:
        return ObservedLease(rows, now, now)
    return ObservedLease(rows, before.since, now)


def decide_lease_step(observed: ObservedLease, name: str, rank: LeaseRank) -> LeaseStep:
    """Return the next step of the process `name`.

    The holder renews. Another process takes a lease that is free, or that was not renewed for LEASE_SECONDS. The
    process that holds the cluster's lease takes it at once, and so does one that can act from one that cannot.
    """
    active, beat = observed.rows.active, observed.rows.beat
    if active is None or not active.name:
        return LeaseStep.TAKE
    if active.name == name:
        return LeaseStep.RENEW
    held_by = LeaseRank.ACTS if beat is None else beat.rank
    if rank is LeaseRank.LEADS or rank > held_by:
        return LeaseStep.TAKE
    return LeaseStep.TAKE if observed.read_at - observed.since >= LEASE_SECONDS else LeaseStep.WAIT
