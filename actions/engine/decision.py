"""The decision: a pure function from the state of the cluster to actions. A poll gives each drain at most one
small step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from predrain.actions.cluster.cluster_port import CrushReweight, Reweight
from predrain.actions.cluster.cluster_view import ClusterView, Pg
from predrain.actions.core.capacity import compute_osd_capacity
from predrain.actions.core.claimed_settings import claim_settings, key_of, value_of
from predrain.actions.core.decision_answers import Answer, Decisions, Hold, StateChange, Step, Wait
from predrain.actions.core.drain_policy import Mode, Policy
from predrain.actions.core.held_throttles import (
    confirm_restored_throttles,
    explain_unreliable_throttle,
    is_cluster_setting,
    list_lowered_throttles,
    lower_settings,
    to_give_back,
    yield_foreign_options,
)
from predrain.actions.core.in_flight import (
    Allowance,
    at_work,
    compute_allowance,
    list_own_pgs,
    list_weight_affected_pgs,
)
from predrain.actions.core.messages import INTENT_TEXTS, describe_rest, name_yielded
from predrain.actions.core.pacing import Pace, latency_seen
from predrain.actions.core.pg_survey import add_unreported
from predrain.actions.core.priority import most_endangered_first
from predrain.actions.core.situation import Context, is_drain_engaged
from predrain.actions.core.state_machine import ENDED, Event, apply_event, can_take_event
from predrain.actions.crush.crush_rules import CannotPlace
from predrain.actions.engine import quarantine_steps
from predrain.actions.engine.journal_compaction import hold_drain
from predrain.actions.engine.plan_building import (
    is_different_plan,
    is_proposal_outdated,
    map_changed,
    plan_drain,
    planned_before,
    replan_drain,
)
from predrain.actions.engine.plan_comparison import read_alike
from predrain.actions.engine.progress import next_batch, pace_drain, update_drain_progress
from predrain.actions.engine.proposals import propose_drains, propose_for_slow_osds
from predrain.actions.engine.strategies import STRATEGIES, find_recovery, note_as_found
from predrain.actions.guards import AUTOMATIC, Refuse, list_refusals
from predrain.actions.guards.cluster_guards import foreign_trouble
from predrain.actions.guards.safety_guards import refuse_short
from predrain.actions.mechanics.desired_upmaps import list_claims_for_others
from predrain.actions.mechanics.given_up_cancel import SENDS_NOTHING, next_surrender
from predrain.actions.mechanics.override_reweight import keep_again
from predrain.actions.mechanics.restore import RestoreProgress, next_return
from predrain.actions.mechanics.step_batch import CommandBatch, build_restore_batch
from predrain.actions.placement.failure_domains import list_disks_in_use, slot_reused
from predrain.actions.placement.what_if import (
    compute_map_fingerprint,
    find_dropped_upmaps,
    is_choice_changed,
)
from predrain.actions.planning.plan_figures import build_unplaceable_plan
from predrain.data.drain import Drain, DrainState, JournalEvent, Plan, Progress
from predrain.data.hold_reason import HoldReason
from predrain.data.setting import (
    OsdAffinity,
    OsdCrushWeight,
    OsdOverride,
    Setting,
    UpmapItem,
    strip_note,
)

S = DrainState


def decide_drain_steps(view: ClusterView, policy: Policy, context: Context) -> Decisions:
    """Decide what to do now. The function reads only its arguments and changes none of them.

    The drains of the context: all that have not ended, and the ended ones that a proposal must know of. Its
    disks are weighed (`actions.core.cost_assessment`). The drain of every answer is one revision on; the
    caller stores it before it sends the answer's commands.

    All drains together share one allowance in a poll: at most `policy.peering_max` PGs (3) start, for any
    number of drains. The ticks therefore set the pace. If they are minutes apart, a drain of thousands of PGs
    takes days.
    """
    context = replace(context, survey=add_unreported(context.survey, context.memory.unreported))
    allowance = compute_allowance(context, policy, compute_osd_capacity(context.survey, policy))
    desk = DecisionRound(view, policy, context, allowance, {})
    living = (drain for drain in context.drains if drain.state not in ENDED)
    ranked = most_endangered_first(view, living, context.outlooks, policy)
    answers: list[Answer] = [answer for drain in ranked for answer in desk.decide_drain(drain)]
    answers += [*propose_drains(view, policy, context), *propose_for_slow_osds(view, policy, context)]
    return Decisions(tuple(answers), desk.planned, desk.paced)


@dataclass(slots=True)
class DecisionRound:
    """One poll of the cluster and its answers; the drains draw in turn on one allowance."""

    view: ClusterView
    policy: Policy
    context: Context
    allowance: Allowance
    planned: dict[str, tuple[int, datetime]]
    paced: dict[str, datetime] = field(default_factory=dict)
    weighed: bool = False
    sent: dict[Setting, str] = field(default_factory=dict)
    """The values that this poll's steps write, by setting; the view cannot show them yet."""
    renewed: bool = False

    def decide_drain(self, drain: Drain) -> tuple[Answer, ...]:
        """Return what this drain does now; empty if nothing changes.

        If the map cannot be computed for it, only this drain is held.
        """
        try:
            answers = self._answer(drain)
        except CannotPlace as trouble:
            answers = self._uncomputed(drain, trouble)
        now = {answer.drain.id: answer.drain for answer in answers if isinstance(answer, Step | StateChange)}
        # Later decisions need these answers: of drains that end in one poll, the last gives back what all of
        # them held.
        if now:
            drains = tuple(now.get(known.id, known) for known in self.context.drains)
            self.context = replace(self.context, drains=drains)
        return answers

    def _answer(self, drain: Drain) -> tuple[Answer, ...]:
        if slot_reused(self.view, drain) and can_take_event(drain, Event.REPLACED):
            return (self._turn(drain, Event.REPLACED, "another device is in its place"),)
        if is_drain_engaged(drain) and (rescue := self._rescue(drain)):
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

    def _take_over(self, drain: Drain) -> StateChange | None:
        """End a quarantine if a drain of the same OSD holds all settings that it has set."""
        heir = quarantine_steps.find_heir(drain, self.context)
        if (
            heir is None
            or not quarantine_steps.holds_all(heir, drain)
            or not can_take_event(drain, Event.TAKEN_OVER)
        ):
            return None
        return self._turn(replace(drain, ours={}), Event.TAKEN_OVER, f"taken over by drain {heir.id}")

    def _guarded(self, drain: Drain, go_on: Callable[[Drain], tuple[Answer, ...]]) -> tuple[Answer, ...]:
        """Hold with every refusal, wait until sent commands show, or go on."""
        drain = update_drain_progress(self.view, drain, self.context)
        refused = list_refusals(self.view, drain, self.policy, self.context)
        if self.policy.mode is Mode.OBSERVE and drain.state is not S.CANCELLING:
            refused = (
                Refuse(HoldReason.MODE, "The mode is observe: nothing is changed. Set mode propose or act."),
                *refused,
            )
        if refused and (fresh := self._planned_anew(drain, refused)):
            return (fresh,)
        if refused:
            return (Hold(hold_drain(drain, refused, self.context.now), refused),)
        if not self.context.memory.is_settled(self.view, list_own_pgs(drain)):
            return (Wait(drain, "the statistics must show the last commands first"),)
        if heir := quarantine_steps.find_heir(drain, self.context):
            return (Wait(drain, f"drain {heir.id} takes it over"),)
        return go_on(drain)

    def _uncomputed(self, drain: Drain, trouble: CannotPlace) -> tuple[Answer, ...]:
        """Hold the drain by the code `plan` until a plan can be made again.

        A cancelled drain gives back the settings that need no placement.
        """
        if drain.state is S.CANCELLING and (wrong := to_give_back(self.view, drain, self.context)):
            return self._send(drain, build_restore_batch(wrong))
        if drain.state is S.DRAINING and drain.intent.moves_data:
            drain = replace(drain, plan=build_unplaceable_plan(self.view, drain, trouble.refusal))
            self._note_plan(drain)
        refused = (
            Refuse(HoldReason.PLAN, f"{trouble} It goes on when the placement can be computed again."),
        )
        return (Hold(hold_drain(drain, refused, self.context.now), refused),)

    def _proposed(self, drain: Drain) -> tuple[Answer, ...]:
        if moot := STRATEGIES[drain.intent].explain_withdrawal(self.view, drain, self.policy, self.context):
            return (self._turn(drain, Event.WITHDRAW, moot),)
        if self.policy.mode is not Mode.ACT or drain.asked_by != AUTOMATIC:
            return self._awaited(drain)
        refused = list_refusals(self.view, drain, self.policy, self.context)
        if refused and (fresh := self._planned_anew(drain, refused)):
            return (fresh,)
        if refused:
            holding = hold_drain(drain, refused, self.context.now)
            return (Hold(holding, refused),) if holding is not drain else ()
        approved = apply_event(drain, Event.APPROVE, self.context.now)
        decided = f"approve: mode act, and every guard passes{self._excuse(drain)}"
        return (StateChange(replace(approved, policy=self.policy.snapshot()), self._seen(drain), decided),)

    def _awaited(self, drain: Drain) -> tuple[Answer, ...]:
        """Renew the plan of a proposal that waits for a person, since a person approves the plan shown.

        The cluster may have changed since, and with it the plan. One proposal is renewed in each poll,
        because other drains must move on.
        """
        if self.renewed or not is_proposal_outdated(self.view, drain, self.policy, self.context):
            return ()
        self.renewed = True
        self._note_plan(drain)
        made = plan_drain(self.view, replace(drain, plan=None), self.policy, self.context)
        if read_alike(drain.plan, made) and not drain.held_by:
            return ()
        return (self._with(replace(drain, held_by=(), held_osd=None), made),)

    def _approved(self, drain: Drain) -> tuple[Answer, ...]:
        made = plan_drain(self.view, drain, self.policy, self.context)
        self._note_plan(drain)
        counted = Progress(
            planned_pgs=len(STRATEGIES[drain.intent].list_planned_pgs(made)), planned_bytes=made.bytes
        )
        planned = replace(drain, plan=made, progress=counted)
        if made.refusals:
            refused = list_refusals(self.view, planned, self.policy, self.context)
            return (Hold(hold_drain(planned, refused, self.context.now), refused),)
        started = apply_event(note_as_found(self.view, planned, self.context), Event.START, self.context.now)
        decided = f"begin: {made.mechanic.value}; {made.why}"
        return (StateChange(started, self._seen(planned), decided, JournalEvent.BEGUN),)

    def _preparing(self, drain: Drain) -> tuple[Answer, ...]:
        if not drain.intent.moves_data:
            return (self._turn(drain, Event.PREPARED, "nothing else has to be held"),)
        return self._hold_settings(drain) or (
            self._turn(
                drain,
                Event.PREPARED,
                f"balancer and throttles are as they must be{self._describe_held_options(drain)}",
            ),
        )

    def _draining(self, drain: Drain) -> tuple[Answer, ...]:
        if drain.state is S.HOLDING:
            return (self._turn(drain, Event.PASSED, f"every guard passes again{self._excuse(drain)}"),)
        movement = STRATEGIES[drain.intent].movement
        if movement is None:
            if well := find_recovery(drain, self.policy, self.context):
                return (self._turn(drain, Event.RECOVERED, well),)
            return self._send(drain, quarantine_steps.lower_affinity(self.view, drain, self.allowance))
        kept = keep_again(self.view, drain, self.context, self.allowance)
        if kept is not None:
            return self._send(drain, kept)
        osd = movement.find_current_osd(self.view, drain, self.context)
        if osd is None and not movement.has_last_steps(
            self.view, drain, self.policy, self.context, self.allowance
        ):
            return (self._turn(drain, Event.EMPTIED, INTENT_TEXTS[drain.intent].emptied),)
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
            **quarantine_steps.given_back(self.view, drain),
        }:
            return self._send(drain, build_restore_batch(wrong))
        free = replace(
            drain,
            ours={
                key: value
                for key, value in drain.ours.items()
                if not is_cluster_setting(key) and not isinstance(strip_note(key), OsdAffinity)
            },
        )
        decided = f"verified: {INTENT_TEXTS[drain.intent].counted}"
        counted = apply_event(free, Event.COUNTED, self.context.now)
        return (StateChange(counted, self._seen(drain), decided, JournalEvent.COUNTED),)

    def _cancelling(self, drain: Drain) -> tuple[Answer, ...]:
        if not drain.intent.moves_data:
            starts = max(0, self.allowance.peering)
        else:
            drain, pace, flying = self._pace(drain)
            starts = 0 if pace.is_on_hold else self.allowance.count_possible_starts(pace.budget, len(flying))
        way = next_return(self.view, drain, self.policy, self.context, self.allowance, starts)
        return self._go_back(drain, way)

    def _surrender(self, drain: Drain) -> tuple[Answer, ...]:
        """End a cancel that a person gave up. It moves no more data, so the state of the cluster does not
        hold it.
        """
        refused = list_refusals(self.view, drain, self.policy, self.context)
        if stops := tuple(refuse for refuse in refused if refuse.code in SENDS_NOTHING):
            return (Hold(hold_drain(drain, stops, self.context.now), stops),)
        way = next_surrender(self.view, drain, self.policy, self.context, self.allowance, refused)
        return self._go_back(drain, way)

    def _go_back(self, drain: Drain, way: RestoreProgress) -> tuple[Answer, ...]:
        if not way.done:
            return self._send(way.drain, way.batch)
        over = apply_event(way.drain, Event.RESTORED, self.context.now, why=way.batch.decided)
        ended = replace(over, ours=list_claims_for_others(self.view, way.drain, self.context))
        return (StateChange(ended, self._seen(drain), way.batch.decided),)

    def _rescue(self, drain: Drain) -> Answer | None:
        """Give lowered throttles back at once in trouble that is not ours, so that Ceph heals at the
        operator's speed.

        No other hold prevents it. The commands are repeated at each poll until the map shows the operator's
        values.
        """
        if self.context.halted is not None or not self.context.lease_held:
            return None
        if not self.view.statistics_known or not foreign_trouble(self.context):
            return None
        if low := list_lowered_throttles(self.view, drain, self.context):
            decided = f"give {', '.join(map(str, low))} back at once: degradation that is not ours"
            return self._step(drain, replace(build_restore_batch(low), decided=decided))
        free = confirm_restored_throttles(self.view, drain)
        return None if free is drain else self._noted(free, "the throttles are as they were found")

    def _hold_settings(self, drain: Drain) -> tuple[Answer, ...]:
        """Turn the balancer off and lower the throttles; store the values from before any drain changed them.

        Values that an operator or another process set since then stay theirs.
        """
        free = yield_foreign_options(self.view, drain, self.context)
        if free is not drain:
            return (self._noted(free, f"leave {name_yielded(free, drain)}: another party set it"),)
        trouble = foreign_trouble(self.context)
        prepared, commands = lower_settings(
            self.view, drain, self.policy, self.context, self.sent, trouble=trouble
        )
        if commands:
            names = ", ".join(f"{key_of(command)} {value_of(command)}" for command in commands)
            return (self._step(prepared, CommandBatch(commands, decided=f"hold {names}")),)
        if prepared == drain:
            return ()
        decided = (
            f"balancer and throttles are held by another drain already{self._describe_held_options(drain)}"
        )
        turned = drain.state is S.PREPARING
        return (self._turn(prepared, Event.PREPARED, decided) if turned else self._noted(prepared, decided),)

    def _describe_held_options(self, drain: Drain) -> str:
        """Return the end of a sentence about a throttle that is not reliable; empty if it is reliable."""
        why = explain_unreliable_throttle(self.view, at_work(drain))
        return f"; one PG at a time, for {why}" if why else ""

    def _excuse(self, drain: Drain) -> str:
        """Return the end of a sentence about guards that pass only because a person insists."""
        said = drain.insistence
        stands = said is not None and self.context.now < said.until
        return f", or is overruled by {said.by}" if said is not None and stands else ""

    def _planned_anew(self, drain: Drain, refused: Sequence[Refuse]) -> StateChange | None:
        """Make a plan that is not refused, if the plan alone holds the drain and is old or made on another
        map.
        """
        if drain.plan is None or not {refuse.code for refuse in refused} <= {
            HoldReason.SPACE,
            HoldReason.PLAN,
        }:
            return None
        old = planned_before(drain, self.context, self.policy.replan_after)
        fresh = self._replan(drain) if old or map_changed(self.view, drain, self.context) else None
        return None if fresh is None or (fresh.drain.plan and fresh.drain.plan.refusals) else fresh

    def _turn(self, drain: Drain, event: Event, decided: str) -> StateChange:
        return StateChange(
            apply_event(drain, event, self.context.now, why=decided), self._seen(drain), decided
        )

    def _noted(self, drain: Drain, decided: str) -> StateChange:
        """Record the drain as it is now, in the same state."""
        noted = replace(drain, revision=drain.revision + 1, updated_at=self.context.now)
        return StateChange(noted, self._seen(drain), decided)

    def _seen(self, drain: Drain) -> str:
        names = ", ".join(f"osd.{osd}" for osd in drain.osds)
        felt = latency_seen(self.view, at_work(drain))
        return f"epoch {self.view.epoch}: {describe_rest(self.view, drain, names)}{felt}"

    def _pace(self, drain: Drain) -> tuple[Drain, Pace, tuple[Pg, ...]]:
        if self.context.memory.is_pace_due(drain.id, self.context.now, self.policy):
            self.paced[drain.id] = self.context.now
        return pace_drain(self.view, drain, self.policy, self.context)

    def _send(self, drain: Drain, batch: CommandBatch) -> tuple[Answer, ...]:
        if batch.full:
            refused = (Refuse(HoldReason.SPACE, f"{batch.full}. It goes on as soon as there is room."),)
            return (Hold(hold_drain(drain, refused, self.context.now), refused),)
        if batch.absent:
            refused = (Refuse(HoldReason.UNHEALTHY, f"{batch.absent}."),)
            return (Hold(hold_drain(drain, refused, self.context.now), refused),)
        if not batch.commands:
            return (Wait(drain, batch.waits_for or "the PGs that move must arrive first"),)
        if short := refuse_short(batch.pgs, self.context):
            return (Hold(hold_drain(drain, (short,), self.context.now), (short,)),)
        if self._crosses_other_step(batch):
            return (Wait(drain, "another drain's step in this poll is on the same PGs"),)
        if any(isinstance(command, Reweight | CrushReweight) for command in batch.commands):
            if self.weighed:  # each computed the PGs' places with the other's old weight
                return (Wait(drain, "another drain changes a weight in this poll"),)
            self.weighed = True
        return (self._step(drain, batch),)

    def _crosses_other_step(self, batch: CommandBatch) -> bool:
        """Return whether a weight and an upmap item, of this step and of an earlier one in this poll, are about one PG.

        Both steps are computed on the map before the poll. With the other weight, CRUSH may choose another OSD for
        the PG, and the upmap item then sends a shard elsewhere than computed, also beside another one in its host.
        """
        own = {key_of(command): value_of(command) for command in batch.commands}
        for weighed, mapped in ((own, self.sent), (self.sent, own)):
            weights, crush_weights = (
                {key.osd: float(value) for key, value in weighed.items() if isinstance(key, kind)}
                for kind in (OsdOverride, OsdCrushWeight)
            )
            pgs = [key.pg for key in mapped if isinstance(key, UpmapItem)]
            if is_choice_changed(self.view, weights, crush_weights, pgs):
                return True
        return False

    def _step(self, drain: Drain, batch: CommandBatch) -> Step:
        self.sent.update((key_of(command), value_of(command)) for command in batch.commands)
        dropped = find_dropped_upmaps(
            self.view,
            {command.osd: command.weight for command in batch.commands if isinstance(command, Reweight)},
            {command.osd: command.weight for command in batch.commands if isinstance(command, CrushReweight)},
            list_weight_affected_pgs(drain, self.context),
        )
        ready = claim_settings(
            drain, self.view, batch.commands, batch.pgs, self.context.list_claimants(drain), dropped
        )
        progress = replace(ready.progress, started=len(batch.pgs))
        ready = replace(
            ready,
            revision=drain.revision + 1,
            updated_at=self.context.now,
            held_by=(),
            held_osd=None,
            held_for=(),
            held_since=None,
            progress=progress,
        )
        return Step(ready, batch.commands, self._seen(drain), batch.decided, batch.pgs)

    def _note_plan(self, drain: Drain) -> int:
        mark = compute_map_fingerprint(self.view, drain, self.context.list_draining_osds())
        self.planned[drain.id] = (mark, self.context.now)
        return mark

    def _replan(self, drain: Drain) -> StateChange | None:
        """Return the drain with a new plan for the rest; None if the new plan equals the old one."""
        made = plan_drain(self.view, drain, self.policy, self.context)
        self._note_plan(drain)
        return self._with(drain, made) if is_different_plan(drain.plan, made) else None

    def _with(self, drain: Drain, made: Plan) -> StateChange:
        fresh, decided = replan_drain(drain, made)
        return replace(self._noted(fresh, decided), seen=self._seen(drain))
