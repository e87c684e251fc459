"""How answers are made: a turn, a step or a hold of one drain, from what is seen in this look."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from predrain.actions.cluster.port import CrushReweight, Reweight
from predrain.actions.cluster.view import ClusterView, Pg
from predrain.actions.core.answers import Answer, Hold, Step, Turn, Wait
from predrain.actions.core.claimed_settings import booked, key_of, value_of
from predrain.actions.core.in_flight import Allowance, at_work
from predrain.actions.core.messages import describe_rest
from predrain.actions.core.pacing import Pace, latency_seen
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.core.state_machine import Event, after
from predrain.actions.engine.journal_compaction import held
from predrain.actions.engine.plan import plan, unlike
from predrain.actions.engine.progress import paced
from predrain.actions.engine.replanning import anew
from predrain.actions.guards import Refuse
from predrain.actions.guards.safety import refuse_short
from predrain.actions.mechanics.batch import CommandBatch
from predrain.actions.placement.what_if import fingerprint
from predrain.data.drain import Drain, Plan
from predrain.data.setting import Setting


@dataclass(slots=True)
class Desk:
    """One look at the cluster, and what is answered in it; drains draw on one allowance in turn."""

    view: ClusterView
    policy: Policy
    context: Context
    allowance: Allowance
    planned: dict[str, tuple[int, datetime]]
    paced: dict[str, datetime] = field(default_factory=dict)
    weighed: bool = False
    sent: dict[Setting, str] = field(default_factory=dict)
    """What this look's steps write, by the ledger's keys; the view cannot show it yet."""

    def _turn(self, drain: Drain, event: Event, decided: str) -> Turn:
        return Turn(after(drain, event, self.context.now, why=decided), self._seen(drain), decided)

    def _noted(self, drain: Drain, decided: str) -> Turn:
        """The drain as it is now, in the state that it was in."""
        noted = replace(drain, revision=drain.revision + 1, updated_at=self.context.now)
        return Turn(noted, self._seen(drain), decided)

    def _seen(self, drain: Drain) -> str:
        names = ", ".join(f"osd.{osd}" for osd in drain.osds)
        felt = latency_seen(self.view, at_work(drain))
        return f"epoch {self.view.epoch}: {describe_rest(self.view, drain, names)}{felt}"

    def _pace(self, drain: Drain) -> tuple[Drain, Pace, tuple[Pg, ...]]:
        if self.context.memory.is_pace_due(drain.id, self.context.now, self.policy):
            self.paced[drain.id] = self.context.now
        return paced(self.view, drain, self.policy, self.context)

    def _send(self, drain: Drain, batch: CommandBatch) -> tuple[Answer, ...]:
        if batch.full:
            refused = (Refuse("space", f"{batch.full}. It goes on as soon as there is room."),)
            return (Hold(held(drain, refused, self.context.now), refused),)
        if batch.absent:
            refused = (Refuse("unhealthy", f"{batch.absent}."),)
            return (Hold(held(drain, refused, self.context.now), refused),)
        if not batch.commands:
            return (Wait(drain, batch.waits_for or "what is on its way must arrive"),)
        if short := refuse_short(batch.pgs, self.context):
            return (Hold(held(drain, (short,), self.context.now), (short,)),)
        if any(isinstance(command, Reweight | CrushReweight) for command in batch.commands):
            if self.weighed:  # each foresaw where its PGs go with the other's weight as it was
                return (Wait(drain, "another drain changes a weight in this look"),)
            self.weighed = True
        return (self._step(drain, batch),)

    def _step(self, drain: Drain, batch: CommandBatch) -> Step:
        self.sent.update((key_of(command), value_of(command)) for command in batch.commands)
        ready = booked(drain, self.view, batch.commands, batch.pgs, self.context.list_claimants(drain))
        progress = replace(ready.progress, started=len(batch.pgs))
        ready = replace(
            ready,
            revision=drain.revision + 1,
            updated_at=self.context.now,
            held_by=(),
            held_for=(),
            held_since=None,
            progress=progress,
        )
        return Step(ready, batch.commands, self._seen(drain), batch.decided, batch.pgs)

    def _note_plan(self, drain: Drain) -> int:
        mark = fingerprint(self.view, drain, self.context.draining())
        self.planned[drain.id] = (mark, self.context.now)
        return mark

    def _replan(self, drain: Drain) -> Turn | None:
        """A new plan for what is left; None when it says the same as the old one."""
        made = plan(self.view, drain, self.policy, self.context)
        self._note_plan(drain)
        return self._with(drain, made) if unlike(drain.plan, made) else None

    def _with(self, drain: Drain, made: Plan) -> Turn:
        fresh, decided = anew(drain, made)
        return replace(self._noted(fresh, decided), seen=self._seen(drain))
