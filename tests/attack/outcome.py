"""What became of one attack."""

from __future__ import annotations

from dataclasses import dataclass

from tests.attack.tally import Tally


@dataclass(frozen=True, slots=True)
class AttackOutcome:
    """Counts of requests or connections, and what the service suffered meanwhile."""

    name: str
    tried: int
    refused: int
    got_through: int
    """Carried out although they should have been refused, or broken with an error of the service (5xx that names none
    of its limits)."""
    largest_answer_bytes: int
    slowest_probe_seconds: float
    """The slowest answer of `/healthz` while the attack ran."""
    idle_probe_seconds: float
    """The slowest of twenty answers of `/healthz` before the attack."""
    memory_growth_bytes: int
    """By how much the process's resident memory exceeded, at its peak, what it was before the attack."""

    @property
    def served_promptly(self) -> bool:
        """Whether probes were answered as an operator needs it: within a second, or, on a busy machine, within twenty
        times what the slowest idle one took."""
        return self.slowest_probe_seconds <= max(1.0, 20 * self.idle_probe_seconds)


FINISHED: list[AttackOutcome | Tally] = []
"""What came of every attack of this process, in order; `python -m tests.attack` prints it."""
