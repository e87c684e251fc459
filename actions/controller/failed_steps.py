"""How often the cluster refused the steps of a drain, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from predrain.actions.core.state_machine import Event, after, can
from predrain.data.drain import Drain

REFUSALS_FOR_A_PERSON = 3


@dataclass(slots=True)
class FailureCount:
    """Refusals running, by drain; in the memory of one process."""

    _running: dict[str, int] = field(default_factory=dict)

    def count_step(self, drain: Drain, failed: bool, said: Sequence[str], now: datetime) -> Drain | None:
        """The drain as it needs a person, after the third refusal running; None before. said: the step's answers."""
        if not failed:
            self._running.pop(drain.id, None)
            return None
        self._running[drain.id] = self._running.get(drain.id, 0) + 1
        if self._running[drain.id] < REFUSALS_FOR_A_PERSON or not can(drain, Event.BREAK):
            return None
        del self._running[drain.id]
        why = f"The cluster refused {REFUSALS_FOR_A_PERSON} times running: {said[-1]}. Cure it, then resume or cancel."
        return after(drain, Event.BREAK, now, why=why)
