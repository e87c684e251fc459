"""The controller's place in the house: what it saw, what a person asks of it, its words for people."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog

from predrain.actions.cluster.port import ClusterUnreachable
from predrain.actions.cluster.signed_keys import Unverified
from predrain.actions.cluster.view import ClusterView
from predrain.actions.controller.controller import Controller, TickReport
from predrain.actions.controller.forwarded_requests import Petition, Wish
from predrain.actions.controller.hand_over import HandOver, Orchestrator, hand_over, orchestrator
from predrain.actions.controller.leadership import SteppedBack, passes
from predrain.actions.core.answers import Hold, ProposalRefusal
from predrain.actions.core.pg_survey import survey
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context, Memory
from predrain.actions.engine.proposals import NoSuchTarget, drafted, target_of
from predrain.actions.guards import GUARDS
from predrain.data.drain import Drain, Intent
from predrain.data.log.port import Log, LogFull, Topic
from predrain.data.store.faults import StoreRefusal, StoreUnreadable
from predrain.data.store.port import Store
from predrain.data.way_out import OpenWayOut
from predrain.service.drains.acting import ActingObserver, ActingPlace, describe_acting_controller
from predrain.service.drains.cluster_notes import ClusterNotes
from predrain.service.drains.drain_requests import (
    CannotLift,
    GuardAnswer,
    NotSeen,
    UnknownTarget,
    read_answer,
)
from predrain.service.drains.elsewhere import Elsewhere
from predrain.service.drains.execution import WishExecutor
from predrain.service.drains.mgr_executor import HandCluster, beyond_the_hand
from predrain.service.drains.timeline import RUNNING, Timelines, record
from predrain.service.fleet import Fleet
from predrain.service.live_cluster import Live
from predrain.service.notifications.cause import CLUSTER_KEYS
from predrain.service.slow_osds import SlowOsds

_MOST_SAID = 5
"""Sentences about texts in the cluster that are not believed."""


@dataclass(slots=True)
class Control:
    """One controller over one cluster. Any thread may call; the controller takes turns by itself."""

    live: Live
    store: Store
    log: Log
    policy: Policy
    fleet: Fleet
    timelines: Timelines
    shared: bool = False
    """Whether other controllers keep the same store and log: then what it saw is written there by who leads."""
    _controller: Controller = field(init=False)
    _executor: WishExecutor = field(init=False)
    observer: ActingObserver = field(init=False)
    _slow: SlowOsds = field(init=False)
    _elsewhere: Elsewhere | None = field(init=False, default=None)
    report: TickReport | None = None
    ways_out: Mapping[str, tuple[OpenWayOut, ...]] = field(default_factory=dict)
    """The ways out that were open at the last look, by drain; those that have none are not among them."""
    _notes: ClusterNotes = field(init=False)
    _said: tuple[str | None, ...] = ()
    """What a person said of a halt while the controller looks."""
    _beyond: str = ""
    _silent: str = ""
    _curving: bool = True

    def __post_init__(self) -> None:
        live = self.live
        self._slow = SlowOsds(self.store)
        self.observer = ActingObserver(live.lease, live.owner)
        self._controller = Controller(
            live.cluster, self.store, self.policy, keep=live.keep, lease=live.lease, owner=live.owner
        )
        self._executor = WishExecutor(self._controller, self.store)
        if (why := self.store.halt_reason()) is not None:
            self._beyond = self._not_by_hand(why)
        if live.keep is not None and live.lease is not None and not live.plans_only:
            self._elsewhere = Elsewhere(self.store, live.keep, live.lease)
        self._notes = ClusterNotes(self.store)

    def new_bundle(self, since: datetime | None) -> None:
        """When the bundle that scores replaced another one."""
        self._controller.bundle_since = since

    def step(self, now: datetime) -> bool:
        """One look and what follows; returns whether a listener would see a difference. Raises StoreRefusal: whose
        store cannot be written gives the lease up, and leads again when it can.
        """
        try:
            self._check_drains()
            return self._step(now)
        except StoreRefusal:
            self._controller.give_up()
            raise

    def _check_drains(self) -> None:
        """Raises StoreUnreadable while a drain's row cannot be read: what that drain set is not known."""
        if self.store.count_damaged_drains():
            damage = self.store.describe_damage()
            raise StoreUnreadable(f"{damage}; until then no command is sent to the cluster")

    def _step(self, now: datetime) -> bool:
        before = self.fleet.view
        if before is not None:
            self._controller.slow = self._slow.look(before, now)
        self._said = ()
        self._controller.residences = residences = self.fleet.residences()
        report = self._controller.tick(now, self.fleet.outlooks())
        self.observer.begin_acting()
        changed = self.observer.poll_lease()
        if report.view is not None:
            self.fleet.look(report.view)
            self._notes.note_hosts(report.view, residences)
            self._notes.note_suspects(report.view, now, writes=self._writes())
        if self._writes() and (report.answers or self._curving):
            self._keep_curves(now)
        spread = self._elsewhere is not None and self._elsewhere.step(self._executor.carry_out_once, now)
        ways_out = self._find_ways_out(now)
        differs = (
            changed
            or spread
            or ways_out != self.ways_out
            or self.report is None
            or report.answers
            or report.trouble != self.report.trouble
        )
        self.ways_out = ways_out
        self.report = report = replace(report, halted=self._said[-1]) if self._said else report
        self._notes.note_events(report, self.observer.find_acting_controller(), now, writes=self._writes())
        return bool(differs) or _differ(before, report.view)

    def _find_ways_out(self, now: datetime) -> Mapping[str, tuple[OpenWayOut, ...]]:
        held = [drain.id for drain in self.store.drains() if drain.held_by or drain.resume_to is not None]
        found = ((id_, self.list_ways_out(id_, now)) for id_ in held)
        return {id_: ways for id_, ways in found if ways}

    def halted(self) -> str | None:
        """Why nothing may move: what the last look found, or the store says by now."""
        return self.store.halt_reason() or (self.report.halted if self.report is not None else None)

    def halt(self, why: str | None) -> None:
        """Halt, or lift the halt (None), in the store and in the cluster; `unreached` says where it did not come to. A
        halt stands from the store on.

        One that the cluster did not take is told to it at every look until it does. Raises CannotLift when the halt in
        the cluster stands, since it does not answer.
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
                "halted here, and in the cluster as soon as it answers", why=str(silent)
            )
        except StoreRefusal:
            if why is None or self.store.unwritten_halt() != why:
                raise
        self._beyond, self._said = self._not_by_hand(why), (why,)
        if self.report is not None:
            self.report = replace(self.report, halted=why)

    @property
    def halt_in_cluster(self) -> bool:
        """Whether the halt that stands here is known to stand in the cluster's own key as well."""
        return self.live.keep is not None and self._controller.halt_heard

    @property
    def unreached(self) -> str:
        """What the last halt, or its lifting, did not reach, as a sentence; empty when it reached everything. Of a halt
        it is known after a start as well."""
        if self._controller.halt_heard:
            return self._beyond
        return (
            f"The cluster's own key is not set yet, since it does not answer{self._silent}: until it does, a "
            "controller that keeps another store goes on."
        )

    def _not_by_hand(self, why: str | None) -> str:
        return beyond_the_hand(why) if isinstance(self.live.cluster, HandCluster) else ""

    def rest(self, seconds: float) -> None:
        """Begin no step any more, and let the one that has begun end."""
        self._controller.rest(seconds)

    def look(self, now: datetime) -> None:
        """See the cluster, decide nothing. Raises NotSeen."""
        try:
            self.fleet.look(self._controller.look(now))
            self.observer.poll_lease()
            if self._elsewhere is not None:
                with suppress(
                    Unverified, SteppedBack
                ):  # every step says so, and a plan needs nothing that others keep
                    self._elsewhere.mirror(now)
        except ClusterUnreachable as silent:
            raise NotSeen(f"The cluster does not answer: {silent}") from silent

    def says(self) -> str:
        """`running`, or `holding: ` and why nothing moves at all."""
        report = self.report
        if report is None:
            return "holding: the cluster has not been looked at yet"
        if (why := self.halted()) is not None:
            return f"holding: {why}" if passes(why) else f"holding: halted ({why})"
        return f"holding: {report.trouble}" if report.trouble else "running"

    def shows(self) -> str:
        """What `says` is of a process that only shows the cluster."""
        acting = self.observer.find_acting_controller()
        if acting.place is not ActingPlace.NOWHERE:
            return "in another process; this one shows"
        return f"holding: {describe_acting_controller(acting)}"

    @property
    def troubles(self) -> Mapping[str, str]:
        """What is wrong beside what holds the controller: texts in the cluster that are not believed."""
        found = self._elsewhere.unverified if self._elsewhere is not None else ()
        more = (f"and {len(found) - _MOST_SAID} more",) if len(found) > _MOST_SAID else ()
        return {CLUSTER_KEYS: ". ".join((*found[:_MOST_SAID], *more))} if found else {}

    def refusing(self) -> Mapping[str, int]:
        """How many drains and bad disks each guard held back at the last look, by its code; 0 for the others."""
        answers = self.report.answers if self.report is not None else ()
        held = [answer.refusals for answer in answers if isinstance(answer, Hold | ProposalRefusal)]
        counted = Counter(code for refusals in held for code in {one.code for one in refusals})
        return {guard.code: counted[guard.code] for guard in GUARDS}

    def propose(
        self,
        target: str,
        caller: str,
        reason: str,
        intent: Intent,
        now: datetime,
        *,
        spare_reads: bool = False,
    ) -> Drain:
        """A person's drain, with its plan, to be approved. Raises what the actions room refuses."""
        wish = Petition(
            _unlike_any(),
            Wish.PROPOSE,
            now,
            caller,
            target=target,
            reason=reason,
            intent=intent,
            spare_reads=spare_reads,
        )
        return self._wish(wish, now)

    def draft(self, target: str, intent: Intent, now: datetime) -> Drain:
        """The drain of `target` as it would be proposed; nothing is kept. Raises NotSeen, NoSuchTarget."""
        view = self._seen()
        try:
            device, osds = target_of(view, target)
        except NoSuchTarget as unknown:
            raise UnknownTarget(str(unknown)) from unknown
        context = Context(
            survey=survey(view, None),
            outlooks=self.fleet.outlooks(),
            drains=self.store.drains(),
            now=now,
            memory=Memory.starting(view, now, self.policy),
            slow=self._controller.slow,
        )
        return drafted(
            view, device, osds, self.policy, context, asked_by="nobody", reason="a plan only", intent=intent
        )

    def approve(self, id_: str, seal: str, caller: str, now: datetime) -> Drain:
        """Let a drain begin if its plan is still the one that `seal` was made of. Raises PlanMoved."""
        return self._wish(Petition(_unlike_any(), Wish.APPROVE, now, caller, id_, seal), now)

    def reject(self, id_: str, caller: str, now: datetime) -> Drain:
        """End a drain that is still proposed, by whoever changes it. Raises NotProposed."""
        return self._wish(Petition(_unlike_any(), Wish.REJECT, now, caller, id_), now)

    def pause(self, id_: str, caller: str, now: datetime) -> Drain:
        """No further step; what is on its way arrives."""
        return self._wish(Petition(_unlike_any(), Wish.PAUSE, now, caller, id_), now)

    def resume(self, id_: str, caller: str, now: datetime) -> Drain:
        """Go on where it was paused or broke."""
        return self._wish(Petition(_unlike_any(), Wish.RESUME, now, caller, id_), now)

    def cancel(self, id_: str, caller: str, now: datetime) -> Drain:
        """Put everything back as it was found."""
        return self._wish(Petition(_unlike_any(), Wish.CANCEL, now, caller, id_), now)

    def hand_over(self, id_: str, caller: str, now: datetime) -> Drain:
        """A verified disk may be pulled. Raises NotNow with every sentence that refuses, NotSeen."""
        return self._wish(Petition(_unlike_any(), Wish.HAND_OVER, now, caller, id_), now)

    def take_way_out(self, id_: str, way: Wish, caller: str, now: datetime) -> Drain:
        """One of the ways out of a drain that cannot end. Raises WayNotOpen, NoOtherTargets, NotSeen."""
        return self._wish(Petition(_unlike_any(), way, now, caller, id_), now)

    def insist(
        self,
        id_: str,
        guards: tuple[str, ...],
        reason: str,
        minutes: float,
        confirm: str,
        caller: str,
        now: datetime,
    ) -> Drain:
        """Let a drain pass guards that refuse it now. `confirm`: its OSD, as typed. Raises CannotInsist, NotSeen."""
        wish = Petition(
            _unlike_any(), Wish.INSIST, now, caller, id_,
            reason=reason, guards=guards, minutes=minutes, confirm=confirm,
        )  # fmt: skip
        return self._wish(wish, now)

    def left_to_do(self, drain: Drain) -> HandOver:
        """What comes after a drain, by the orchestrator at hand."""
        by = Orchestrator.NONE
        if self.live.channel is not None:
            with suppress(ClusterUnreachable):
                by = orchestrator(self.live.channel)
        return hand_over(self._seen(), drain, by)

    def guards(self, id_: str, now: datetime) -> tuple[GuardAnswer, ...]:
        """Every guard that has a say about a drain now, with its answer."""
        return tuple(read_answer(code, said) for code, said in self._controller.requests.explain(id_, now))

    def list_ways_out(self, id_: str, now: datetime) -> tuple[OpenWayOut, ...]:
        """The ways out that are open to a drain now."""
        return self._controller.requests.list_ways_out(id_, now)

    def _wish(self, wish: Petition, now: datetime) -> Drain:
        """Carry it out, or have it carried out by the controller that leads. Raises what refuses it, Unheard."""
        wish = replace(wish, origin=self.live.owner)
        if self._elsewhere is None or not self._elsewhere.leads(now):
            return self._executor.carry_out(wish, now)
        if wish.wish is Wish.APPROVE:
            self._executor.check_plan(wish)
        return self._elsewhere.ask(wish, self._executor.carry_out_once, now)

    def _seen(self) -> ClusterView:
        view = self._controller.view
        if view is None:
            raise NotSeen("The cluster has not answered yet; ask again in a few seconds.")
        return view

    def _writes(self) -> bool:
        return not self.shared or self.live.lease is None or self.live.lease.held()

    def _keep_curves(self, now: datetime) -> None:
        drains = self.store.drains()
        self._curving = any(drain.state in RUNNING for drain in drains)
        new = self.timelines.running(drains, self.fleet.view, now)
        if not new:
            return
        try:
            self.log.append(Topic.ACTIONS, [record(one) for one in new])
        except LogFull as full:
            # A curve is for people; the drain itself is in the store and must not stop for it.
            structlog.get_logger().warning("drain curves are kept in memory only", why=str(full))


def _unlike_any() -> str:
    return uuid.uuid4().hex


def _differ(before: ClusterView | None, now: ClusterView | None) -> bool:
    if before is None or now is None:
        return before is not now
    return (before.epoch, before.health) != (
        now.epoch,
        now.health,
    ) or before.latency_ratio != now.latency_ratio
