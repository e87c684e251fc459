"""A controller that never acts: it looks at the cluster, and hands what a person asks to the one that leads."""

from __future__ import annotations

from dataclasses import dataclass, replace

from service.live import Live


@dataclass(frozen=True, slots=True)
class NeverMine:
    """`actions.cluster.port.Lease` that is another's, whoever that is: asked or not, this process does not lead."""

    why: str = (
        "This process shows the cluster and never acts on it; `predrain control` or `predrain up` does."
    )
    taken: bool = True

    def hold(self) -> bool:
        """Never."""
        return False

    def held(self) -> bool:
        """Never."""
        return False

    def release(self) -> None:
        """There is nothing to give back."""


def onlooking(live: Live) -> Live:
    """The same cluster, only to be looked at."""
    return replace(live, lease=NeverMine())
