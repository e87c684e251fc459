"""The part of the service that one process does; other processes on the same log and store do the rest."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServiceRoles:
    """The parts of the service that one process runs.

    scores: readings become outlooks here. acts: this process changes the cluster if it holds the lease. shares:
    other processes write to the store too, and their changes are followed. judges: the forecast is compared with
    the outcomes of all disks here, and learns from them.
    """

    scores: bool = True
    acts: bool = True
    shares: bool = False
    judges: bool = True

    def describe_roles(self) -> dict[str, str]:
        """Return each part and the place where it runs, for people."""
        return {
            "page": HERE,
            "scoring": (f"{HERE}, with other workers" if self.shares else HERE) if self.scores else ELSEWHERE,
            "controller": HERE if self.acts else ELSEWHERE,
            "bundles": self._tell_judged(),
        }

    def _tell_judged(self) -> str:
        if not self.judges:
            return f"judged {ELSEWHERE}"
        if not self.shares:
            return "judged and compared on all disks"
        compared = "compared on those of this process" if self.scores else "not compared"
        return f"judged on all disks; {compared}"


HERE, ELSEWHERE = "here", "in other processes"
EVERYTHING = ServiceRoles()
SHARING = ServiceRoles(shares=True)
SERVING = ServiceRoles(scores=False, acts=False, shares=True)
CONTROLLING = ServiceRoles(scores=False, acts=True, shares=True, judges=False)
WORKING = ServiceRoles(scores=True, acts=False, shares=True, judges=False)
