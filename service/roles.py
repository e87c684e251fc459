"""What one process does of the service; the rest others do, on the same log and store."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServiceRoles:
    """scores: readings become outlooks here. acts: the cluster is changed from here, if it is led from here.

    shares: others write into the store, too, and what they write is followed. judges: the forecast is held against what
    became of all disks here, and learns from that.
    """

    scores: bool = True
    acts: bool = True
    shares: bool = False
    judges: bool = True

    def told(self) -> dict[str, str]:
        """Each part, and where it runs, for people."""
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
