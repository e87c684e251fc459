"""Requests of a person about a drain: propose, approve, reject, pause, resume, cancel, hand over, take a way out,
insist past a guard. The state table decides whether each is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from predrain.actions.cluster.cluster_port import ClusterNotReadYet, ClusterUnreachable, DeviceLight
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.controller.journal import JournalWriter
from predrain.actions.controller.person_request import PersonRequest, RequestKind, is_request_fulfilled
from predrain.actions.controller.plan_etags import refuse_changed_plan
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.messages import describe_state
from predrain.actions.core.situation import Context
from predrain.actions.core.state_machine import Event, NotInTable, apply_event, can_take_event
from predrain.actions.engine.plan_building import plan_drain, replan_drain
from predrain.actions.engine.proposals import draft_drain, open_for, target_of
from predrain.actions.engine.ways_out import WayNotOpen, find_troubled_targets, list_ways_out
from predrain.actions.guards import INSISTABLE, Pass, Refuse, evaluate_guards, list_refusals
from predrain.actions.mechanics.given_up_cancel import (
    claim_what_stands,
    describe_left_standing,
    list_left_standing,
)
from predrain.data.drain import (
    Drain,
    DrainStands,
    GivenUp,
    Insistence,
    Intent,
    JournalEntry,
    OfOtherCluster,
)
from predrain.data.hold_reason import HoldReason
from predrain.data.messages import describe_plan_refusal
from predrain.data.refusal import Refusal
from predrain.data.store.store_port import AUDIT, RevisionConflict, Store
from predrain.data.way_out import OpenWayOut, WayOut

ViewInContext = tuple[ClusterView, Context]
"""A view of the cluster, with all else that a decision needs."""

INSISTENCE_MAX = timedelta(hours=1)
"""The longest time for which a person may insist."""

_NEEDS_VIEW = frozenset(
    {
        RequestKind.HAND_OVER,
        RequestKind.STAY_DRAINED,
        RequestKind.GIVE_UP_CANCEL,
        RequestKind.CHOOSE_OTHER_TARGETS,
        RequestKind.INSIST,
    }
)
"""Requests that depend on the present state of the cluster."""


class NoSuchDrain(Refusal):
    """The store has no drain of that id."""

    def __init__(self, id_: str) -> None:
        super().__init__(f"there is no drain '{id_}'; `predrain drain list` shows those that are")


class NotProposed(Refusal):
    """A person rejects a drain that is no longer proposed, because it was approved, paused or ended before."""

    def __init__(self, drain: Drain) -> None:
        state = describe_state(drain.state, drain.intent)
        cure = (
            f"; give it up: predrain drain cancel {drain.id}" if can_take_event(drain, Event.CANCEL) else ""
        )
        super().__init__(f"{drain.id} is {state}, no longer proposed, and was not rejected{cure}")


class ConcurrentDrainChange(Refusal):
    """The request cannot be carried out on the drain as it is: other processes kept changing it, or guards refuse the
    hand-over.
    """


class NoOtherTargets(Refusal):
    """No plan can be made without the targets in trouble."""

    def __init__(self, sentence: str) -> None:
        super().__init__(f"the plan stays as it is, for no other can be carried out: {sentence}")


class CannotInsist(Refusal):
    """A person insists past a guard that does not allow it, for too long, or without the required reason or
    confirmation.
    """


class NotLeading(Refusal):
    """Another controller holds the lease, so a request must be made there."""

    def __init__(self, why: str) -> None:
        super().__init__(f"this controller may not change drains: {why}")


class RequestNotReplicated(Refusal):
    """The store has the request, but the cluster has not, so another controller would not know of it."""

    def __init__(self, drain: Drain) -> None:
        super().__init__(
            f"drain {drain.id} is {drain.state.value} here, but the cluster did not take that, and nothing is sent "
            "before it has. It is tried again at every poll. It is lost if another controller "
            "leads before that. Ask again when the cluster answers."
        )


@dataclass(frozen=True, slots=True)
class RequestExecutor:
    """Executes requests of people on one controller. Each reads the drain, applies the state table, saves the next
    revision, and records it with its caller.

    Each raises RequestNotReplicated if the cluster did not accept the drain, and NotLeading, in which case nothing
    changed.
    """

    store: Store
    policy: Policy
    journal: JournalWriter
    turn: AbstractContextManager[object]
    """Held while a request is written, so that it does not overlap with a tick of the same process."""
    lead: Callable[[datetime], None]
    """Takes or renews the lease. Raises NotLeading, and ClusterUnreachable before the cluster is recognised."""
    save: Callable[[Drain, Sequence[JournalEntry]], None]
    """Saves the next revision with its journal lines. Raises RevisionConflict, NotLeading and RequestNotReplicated."""
    look: Callable[[datetime], ViewInContext]
    """Reads the cluster; returns the view with the present context. Raises ClusterUnreachable."""
    recall: Callable[[datetime], ViewInContext | None]
    """Returns the last view of the cluster with the present context; None before the first."""

    def execute(self, request: PersonRequest, now: datetime) -> Drain:
        """Execute a request here. Raises what refuses it.

        A request that depends on the present state of the cluster raises ClusterNotReadYet if the cluster does not
        answer, and all other requests raise ClusterUnreachable.
        """
        id_, caller = request.drain, request.caller
        self._refuse_other_cluster(request)
        try:
            match request.kind:
                case RequestKind.PROPOSE:
                    return self.propose(
                        request.target,
                        caller,
                        request.reason,
                        now,
                        request.intent,
                        spare_reads=request.spare_reads,
                    )
                case RequestKind.APPROVE:
                    return self.approve(id_, caller, now, request.plan_etag)
                case RequestKind.REJECT:
                    return self.reject(id_, caller, now)
                case RequestKind.PAUSE:
                    return self.pause(id_, caller, now)
                case RequestKind.RESUME:
                    return self.resume(id_, caller, now)
                case RequestKind.CANCEL:
                    return self.cancel(id_, caller, now)
                case RequestKind.HAND_OVER:
                    return self.hand_over(id_, caller, now)
                case RequestKind.STAY_DRAINED:
                    return self.stay_drained(id_, caller, now)
                case RequestKind.GIVE_UP_CANCEL:
                    return self.give_up_cancel(id_, caller, now)
                case RequestKind.CHOOSE_OTHER_TARGETS:
                    return self.choose_other_targets(id_, caller, now)
                case RequestKind.INSIST:
                    until = min(request.at, now) + timedelta(minutes=request.minutes)
                    said = Insistence(request.guards, caller, request.reason, until)
                    return self.insist(id_, said, request.confirm, now)
        except ClusterUnreachable as silent:
            if request.kind not in _NEEDS_VIEW:
                raise
            raise ClusterNotReadYet(f"The cluster does not answer: {silent}") from silent

    def execute_once(self, request: PersonRequest, now: datetime) -> Drain:
        """Execute a request here unless it is fulfilled already. Raises as `execute`, and NotLeading."""
        self._refuse_other_cluster(request)
        known = self.store.drain(request.drain) if request.drain else None
        if known is None or not is_request_fulfilled(request, known):
            try:
                return self.execute(request, now)
            except DrainStands as standing:
                if not is_request_fulfilled(request, standing.drain):
                    raise
                known = standing.drain
        self.lead(now)  # otherwise it may be fulfilled in our store alone
        return known

    def _refuse_other_cluster(self, request: PersonRequest) -> None:
        """Raise OfOtherCluster for a request that names another cluster than the store's: a drain there may have the
        same id.
        """
        own = self.store.get_cluster()
        if request.cluster is not None and own is not None and request.cluster != own:
            raise OfOtherCluster(
                f"The request to {request.kind} '{request.drain or request.target}'", request.cluster, own
            )

    def get_drain(self, id_: str) -> Drain:
        """Return the drain. Raises NoSuchDrain."""
        drain = self.store.drain(id_)
        if drain is None:
            raise NoSuchDrain(id_)
        return drain

    def propose(
        self,
        target: str,
        caller: str,
        reason: str,
        now: datetime,
        intent: Intent = Intent.REPLACE,
        *,
        spare_reads: bool = False,
    ) -> Drain:
        """Propose a drain of `osd.N` or a device, with its plan. Raises NoSuchTarget and DrainStands.

        `spare_reads`: reading the disk slows clients down (Drain.spare_reads).
        """
        with self.turn:
            self.lead(now)
            view, context = self._see(now)
            device, osds = target_of(view, target)
            standing = open_for(self.store.drains(), osds, intent)
            if standing is not None:
                raise DrainStands(standing)
            drain = draft_drain(
                view,
                device,
                osds,
                self.policy,
                context,
                asked_by=caller,
                reason=reason,
                intent=intent,
                spare_reads=spare_reads,
            )
            entry = JournalEntry(drain.id, now, reason, "propose", "", view.epoch, caller)
            self.save(drain, (entry,))
            return drain

    def approve(self, id_: str, caller: str, now: datetime, plan_etag: str | None = None) -> Drain:
        """Let a proposed drain begin as soon as its guards pass. The present policy is stored with it.

        `plan_etag`: the ETag of the plan that the caller saw. Raises PlanChanged if the plan is another one.
        """
        with self.turn:
            if plan_etag is not None:
                refuse_changed_plan(plan_etag, self.get_drain(id_))
            return self._ask(
                id_, Event.APPROVE, caller, now, lambda drain: replace(drain, policy=self.policy.snapshot())
            )

    def reject(self, id_: str, caller: str, now: datetime) -> Drain:
        """End a drain that is still proposed, so that nothing was changed for it. Raises NotProposed, also if an
        approval came first.
        """
        try:
            return self._ask(
                id_, Event.REJECT, caller, now, lambda drain: replace(drain, cancelled_by=caller)
            )
        except NotInTable as other:
            raise NotProposed(other.drain) from other

    def pause(self, id_: str, caller: str, now: datetime) -> Drain:
        """Start no further step. Data that is already moving arrives."""
        return self._ask(id_, Event.PAUSE, caller, now)

    def resume(self, id_: str, caller: str, now: datetime) -> Drain:
        """Go on where the drain was paused or failed."""
        return self._ask(id_, Event.RESUME, caller, now)

    def cancel(self, id_: str, caller: str, now: datetime) -> Drain:
        """Restore everything as it was before the drain. A drained disk is filled again."""
        return self._ask(id_, Event.CANCEL, caller, now, lambda drain: replace(drain, cancelled_by=caller))

    def hand_over(self, id_: str, caller: str, now: datetime) -> Drain:
        """Allow the disk to be pulled, and switch its light on if possible.

        Raises ConcurrentDrainChange with every sentence of the guards that refuse, `safe-to-destroy` first.
        """
        with self.turn:
            view, context = self.look(now)
            refused = list_refusals(view, self.get_drain(id_), self.policy, context)
            if refused:
                raise ConcurrentDrainChange(" ".join(refuse.sentence for refuse in refused))
            drain = self._ask(id_, Event.HAND_OVER, caller, now)
            if drain.device is not None and drain.intent.empties_osd:
                self.journal.send(id_, DeviceLight(drain.device, on=True), "light the disk", now)
            return drain

    def explain(self, id_: str, now: datetime) -> tuple[tuple[str, Pass | Refuse], ...]:
        """Return every guard that applies to a drain now, with its answer; empty before the first view."""
        with self.turn:
            seen, drain = self.recall(now), self.get_drain(id_)
            return () if seen is None else evaluate_guards(seen[0], drain, self.policy, seen[1])

    def list_ways_out(self, id_: str, now: datetime) -> tuple[OpenWayOut, ...]:
        """Return the ways out that are open to a drain now; none before the first view."""
        with self.turn:
            seen, drain = self.recall(now), self.get_drain(id_)
            return () if seen is None else list_ways_out(seen[0], drain, self.policy, seen[1])

    def list_every_way_out(self, now: datetime) -> dict[str, tuple[OpenWayOut, ...]]:
        """Return the ways out that are open now, by drain; drains without any, or that nothing holds, are left out."""
        with self.turn:
            if (seen := self.recall(now)) is None:
                return {}
            view, context = seen
            held = [drain for drain in context.drains if drain.held_by or drain.resume_to is not None]
            found = ((drain.id, list_ways_out(view, drain, self.policy, context)) for drain in held)
            return {id_: ways for id_, ways in found if ways}

    def stay_drained(self, id_: str, caller: str, now: datetime) -> Drain:
        """Revoke a cancel whose data cannot return: moved data stays, and the rest follows. Raises WayNotOpen and
        ClusterUnreachable.
        """

        def stay(drain: Drain, view: ClusterView, context: Context) -> tuple[Drain, str]:
            self._check_open(drain, WayOut.STAY_DRAINED, view, context)
            return replace(claim_what_stands(view, drain), cancelled_by=""), ""

        return self._ask_seen(id_, Event.STAY, caller, now, stay)

    def give_up_cancel(self, id_: str, caller: str, now: datetime) -> Drain:
        """End a cancel: restore the settings that move no data, and leave the rest as it is, listed in journal and
        audit. Raises WayNotOpen and ClusterUnreachable.
        """

        def give_up(drain: Drain, view: ClusterView, context: Context) -> tuple[Drain, str]:
            self._check_open(drain, WayOut.GIVE_UP_CANCEL, view, context)
            told = describe_left_standing(list_left_standing(view, drain, context))
            return replace(drain, given_up=GivenUp(caller, now)), told

        return self._ask_seen(id_, Event.GIVE_UP, caller, now, give_up, audited=True)

    def choose_other_targets(self, id_: str, caller: str, now: datetime) -> Drain:
        """Plan again without the targets in trouble. Raises WayNotOpen, NoOtherTargets and ClusterUnreachable."""

        def choose(drain: Drain, view: ClusterView, context: Context) -> tuple[Drain, str]:
            self._check_open(drain, WayOut.CHOOSE_OTHER_TARGETS, view, context)
            troubled = find_troubled_targets(view, drain, self.policy, context)
            free = replace(drain, avoided=tuple(sorted({*drain.avoided, *troubled})))
            made = plan_drain(view, free, self.policy, context)
            if made.refusals:
                raise NoOtherTargets(describe_plan_refusal(made.refusals[0]))
            fresh, told = replan_drain(free, made)
            return fresh, f"{told}, without {', '.join(f'osd.{osd}' for osd in troubled)}"

        return self._ask_seen(id_, Event.CHOOSE_TARGETS, caller, now, choose)

    def insist(self, id_: str, insistence: Insistence, confirm: str, now: datetime) -> Drain:
        """Let the drain pass guards that refuse it now, in this step. Raises CannotInsist and ClusterUnreachable.

        `confirm`: an OSD of the drain, as the person typed it.
        """

        def insist(drain: Drain, view: ClusterView, context: Context) -> tuple[Drain, str]:
            answers = dict(evaluate_guards(view, drain, self.policy, context))
            if why := _find_objection(drain, insistence, confirm, answers, now):
                raise CannotInsist(why)
            until = f"{insistence.until:%H:%M} UTC"
            told = f"past {', '.join(insistence.guards)} until {until} at most: {insistence.reason}"
            return replace(drain, insistence=insistence), told

        return self._ask_seen(id_, Event.INSIST, insistence.by, now, insist, audited=True)

    def _see(self, now: datetime) -> ViewInContext:
        return self.recall(now) or self.look(now)

    def _check_open(self, drain: Drain, way: WayOut, view: ClusterView, context: Context) -> None:
        ways = list_ways_out(view, drain, self.policy, context)
        if way not in {one.way for one in ways}:
            raise WayNotOpen(drain, way, ways, self.policy)

    def _ask_seen(
        self,
        id_: str,
        event: Event,
        caller: str,
        now: datetime,
        also: Callable[[Drain, ClusterView, Context], tuple[Drain, str]],
        *,
        audited: bool = False,
    ) -> Drain:
        """Make a request that depends on the state of the cluster; otherwise like `_ask`.

        `also`: returns the changed drain, and the words for the journal.
        """
        for _ in range(3):
            with self.turn:
                drain = self.get_drain(id_)
                if not can_take_event(drain, event):
                    raise NotInTable(drain, event)
                changed, told = also(drain, *self._see(now))
                decided = f"{event.value}: {told}" if told else event.value
                entry = JournalEntry(id_, now, f"state {drain.state.value}", decided, caller=caller)
                line = JournalEntry(AUDIT, now, f"drain {id_}", decided, "taken", caller=caller)
                asked = apply_event(changed, event, now)
                with suppress(RevisionConflict):
                    self.save(asked, (entry, line) if audited else (entry,))
                    return asked
        raise ConcurrentDrainChange(f"drain {id_} keeps being changed by another process; try again")

    def _ask(
        self,
        id_: str,
        event: Event,
        caller: str,
        now: datetime,
        also: Callable[[Drain], Drain] = lambda drain: drain,
    ) -> Drain:
        for _ in range(3):
            with self.turn:
                drain = self.get_drain(id_)
                asked = also(apply_event(drain, event, now, why=f"{event.value} by {caller}"))
                entry = JournalEntry(id_, now, f"state {drain.state.value}", event.value, caller=caller)
                with suppress(RevisionConflict):
                    self.save(asked, (entry,))
                    return asked
        raise ConcurrentDrainChange(f"drain {id_} keeps being changed by another process; try again")


def _find_objection(
    drain: Drain, said: Insistence, confirm: str, answers: Mapping[HoldReason, Pass | Refuse], now: datetime
) -> str:
    """Return why a person may not insist like this, with the remedy; "" if the person may."""
    names = [f"osd.{osd}" for osd in drain.osds]
    if confirm not in names:
        return f"type {' or '.join(names)} to confirm; '{confirm}' is not the OSD of this drain"
    if not said.reason.strip():
        return "say why you insist: the reason is kept in the journal and in the audit"
    if not now < said.until <= now + INSISTENCE_MAX:
        return f"insist for at most {INSISTENCE_MAX // timedelta(minutes=1)} minutes, and for more than none"
    may = f"a person may insist past {', '.join(sorted(INSISTABLE))}"
    if not said.guards:
        return f"name the guards that the drain is to pass; {may}"
    for code in said.guards:
        if code not in INSISTABLE:
            return f"nobody may insist past '{code}'; {may}"
        match answers.get(HoldReason(code)):
            case None:
                return (
                    f"{code} has no say while a drain is {drain.state.value}; there is nothing to insist on"
                )
            case Pass():
                return f"{code} does not refuse now; there is nothing to insist on"
            case Refuse(firm=True, sentence=sentence):
                return f"nobody may insist past what {code} says now: {sentence}"
            case Refuse():
                pass
    return ""
