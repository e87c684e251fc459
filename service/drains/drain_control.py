"""The controller's place in the application: its results, the requests of people, and its status in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog

from predrain.actions.cluster.cluster_port import ClusterNotReadYet, ClusterUnreachable
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.signed_keys import Unverified
from predrain.actions.controller.controller import Controller
from predrain.actions.controller.hand_over import HandOver, Orchestrator, detect_orchestrator, hand_over
from predrain.actions.controller.leadership import StepCounterWentBack
from predrain.actions.controller.person_request import PersonRequest, RequestKind
from predrain.actions.controller.plan_etags import refuse_changed_plan
from predrain.actions.controller.replication import list_drain_names
from predrain.actions.core.decision_answers import Hold, ProposalRefusal, TickReport
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.pg_survey import survey_pgs
from predrain.actions.core.situation import Context, SentMemory
from predrain.actions.engine.proposals import draft_drain, target_of
from predrain.actions.guards import GUARDS
from predrain.data.drain import Drain, Intent
from predrain.data.halt_state import Halt, halt_by_person
from predrain.data.log.log_port import Log, LogFull, Topic
from predrain.data.store.store_faults import StoreRefusal, StoreUnreadable
from predrain.data.store.store_port import Store
from predrain.data.way_out import OpenWayOut
from predrain.service.drains.acting_process import ActingObserver, ActingPlace, describe_acting_controller
from predrain.service.drains.cluster_notes import ClusterNotes
from predrain.service.drains.drain_requests import CannotLift, GuardAnswer, read_answer
from predrain.service.drains.live_cluster import LiveClusterParts
from predrain.service.drains.mgr_executor import MgrExecutorCluster, beyond_the_hand
from predrain.service.drains.other_controllers import OtherControllers
from predrain.service.drains.slow_osds import SlowOsds
from predrain.service.fleet.drain_timeline import RUNNING, Timelines, encode_drain_sample
from predrain.service.fleet.fleet import Fleet
from predrain.service.notifications.cause import CLUSTER_KEYS

_MOST_SAID = 5
"""The largest number of sentences about unverified texts in the cluster."""


@dataclass(slots=True)
class DrainControl:
    """One controller over one cluster. Any thread may call; the controller has its own lock."""

    live: LiveClusterParts
    store: Store
    log: Log
    policy: Policy
    fleet: Fleet
    timelines: Timelines
    shared: bool = False
    """True if other controllers share the store and the log; then only the leader writes what was observed."""
    _controller: Controller = field(init=False)
    observer: ActingObserver = field(init=False)
    _slow: SlowOsds = field(init=False)
    _elsewhere: OtherControllers | None = field(init=False, default=None)
    report: TickReport | None = None
    ways_out: Mapping[str, tuple[OpenWayOut, ...]] = field(default_factory=dict)
    """The ways out that were open at the last poll, by drain; drains without any are left out."""
    _notes: ClusterNotes = field(init=False)
    _said: tuple[str | None, ...] = ()
    """The halt reason that a person set while the controller polls."""
    _beyond: str = ""
    _silent: str = ""
    _unreadable: str = ""
    """Without a signing key: a sentence about the drains in the cluster, empty if it has none."""
    _curving: bool = True

    def __post_init__(self) -> None:
        live = self.live
        self._slow = SlowOsds(self.store)
        self.observer = ActingObserver(live.lease, live.owner)
        self._controller = Controller(
            live.cluster, self.store, self.policy, keep=live.keep, lease=live.lease, owner=live.owner
        )
        if (why := self.store.halt_reason()) is not None:
            self._beyond = self._not_by_hand(why)
        if live.keep is not None and live.lease is not None and not live.plans_only:
            self._elsewhere = OtherControllers(self.store, live.keep, live.lease)
        self._notes = ClusterNotes(self.store)

    def new_bundle(self, since: datetime | None) -> None:
        """Set the time since which the bundle that scores has replaced another one."""
        self._controller.bundle_since = since

    def run_tick(self, now: datetime) -> bool:
        """Run one poll and its steps; return whether a listener would see a difference.

        Raises StoreRefusal, and StoreUnreadable while the row of a drain cannot be read. A controller whose store
        cannot be written gives the lease up, and leads again when it can.
        """
        try:
            if self.store.count_damaged_drains():  # the settings of such a drain are unknown
                damage = self.store.describe_damage()
                raise StoreUnreadable(f"{damage}; until then no command is sent to the cluster")
            return self._step(now)
        except StoreRefusal:
            self._controller.give_up()
            raise

    def _step(self, now: datetime) -> bool:
        before = self.fleet.view
        if before is not None:
            self._controller.slow = self._slow.poll_slowness(before, now)
        self._said = ()
        self._controller.residences = residences = self.fleet.residences()
        report = self._controller.tick(now, self.fleet.outlooks())
        self.observer.begin_acting()
        changed = self.observer.poll_lease()
        if report.view is not None:
            self.fleet.update_view(report.view)
            self._notes.note_hosts(report.view, residences)
            self._notes.note_suspects(report.view, now, writes=self._writes())
        if self._writes() and (report.answers or self._curving):
            self._keep_curves(now)
        spread = self._elsewhere is not None and self._elsewhere.exchange_requests(
            self._controller.requests.execute_once, now
        )
        ways_out = self._controller.requests.list_every_way_out(now)
        differs = (
            changed
            or spread
            or ways_out != self.ways_out
            or self.report is None
            or report.answers
            or report.trouble != self.report.trouble
        )
        self.ways_out = ways_out
        self.report = report = replace(report, halt=halt_by_person(self._said[-1])) if self._said else report
        self._notes.note_events(report, self.observer.find_acting_controller(), now, writes=self._writes())
        return bool(differs) or _has_view_changed(before, report.view)

    def find_halt(self) -> Halt | None:
        """Return the halt in the store, or that of the last poll."""
        here = halt_by_person(self.store.halt_reason() or None)
        return here or (self.report.halt if self.report is not None else None)

    def find_halt_reason(self) -> str | None:
        """Return the reason of the halt in force, or None."""
        halt = self.find_halt()
        return None if halt is None else halt.reason

    def set_halt(self, why: str | None) -> None:
        """Halt, or lift the halt (None), in the store and in the cluster. A halt is in force from the store on.

        `unreached_sentence` names the places that were not reached. A halt that the cluster did not accept is
        sent to it at each poll until the cluster accepts it. Raises CannotLift if the halt in the cluster cannot
        be lifted because it does not answer.
        """
        self._silent = ""
        try:
            self._controller.halt(why)
        except ClusterUnreachable as silent:
            if why is None:
                told = f"The halt in the cluster stands: {silent}"
                raise CannotLift(told) from silent
            self._silent = f" ({silent})"
            structlog.get_logger().warning(
                "halted here, and in the cluster as soon as it answers", reason=str(silent)
            )
        except StoreRefusal:
            if why is None or self.store.unwritten_halt() != why:
                raise
        self._beyond, self._said = self._not_by_hand(why), (why,)
        if self.report is not None:
            self.report = replace(self.report, halt=halt_by_person(why))

    @property
    def halt_in_cluster(self) -> bool:
        """True if the halt is known to be in the cluster's own key as well."""
        return self.live.keep is not None and self._controller.halt_heard

    @property
    def unreached_sentence(self) -> str:
        """The places that the last halt, or its lifting, did not reach, as a sentence; empty if it reached all.

        For a halt this is known after a start as well.
        """
        if self._controller.halt_heard:
            return self._beyond
        return (
            f"The cluster's own key is not set yet, since it does not answer{self._silent}: until it does, a "
            "controller that keeps another store goes on."
        )

    def _not_by_hand(self, why: str | None) -> str:
        return beyond_the_hand(why) if isinstance(self.live.cluster, MgrExecutorCluster) else ""

    def stop_ticking(self, seconds: float) -> None:
        """Begin no more steps, and let the running one end within `seconds`."""
        self._controller.stop_new_steps(seconds)

    def poll_cluster(self, now: datetime) -> None:
        """Poll the cluster without deciding anything. Raises ClusterNotReadYet."""
        try:
            self.fleet.update_view(self._controller.poll_cluster(now))
            self.observer.poll_lease()
            if self._elsewhere is not None:
                with suppress(
                    Unverified, StepCounterWentBack
                ):  # each step reports this, and a plan needs nothing that others keep
                    self._elsewhere.mirror(now)
        except ClusterUnreachable as silent:
            raise ClusterNotReadYet(f"The cluster does not answer: {silent}") from silent
        if self.live.plans_only:
            self._unreadable = self._describe_unreadable_drains()

    def _describe_unreadable_drains(self) -> str:
        """Return a sentence about the drains in the cluster that a process without a signing key cannot verify."""
        assert self.live.keep is not None, "a process without a key has a store of keys that it cannot verify"
        try:
            found = list_drain_names(self.live.keep)
        except ClusterUnreachable as denied:  # a plan needs none of them
            return f"The drains in the cluster are unknown: {denied}"
        cure = "this host has no signing key (give it `signing_key` of [ceph])"
        drains = "1 drain" if len(found) == 1 else f"{len(found)} drains"
        return f"The cluster keeps {drains}, signed, and {cure}" if found else ""

    @property
    def is_running(self) -> bool:
        """True if the last poll could act: no halt is in force, and the cluster and the lease let commands be sent."""
        return self.report is not None and not self.report.trouble and self.find_halt() is None

    def describe_status(self) -> str:
        """Return `running`, or `holding: ` with the reason why nothing moves at all."""
        report = self.report
        if report is None:
            return "holding: the cluster has not been looked at yet"
        if (halt := self.find_halt()) is not None:
            return f"holding: {halt.reason}" if halt.is_transient else f"holding: halted ({halt.reason})"
        return f"holding: {report.trouble}" if report.trouble else "running"

    def describe_remote_status(self) -> str:
        """Return the status like `describe_status`, for a process that only shows the cluster."""
        acting = self.observer.find_acting_controller()
        if acting.place is not ActingPlace.NOWHERE:
            return "in another process; this one shows"
        return f"holding: {describe_acting_controller(acting)}"

    @property
    def troubles(self) -> Mapping[str, str]:
        """Troubles that do not hold the controller: texts in the cluster that could not be verified."""
        found = self._elsewhere.unverified_sentences if self._elsewhere is not None else ()
        if self._unreadable:
            found = (self._unreadable, *found)
        more = (f"and {len(found) - _MOST_SAID} more",) if len(found) > _MOST_SAID else ()
        return {CLUSTER_KEYS: ". ".join((*found[:_MOST_SAID], *more))} if found else {}

    def count_guard_refusals(self) -> Mapping[str, int]:
        """Count the drains and bad disks that each guard refused at the last poll, by guard code; 0 for other
        guards.
        """
        answers = self.report.answers if self.report is not None else ()
        held = [answer.refusals for answer in answers if isinstance(answer, Hold | ProposalRefusal)]
        counted = Counter(code for refusals in held for code in {one.code for one in refusals})
        return {guard.code: counted[guard.code] for guard in GUARDS}

    def execute_request(self, request: PersonRequest) -> Drain:
        """Execute a person's request at the time of its making, or forward it to the controller that leads.

        Raises what refuses the request, RequestUnanswered.
        """
        requests, now = self._controller.requests, request.at
        if self._elsewhere is None or not self._elsewhere.has_other_leader(now):
            return requests.execute(request, now)
        if request.kind is RequestKind.APPROVE:
            refuse_changed_plan(request.plan_etag, requests.get_drain(request.drain))
        return self._elsewhere.forward_request(
            replace(request, origin=self.live.owner, cluster=self.store.get_cluster()),
            requests.execute_once,
            now,
        )

    def draft(self, target: str, intent: Intent, now: datetime) -> Drain:
        """Return the drain of `target` as it would be proposed, without storing it. Raises ClusterNotReadYet,
        NoSuchTarget.
        """
        view = self._seen()
        device, osds = target_of(view, target)
        context = Context(
            survey=survey_pgs(view, None),
            outlooks=self.fleet.outlooks(),
            drains=self.store.drains(),
            now=now,
            memory=SentMemory.for_new_process(view, now, self.policy),
            slow=self._controller.slow,
        )
        return draft_drain(
            view, device, osds, self.policy, context, asked_by="nobody", reason="a plan only", intent=intent
        )

    def left_to_do(self, drain: Drain) -> HandOver:
        """Return the tasks that follow a drain, for the orchestrator of the cluster."""
        by = Orchestrator.NONE
        if self.live.channel is not None:
            with suppress(ClusterUnreachable):
                by = detect_orchestrator(self.live.channel)
        return hand_over(self._seen(), drain, by)

    def list_guard_answers(self, id_: str, now: datetime) -> tuple[GuardAnswer, ...]:
        """Return every guard that judges the drain now, with its answer."""
        return tuple(read_answer(code, said) for code, said in self._controller.requests.explain(id_, now))

    def list_ways_out(self, id_: str, now: datetime) -> tuple[OpenWayOut, ...]:
        """Return the ways out that are open to a drain now."""
        return self._controller.requests.list_ways_out(id_, now)

    def _seen(self) -> ClusterView:
        view = self._controller.view
        if view is None:
            raise ClusterNotReadYet("The cluster has not answered yet; ask again in a few seconds.")
        return view

    def _writes(self) -> bool:
        return not self.shared or self.live.lease is None or self.live.lease.is_held()

    def _keep_curves(self, now: datetime) -> None:
        drains = self.store.drains()
        self._curving = any(drain.state in RUNNING for drain in drains)
        new = self.timelines.sample_running_drains(drains, self.fleet.view, now)
        if not new:
            return
        try:
            self.log.append(Topic.ACTIONS, [encode_drain_sample(one) for one in new])
        except LogFull as full:
            # A curve is for people. The drain itself is in the store and must not stop because of it.
            structlog.get_logger().warning("drain curves are kept in memory only", reason=str(full))


def _has_view_changed(before: ClusterView | None, now: ClusterView | None) -> bool:
    if before is None or now is None:
        return before is not now
    return (before.epoch, before.health) != (
        now.epoch,
        now.health,
    ) or before.latency_ratio != now.latency_ratio
