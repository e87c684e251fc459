"""The first of the clusters that started this: 450 disks, replicated, journals beside the data."""

from __future__ import annotations

from predrain.actions.crush.pool import Pool
from predrain.actions.simulator.spec import ClusterSpec, PoolSpec
from predrain.actions.simulator.worlds.shapes import TB, disks, levelled


def cisco(seed: int) -> ClusterSpec:
    """One of the clusters of Cisco's talk of 2016: 450 disks of 4 TB on 45 hosts in 3 racks, 69 % full.

    CRUSH spreads 16,384 PGs so that fullness has a standard deviation of 6 to 6.5 points, as they reported. The
    few disks beyond their 83.5 % have a lower CRUSH weight, where they reweighted by utilization. Placement is the
    same for every seed; the seed is for what happens on it.
    """
    del seed
    return _build("cisco", 4 * TB)


def cisco_18tb(seed: int) -> ClusterSpec:
    """The same hosts, PGs and fullness with the disks that are bought today: 18 TB in place of 4, at the same pace."""
    del seed
    return _build("cisco-18tb", 18 * TB)


def _build(name: str, size_bytes: int) -> ClusterSpec:
    osds = disks(hosts=45, per_host=10, size_bytes=size_bytes, racks=3)
    pool = Pool(1, "volumes", size=3, min_size=2, pg_num=16_384, pg_num_target=16_384, rule=0, erasure=False)
    shard = int(0.69 * 450 * size_bytes / (3 * pool.pg_num))
    return ClusterSpec(
        name=name,
        osds=osds,
        pools=(PoolSpec(pool, shard_bytes=shard),),
        crush=levelled(osds, pool, most=int(0.825 * size_bytes / shard)),
    )
