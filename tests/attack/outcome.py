"""The outcome of one attack."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServiceStrain:
    """The strain that an attack put on a service in a process of its own."""

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


@dataclass(slots=True)
class AttackOutcome:
    """Counts of requests, connections or files. Invariant: tried == refused + got_through."""

    name: str
    refused: int = 0
    got_through: int = 0
    """Carried out although they should have been refused, or broken with an error of the service (5xx that names none
    of its limits)."""
    measured: ServiceStrain | None = None
    """None where the attack was not on a process of its own."""

    @property
    def tried(self) -> int:
        """The number of requests, connections or files that were tried."""
        return self.refused + self.got_through

    @property
    def strain(self) -> ServiceStrain:
        """The strain that was measured. Raises ValueError if nothing was measured."""
        if self.measured is None:
            raise ValueError(f"nothing was measured while {self.name!r} was tried")
        return self.measured

    def count(self, *, refused: bool) -> None:
        """One more try."""
        if refused:
            self.refused += 1
        else:
            self.got_through += 1


FINISHED: list[AttackOutcome] = []
"""The outcomes of all attacks of this process, in order; `python -m tests.attack` prints them."""
