"""What a decision can be. Every answer carries the drain as it will be, one revision on; a Step also
says what to send.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from predrain.actions.cluster.port import (
    Command,
    CrushReweight,
    PrimaryAffinity,
    RemoveUpmap,
    Reweight,
    SetUpmap,
)
from predrain.actions.core.verdicts import Refuse
from predrain.data.drain import Drain
from predrain.data.ids import DeviceId, PgId


@dataclass(frozen=True, slots=True)
class Step:
    """Send `commands`, in order. Each names its target value, so that a repeated one changes nothing."""

    drain: Drain
    commands: tuple[Command, ...]
    seen: str
    decided: str
    pgs: frozenset[PgId] = frozenset()
    """PGs whose mapping this changes; they must report before the next step."""

    def remapped_by(self, command: Command) -> frozenset[PgId]:
        """PGs of the step whose mapping one command may change: a pin its own, a weight all of them, a flag none.

        An idle PG reports no epoch beyond its own last change for minutes, so no later one may be waited for.
        """
        match command:
            case SetUpmap(pg=pg) | RemoveUpmap(pg=pg):
                return self.pgs & {pg}
            case Reweight() | CrushReweight() | PrimaryAffinity():
                return self.pgs
            case _:
                return frozenset()


@dataclass(frozen=True, slots=True)
class Turn:
    """The drain changes (state, plan, progress); nothing is sent."""

    drain: Drain
    seen: str
    decided: str


@dataclass(frozen=True, slots=True)
class Hold:
    """The drain may not go on, and every reason why."""

    drain: Drain
    refusals: tuple[Refuse, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """All is well; what was sent must first show, or what is on its way must first arrive."""

    drain: Drain
    why: str


@dataclass(frozen=True, slots=True)
class Propose:
    """A disk turned bad and may be believed: a new drain, for a person to approve (or for mode act)."""

    drain: Drain


@dataclass(frozen=True, slots=True)
class ProposalRefusal:
    """A bad disk for which nothing is proposed, and every reason why."""

    device: DeviceId
    refusals: tuple[Refuse, ...]


Answer = Step | Turn | Hold | Wait | Propose | ProposalRefusal


@dataclass(frozen=True, slots=True)
class Decisions:
    """All answers of one look, with the fingerprints of the maps that plans were made on."""

    answers: tuple[Answer, ...]
    planned: Mapping[str, tuple[int, datetime]] = field(default_factory=dict)
    paced: Mapping[str, datetime] = field(default_factory=dict)
    """Drains whose budget was judged, and when."""
