"""The number of consecutive steps of a drain that the cluster refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from predrain.actions.core.state_machine import Event, apply_event, can_take_event
from predrain.data.drain import Drain

REFUSALS_FOR_A_PERSON = 3


@dataclass(slots=True)
class FailureCount:
    """Consecutive refusals by drain, in the memory of one process."""

    _running: dict[str, int] = field(default_factory=dict)

    def count_step(self, drain: Drain, failed: bool, said: Sequence[str], now: datetime) -> Drain | None:
        """Count a step. After the third consecutive refusal return the drain in the state that needs a person; else
        None.

        said: the answers to the step's commands.
        """
        if not failed:
            self._running.pop(drain.id, None)
            return None
        self._running[drain.id] = self._running.get(drain.id, 0) + 1
        if self._running[drain.id] < REFUSALS_FOR_A_PERSON or not can_take_event(drain, Event.BREAK):
            return None
        del self._running[drain.id]
        why = f"The cluster refused {REFUSALS_FOR_A_PERSON} times running: {said[-1]}. Cure it, then resume or cancel."
        return apply_event(drain, Event.BREAK, now, why=why)
