"""The information for a decision beside the view: the survey, the other drains, the outlooks, and our own
commands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.claimed_settings import collect_upmap_items
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.forecast_confirmation import ForecastPoint, WeighedDisk
from predrain.actions.core.pg_survey import Survey, is_pg_at_rest
from predrain.actions.core.state_machine import ACTIVE
from predrain.data.clock import is_within_last
from predrain.data.drain import Drain, DrainState
from predrain.data.identity_memo import remember_results
from predrain.data.ids import DeviceId, OsdId, PgId
from predrain.data.outlook import Outlook
from predrain.data.residence import Residence
from predrain.data.setting import Setting, UpmapItem
from predrain.data.slow_osd import Slowness

STUCK_PEERING = timedelta(seconds=60)
"""A moved PG that does not serve its clients for so long waits for an OSD that does not answer. This is Ceph's own
limit for a stuck PG (`mon_pg_stuck_threshold`). A peering takes 10 to 30 ms and two or three maps (peering.md).
"""


@dataclass(frozen=True, slots=True)
class SentMemory:
    """The commands that this process has sent, and the effects that it has seen.

    The memory is lost with the process. The next process waits once before it trusts the statistics.
    """

    trusted_from: datetime
    """Statistics older than this prove nothing. It is the start, a new mgr or our last command, plus two
    periods.
    """
    mgr_id: str = ""
    dump_version: int = 0
    shown: bool = False
    """True if every PG that our commands changed has since reported from where the map sends it."""
    unseen: bool = True
    """True after a start, a new mgr or a command that no PG's report shows: only time can prove the effect
    then.
    """
    changed: Mapping[PgId, int] = field(default_factory=dict)
    """PGs whose mapping our last commands changed, with the epoch that their reports must reach."""
    moving: frozenset[PgId] = frozenset()
    """PGs whose mapping our commands changed, that have reported, and that have not been at rest since."""
    inactive_since: Mapping[PgId, datetime] = field(default_factory=dict)
    """The PGs of `moving` that do not serve their clients, with the time of the first poll that showed it."""
    unreported: Mapping[PgId, tuple[int, ...]] = field(default_factory=dict)
    """The PGs of `changed` that the map sends elsewhere than they last reported, with their `up` by the map.
    """
    attempts: Mapping[Setting, int] = field(default_factory=dict)
    """The number of times this process wrote each setting without ever seeing it in the map."""
    planned: Mapping[str, tuple[int, datetime]] = field(default_factory=dict)
    """The fingerprint of the map under which each drain was planned, and the time."""
    paced: Mapping[str, datetime] = field(default_factory=dict)
    """The time at which the budget of each drain was last judged."""
    new_mgr: bool = False

    @classmethod
    def for_new_process(cls, view: ClusterView, now: datetime, policy: Policy) -> SentMemory:
        """Return the memory of a process that has just started and does not know which commands were sent
        before.
        """
        return cls(now + _two_periods(policy), view.mgr_id, view.dump_version)

    def after_poll(self, view: ClusterView, now: datetime, policy: Policy) -> SentMemory:
        """Return the memory after a poll. A new mgr, or a dump whose version fell, must be waited for
        (ceph.md e).

        If `trusted_from` is much later than a command of now would set it, that command was sent before the
        clock was set back. The memory then waits as if the command had been sent now. The view's age, by
        which `now` may be late, does not count.
        """
        silent = {pg: epoch for pg, epoch in self.changed.items() if not _has_reported_epoch(view, pg, epoch)}
        shown = self.shown or (not silent and not self.unseen and self._are_placed(view))
        unreported = self._find_unreported(view, silent)
        silent = {pg: epoch for pg, epoch in silent.items() if pg in unreported}
        reported = (self.moving | self.changed.keys()) - silent.keys()
        moving = frozenset(pg for pg in reported if pg in view.pgs and not is_pg_at_rest(view.pgs[pg]))
        soon = now + _two_periods(policy)
        trusted_from = soon if self.trusted_from > soon + policy.view_age_max else self.trusted_from
        memory = replace(
            self,
            shown=shown,
            unseen=self.unseen and view.as_of < trusted_from,
            changed=silent,
            moving=moving,
            inactive_since={
                pg: self.inactive_since.get(pg, now) for pg in moving if "active" not in view.pgs[pg].states
            },
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

    def after_command(
        self,
        pgs: Mapping[PgId, int],
        keys: Iterable[Setting],
        now: datetime,
        policy: Policy,
        *,
        known: bool = True,
    ) -> SentMemory:
        """Return the memory after a command: its PGs must report, and all other statistics must be younger
        than it.

        known: whether the cluster named the epoch that the reports must pass.
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
        """Find the PGs that have something to report and have not reported since our commands. Return them
        with their `up`.

        A PG whose `up` by the map equals the one it last reported has nothing to report, and while it is idle
        it does not report. Either the command changed no placement, or the mon did not keep it. This
        conclusion needs a map that shows the command and statistics that are younger than it.
        """
        if not silent:
            return {}
        # numpy and the placement code load with the first step, not with the first answer of a service that
        # starts.
        from predrain.actions.crush.crush_rules import CannotPlace
        from predrain.actions.placement.what_if import compute_up_sets

        young = view.as_of >= self.trusted_from
        try:
            computed = compute_up_sets(view, (), silent.keys())
        except CannotPlace:
            return {} if young else {pg: view.pgs[pg].up for pg in silent}
        return {
            pg: up
            for pg, up in computed.items()
            if up != view.pgs[pg].up or not young or view.epoch < silent[pg]
        }

    def _are_placed(self, view: ClusterView) -> bool:
        """Return whether each PG that our commands changed now serves where the map sends it."""
        from predrain.actions.crush.crush_rules import CannotPlace
        from predrain.actions.placement.what_if import compute_up_sets

        try:
            computed = compute_up_sets(view, (), [pg for pg in self.changed if pg in view.pgs])
        except CannotPlace:
            return False
        return bool(computed) and all(up == view.pgs[pg].up for pg, up in computed.items())

    def after_arrival(self, keys: Iterable[Setting]) -> SentMemory:
        """Return the memory after the map showed these settings as they were written."""
        left = {key: count for key, count in self.attempts.items() if key not in set(keys)}
        return self if left == self.attempts else replace(self, attempts=left)

    def note_decisions(
        self, planned: Mapping[str, tuple[int, datetime]], paced: Mapping[str, datetime]
    ) -> SentMemory:
        """Record under which maps drains were planned, and which budgets were judged."""
        if not planned and not paced:
            return self
        return replace(self, planned={**self.planned, **planned}, paced={**self.paced, **paced})

    def is_pace_due(self, drain: str, now: datetime, policy: Policy) -> bool:
        """Return whether a drain's budget may be judged again. Polls that follow a step are less than a tick
        apart.
        """
        judged = self.paced.get(drain)
        return judged is None or not is_within_last(judged, now, timedelta(seconds=policy.tick_seconds))

    def find_stuck_seconds(self, pg: PgId, now: datetime) -> float | None:
        """Return the seconds for which a moved PG has not served its clients; None below `STUCK_PEERING`."""
        since = self.inactive_since.get(pg)
        return None if since is None or now - since < STUCK_PEERING else (now - since).total_seconds()

    def is_trusted(self, view: ClusterView) -> bool:
        """Return whether all statistics are younger than our last command by two periods."""
        return view.as_of >= self.trusted_from

    def is_settled(self, view: ClusterView, pgs: Collection[PgId] | None = None) -> bool:
        """Return whether the view can already show the effect of our last commands on `pgs`, or on every PG
        (None).

        A report of each changed PG from where the map sends it shows the effect. If a PG has nothing to
        report, or a command changed no PG, time must pass.
        """
        waiting = self.changed.keys() if pgs is None else self.changed.keys() & set(pgs)
        return not waiting and (self.shown or self.is_trusted(view))


def _two_periods(policy: Policy) -> timedelta:
    return timedelta(seconds=2 * policy.mgr_stats_period_seconds)


def _has_reported_epoch(view: ClusterView, pg: PgId, epoch: int) -> bool:
    known = view.pgs.get(pg)
    return known is None or known.reported_epoch >= epoch


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that a guard may read beside view, drain and policy."""

    survey: Survey
    outlooks: Mapping[DeviceId, Outlook]
    drains: tuple[Drain, ...]
    now: datetime
    memory: SentMemory
    halted: str | None = None
    lease_held: bool = True
    bad_since: Mapping[DeviceId, datetime] = field(default_factory=dict)
    """The time since which each device has been judged bad without interruption."""
    forecasts: Mapping[DeviceId, tuple[ForecastPoint, ...]] = field(default_factory=dict)
    """The forecasts of disks whose drain pays, one for each reading, oldest first."""
    weighed: Mapping[DeviceId, WeighedDisk] = field(default_factory=dict)
    """Disks whose drain was weighed at this poll (`actions.core.cost_assessment`)."""
    bytes_per_second: float | None = None
    """The measured rate of a drain here in bytes/s; None: no drain has ended."""
    bundle_since: datetime | None = None
    """The time at which the current bundle replaced another one; None: not within memory."""
    slow: Slowness = field(default_factory=Slowness)
    """OSDs that answer slower than their peers."""
    residences: Mapping[DeviceId, Residence] = field(default_factory=dict)
    """The locations of disks that more than one host has reported."""

    def list_other_drains(self, drain: Drain) -> tuple[Drain, ...]:
        """Return every other drain that uses part of the budget, also if it is paused."""
        return tuple(other for other in self.drains if other.id != drain.id and is_drain_engaged(other))

    def list_claimants(self, drain: Drain) -> tuple[Drain, ...]:
        """Return every other drain whose writes still count: it may be cancelled, or its OSD is empty because
        of it.
        """
        return tuple(other for other in self.drains if other.id != drain.id and self.still_claims(other))

    def still_claims(self, drain: Drain) -> bool:
        """Return whether a drain's writes to the cluster still count.

        The writes count while the drain may still be cancelled and while one of its OSDs is empty. They also
        count if it was cancelled and left upmap items for drains that remain.
        """
        paused = drain.state in (DrainState.PAUSED, DrainState.FAILED)
        state = drain.resume_to if paused else drain.state
        if is_drain_engaged(drain) or state is DrainState.VERIFIED:
            return True
        if state is DrainState.CANCELLED:
            return any(isinstance(key, UpmapItem) for key in drain.ours)
        return stands_empty(drain, self.survey.view)

    def list_draining_osds(self) -> frozenset[OsdId]:
        """Return the OSDs that a drain empties now. They are no target for any drain."""
        return _list_draining_osds(self.drains)

    def list_affected_pgs(self) -> frozenset[PgId]:
        """Return the PGs that an engaged drain maps by upmap items, or that our commands changed.

        If such a PG is not at rest, our commands are the cause.
        """
        return _list_affected_pgs(self.drains, self.memory)


@remember_results(limit=4)
def _list_draining_osds(drains: tuple[Drain, ...]) -> frozenset[OsdId]:
    return frozenset(
        osd for drain in drains if is_drain_engaged(drain) and _is_emptying_osds(drain) for osd in drain.osds
    )


@remember_results(limit=4)
def _list_affected_pgs(drains: tuple[Drain, ...], memory: SentMemory) -> frozenset[PgId]:
    upmaps = (pg for drain in drains if is_drain_engaged(drain) for pg in collect_upmap_items(drain.ours))
    return frozenset(upmaps) | memory.changed.keys() | memory.moving


def stands_empty(drain: Drain, view: ClusterView) -> bool:
    """Return whether a drain was handed over and one of its OSDs still has override 0, so its upmap items
    still serve.
    """
    osds = [view.osds[osd] for osd in drain.osds if osd in view.osds]
    return drain.state is DrainState.HANDED_OVER and any(osd.reweight == 0.0 for osd in osds)


def is_drain_engaged(drain: Drain) -> bool:
    """Return whether a drain is under way, or was paused or failed while it was."""
    if drain.state in (DrainState.PAUSED, DrainState.FAILED):
        return drain.resume_to in ACTIVE
    return drain.state in ACTIVE


def _is_emptying_osds(drain: Drain) -> bool:
    cancelling = drain.state is DrainState.CANCELLING
    return drain.intent.fills_osd if cancelling else drain.intent.empties_osd
