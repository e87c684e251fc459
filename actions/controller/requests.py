"""What a person may ask of a drain: propose, approve, reject, pause, resume, cancel, hand over, take a way out, insist
past a guard. The state table has the last word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.messages import describe_state
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.core.state_machine import Event, NotInTable, after, can
from predrain.actions.engine.plan import plan
from predrain.actions.engine.proposals import drafted, open_for, target_of
from predrain.actions.engine.replanning import anew
from predrain.actions.engine.ways_out import WayNotOpen, find_troubled_targets, list_ways_out
from predrain.actions.guards import INSISTABLE, Pass, Refuse, judge, refusals
from predrain.actions.mechanics.leave import claim_what_stands, describe_left_standing, list_left_standing
from predrain.data.drain import Drain, DrainStands, GivenUp, Insistence, Intent, JournalEntry
from predrain.data.refusal import Refusal
from predrain.data.store.port import AUDIT, RevisionConflict, Store
from predrain.data.way_out import OpenWayOut, WayOut

INSISTENCE_MAX = timedelta(hours=1)
"""For how long a person may insist at most."""


class NoSuchDrain(Refusal):
    """An id that the store does not know."""

    def __init__(self, id_: str) -> None:
        super().__init__(f"there is no drain '{id_}'; `predrain drain list` shows those that are")


class NotProposed(Refusal):
    """A drain is rejected that somebody approved, paused or ended before."""

    def __init__(self, drain: Drain) -> None:
        state = describe_state(drain.state, drain.intent)
        cure = f"; give it up: predrain drain cancel {drain.id}" if can(drain, Event.CANCEL) else ""
        super().__init__(f"{drain.id} is {state}, no longer proposed, and was not rejected{cure}")


class NotNow(Refusal):
    """The drain was changed again and again while the request was being written."""


class NoOtherTargets(Refusal):
    """Without the targets in trouble no plan can be made."""

    def __init__(self, sentence: str) -> None:
        super().__init__(f"the plan stays as it is, for no other can be carried out: {sentence}")


class CannotInsist(Refusal):
    """A person insists where nobody may, or for too long, or without what makes it deliberate."""


class NotLeading(Refusal):
    """Another controller leads; what a person asks belongs there."""

    def __init__(self, why: str) -> None:
        super().__init__(f"this controller may not change drains: {why}")


class NotTaken(Refusal):
    """The store has what was asked, the cluster has not: another controller would not know of it."""

    def __init__(self, drain: Drain) -> None:
        super().__init__(
            f"drain {drain.id} is {drain.state.value} here, but the cluster did not take that, and nothing is sent "
            "before it has. It is tried again at every look; should another controller lead first, it is lost. Ask "
            "again when the cluster answers."
        )


@dataclass(frozen=True, slots=True)
class Requests:
    """Each request reads the drain, asks the table, saves the next revision, and journals with its caller. Each raises
    NotTaken where the cluster did not take it, and NotLeading, which changed nothing.
    """

    store: Store
    policy: Policy
    turn: AbstractContextManager[object]
    """Held while a request is written, so that it does not cross a tick of the same process."""
    save: Callable[[Drain], bool]
    """Keeps the next revision; whether the cluster took it, too. Raises RevisionConflict, NotLeading."""
    see: Callable[[datetime], tuple[ClusterView, Context]]
    """The last look at the cluster, or the first, with what is known now. Raises ClusterUnreachable."""
    recall: Callable[[datetime], tuple[ClusterView, Context] | None]
    """The last look at the cluster with what is known now; None before the first."""

    def known(self, id_: str) -> Drain:
        """The drain. Raises NoSuchDrain."""
        drain = self.store.drain(id_)
        if drain is None:
            raise NoSuchDrain(id_)
        return drain

    def propose(
        self,
        view: ClusterView,
        target: str,
        caller: str,
        reason: str,
        context: Context,
        intent: str = "replace",
        *,
        spare_reads: bool = False,
    ) -> Drain:
        """A drain by a person's word, with its plan. `spare_reads`: reading the disk hurts clients (Drain.spare_reads).
        Raises NoSuchTarget, DrainStands."""
        with self.turn:
            device, osds = target_of(view, target)
            standing = open_for(self.store.drains(), osds, Intent(intent))
            if standing is not None:
                raise DrainStands(standing)
            drain = drafted(
                view,
                device,
                osds,
                self.policy,
                context,
                asked_by=caller,
                reason=reason,
                intent=Intent(intent),
                spare_reads=spare_reads,
            )
            entry = JournalEntry(drain.id, context.now, reason, "propose", "", view.epoch, caller)
            return self._kept(drain, entry)

    def approve(self, id_: str, caller: str, now: datetime) -> Drain:
        """Let a proposed drain begin as soon as its guards pass; the policy of this moment is kept
        with it.
        """
        return self._ask(
            id_, Event.APPROVE, caller, now, lambda drain: replace(drain, policy=self.policy.snapshot())
        )

    def reject(self, id_: str, caller: str, now: datetime) -> Drain:
        """End a drain that is still proposed, of which nothing was touched. Raises NotProposed, also where an approval
        came first.
        """
        try:
            return self._ask(
                id_, Event.REJECT, caller, now, lambda drain: replace(drain, cancelled_by=caller)
            )
        except NotInTable as other:
            raise NotProposed(other.drain) from other

    def pause(self, id_: str, caller: str, now: datetime) -> Drain:
        """No further step; what is on its way arrives."""
        return self._ask(id_, Event.PAUSE, caller, now)

    def resume(self, id_: str, caller: str, now: datetime) -> Drain:
        """Go on where it was paused or broke."""
        return self._ask(id_, Event.RESUME, caller, now)

    def cancel(self, id_: str, caller: str, now: datetime) -> Drain:
        """Put everything back as it was found; a drained disk is filled again."""
        return self._ask(id_, Event.CANCEL, caller, now, lambda drain: replace(drain, cancelled_by=caller))

    def hand_over(self, id_: str, caller: str, view: ClusterView, context: Context) -> Drain:
        """The disk may be pulled. Refused while any guard, `safe-to-destroy` first, refuses."""
        refused = refusals(view, self.known(id_), self.policy, context)
        if refused:
            raise NotNow(" ".join(refuse.sentence for refuse in refused))
        return self._ask(id_, Event.HAND_OVER, caller, context.now)

    def explain(self, id_: str, now: datetime) -> tuple[tuple[str, Pass | Refuse], ...]:
        """Every guard that has a say about a drain now, with its answer; empty before the first look."""
        with self.turn:
            seen, drain = self.recall(now), self.known(id_)
            return () if seen is None else judge(seen[0], drain, self.policy, seen[1])

    def list_ways_out(self, id_: str, now: datetime) -> tuple[OpenWayOut, ...]:
        """The ways out that are open to a drain now; none before the first look."""
        with self.turn:
            seen, drain = self.recall(now), self.known(id_)
            return () if seen is None else list_ways_out(seen[0], drain, self.policy, seen[1])

    def stay_drained(self, id_: str, caller: str, now: datetime) -> Drain:
        """Take back a cancel whose data cannot go back: what has moved stays, and the rest follows. Raises WayNotOpen,
        ClusterUnreachable."""

        def stay(drain: Drain, view: ClusterView, context: Context) -> tuple[Drain, str]:
            self._check_open(drain, WayOut.STAY_DRAINED, view, context)
            return replace(claim_what_stands(view, drain), cancelled_by=""), ""

        return self._ask_seen(id_, Event.STAY, caller, now, stay)

    def give_up_cancel(self, id_: str, caller: str, now: datetime) -> Drain:
        """End a cancel with what moves no data given back, and the rest left as it stands: journal and audit list it.
        Raises WayNotOpen, ClusterUnreachable."""

        def give_up(drain: Drain, view: ClusterView, context: Context) -> tuple[Drain, str]:
            self._check_open(drain, WayOut.GIVE_UP_CANCEL, view, context)
            told = describe_left_standing(list_left_standing(view, drain, context))
            return replace(drain, given_up=GivenUp(caller, now)), told

        return self._ask_seen(id_, Event.GIVE_UP, caller, now, give_up, audited=True)

    def choose_other_targets(self, id_: str, caller: str, now: datetime) -> Drain:
        """Plan anew without the targets in trouble. Raises WayNotOpen, NoOtherTargets, ClusterUnreachable."""

        def choose(drain: Drain, view: ClusterView, context: Context) -> tuple[Drain, str]:
            self._check_open(drain, WayOut.CHOOSE_OTHER_TARGETS, view, context)
            troubled = find_troubled_targets(view, drain, self.policy, context)
            free = replace(drain, avoided=tuple(sorted({*drain.avoided, *troubled})))
            made = plan(view, free, self.policy, context)
            if made.refusals:
                raise NoOtherTargets(made.refusals[0])
            fresh, told = anew(free, made)
            return fresh, f"{told}, without {', '.join(f'osd.{osd}' for osd in troubled)}"

        return self._ask_seen(id_, Event.CHOOSE_TARGETS, caller, now, choose)

    def insist(self, id_: str, insistence: Insistence, confirm: str, now: datetime) -> Drain:
        """Let the drain pass guards that refuse it now, in this step. `confirm`: an OSD of the drain, as it was typed.
        Raises CannotInsist, ClusterUnreachable."""

        def insist(drain: Drain, view: ClusterView, context: Context) -> tuple[Drain, str]:
            answers = dict(judge(view, drain, self.policy, context))
            if why := _find_objection(drain, insistence, confirm, answers, now):
                raise CannotInsist(why)
            until = f"{insistence.until:%H:%M} UTC"
            told = f"past {', '.join(insistence.guards)} until {until} at most: {insistence.reason}"
            return replace(drain, insistence=insistence), told

        return self._ask_seen(id_, Event.INSIST, insistence.by, now, insist, audited=True)

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
        """As `_ask`, for what rests on how the cluster is. `also`: the drain with what is asked, and the words of the
        journal."""
        for _ in range(3):
            with self.turn:
                drain = self.known(id_)
                if not can(drain, event):
                    raise NotInTable(drain, event)
                changed, told = also(drain, *self.see(now))
                decided = f"{event.value}: {told}" if told else event.value
                entry = JournalEntry(id_, now, f"state {drain.state.value}", decided, caller=caller)
                line = JournalEntry(AUDIT, now, f"drain {id_}", decided, "taken", caller=caller)
                with suppress(RevisionConflict):
                    return self._kept(after(changed, event, now), entry, *([line] if audited else []))
        raise NotNow(f"drain {id_} keeps being changed by another process; try again")

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
                drain = self.known(id_)
                asked = also(after(drain, event, now, why=f"{event.value} by {caller}"))
                entry = JournalEntry(id_, now, f"state {drain.state.value}", event.value, caller=caller)
                with suppress(RevisionConflict):
                    return self._kept(asked, entry)
        raise NotNow(f"drain {id_} keeps being changed by another process; try again")

    def _kept(self, drain: Drain, *entries: JournalEntry) -> Drain:
        taken = self.save(drain)
        self.store.add_journal(entries)
        if not taken:
            raise NotTaken(drain)
        return drain


def _find_objection(
    drain: Drain, said: Insistence, confirm: str, answers: Mapping[str, Pass | Refuse], now: datetime
) -> str:
    """Why a person may not insist like this, with the cure; empty where the person may."""
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
        match answers.get(code):
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
