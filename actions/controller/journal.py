"""Lines of the journal, and single commands that move no data: their intent first, then what the cluster said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum

from predrain.actions.cluster.port import Cluster, ClusterUnreachable, Command, SetFlag
from predrain.actions.controller.leadership import Lead
from predrain.actions.core.answers import Wait
from predrain.actions.core.claimed_settings import key_of, value_of
from predrain.actions.core.pg_survey import Survey
from predrain.actions.engine.standstill import LONG, STANDSTILL, Standstill
from predrain.data.drain import JournalEntry
from predrain.data.store.port import Store

LIFE = "life"
"""The journal of published life expectancies."""


class Sent(Enum):
    """What became of a single command."""

    WITHHELD = "withheld"
    """By a halt, or because another controller may act."""
    UNANSWERED = "unanswered"
    """Whether it was done is not known."""
    REFUSED = "refused"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Journalled:
    """The store's journal, and the cluster behind halt, lease and step counter."""

    store: Store
    cluster: Cluster
    lead: Lead
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
    ) -> None:
        """One line of the journal of `id_`."""
        self.store.add_journal([JournalEntry(id_, now, seen, decided, answered, epoch)])

    def wait(self, wait: Wait, survey: Survey, now: datetime) -> None:
        """A line of a drain that has waited long, once: the drain itself says so until something moves. As what it has
        moved, that is for people, and in the store alone. Raises RevisionConflict.
        """
        words, drain = self._standstill.words(wait, survey, now), wait.drain
        if words is None or drain.held_by:
            return
        told = (f"{words[0].upper()}{words[1:]}.",)
        said = replace(drain, held_by=told, held_for=(STANDSTILL,), held_since=now - LONG)
        self.store.save_drain(replace(said, revision=drain.revision + 1))
        self.write(drain.id, now, f"epoch {survey.view.epoch}", f"wait: {words}", epoch=survey.view.epoch)

    def put_back(self, left: Iterable[tuple[str, Command]], now: datetime) -> int:
        """Send what gives back what was left of drains, by their ids; how many commands that were."""
        commands = tuple(left)
        for id_, command in commands:
            self.send(id_, command, f"put back what was left: {key_of(command)} {value_of(command)}", now)
        return len(commands)

    def send(
        self, id_: str, command: Command, decided: str, now: datetime, *, gives_back: bool = False
    ) -> Sent:
        """Send one command. A halt stops all but what clears a flag, for nothing heals while one of ours stands, and
        what gives fast maps back.
        """
        self.write(id_, now, "", decided)
        gives_back = gives_back or (isinstance(command, SetFlag) and not command.on)
        refused = self.lead.step(despite_halt=gives_back)
        if refused is not None:
            self.write(id_, now, "", "", answered=refused)
            return Sent.WITHHELD
        try:
            answer = self.cluster.apply(command)
        except ClusterUnreachable as trouble:
            became, said = Sent.UNANSWERED, f"no answer: {trouble}; whether it was done is not known"
        else:
            became = Sent.DONE if answer.ok else Sent.REFUSED
            said = answer.text or ("ok" if answer.ok else "refused")
        self.write(id_, now, "", "", answered=said)
        return became
