"""What may stand against a person's wish about a drain, beside what the actions room itself refuses."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from data.drain import Drain
from data.refusal import Refusal


class NoCluster(Refusal):
    """A drain was asked for while no cluster is configured."""


class CannotLift(Refusal):
    """The halt stands in the cluster itself, which does not answer."""


class NotSeen(Refusal):
    """The cluster has not answered yet."""


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
    """What the controller that leads said of a request that was handed to it."""


class Unheard(Refusal):
    """Another controller leads and has not answered."""

    def __init__(self, seconds: float, until: datetime) -> None:
        super().__init__(
            f"Another controller leads and has not answered within {seconds:.0f} s. The request stands until "
            f"{until:%H:%M} UTC and is dropped then; `predrain drain list` shows whether it was heard."
        )


@dataclass(frozen=True, slots=True)
class Judged:
    """A guard's answer about a drain, as people read it."""

    code: str
    ok: bool
    sentence: str
