"""What a guard answers, and what a guard is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from actions.cluster.view import ClusterView
from actions.context import Context
from actions.policy import Policy
from data.drain import Drain, DrainState


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


Check = Callable[[ClusterView, Drain, Policy, Context], Pass | Refuse]

S = DrainState
BEFORE = frozenset({S.PROPOSED, S.APPROVED})
MOVING = frozenset({S.PREPARING, S.DRAINING, S.HOLDING})
ANY = BEFORE | MOVING | {S.DRAINED, S.CANCELLING, S.VERIFIED}


@dataclass(frozen=True, slots=True)
class Guard:
    """A check, its code, and the states in which it has a say."""

    code: str
    check: Check
    during: frozenset[DrainState]

    def __call__(self, view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
        """Judge; touches nothing."""
        return self.check(view, drain, policy, context)


def count(number: int, noun: str) -> str:
    """`1 PG`, `3 PGs`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
