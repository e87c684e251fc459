"""How soon the controller looks at the cluster again."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from predrain.actions.controller.tick_report import TickReport
from predrain.actions.core.pacing import find_look_seconds
from predrain.actions.core.policy import Policy


@dataclass(slots=True)
class LookCadence:
    """The wait until the next look, after each look."""

    policy: Policy
    seconds: float = field(init=False)
    """How long to wait for the next look."""
    _stepped_at: datetime | None = None

    def __post_init__(self) -> None:
        self.seconds = self.policy.tick_seconds

    def note_look(self, report: TickReport) -> None:
        """Take over what a look did, and how long it took."""
        if report.steps:
            self._stepped_at = report.at
        self.seconds = find_look_seconds(self.policy, report.seconds, self._stepped_at, report.at)
