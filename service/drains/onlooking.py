"""A controller that never acts: it looks at the cluster, and hands what a person asks to the one that leads."""

from __future__ import annotations

from dataclasses import dataclass, replace

from predrain.actions.cluster.port import Lease, LeaseHolder
from predrain.actions.cluster.signed_keys import NO_KEY
from predrain.service.live_cluster import Live


@dataclass(frozen=True, slots=True)
class NeverMine:
    """`actions.cluster.port.Lease` that is another's, whoever that is: asked or not, this process does not lead."""

    lease: Lease | None = None
    """The lease that controllers of the cluster share."""
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

    def find_holder(self) -> LeaseHolder | None:
        """See `Lease`."""
        return None if self.lease is None else self.lease.find_holder()


@dataclass(frozen=True, slots=True)
class PlansOnly:
    """`actions.cluster.port.Lease` of a process without a key to sign with: it never leads and asks no leader."""

    lease: Lease
    """The one that controllers share: whoever holds it is shown."""
    why: str = NO_KEY
    taken: bool = False

    def hold(self) -> bool:
        """Never."""
        return False

    def held(self) -> bool:
        """Never."""
        return False

    def release(self) -> None:
        """There is nothing to give back."""

    def find_holder(self) -> LeaseHolder | None:
        """See `Lease`."""
        return self.lease.find_holder()


def onlooking(live: Live) -> Live:
    """The same cluster, only to be looked at."""
    return live if live.plans_only else replace(live, lease=NeverMine(live.lease))
