"""Leases for a process that never acts: it polls the cluster, and forwards people's requests to the leader."""

from __future__ import annotations

from dataclasses import dataclass, replace

from predrain.actions.cluster.cluster_port import Lease, LeaseHolder
from predrain.actions.cluster.signed_keys import NO_KEY
from predrain.service.drains.live_cluster import LiveClusterParts


@dataclass(frozen=True, slots=True)
class NeverHeldLease:
    """A lease (`actions.cluster.cluster_port.Lease`) that always counts as another process's, so this process never
    leads.
    """

    lease: Lease | None = None
    """The lease that controllers of the cluster share."""
    why: str = (
        "This process shows the cluster and never acts on it; `predrain control` or `predrain up` does."
    )
    taken: bool = True

    def hold(self) -> bool:
        """Return False."""
        return False

    def is_held(self) -> bool:
        """Return False."""
        return False

    def release(self) -> None:
        """Do nothing, since the lease is never held."""

    def find_holder(self) -> LeaseHolder | None:
        """Return the holder of the shared lease."""
        return None if self.lease is None else self.lease.find_holder()


@dataclass(frozen=True, slots=True)
class PlanOnlyLease:
    """A lease (`actions.cluster.cluster_port.Lease`) for a process without a signing key, which neither leads nor
    forwards.
    """

    lease: Lease
    """The lease that controllers share; its holder is shown."""
    why: str = NO_KEY
    taken: bool = False

    def hold(self) -> bool:
        """Return False."""
        return False

    def is_held(self) -> bool:
        """Return False."""
        return False

    def release(self) -> None:
        """Do nothing, since the lease is never held."""

    def find_holder(self) -> LeaseHolder | None:
        """Return the holder of the shared lease."""
        return self.lease.find_holder()


def make_view_only_cluster(live: LiveClusterParts) -> LiveClusterParts:
    """Return the same cluster for a process that never acts."""
    return live if live.plans_only else replace(live, lease=NeverHeldLease(live.lease))
