"""The decision: from what is seen to what is done, as a pure function. One look, at most one small
step a drain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from actions.cluster.port import Command
from actions.cluster.view import ClusterView
from actions.context import Context, Memory, engaged
from actions.flight import Allowance, allowance
from actions.guards import AUTOMATIC, Refuse, refusals
from actions.guards.cluster import foreign_trouble
from actions.guards.verdict import count
from actions.ledger import booked, command_for, found, same
from actions.mechanics.batch import Batch
from actions.mechanics.override import keep_again
from actions.mechanics.restore import next_return
from actions.moving import current_osd, next_batch, paced, progressed
from actions.plan import fingerprint, plan, unlike
from actions.policy import Mode, Policy
from actions.proposals import no_longer_bad, proposals
from actions.risk import p_fail_30d, urgent
from actions.space import room
from actions.states import ENDED, Event, after, can
from actions.steps import Answer, Decisions, Hold, Step, Turn, Wait
from actions.survey import Survey, survey
from actions.throttle import lowered, shared, to_give_back, wanted
from data.drain import Drain, DrainState, Progress
from data.ids import DeviceId
from data.outlook import Outlook

S = DrainState


def decide(
    view: ClusterView,
    outlooks: Mapping[DeviceId, Outlook],
    drains: Sequence[Drain],
    policy: Policy,
    now: datetime,
    memory: Memory,
    *,
    surveyed: Survey | None = None,
    halted: str | None = None,
    lease_held: bool = True,
    bad_since: Mapping[DeviceId, datetime] | None = None,
    bundle_since: datetime | None = None,
) -> Decisions:
    """What to do now. Reads nothing but its arguments, changes none of them.

    `drains`: all that have not ended, and the ended ones that a proposal must know of. Every answer's drain
    is one revision on; the shell stores it before it sends the answer's commands.

    All drains together draw on one allowance a look: at most `policy.peering_max` PGs (3) start, whatever the
    number of drains. So ticks set the pace: where they are rare (minutes apart) a drain of thousands of PGs
    takes days.
    """
    context = Context(
        survey=surveyed if surveyed is not None else survey(view),
        outlooks=outlooks,
        drains=tuple(drains),
        now=now,
        memory=memory,
        halted=halted,
        lease_held=lease_held,
        bad_since=bad_since or {},
        bundle_since=bundle_since,
    )
    desk = _Desk(view, policy, context, allowance(context, policy, room(context.survey, policy)), {})
    ranked = sorted(
        (drain for drain in drains if drain.state not in ENDED),
        key=lambda drain: _rank(view, drain, outlooks, policy),
    )
    answers: list[Answer] = [answer for drain in ranked for answer in desk.answer(drain)]
    answers.extend(proposals(view, policy, context))
    return Decisions(tuple(answers), desk.planned)


def _rank(
    view: ClusterView, drain: Drain, outlooks: Mapping[DeviceId, Outlook], policy: Policy
) -> tuple[bool, float, datetime, str]:
    """Most endangered first: days to live, then chance to fail, then age of the drain."""
    risk = max((p_fail_30d(view, osd, outlooks) for osd in drain.osds), default=0.0)
    return (not urgent(drain, outlooks, policy), -risk, drain.created_at, drain.id)


@dataclass(slots=True)
class _Desk:
    """One look's worth of deciding; drains draw on one allowance in turn."""

    view: ClusterView
    policy: Policy
    context: Context
    allowance: Allowance
    planned: dict[str, tuple[int, datetime]]

    def answer(self, drain: Drain) -> tuple[Answer, ...]:
        """What this drain does now; empty when nothing changes."""
        if self._slot_reused(drain) and can(drain, Event.REPLACED):
            return (self._turn(drain, Event.REPLACED, "another device is in its place"),)
        if engaged(drain) and (rescue := self._rescue(drain)):
            return (rescue,)
        match drain.state:
            case S.PROPOSED:
                return self._proposed(drain)
            case S.PAUSED | S.FAILED | S.VERIFIED:
                return ()
            case S.CANCELLING:
                return self._guarded(drain, self._cancelling)
            case S.APPROVED:
                return self._guarded(drain, self._approved)
            case S.PREPARING:
                return self._guarded(drain, self._preparing)
            case S.DRAINED:
                return self._guarded(drain, self._drained)
            case _:
                return self._guarded(drain, self._draining)

    def _guarded(self, drain: Drain, go_on: Callable[[Drain], tuple[Answer, ...]]) -> tuple[Answer, ...]:
        """Hold with every refusal, wait for what was sent to show, or go on."""
        drain = progressed(self.view, drain, self.context)
        refused = refusals(self.view, drain, self.policy, self.context)
        if self.policy.mode is Mode.OBSERVE and drain.state is not S.CANCELLING:
            refused = (
                Refuse("mode", "The mode is observe: nothing is moved. Set mode propose or act."),
                *refused,
            )
        if refused and self._worth_planning_anew(drain, refused):
            fresh = self._replan(drain)
            if fresh is not None and not fresh.plan_refused:
                return (fresh.turn,)
        if refused:
            return (Hold(self._held(drain, refused), refused),)
        if not self.context.memory.settled(self.view):
            return (Wait(drain, "what was sent last must show in the statistics"),)
        return go_on(drain)

    def _held(self, drain: Drain, refused: Sequence[Refuse]) -> Drain:
        sentences = tuple(dict.fromkeys(refuse.sentence for refuse in refused))
        if can(drain, Event.REFUSED):
            return replace(after(drain, Event.REFUSED, self.context.now), held_by=sentences)
        if drain.held_by == sentences:
            return drain
        return replace(drain, held_by=sentences, revision=drain.revision + 1, updated_at=self.context.now)

    def _turn(self, drain: Drain, event: Event, decided: str) -> Turn:
        return Turn(after(drain, event, self.context.now, why=decided), self._seen(drain), decided)

    def _seen(self, drain: Drain) -> str:
        names = ", ".join(f"osd.{osd}" for osd in drain.osds)
        left = drain.progress.planned_pgs - drain.progress.moved_pgs
        flying = drain.progress.in_flight
        return f"epoch {self.view.epoch}: {count(left, 'PG')} left on {names}, {flying} on their way"

    # -- stages
    # ----------------------------------------------------------------------------------------------------

    def _proposed(self, drain: Drain) -> tuple[Answer, ...]:
        gone = all(
            (osd := self.view.osds.get(id_)) is None or (not osd.up and osd.reweight == 0)
            for id_ in drain.osds
        )
        if gone:
            return (
                self._turn(drain, Event.WITHDRAW, "the disk is dead and out; there is nothing left to drain"),
            )
        if no_longer_bad(drain, self.context.outlooks, self.policy, self.context.now):
            return (self._turn(drain, Event.WITHDRAW, "the outlook has been better for long enough"),)
        if self.policy.mode is not Mode.ACT or drain.asked_by != AUTOMATIC:
            return ()
        refused = refusals(self.view, drain, self.policy, self.context)
        if refused:
            held = self._held(drain, refused)
            return (Hold(held, refused),) if held is not drain else ()
        approved = after(drain, Event.APPROVE, self.context.now)
        decided = "approve: mode act, and every guard passes"
        return (Turn(replace(approved, policy=self.policy.snapshot()), self._seen(drain), decided),)

    def _approved(self, drain: Drain) -> tuple[Answer, ...]:
        made = plan(self.view, drain, self.policy, self.context)
        self._note_plan(drain)
        planned = replace(
            drain,
            plan=made,
            progress=Progress(planned_pgs=len({move.pg for move in made.moves}), planned_bytes=made.bytes),
        )
        if made.refusals:
            refused = refusals(self.view, planned, self.policy, self.context)
            return (Hold(self._held(planned, refused), refused),)
        watched = [f"osd.{osd}/{what}" for osd in drain.osds for what in ("reweight", "crush_weight")]
        as_found = {key: found(self.view, key) for key in watched}
        started = after(planned, Event.START, self.context.now)
        started = replace(started, saved={**as_found, **drain.saved}, ours={**as_found, **drain.ours})
        self.context = replace(
            self.context, drains=tuple(started if d.id == drain.id else d for d in self.context.drains)
        )
        decided = f"begin: {made.mechanic.value}; {made.why}"
        return (Turn(started, self._seen(planned), decided),)

    def _preparing(self, drain: Drain) -> tuple[Answer, ...]:
        return self._hold_settings(drain) or (
            self._turn(drain, Event.PREPARED, "balancer and throttles are as they must be"),
        )

    def _draining(self, drain: Drain) -> tuple[Answer, ...]:
        if drain.state is S.HOLDING:
            return (self._turn(drain, Event.PASSED, "every guard passes again"),)
        kept = keep_again(self.view, drain, self.context, self.allowance)
        if kept is not None:
            return self._send(drain, kept)
        osd = current_osd(self.view, drain, self.context)
        if osd is None:
            return (self._turn(drain, Event.EMPTIED, "no PG names it any more"),)
        if relowered := self._hold_settings(drain):
            return relowered
        if drain.plan is None or self._map_changed(drain):
            fresh = self._replan(drain)
            if fresh is not None:
                return (fresh.turn,)
        drain, pace, flying = paced(self.view, drain, self.policy, self.context)
        batch = next_batch(self.view, drain, osd, pace, len(flying), self.context, self.allowance)
        if batch.outdated:
            fresh = self._replan(drain)
            return (
                (fresh.turn,)
                if fresh is not None
                else (Wait(drain, "the next targets are full for the moment"),)
            )
        return self._send(drain, batch)

    def _drained(self, drain: Drain) -> tuple[Answer, ...]:
        back = to_give_back(drain, self.context)
        wrong = {key: value for key, value in back.items() if not same(key, found(self.view, key), value)}
        if wrong:
            commands = tuple(command_for(key, value) for key, value in wrong.items())
            return self._send(drain, Batch(commands, decided=f"give back {', '.join(wrong)}"))
        free = replace(
            drain, ours={key: value for key, value in drain.ours.items() if not shared(key.rstrip("~"))}
        )
        decided = "verified: every copy is counted elsewhere"
        return (Turn(after(free, Event.COUNTED, self.context.now), self._seen(drain), decided),)

    def _cancelling(self, drain: Drain) -> tuple[Answer, ...]:
        drain, pace, flying = paced(self.view, drain, self.policy, self.context)
        starts = self.allowance.starts(pace.budget, len(flying))
        way = next_return(self.view, drain, self.policy, self.context, self.allowance, starts)
        if way.done:
            ended = replace(
                after(way.drain, Event.RESTORED, self.context.now, why=way.batch.decided), ours={}
            )
            return (Turn(ended, self._seen(drain), way.batch.decided),)
        return self._send(way.drain, way.batch)

    # -- pieces
    # ----------------------------------------------------------------------------------------------------

    def _rescue(self, drain: Drain) -> Step | None:
        """Real trouble heals at the operator's speed: lowered throttles go back at once, whatever
        else holds.
        """
        held = lowered(drain)
        if not held or self.context.halted is not None or not self.context.lease_held:
            return None
        if not self.view.statistics_known or not foreign_trouble(self.context):
            return None
        commands = tuple(command_for(key, value) for key, value in held.items())
        decided = f"give {', '.join(held)} back at once: degradation that is not ours"
        return self._step(drain, Batch(commands, decided=decided))

    def _hold_settings(self, drain: Drain) -> tuple[Answer, ...]:
        """Balancer off, throttles down; kept with what they were before any drain touched them."""
        saved, ours = dict(drain.saved), dict(drain.ours)
        commands: list[Command] = []
        for key, (was, must) in wanted(self.view, drain, self.context).items():
            if self.context.memory.attempts.get(key, 0) >= self.policy.pin_attempts:
                continue  # the OSDs do not take it (mClock without its override): the throttle is unverified
            given_back = key in ours and same(key, ours[key], was) and not same(key, was, must)
            if drain.state is not S.PREPARING and not given_back:
                continue
            saved[key] = was
            if not same(key, found(self.view, key), must):
                commands.append(command_for(key, must))
            ours[key] = must
        prepared = replace(drain, saved=saved, ours=ours)
        if commands:
            names = ", ".join(f"{key} {value}" for key, value in ours.items() if shared(key))
            return (self._step(prepared, Batch(tuple(commands), decided=f"hold {names}")),)
        if prepared != drain and drain.state is S.PREPARING:
            return (
                self._turn(
                    prepared, Event.PREPARED, "balancer and throttles are held by another drain already"
                ),
            )
        return ()

    def _send(self, drain: Drain, batch: Batch) -> tuple[Answer, ...]:
        if not batch.commands:
            return (Wait(drain, batch.waits_for or "what is on its way must arrive"),)
        return (self._step(drain, batch),)

    def _step(self, drain: Drain, batch: Batch) -> Step:
        ready = booked(drain, self.view, batch.commands)
        ready = replace(ready, revision=drain.revision + 1, updated_at=self.context.now, held_by=())
        return Step(ready, batch.commands, self._seen(drain), batch.decided, batch.pgs)

    def _note_plan(self, drain: Drain) -> int:
        mark = fingerprint(self.view, drain, self.context.draining())
        self.planned[drain.id] = (mark, self.context.now)
        return mark

    def _map_changed(self, drain: Drain) -> bool:
        known = self.context.memory.planned.get(drain.id)
        return known is None or known[0] != fingerprint(self.view, drain, self.context.draining())

    def _worth_planning_anew(self, drain: Drain, refused: Sequence[Refuse]) -> bool:
        if drain.plan is None or not {refuse.code for refuse in refused} <= {"space", "plan"}:
            return False
        known = self.context.memory.planned.get(drain.id)
        old = known is None or self.context.now - known[1] >= self.policy.plan_again_after
        return old or self._map_changed(drain)

    def _replan(self, drain: Drain) -> _Fresh | None:
        """A new plan for what is left; None when it says the same as the old one."""
        made = plan(self.view, drain, self.policy, self.context)
        self._note_plan(drain)
        if not unlike(drain.plan, made):
            return None
        pgs = len({move.pg for move in made.moves})
        progress = replace(drain.progress, planned_pgs=pgs, planned_bytes=made.bytes)
        progress = replace(progress, moved_pgs=min(progress.moved_pgs, pgs))
        fresh = replace(
            drain, plan=made, progress=progress, revision=drain.revision + 1, updated_at=self.context.now
        )
        decided = f"plan anew: {count(pgs, 'PG')}, fullest target {_percent(made.fullest_after)}"
        return _Fresh(Turn(fresh, self._seen(drain), decided), bool(made.refusals))

    def _slot_reused(self, drain: Drain) -> bool:
        if drain.device is None:
            return False
        devices = {osd.device for id_ in drain.osds if (osd := self.view.osds.get(id_)) is not None}
        return bool(devices) and None not in devices and drain.device not in devices


@dataclass(frozen=True, slots=True)
class _Fresh:
    """A drain planned anew."""

    turn: Turn
    plan_refused: bool


def _percent(fill: float | None) -> str:
    return "unknown" if fill is None else f"{fill:.0%}"
