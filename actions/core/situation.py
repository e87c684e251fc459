"""What a decision may know beside the view: the survey, the other drains, the outlooks, and what this
process did.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.claimed_settings import pinned
from predrain.actions.core.forecast_confirmation import ForecastPoint, WeighedDisk
from predrain.actions.core.pg_survey import Survey, rests
from predrain.actions.core.policy import Policy
from predrain.actions.core.state_machine import ACTIVE
from predrain.data.clock import lately
from predrain.data.drain import Drain, DrainState
from predrain.data.ids import DeviceId, OsdId, PgId
from predrain.data.outlook import Outlook
from predrain.data.residence import Residence
from predrain.data.setting import Setting, UpmapItem
from predrain.data.slow import Slowness


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
    shown: bool = False
    """Whether every PG that our commands changed has reported since from where the map sends it."""
    unseen: bool = True
    """Whether there was a start, a new mgr or a command of ours that no PG's report shows: time must pass then."""
    changed: Mapping[PgId, int] = field(default_factory=dict)
    """PGs whose mapping our last commands changed, with the epoch that their reports must have reached."""
    moving: frozenset[PgId] = frozenset()
    """PGs whose mapping our commands changed, that have reported, and have not been at rest since."""
    unreported: Mapping[PgId, tuple[int, ...]] = field(default_factory=dict)
    """Of `changed`, those that the map sends elsewhere than they last reported, with their `up` by the map."""
    attempts: Mapping[Setting, int] = field(default_factory=dict)
    """How often this process wrote each key of the ledger without ever seeing it in the map."""
    planned: Mapping[str, tuple[int, datetime]] = field(default_factory=dict)
    """Fingerprint of the map under which each drain was planned, and when."""
    paced: Mapping[str, datetime] = field(default_factory=dict)
    """When the budget of each drain was last judged."""
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
        silent = {pg: epoch for pg, epoch in self.changed.items() if not _reported(view, pg, epoch)}
        shown = self.shown or (not silent and not self.unseen and self._are_placed(view))
        unreported = self._find_unreported(view, silent)
        silent = {pg: epoch for pg, epoch in silent.items() if pg in unreported}
        reported = (self.moving | self.changed.keys()) - silent.keys()
        moving = frozenset(pg for pg in reported if pg in view.pgs and not rests(view.pgs[pg]))
        soon = now + _two_periods(policy)
        trusted_from = soon if self.trusted_from > soon + policy.view_age_max else self.trusted_from
        memory = replace(
            self,
            shown=shown,
            unseen=self.unseen and view.as_of < trusted_from,
            changed=silent,
            moving=moving,
            unreported=unreported,
            trusted_from=trusted_from,
        )
        if view.mgr_id == self.mgr_id and view.dump_version >= self.dump_version:
            return replace(
                memory,
                dump_version=view.dump_version,
                new_mgr=memory.new_mgr and view.as_of < memory.trusted_from,
            )
        later = max(memory.trusted_from, soon)
        return replace(
            memory,
            mgr_id=view.mgr_id,
            dump_version=view.dump_version,
            trusted_from=later,
            new_mgr=True,
            shown=False,
            unseen=True,
        )

    def sent(
        self,
        pgs: Mapping[PgId, int],
        keys: Iterable[Setting],
        now: datetime,
        policy: Policy,
        *,
        known: bool = True,
    ) -> Memory:
        """After a command: its PGs must report, and the rest of the statistics must be younger than this.

        known: whether the epoch after which they must report was told by the cluster.
        """
        attempts = dict(self.attempts)
        for key in keys:
            attempts[key] = attempts.get(key, 0) + 1
        return replace(
            self,
            shown=False,
            unseen=self.unseen or not (pgs and known),
            changed={**self.changed, **pgs},
            attempts=attempts,
            trusted_from=max(self.trusted_from, now + _two_periods(policy)),
        )

    def _find_unreported(self, view: ClusterView, silent: Mapping[PgId, int]) -> dict[PgId, tuple[int, ...]]:
        """Of PGs that have not reported since our commands, those that have something to report, with their `up`.

        A PG whose `up` is by the map what it last reported has nothing to report, and while it is idle it does not: the
        command changed no placement, or the mon did not keep it. That is believed of a map that shows the command, and
        of statistics that are younger than it.
        """
        if not silent:
            return {}
        # numpy and the placement come with the first step, not with the first answer of a service that starts.
        from predrain.actions.crush.choose import CannotPlace
        from predrain.actions.placement.what_if import placed

        young = view.as_of >= self.trusted_from
        try:
            computed = placed(view, (), silent.keys())
        except CannotPlace:
            return {} if young else {pg: view.pgs[pg].up for pg in silent}
        return {
            pg: up
            for pg, up in computed.items()
            if up != view.pgs[pg].up or not young or view.epoch < silent[pg]
        }

    def _are_placed(self, view: ClusterView) -> bool:
        """Whether each PG that our commands changed serves where the map sends it by now."""
        from predrain.actions.crush.choose import CannotPlace
        from predrain.actions.placement.what_if import placed

        try:
            computed = placed(view, (), [pg for pg in self.changed if pg in view.pgs])
        except CannotPlace:
            return False
        return bool(computed) and all(up == view.pgs[pg].up for pg, up in computed.items())

    def arrived(self, keys: Iterable[Setting]) -> Memory:
        """After these keys were seen in the map as they were written."""
        left = {key: count for key, count in self.attempts.items() if key not in set(keys)}
        return self if left == self.attempts else replace(self, attempts=left)

    def note_decisions(
        self, planned: Mapping[str, tuple[int, datetime]], paced: Mapping[str, datetime]
    ) -> Memory:
        """After a decision: under which maps drains were planned, and whose budgets were judged."""
        if not planned and not paced:
            return self
        return replace(self, planned={**self.planned, **planned}, paced={**self.paced, **paced})

    def is_pace_due(self, drain: str, now: datetime, policy: Policy) -> bool:
        """Whether a drain's budget may be judged anew: looks that follow a step come sooner than a tick apart."""
        judged = self.paced.get(drain)
        return judged is None or not lately(judged, now, timedelta(seconds=policy.tick_seconds))

    def is_trusted(self, view: ClusterView) -> bool:
        """Whether all statistics are younger than our last command by two periods."""
        return view.as_of >= self.trusted_from

    def settled(self, view: ClusterView, pgs: Collection[PgId] | None = None) -> bool:
        """Whether the view can already show what our last commands did to `pgs`, or to every PG (None).

        A report of each PG that they changed shows it, from where the map sends the PG. Where one has nothing to
        report, or a command changed no PG, time must pass.
        """
        waiting = self.changed.keys() if pgs is None else self.changed.keys() & set(pgs)
        return not waiting and (self.shown or self.is_trusted(view))


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
    """Disks whose drain was weighed at this look (`actions.core.cost_assessment`)."""
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

    def list_claimants(self, drain: Drain) -> tuple[Drain, ...]:
        """Every other drain whose writes still count: it may be cancelled, or its OSD stands empty because of it."""
        return tuple(other for other in self.drains if other.id != drain.id and self.still_claims(other))

    def still_claims(self, drain: Drain) -> bool:
        """Whether a drain has written to the cluster, and may still be cancelled, has an OSD that stands empty, or was
        cancelled and left pins for drains that stay.
        """
        paused = drain.state in (DrainState.PAUSED, DrainState.FAILED)
        state = drain.resume_to if paused else drain.state
        if engaged(drain) or state is DrainState.VERIFIED:
            return True
        if state is DrainState.CANCELLED:
            return any(isinstance(key, UpmapItem) for key in drain.ours)
        return stands_empty(drain, self.survey.view)

    def draining(self) -> frozenset[OsdId]:
        """OSDs that some drain empties now: no target for anybody."""
        return frozenset(
            osd for drain in self.drains if engaged(drain) and _empties(drain) for osd in drain.osds
        )

    def touched(self) -> frozenset[PgId]:
        """PGs that an engaged drain has pinned, or that our commands changed: their unrest is ours."""
        pins = (pg for drain in self.drains if engaged(drain) for pg in pinned(drain.ours))
        return frozenset(pins) | self.memory.changed.keys() | self.memory.moving


def stands_empty(drain: Drain, view: ClusterView) -> bool:
    """Whether a drain was handed over and an OSD of it still has override 0, so that its upmaps still serve."""
    osds = [view.osds[osd] for osd in drain.osds if osd in view.osds]
    return drain.state is DrainState.HANDED_OVER and any(osd.reweight == 0.0 for osd in osds)


def engaged(drain: Drain) -> bool:
    """Under way, or paused or broken while it was."""
    if drain.state in (DrainState.PAUSED, DrainState.FAILED):
        return drain.resume_to in ACTIVE
    return drain.state in ACTIVE


def _empties(drain: Drain) -> bool:
    cancelling = drain.state is DrainState.CANCELLING
    return drain.intent.fills_osd if cancelling else drain.intent.empties_osd
