"""The possible answers of a decision, and the report of one tick of the controller.

Every answer carries the drain's next revision. A Step also carries the commands to send.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from predrain.actions.cluster.cluster_port import (
    Command,
    CrushReweight,
    PrimaryAffinity,
    RemoveUpmap,
    Reweight,
    SetUpmap,
)
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.guard_verdicts import Refuse
from predrain.data.drain import Drain, JournalEvent
from predrain.data.halt_state import Halt
from predrain.data.ids import DeviceId, PgId


@dataclass(frozen=True, slots=True)
class Step:
    """Send `commands` in order. Each command names its target value, so repeating it changes nothing."""

    drain: Drain
    commands: tuple[Command, ...]
    seen: str
    decided: str
    pgs: frozenset[PgId] = frozenset()
    """PGs whose mapping the step changes; they must report before the next step."""

    def remapped_by(self, command: Command) -> frozenset[PgId]:
        """Return the PGs of the step whose mapping the command may change.

        An upmap item changes its own PG, a weight may change all of them, and a flag changes none. An idle PG
        reports no epoch later than its own last change for minutes, so a later epoch must not be waited for.
        """
        match command:
            case SetUpmap(pg=pg) | RemoveUpmap(pg=pg):
                return self.pgs & {pg}
            case Reweight() | CrushReweight() | PrimaryAffinity():
                return self.pgs
            case _:
                return frozenset()


@dataclass(frozen=True, slots=True)
class StateChange:
    """The drain changes (state, plan, progress), and no command is sent."""

    drain: Drain
    seen: str
    decided: str
    event: JournalEvent | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """The drain may not go on; `refusals` holds every reason."""

    drain: Drain
    refusals: tuple[Refuse, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing is wrong: the effect of sent commands must first show, or data on its way must first arrive."""

    drain: Drain
    why: str


@dataclass(frozen=True, slots=True)
class DrainProposal:
    """A new drain for a disk that turned bad with enough evidence. A person or mode act approves it."""

    drain: Drain


@dataclass(frozen=True, slots=True)
class ProposalRefusal:
    """A bad disk for which no drain is proposed, with every reason."""

    device: DeviceId
    refusals: tuple[Refuse, ...]


Answer = Step | StateChange | Hold | Wait | DrainProposal | ProposalRefusal


@dataclass(frozen=True, slots=True)
class Decisions:
    """All answers of one poll, with the fingerprints of the maps that plans were computed for."""

    answers: tuple[Answer, ...]
    planned: Mapping[str, tuple[int, datetime]] = field(default_factory=dict)
    paced: Mapping[str, datetime] = field(default_factory=dict)
    """Drains whose budget was judged, with the time."""


@dataclass(frozen=True, slots=True)
class TickReport:
    """The view, the decisions and the commands of one tick. `view` is None if the cluster did not answer."""

    at: datetime
    view: ClusterView | None
    answers: tuple[Answer, ...]
    commands: int
    seconds: float
    halt: Halt | None = None
    trouble: str = ""
    """The reason why no decision was possible; "" if decisions were made."""
    idle: bool = False
    """True if no drain waited and no bad disk was in use, so that there was nothing to decide."""
    advice: str = ""
    """Advice to a person that would make more possible."""

    @property
    def halted(self) -> str | None:
        """The reason of the halt in force, or None."""
        return None if self.halt is None else self.halt.reason

    @property
    def steps(self) -> tuple[Step, ...]:
        """Return the answers that sent commands."""
        return tuple(answer for answer in self.answers if isinstance(answer, Step))
