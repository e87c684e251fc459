"""Lines of the journal, and single commands that move no data: the intent is recorded first, then the cluster's
answer.

A drain that makes no progress although no guard holds it is reported with the reason (`Standstill`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum

from predrain.actions.cluster.cluster_port import Cluster, ClusterUnreachable, Command, SetFlag
from predrain.actions.controller.leadership import Leadership
from predrain.actions.core.claimed_settings import key_of, value_of
from predrain.actions.core.decision_answers import Wait
from predrain.actions.core.pg_survey import Survey
from predrain.data.drain import JournalEntry, JournalEvent
from predrain.data.hold_reason import HoldReason
from predrain.data.store.store_port import Store

LONG = timedelta(hours=2)
"""A time longer than a PG takes to move to a slow disk."""
_NAMED = 3


class Standstill:
    """The time since which each waiting drain has had no PG arrive or start; lost with the process."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[tuple[int, ...], datetime]] = {}

    def describe_standstill(self, wait: Wait, survey: Survey, now: datetime) -> str | None:
        """Return the reason for the wait once it has lasted `LONG`; None before."""
        drain = wait.drain
        if not drain.intent.moves_data:
            return None  # a quarantine is at rest until the OSD answers well again
        counted = drain.progress.movement_key
        before, since = self._since.get(drain.id, (None, None))
        if before != counted:
            self._since[drain.id] = counted, now
            return None
        if since is None or now - max(since, drain.updated_at) < LONG:
            return None
        ours = {move.pg for move in drain.plan.moves} if drain.plan else set()
        stuck = [
            f"{id_} is {'+'.join(sorted(survey.unclean[id_].states))}"
            for id_ in survey.unclean
            if id_ in ours
        ]
        more = [f"and {len(stuck) - _NAMED} more"] if len(stuck) > _NAMED else []
        why = "; ".join([wait.why, *stuck[:_NAMED], *more])
        return f"nothing has moved for {LONG // timedelta(hours=1)} h: {why}"


LIFE = "life"
"""The journal of published life expectancies."""


class SentCommand(Enum):
    """The outcome of a single command."""

    WITHHELD = "withheld"
    """The command was not sent, because of a halt or because another controller may act."""
    UNANSWERED = "unanswered"
    """There was no answer, so the effect is unknown."""
    REFUSED = "refused"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class JournalWriter:
    """Writes the store's journal, and sends commands after checking halt, lease and step counter."""

    store: Store
    cluster: Cluster
    lead: Leadership
    _standstill: Standstill = field(default_factory=Standstill)

    def write(
        self,
        id_: str,
        now: datetime,
        seen: str,
        decided: str,
        *,
        answered: str = "",
        epoch: int | None = None,
        event: JournalEvent | None = None,
    ) -> None:
        """Write one line of the journal of `id_`."""
        cluster = self.store.get_cluster()
        self.store.add_journal(
            [JournalEntry(id_, now, seen, decided, answered, epoch, event=event, cluster=cluster)]
        )

    def note_standstill(self, wait: Wait, survey: Survey, now: datetime) -> None:
        """Record once that a drain has waited for long. The drain itself shows it until something moves.

        The note is for people and only in the store, as is the drain's progress. Raises RevisionConflict.
        """
        words, drain = self._standstill.describe_standstill(wait, survey, now), wait.drain
        if words is None or drain.held_by:
            return
        told = (f"{words[0].upper()}{words[1:]}.",)
        said = replace(drain, held_by=told, held_for=(HoldReason.STANDSTILL,), held_since=now - LONG)
        self.store.save_drain(replace(said, revision=drain.revision + 1))
        seen, epoch = f"epoch {survey.view.epoch}", survey.view.epoch
        self.write(drain.id, now, seen, f"wait: {words}", epoch=epoch, event=JournalEvent.WAITED)

    def put_back(self, left: Iterable[tuple[str, Command]], now: datetime) -> int:
        """Send the commands that restore what drains left set, by their ids. Return the number of commands."""
        commands = tuple(left)
        for id_, command in commands:
            self.send(id_, command, f"put back what was left: {key_of(command)} {value_of(command)}", now)
        return len(commands)

    def send(
        self, id_: str, command: Command, decided: str, now: datetime, *, gives_back: bool = False
    ) -> SentCommand:
        """Send one command. A halt stops all commands except two kinds: those that clear a flag, because the cluster
        does not recover while a flag of ours is set, and those that restore the monitors' interval (fast maps).
        """
        self.write(id_, now, "", decided)
        gives_back = gives_back or (isinstance(command, SetFlag) and not command.on)
        refused = self.lead.count_next_step(despite_halt=gives_back)
        if refused is not None:
            self.write(id_, now, "", "", answered=refused)
            return SentCommand.WITHHELD
        try:
            answer = self.cluster.apply(command)
        except ClusterUnreachable as trouble:
            became, said = SentCommand.UNANSWERED, f"no answer: {trouble}; whether it was done is not known"
        else:
            became = SentCommand.DONE if answer.ok else SentCommand.REFUSED
            said = answer.text or ("ok" if answer.ok else "refused")
        self.write(id_, now, "", "", answered=said)
        return became
