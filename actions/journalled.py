"""Lines of the journal, and single commands that move no data: their intent first, then what the cluster said."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from actions.cluster.port import Cluster, ClusterUnreachable, Command, SetFlag
from actions.leading import Lead
from actions.standstill import LONG, STANDSTILL, Standstill
from actions.steps import Wait
from actions.survey import Survey
from data.drain import JournalEntry
from data.store.port import Store

LIFE = "life"
"""The journal of published life expectancies."""


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

    def send(self, id_: str, command: Command, decided: str, now: datetime) -> bool:
        """Send one command; whether an answer came. A refusal is an answer, and is written down as one. A halt stops
        all but what clears a flag: while one of ours stands, nothing heals.
        """
        self.write(id_, now, "", decided)
        refused = self.lead.step(despite_halt=isinstance(command, SetFlag) and not command.on)
        if refused is not None:
            self.write(id_, now, "", "", answered=refused)
            return False
        try:
            answer = self.cluster.apply(command)
        except ClusterUnreachable as trouble:
            said = f"no answer: {trouble}; whether it was done is not known"
        else:
            said = answer.text or ("ok" if answer.ok else "refused")
        self.write(id_, now, "", "", answered=said)
        return True
