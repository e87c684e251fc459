"""A Ceph cluster in memory: deterministic, on its own time, with the faults that real ones were seen to have.

In: a `ClusterSpec` and a seed, then commands through the port, faults as calls, and `advance(seconds)`.
Out: views as a real cluster would give them (late, empty or wrong at times), `truth()` for checkers,
`client()` for what users feel. Placement is real CRUSH; peering, backfill with reservations, fullness, pins
and statistics follow what was measured on real clusters, splits and merges of PGs what Ceph's sources say.
It does not model: writes that fill the cluster, scrubs, more than one monitor.
"""

from predrain.actions.simulator.client import ClientLoad
from predrain.actions.simulator.cluster import ClusterTruth, SimulatedCluster
from predrain.actions.simulator.pg import PgTruth
from predrain.actions.simulator.spec import (
    ClusterSpec,
    OsdSpec,
    Physics,
    PoolSpec,
    crush_tree,
)

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
