"""Reasons against a person's request about a drain, beside the refusals of predrain.actions itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from predrain.actions.cluster.cluster_port import ClusterUnreachable
from predrain.actions.guards import INSISTABLE, TRANSIENT, Pass, Refuse
from predrain.data.refusal import Refusal

LOOK_AGAIN_SECONDS = 3
"""Seconds after which a request that needs an answer of the cluster may be sent again."""


class NoCluster(Refusal):
    """A drain was requested while no cluster is configured."""


class CannotLift(Refusal):
    """The halt is in the cluster itself, which does not answer."""


def may_pass(cause: BaseException | None) -> bool:
    """Return whether the cluster may answer soon.

    `cause`: the error of the last poll; None before the first poll. Each subclass of ClusterUnreachable is an
    error that a person must correct.
    """
    return cause is None or type(cause) is ClusterUnreachable


class RefusedElsewhere(Refusal):
    """The refusal of a forwarded request by the controller that leads. `drain`: the drain in the way, if any."""

    def __init__(self, sentence: str, drain: str = "") -> None:
        self.drain = drain
        super().__init__(sentence)


class RequestUnanswered(Refusal):
    """No controller has answered a request; `leads`: whether one holds the lease."""

    def __init__(self, seconds: float, until: datetime, *, leads: bool) -> None:
        who = (
            "Another controller leads and has not answered"
            if leads
            else "No controller runs, so none answered"
        )
        cure = "" if leads else " or start one: predrain up"
        super().__init__(
            f"{who} within {seconds:.0f} s. The request stands until {until:%H:%M} UTC and is dropped then; `predrain "
            f"drain list` shows whether it was heard{cure}."
        )


@dataclass(frozen=True, slots=True)
class GuardAnswer:
    """A guard's answer about a drain, in the form for people."""

    code: str
    ok: bool
    sentence: str
    insistable: bool = False
    """True if a person may insist past this answer."""
    overruled: bool = False
    """A person insists, so the guard's refusal holds nothing."""
    transient: bool = False
    """The refusal ends by itself: a drain that is approved meanwhile waits for that end."""


def read_answer(code: str, answer: Pass | Refuse) -> GuardAnswer:
    """Convert a guard's answer to the form for people."""
    if isinstance(answer, Pass):
        return GuardAnswer(code, True, answer.sentence)
    insistable = code in INSISTABLE and not answer.firm
    return GuardAnswer(code, False, answer.sentence, insistable, answer.overruled, code in TRANSIENT)
