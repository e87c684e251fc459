"""What a decision may know beside the view: the survey, the other drains, the outlooks, and what this
process did.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from actions.cluster.port import Command
from actions.cluster.view import ClusterView
from actions.confirmation import ForecastPoint, WeighedDisk
from actions.ledger import found, key_of, pinned, same, value_of
from actions.policy import Policy
from actions.states import ACTIVE
from actions.survey import Survey, rests
from data.drain import Drain, DrainState, Intent
from data.ids import DeviceId, OsdId, PgId
from data.outlook import Outlook
from data.residence import Residence
from data.slow import Slowness


@dataclass(frozen=True, slots=True)
class Memory:
    """What this process has sent and seen. Lost with the process; the next one waits once before it
    trusts.
    """

    trusted_from: datetime
    """Statistics older than this say nothing: start, a new mgr, or our last command, each plus two
    periods.
    """
    mgr_id: str = ""
    dump_version: int = 0
    changed: Mapping[PgId, int] = field(default_factory=dict)
    """PGs whose mapping our last commands changed, with the epoch that their reports must have reached."""
    moving: frozenset[PgId] = frozenset()
    """PGs whose mapping our commands changed, that have reported, and have not been at rest since."""
    written: Mapping[str, tuple[str, frozenset[PgId]]] = field(default_factory=dict)
    """What our last commands were to write, by the ledger's keys, each with the PGs that it would change."""
    attempts: Mapping[str, int] = field(default_factory=dict)
    """How often this process wrote each key of the ledger without ever seeing it in the map."""
    planned: Mapping[str, tuple[int, datetime]] = field(default_factory=dict)
    """Fingerprint of the map under which each drain was planned, and when."""
    new_mgr: bool = False

    @classmethod
    def starting(cls, view: ClusterView, now: datetime, policy: Policy) -> Memory:
        """A process that has just begun, and cannot know what was sent a moment before."""
        return cls(now + _two_periods(policy), view.mgr_id, view.dump_version)

    def looked(self, view: ClusterView, now: datetime, policy: Policy) -> Memory:
        """After a look: a new mgr, or a dump whose version fell, must be waited for (ceph.md e).

        What would be trusted much later than a command of now was sent before the clock was set back; it is waited for
        as if it had been sent now. By how much `now` itself may be late, the view's age at most, does not count.
        """
        undone = self._undone(view)
        silent = {
            pg: epoch
            for pg, epoch in self.changed.items()
            if pg not in undone and not _reported(view, pg, epoch)
        }
        reported = (self.moving | self.changed.keys()) - silent.keys()
        moving = frozenset(pg for pg in reported if pg in view.pgs and not rests(view.pgs[pg]))
        written = {key: write for key, write in self.written.items() if write[1] & silent.keys()}
        soon = now + _two_periods(policy)
        trusted_from = soon if self.trusted_from > soon + policy.view_age_max else self.trusted_from
        memory = replace(self, changed=silent, moving=moving, written=written, trusted_from=trusted_from)
        if view.mgr_id == self.mgr_id and view.dump_version >= self.dump_version:
            return replace(
                memory,
                dump_version=view.dump_version,
                new_mgr=memory.new_mgr and view.as_of < memory.trusted_from,
            )
        later = max(memory.trusted_from, soon)
        return replace(
            memory, mgr_id=view.mgr_id, dump_version=view.dump_version, trusted_from=later, new_mgr=True
        )

    def sent(self, pgs: Mapping[PgId, int], keys: Iterable[str], now: datetime, policy: Policy) -> Memory:
        """After a command: its PGs must report, and the rest of the statistics must be younger than this."""
        attempts = dict(self.attempts)
        for key in keys:
            attempts[key] = attempts.get(key, 0) + 1
        return replace(
            self,
            changed={**self.changed, **pgs},
            attempts=attempts,
            trusted_from=max(self.trusted_from, now + _two_periods(policy)),
        )

    def writing(
        self, command: Command, pgs: frozenset[PgId], epoch: int, now: datetime, policy: Policy
    ) -> Memory:
        """After a command that was done, or may have been: `pgs` must report, if the map shows what it wrote."""
        write = {key_of(command): (value_of(command), pgs)}
        waits = self.sent(dict.fromkeys(pgs, epoch), (), now, policy)
        return replace(waits, written={**self.written, **write})

    def _undone(self, view: ClusterView) -> frozenset[PgId]:
        """PGs of commands that, as the map shows by now, were not done or not kept by the mon: they may have nothing to
        report, and while they are idle they do not.
        """
        if view.as_of < self.trusted_from:
            return frozenset()
        undone = (pgs for key, (value, pgs) in self.written.items() if not same(key, found(view, key), value))
        return frozenset(pg for pgs in undone for pg in pgs)

    def arrived(self, keys: Iterable[str]) -> Memory:
        """After these keys were seen in the map as they were written."""
        left = {key: count for key, count in self.attempts.items() if key not in set(keys)}
        return self if left == self.attempts else replace(self, attempts=left)

    def settled(self, view: ClusterView) -> bool:
        """Whether the view can already show what our last commands did."""
        return not self.changed and view.as_of >= self.trusted_from


def _two_periods(policy: Policy) -> timedelta:
    return timedelta(seconds=2 * policy.statistics_seconds)


def _reported(view: ClusterView, pg: PgId, epoch: int) -> bool:
    known = view.pgs.get(pg)
    return known is None or known.reported_epoch >= epoch


@dataclass(frozen=True, slots=True)
class Context:
    """Everything a guard may ask beside view, drain and policy."""

    survey: Survey
    outlooks: Mapping[DeviceId, Outlook]
    drains: tuple[Drain, ...]
    now: datetime
    memory: Memory
    halted: str | None = None
    lease_held: bool = True
    bad_since: Mapping[DeviceId, datetime] = field(default_factory=dict)
    """Since when each device has been called bad without a break."""
    forecasts: Mapping[DeviceId, tuple[ForecastPoint, ...]] = field(default_factory=dict)
    """What was forecast of disks whose drain pays, reading by reading, oldest first."""
    weighed: Mapping[DeviceId, WeighedDisk] = field(default_factory=dict)
    """Disks whose drain was weighed at this look (`actions.weighing`)."""
    bytes_per_second: float | None = None
    """The pace of a drain, as it was measured here; None: no drain has ended."""
    bundle_since: datetime | None = None
    """When the bundle in use replaced another one; None: not within memory."""
    slow: Slowness = field(default_factory=Slowness)
    """OSDs that answer slower than their peers."""
    residences: Mapping[DeviceId, Residence] = field(default_factory=dict)
    """Where disks live that more than one host ever named."""

    def others(self, drain: Drain) -> tuple[Drain, ...]:
        """Every other drain that holds part of the budget, or is paused while it does."""
        return tuple(other for other in self.drains if other.id != drain.id and engaged(other))

    def draining(self) -> frozenset[OsdId]:
        """OSDs that some drain empties now: no target for anybody."""
        return frozenset(
            osd for drain in self.drains if engaged(drain) and _empties(drain) for osd in drain.osds
        )

    def touched(self) -> frozenset[PgId]:
        """PGs that an engaged drain has pinned, or that our commands changed: their unrest is ours."""
        pins = (pg for drain in self.drains if engaged(drain) for pg in pinned(drain.ours))
        return frozenset(pins) | self.memory.changed.keys() | self.memory.moving


def engaged(drain: Drain) -> bool:
    """Under way, or paused or broken while it was."""
    if drain.state in (DrainState.PAUSED, DrainState.FAILED):
        return drain.resume_to in ACTIVE
    return drain.state in ACTIVE


def _empties(drain: Drain) -> bool:
    cancelling = drain.state is DrainState.CANCELLING
    return (
        cancelling
        if drain.intent is Intent.FILL
        else not cancelling and drain.intent is not Intent.QUARANTINE
    )
