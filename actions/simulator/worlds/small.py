"""Clusters that are small enough for a test."""

from __future__ import annotations

from predrain.actions.crush.pool import Pool
from predrain.actions.simulator.cluster_spec import ClusterSpec, PoolSpec, crush_tree
from predrain.actions.simulator.worlds.shapes import GB, build_osd_specs


def build_tiny_cluster(seed: int) -> ClusterSpec:
    """Return four hosts of three disks with a replicated pool of 64 PGs, half full."""
    del seed
    osds = build_osd_specs(hosts=4, per_host=3, size_bytes=100 * GB)
    pool = Pool(1, "rbd", size=3, min_size=2, pg_num=64, pg_num_target=64, rule=0, erasure=False)
    return ClusterSpec(
        name="tiny",
        osds=osds,
        pools=(PoolSpec(pool, shard_bytes=int(0.5 * 12 * 100 * GB / (3 * 64))),),
        crush=crush_tree(osds),
    )


def ec_no_spare(seed: int) -> ClusterSpec:
    """Return erasure code 3+1 over exactly four hosts of one disk: without a spare host, no disk can be
    drained.
    """
    del seed
    osds = build_osd_specs(hosts=4, per_host=1, size_bytes=100 * GB)
    pool = Pool(1, "archive", size=4, min_size=3, pg_num=16, pg_num_target=16, rule=1, erasure=True)
    return ClusterSpec(
        name="ec_no_spare",
        osds=osds,
        pools=(PoolSpec(pool, shard_bytes=int(0.3 * 100 * GB / 16), data_shards=3),),
        crush=crush_tree(osds),
    )


def ec_two_a_host(seed: int) -> ClusterSpec:
    """Return erasure code 3+1 over four hosts of two disks: a drained disk's shards can only go to its
    sibling.
    """
    del seed
    osds = build_osd_specs(hosts=4, per_host=2, size_bytes=100 * GB)
    pool = Pool(1, "archive", size=4, min_size=3, pg_num=32, pg_num_target=32, rule=1, erasure=True)
    return ClusterSpec(
        name="ec_two_a_host",
        osds=osds,
        pools=(PoolSpec(pool, shard_bytes=int(0.3 * 100 * GB / 16), data_shards=3),),
        crush=crush_tree(osds),
    )
