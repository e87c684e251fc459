"""What may stand against a person's wish about a drain, beside what the actions room itself refuses."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from predrain.actions.cluster.port import ClusterUnreachable
from predrain.actions.guards import INSISTABLE, Pass, Refuse
from predrain.data.drain import Drain
from predrain.data.refusal import Refusal

LOOK_AGAIN_SECONDS = 3
"""After so long a request that needs an answer of the cluster may be sent again."""


class NoCluster(Refusal):
    """A drain was asked for while no cluster is configured."""


class CannotLift(Refusal):
    """The halt stands in the cluster itself, which does not answer."""


class NotSeen(Refusal):
    """The cluster has not answered yet."""


def may_pass(cause: BaseException | None) -> bool:
    """Whether the cluster may answer soon. `cause`: why it has not answered; None before the first look. Each subclass
    of ClusterUnreachable is something that a person must mend.
    """
    return cause is None or type(cause) is ClusterUnreachable


class UnknownTarget(Refusal):
    """A target that is no OSD of the map and no device under one."""


class PlanMoved(Refusal):
    """The plan that somebody approved is no longer the plan; `drain` has the one that is."""

    def __init__(self, drain: Drain, changes: tuple[str, ...]) -> None:
        self.drain, self.changes = drain, changes
        super().__init__(
            f"Nothing was started, since the plan of {drain.id} has changed: {'; '.join(changes)}. "
            "Look at it again, then approve."
        )


class RefusedElsewhere(Refusal):
    """What the controller that leads said of a request that was handed to it. `drain`: the drain in the way, if any."""

    def __init__(self, sentence: str, drain: str = "") -> None:
        self.drain = drain
        super().__init__(sentence)


class Unheard(Refusal):
    """No controller has answered a request; `leads` says whether one holds the lease."""

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
    """A guard's answer about a drain, as people read it."""

    code: str
    ok: bool
    sentence: str
    insistable: bool = False
    """Whether a person may insist past this answer."""
    overruled: bool = False
    """A person insists: it refuses, and holds nothing."""


def read_answer(code: str, answer: Pass | Refuse) -> GuardAnswer:
    """A guard's answer as people read it."""
    if isinstance(answer, Pass):
        return GuardAnswer(code, True, answer.sentence)
    return GuardAnswer(code, False, answer.sentence, code in INSISTABLE and not answer.firm, answer.overruled)
