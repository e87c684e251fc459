"""What a guard answers, and what a guard is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context
from predrain.data.drain import Drain, DrainState


@dataclass(frozen=True, slots=True)
class Pass:
    """Nothing stands against it. `sentence` says what was found, for a person who asks."""

    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Refuse:
    """It must wait. Programs read `code` and `numbers`; people read `sentence`."""

    code: str
    sentence: str
    numbers: Mapping[str, float | int | str] = field(default_factory=dict)
    firm: bool = False
    """Nobody may insist past this answer, though the guard is one that may be overruled."""
    overruled: bool = False
    """A person insists: it is shown, and holds nothing."""


Check = Callable[[ClusterView, Drain, Policy, Context], Pass | Refuse]

S = DrainState
BEFORE = frozenset({S.PROPOSED, S.APPROVED})
MOVING = frozenset({S.PREPARING, S.DRAINING, S.HOLDING})
ANY = BEFORE | MOVING | {S.DRAINED, S.CANCELLING, S.VERIFIED}


@dataclass(frozen=True, slots=True)
class Guard:
    """A check, its code, and the states in which it has a say. `ends`: what ends its refusal, as a sentence."""

    code: str
    check: Check
    during: frozenset[DrainState]
    ends: str
    insistable: bool = False
    """Whether a person may insist past it: never where data, the cluster or another's decision is at stake."""

    def __call__(self, view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
        """Judge; touches nothing. A refusal says what ends it, and whether a person has overruled it."""
        answer = self.check(view, drain, policy, context)
        if isinstance(answer, Pass):
            return answer
        overruled = self.insistable and not answer.firm and is_insisted_past(drain, self.code, context.now)
        return replace(answer, sentence=f"{answer.sentence} {self.ends}", overruled=overruled)


def is_insisted_past(drain: Drain, code: str, now: datetime) -> bool:
    """Whether a person's insistence names the guard now."""
    said = drain.insistence
    return said is not None and code in said.guards and now < said.until


def count(number: int, noun: str) -> str:
    """`1 PG`, `3 PGs`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
