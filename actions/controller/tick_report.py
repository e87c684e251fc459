"""What one tick of the controller saw and did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.answers import Answer, ProposalRefusal, Step
from predrain.actions.guards import Refuse
from predrain.data.ids import DeviceId


@dataclass(frozen=True, slots=True)
class TickReport:
    """What one tick saw and did. `view` is None when the cluster did not answer."""

    at: datetime
    view: ClusterView | None
    answers: tuple[Answer, ...]
    commands: int
    seconds: float
    halted: str | None = None
    trouble: str = ""
    """Why nothing could be decided, when nothing could."""
    idle: bool = False
    """No drain waited and no bad disk served, so nothing was decided."""
    advice: str = ""
    """What a person might do for more to be possible."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The answers that sent commands."""
        return tuple(answer for answer in self.answers if isinstance(answer, Step))

    @property
    def refused(self) -> Mapping[DeviceId, tuple[Refuse, ...]]:
        """Bad disks for which nothing was proposed, and why."""
        return {
            answer.device: answer.refusals for answer in self.answers if isinstance(answer, ProposalRefusal)
        }
