"""A deterministic Ceph cluster in memory, on its own time, with the faults that were seen on real clusters.

In: a `ClusterSpec` and a seed, then commands through the port, faults as calls, and `advance(seconds)`. Out:
views as a real cluster would give them (late, empty or wrong at times), `truth()` for checkers, and
`take_client_load()` for the latency that users see. Placement is real CRUSH. Peering, backfill with
reservations, fullness, upmap items, splits and merges of PGs, and statistics follow measurements on real
clusters; docs/explanation/simulator.md lists those that are recorded. Writes that fill the cluster, scrubs,
and more than one monitor are not modelled.
"""

from predrain.actions.simulator.client_load import ClientLoad
from predrain.actions.simulator.cluster_spec import (
    ClusterSpec,
    OsdSpec,
    Physics,
    PoolSpec,
    crush_tree,
)
from predrain.actions.simulator.simulated_cluster import ClusterTruth, SimulatedCluster
from predrain.actions.simulator.simulated_pg import PgTruth

__all__ = [
    "ClientLoad",
    "ClusterSpec",
    "ClusterTruth",
    "OsdSpec",
    "PgTruth",
    "Physics",
    "PoolSpec",
    "SimulatedCluster",
    "crush_tree",
]
