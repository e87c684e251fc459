"""The guard, and the answers that a guard gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.situation import Context
from predrain.data.drain import Drain, DrainState
from predrain.data.hold_reason import HoldReason
from predrain.data.ids import OsdId


@dataclass(frozen=True, slots=True)
class Pass:
    """The guard has no objection. `sentence` says what it found, for a person who asks."""

    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Refuse:
    """The guard refuses, so the drain must wait. Programs read `code` and `numbers`; people read `sentence`."""

    code: HoldReason
    sentence: str
    numbers: Mapping[str, float | int | str] = field(default_factory=dict)
    osd: OsdId | None = None
    """The OSD that the refusal is about; None if it is about no single OSD."""
    firm: bool = False
    """Nobody may overrule this answer, even if the guard is one that may be overruled."""
    overruled: bool = False
    """A person has overruled the guard: the refusal is shown, but it holds nothing."""


Check = Callable[[ClusterView, Drain, Policy, Context], Pass | Refuse]

S = DrainState
BEFORE = frozenset({S.PROPOSED, S.APPROVED})
MOVING = frozenset({S.PREPARING, S.DRAINING, S.HOLDING})
ANY = BEFORE | MOVING | {S.DRAINED, S.CANCELLING, S.VERIFIED}


@dataclass(frozen=True, slots=True)
class Guard:
    """A check, its code, and the drain states in which it applies. `ends` is a sentence that says what ends
    its refusal.
    """

    code: HoldReason
    check: Check
    during: frozenset[DrainState]
    ends: str
    insistable: bool = False
    """True if a person may overrule it; never so if data, the cluster or another person's decision is at
    stake.
    """
    transient: bool = False
    """True if its refusal ends by itself: the drain may be approved meanwhile, and waits for that end."""

    def __call__(self, view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
        """Judge the drain without changing anything. A refusal says what ends it, and whether a person has
        overruled it.
        """
        answer = self.check(view, drain, policy, context)
        if isinstance(answer, Pass):
            return answer
        overruled = self.insistable and not answer.firm and is_insisted_past(drain, self.code, context.now)
        return replace(answer, sentence=f"{answer.sentence} {self.ends}", overruled=overruled)


def is_insisted_past(drain: Drain, code: HoldReason, now: datetime) -> bool:
    """Return whether a person's insistence overrules the guard now."""
    said = drain.insistence
    return said is not None and code in said.guards and now < said.until
