"""What may stand against a person's wish about a drain, beside what the actions room itself refuses."""

from __future__ import annotations

from dataclasses import dataclass

from data.drain import Drain
from data.refusal import Refusal


class NoCluster(Refusal):
    """A drain was asked for while no cluster is configured."""


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


@dataclass(frozen=True, slots=True)
class Judged:
    """A guard's answer about a drain, as people read it."""

    code: str
    ok: bool
    sentence: str
