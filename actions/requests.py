"""What a person may ask of a drain: propose, approve, pause, resume, cancel, hand over. The state
table has the last word.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from datetime import datetime

from actions.cluster.view import ClusterView
from actions.context import Context
from actions.guards import refusals
from actions.policy import Policy
from actions.proposals import drafted, open_for, target_of
from actions.states import Event, after
from data.drain import Drain, DrainStands, Intent, JournalEntry
from data.refusal import Refusal
from data.store.port import RevisionConflict, Store


class NoSuchDrain(Refusal):
    """An id that the store does not know."""

    def __init__(self, id_: str) -> None:
        super().__init__(f"there is no drain '{id_}'; `predrain drain list` shows those that are")


class NotNow(Refusal):
    """The drain was changed again and again while the request was being written."""


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

    def _kept(self, drain: Drain, entry: JournalEntry) -> Drain:
        taken = self.save(drain)
        self.store.add_journal([entry])
        if not taken:
            raise NotTaken(drain)
        return drain
