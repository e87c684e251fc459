"""What one process does of the service; the rest others do, on the same log and store."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parts:
    """scores: readings become outlooks here. acts: the cluster is changed from here, if it is led from here.

    shares: others write into the store, too, and what they write is followed.
    """

    scores: bool = True
    acts: bool = True
    shares: bool = False

    def told(self) -> dict[str, str]:
        """Each part, and where it runs, for people."""
        compared = "this process's disks" if self.shares else "all disks"
        return {
            "page": HERE,
            "scoring": (f"{HERE}, with other workers" if self.shares else HERE) if self.scores else ELSEWHERE,
            "controller": HERE if self.acts else ELSEWHERE,
            "bundles": f"compared on {compared}"
            if self.scores
            else "not compared: workers keep no scorebook",
        }


HERE, ELSEWHERE = "here", "in other processes"
EVERYTHING = Parts()
SHARING = Parts(shares=True)
SERVING = Parts(scores=False, acts=False, shares=True)
CONTROLLING = Parts(scores=False, acts=True, shares=True)
WORKING = Parts(scores=True, acts=False, shares=True)
