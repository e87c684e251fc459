"""The decision: from what is seen to what is done, as a pure function. One look, at most one small step a drain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.answers import Answer, Decisions, Hold, Step, Turn, Wait
from predrain.actions.core.capacity import room
from predrain.actions.core.claimed_settings import key_of, value_of
from predrain.actions.core.cost_assessment import with_weighed_disks
from predrain.actions.core.forecast_confirmation import ForecastPoint, WeighedDisk
from predrain.actions.core.in_flight import allowance, at_work, list_own_pgs
from predrain.actions.core.messages import WORDS, name_yielded
from predrain.actions.core.pg_survey import Survey, add_unreported, survey
from predrain.actions.core.policy import Mode, Policy
from predrain.actions.core.priority import most_endangered_first
from predrain.actions.core.situation import Context, Memory, engaged
from predrain.actions.core.state_machine import BEGUN, COUNTED, ENDED, Event, after, can
from predrain.actions.core.throttles import (
    lower_settings,
    lowered,
    returned,
    shared,
    to_give_back,
    unheld,
    yielded,
)
from predrain.actions.crush.choose import CannotPlace
from predrain.actions.engine import quarantine
from predrain.actions.engine.decision_round import Desk
from predrain.actions.engine.journal_compaction import held
from predrain.actions.engine.plan import plan
from predrain.actions.engine.plan_comparison import read_alike
from predrain.actions.engine.progress import next_batch, progressed
from predrain.actions.engine.proposals import proposals
from predrain.actions.engine.replanning import map_changed, outdated, planned_before
from predrain.actions.engine.slow_proposals import propose_for_slow_osds
from predrain.actions.engine.strategies import STRATEGIES, note_as_found
from predrain.actions.engine.withdrawal import find_recovery
from predrain.actions.guards import AUTOMATIC, Refuse, refusals
from predrain.actions.guards.cluster import foreign_trouble
from predrain.actions.mechanics.batch import CommandBatch, back
from predrain.actions.mechanics.desired_upmaps import list_claims_for_others
from predrain.actions.mechanics.leave import SENDS_NOTHING, next_surrender
from predrain.actions.mechanics.override import keep_again
from predrain.actions.mechanics.restore import Return, next_return
from predrain.actions.placement.shared_failure import list_disks_in_use, slot_reused
from predrain.actions.planning.figures import unplaceable
from predrain.data.drain import Drain, DrainState, Progress
from predrain.data.ids import DeviceId
from predrain.data.outlook import Outlook
from predrain.data.residence import Residence
from predrain.data.setting import OsdAffinity, strip_note
from predrain.data.slow import Slowness

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
    forecasts: Mapping[DeviceId, tuple[ForecastPoint, ...]] | None = None,
    weighed: Mapping[DeviceId, WeighedDisk] | None = None,
    bytes_per_second: float | None = None,
    bundle_since: datetime | None = None,
    slow: Slowness | None = None,
    residences: Mapping[DeviceId, Residence] | None = None,
) -> Decisions:
    """What to do now. Reads nothing but its arguments, changes none of them.

    `drains`: all that have not ended, and the ended ones that a proposal must know of. Every answer's drain
    is one revision on; the shell stores it before it sends the answer's commands. `weighed`: this look's disks.

    All drains together draw on one allowance a look: at most `policy.peering_max` PGs (3) start, whatever the
    number of drains. So ticks set the pace: where they are rare (minutes apart) a drain of thousands of PGs
    takes days.
    """
    context = Context(
        survey=add_unreported(surveyed if surveyed is not None else survey(view), memory.unreported),
        outlooks=outlooks, drains=tuple(drains), now=now, memory=memory, halted=halted, lease_held=lease_held,
        bad_since=bad_since or {}, forecasts=forecasts or {}, bytes_per_second=bytes_per_second,
        bundle_since=bundle_since, slow=slow or Slowness(), residences=residences or {}, weighed=weighed or {},
    )  # fmt: skip
    if weighed is None:
        context = with_weighed_disks(view, policy, context)
    desk = _Desk(view, policy, context, allowance(context, policy, room(context.survey, policy)), {})
    living = (drain for drain in drains if drain.state not in ENDED)
    ranked = most_endangered_first(view, living, outlooks, policy)
    answers: list[Answer] = [answer for drain in ranked for answer in desk.answer(drain)]
    answers += [*proposals(view, policy, context), *propose_for_slow_osds(view, policy, context)]
    return Decisions(tuple(answers), desk.planned, desk.paced)


@dataclass(slots=True)
class _Desk(Desk):
    """One look's worth of deciding."""

    renewed: bool = False

    def answer(self, drain: Drain) -> tuple[Answer, ...]:
        """What this drain does now; empty when nothing changes. Where the map cannot be computed it alone is held."""
        try:
            answers = self._answer(drain)
        except CannotPlace as trouble:
            answers = self._uncomputed(drain, str(trouble))
        now = {answer.drain.id: answer.drain for answer in answers if isinstance(answer, Step | Turn)}
        # Who decides after it must know: of drains that end in one look, the last gives back what all of them held.
        self.context = replace(
            self.context, drains=tuple(now.get(known.id, known) for known in self.context.drains)
        )
        return answers

    def _answer(self, drain: Drain) -> tuple[Answer, ...]:
        if slot_reused(self.view, drain) and can(drain, Event.REPLACED):
            return (self._turn(drain, Event.REPLACED, "another device is in its place"),)
        if engaged(drain) and (rescue := self._rescue(drain)):
            return (rescue,)
        if taken := self._take_over(drain):
            return (taken,)
        if drain.state is S.VERIFIED and (in_use := list_disks_in_use(self.view, drain)):
            names = ", ".join(f"osd.{osd}" for osd in in_use)
            return (self._turn(drain, Event.IN_USE_AGAIN, f"{names} is up and in again: drain it again"),)
        match drain.state:
            case S.PROPOSED:
                return self._proposed(drain)
            case S.PAUSED | S.FAILED | S.VERIFIED:
                return ()
            case S.CANCELLING if drain.given_up is not None:
                return self._surrender(drain)
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

    def _take_over(self, drain: Drain) -> Turn | None:
        """A quarantine ends where a drain of the same OSD holds all that it has set."""
        heir = quarantine.find_heir(drain, self.context)
        if heir is None or not quarantine.holds_all(heir, drain) or not can(drain, Event.TAKEN_OVER):
            return None
        return self._turn(replace(drain, ours={}), Event.TAKEN_OVER, f"taken over by drain {heir.id}")

    def _guarded(self, drain: Drain, go_on: Callable[[Drain], tuple[Answer, ...]]) -> tuple[Answer, ...]:
        """Hold with every refusal, wait for what was sent to show, or go on."""
        drain = progressed(self.view, drain, self.context)
        refused = refusals(self.view, drain, self.policy, self.context)
        if self.policy.mode is Mode.OBSERVE and drain.state is not S.CANCELLING:
            refused = (
                Refuse("mode", "The mode is observe: nothing is changed. Set mode propose or act."),
                *refused,
            )
        if refused and (fresh := self._planned_anew(drain, refused)):
            return (fresh,)
        if refused:
            return (Hold(held(drain, refused, self.context.now), refused),)
        if not self.context.memory.settled(self.view, list_own_pgs(drain)):
            return (Wait(drain, "what was sent last must show in the statistics"),)
        if heir := quarantine.find_heir(drain, self.context):
            return (Wait(drain, f"drain {heir.id} takes it over"),)
        return go_on(drain)

    def _uncomputed(self, drain: Drain, trouble: str) -> tuple[Answer, ...]:
        """Hold by the plan, until it can be made anew; a cancelled drain gives back what needs no placement."""
        if drain.state is S.CANCELLING and (wrong := to_give_back(self.view, drain, self.context)):
            return self._send(drain, back(wrong))
        if drain.state is S.DRAINING and drain.intent.moves_data:
            drain = replace(drain, plan=unplaceable(self.view, drain, trouble))
            self._note_plan(drain)
        refused = (Refuse("plan", f"{trouble} It goes on when the placement can be computed again."),)
        return (Hold(held(drain, refused, self.context.now), refused),)

    def _proposed(self, drain: Drain) -> tuple[Answer, ...]:
        if moot := STRATEGIES[drain.intent].explain_withdrawal(self.view, drain, self.policy, self.context):
            return (self._turn(drain, Event.WITHDRAW, moot),)
        if self.policy.mode is not Mode.ACT or drain.asked_by != AUTOMATIC:
            return self._awaited(drain)
        refused = refusals(self.view, drain, self.policy, self.context)
        if refused and (fresh := self._planned_anew(drain, refused)):
            return (fresh,)
        if refused:
            holding = held(drain, refused, self.context.now)
            return (Hold(holding, refused),) if holding is not drain else ()
        approved = after(drain, Event.APPROVE, self.context.now)
        decided = f"approve: mode act, and every guard passes{self._excuse(drain)}"
        return (Turn(replace(approved, policy=self.policy.snapshot()), self._seen(drain), decided),)

    def _awaited(self, drain: Drain) -> tuple[Answer, ...]:
        """A person approves what is shown: of another cluster by now, another plan. One a look: others must move on."""
        if self.renewed or not outdated(self.view, drain, self.policy, self.context):
            return ()
        self.renewed = True
        self._note_plan(drain)
        made = plan(self.view, replace(drain, plan=None), self.policy, self.context)
        if read_alike(drain.plan, made) and not drain.held_by:
            return ()
        return (self._with(replace(drain, held_by=()), made),)

    def _approved(self, drain: Drain) -> tuple[Answer, ...]:
        made = plan(self.view, drain, self.policy, self.context)
        self._note_plan(drain)
        counted = Progress(
            planned_pgs=len(STRATEGIES[drain.intent].list_planned_pgs(made)), planned_bytes=made.bytes
        )
        planned = replace(drain, plan=made, progress=counted)
        if made.refusals:
            refused = refusals(self.view, planned, self.policy, self.context)
            return (Hold(held(planned, refused, self.context.now), refused),)
        started = after(note_as_found(self.view, planned, self.context), Event.START, self.context.now)
        return (Turn(started, self._seen(planned), f"{BEGUN}{made.mechanic.value}; {made.why}"),)

    def _preparing(self, drain: Drain) -> tuple[Answer, ...]:
        if not drain.intent.moves_data:
            return (self._turn(drain, Event.PREPARED, "nothing else has to be held"),)
        return self._hold_settings(drain) or (
            self._turn(
                drain, Event.PREPARED, f"balancer and throttles are as they must be{self._grip(drain)}"
            ),
        )

    def _draining(self, drain: Drain) -> tuple[Answer, ...]:
        if drain.state is S.HOLDING:
            return (self._turn(drain, Event.PASSED, f"every guard passes again{self._excuse(drain)}"),)
        movement = STRATEGIES[drain.intent].movement
        if movement is None:
            if well := find_recovery(drain, self.policy, self.context):
                return (self._turn(drain, Event.RECOVERED, well),)
            return self._send(drain, quarantine.lower_affinity(self.view, drain, self.allowance))
        kept = keep_again(self.view, drain, self.context, self.allowance)
        if kept is not None:
            return self._send(drain, kept)
        osd = movement.find_current_osd(self.view, drain, self.context)
        if osd is None and not movement.has_last_steps(
            self.view, drain, self.policy, self.context, self.allowance
        ):
            return (self._turn(drain, Event.EMPTIED, WORDS[drain.intent].emptied),)
        if relowered := self._hold_settings(drain):
            return relowered
        if drain.plan is None or map_changed(self.view, drain, self.context):
            fresh = self._replan(drain)
            if fresh is not None:
                return (fresh,)
        drain, pace, flying = self._pace(drain)
        batch = (
            next_batch(self.view, drain, osd, pace, len(flying), self.context, self.allowance)
            if osd is not None
            else movement.last_batch(self.view, drain, pace, len(flying), self.context, self.allowance)
        )
        if batch.outdated:
            fresh = self._replan(drain)
            return (fresh or Wait(drain, "the next targets are full for the moment"),)
        return self._send(drain, batch)

    def _drained(self, drain: Drain) -> tuple[Answer, ...]:
        if wrong := {
            **to_give_back(self.view, drain, self.context),
            **quarantine.given_back(self.view, drain),
        }:
            return self._send(drain, back(wrong))
        free = replace(
            drain,
            ours={
                key: value
                for key, value in drain.ours.items()
                if not shared(key) and not isinstance(strip_note(key), OsdAffinity)
            },
        )
        decided = f"{COUNTED}{WORDS[drain.intent].counted}"
        return (Turn(after(free, Event.COUNTED, self.context.now), self._seen(drain), decided),)

    def _cancelling(self, drain: Drain) -> tuple[Answer, ...]:
        if not drain.intent.moves_data:
            starts = max(0, self.allowance.peering)
        else:
            drain, pace, flying = self._pace(drain)
            starts = 0 if pace.holds else self.allowance.starts(pace.budget, len(flying))
        way = next_return(self.view, drain, self.policy, self.context, self.allowance, starts)
        return self._go_back(drain, way)

    def _surrender(self, drain: Drain) -> tuple[Answer, ...]:
        """A cancel that a person gave up ends whatever the cluster is like: it moves no data any more."""
        refused = refusals(self.view, drain, self.policy, self.context)
        if stops := tuple(refuse for refuse in refused if refuse.code in SENDS_NOTHING):
            return (Hold(held(drain, stops, self.context.now), stops),)
        way = next_surrender(self.view, drain, self.policy, self.context, self.allowance, refused)
        return self._go_back(drain, way)

    def _go_back(self, drain: Drain, way: Return) -> tuple[Answer, ...]:
        if not way.done:
            return self._send(way.drain, way.batch)
        over = after(way.drain, Event.RESTORED, self.context.now, why=way.batch.decided)
        ended = replace(over, ours=list_claims_for_others(self.view, way.drain, self.context))
        return (Turn(ended, self._seen(drain), way.batch.decided),)

    def _rescue(self, drain: Drain) -> Answer | None:
        """Real trouble heals at the operator's speed: lowered throttles go back at once, whatever else holds, and
        again at each look until they show as they were.
        """
        if self.context.halted is not None or not self.context.lease_held:
            return None
        if not self.view.statistics_known or not foreign_trouble(self.context):
            return None
        if low := lowered(self.view, drain, self.context):
            decided = f"give {', '.join(map(str, low))} back at once: degradation that is not ours"
            return self._step(drain, replace(back(low), decided=decided))
        free = returned(self.view, drain)
        return None if free is drain else self._noted(free, "the throttles are as they were found")

    def _hold_settings(self, drain: Drain) -> tuple[Answer, ...]:
        """Balancer off, throttles down; kept with what they were before any drain touched them. What somebody else
        set since is theirs.
        """
        free = yielded(self.view, drain, self.context)
        if free is not drain:
            return (self._noted(free, f"leave {name_yielded(free, drain)}: somebody else set it"),)
        trouble = foreign_trouble(self.context)
        prepared, commands = lower_settings(
            self.view, drain, self.policy, self.context, self.sent, trouble=trouble
        )
        if commands:
            names = ", ".join(f"{key_of(command)} {value_of(command)}" for command in commands)
            return (self._step(prepared, CommandBatch(commands, decided=f"hold {names}")),)
        if prepared == drain:
            return ()
        decided = f"balancer and throttles are held by another drain already{self._grip(drain)}"
        turned = drain.state is S.PREPARING
        return (self._turn(prepared, Event.PREPARED, decided) if turned else self._noted(prepared, decided),)

    def _grip(self, drain: Drain) -> str:
        """What to add to a sentence where the throttle cannot be relied on."""
        why = unheld(self.view, at_work(drain))
        return f"; one PG at a time, for {why}" if why else ""

    def _excuse(self, drain: Drain) -> str:
        """What to add to a sentence where a guard passes only because a person insists."""
        said = drain.insistence
        stands = said is not None and self.context.now < said.until
        return f", or is overruled by {said.by}" if said is not None and stands else ""

    def _planned_anew(self, drain: Drain, refused: Sequence[Refuse]) -> Turn | None:
        """A plan that is not refused, where the old one is all that holds the drain, and old or of another map."""
        if drain.plan is None or not {refuse.code for refuse in refused} <= {"space", "plan"}:
            return None
        old = planned_before(drain, self.context, self.policy.plan_again_after)
        fresh = self._replan(drain) if old or map_changed(self.view, drain, self.context) else None
        return None if fresh is None or (fresh.drain.plan and fresh.drain.plan.refusals) else fresh
