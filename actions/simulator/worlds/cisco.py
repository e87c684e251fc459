"""The cluster of Cisco's talk of 2016: 450 disks, replicated, journals beside the data."""

from __future__ import annotations

from predrain.actions.crush.pool import Pool
from predrain.actions.simulator.cluster_spec import ClusterSpec, PoolSpec
from predrain.actions.simulator.worlds.shapes import TB, build_levelled_tree, build_osd_specs


def build_cisco_cluster(seed: int) -> ClusterSpec:
    """Return one of the clusters of Cisco's talk of 2016: 450 disks of 4 TB on 45 hosts in 3 racks, 69 %
    full.

    CRUSH spreads 16,384 PGs so that fullness has a standard deviation of 6 to 6.5 points, as the talk
    reports. The few disks above the talk's maximum of 83.5 % get a lower CRUSH weight, where the operators
    reweighted by utilization. Placement is the same for every seed; the seed only affects later events.
    """
    del seed
    return build_cisco_spec("cisco", 4 * TB)


def cisco_18tb(seed: int) -> ClusterSpec:
    """Return the same hosts, PGs and fullness with today's disks: 18 TB instead of 4 TB, at the same rates."""
    del seed
    return build_cisco_spec("cisco-18tb", 18 * TB)


def build_cisco_spec(name: str, size_bytes: int) -> ClusterSpec:
    """Return the 450 disks of one size in bytes, with the hosts, PGs and fullness of the talk."""
    osds = build_osd_specs(hosts=45, per_host=10, size_bytes=size_bytes, racks=3)
    pool = Pool(1, "volumes", size=3, min_size=2, pg_num=16_384, pg_num_target=16_384, rule=0, erasure=False)
    shard = int(0.69 * 450 * size_bytes / (3 * pool.pg_num))
    return ClusterSpec(
        name=name,
        osds=osds,
        pools=(PoolSpec(pool, shard_bytes=shard),),
        crush=build_levelled_tree(osds, pool, most=int(0.825 * size_bytes / shard)),
    )
