"""Named clusters to simulate. A world is a function of a seed; `--cluster NAME` looks it up in `WORLDS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from actions.cluster.simulated.spec import ClusterSpec, OsdSpec, PoolSpec, crush_tree
from actions.cluster.view import Pool
from actions.crush.map import CrushMap
from actions.crush.place import place
from data.ids import HostName, OsdId
from data.refusal import Refusal

TB = 10**12
GB = 10**9
_ROUNDS = 8


class UnknownWorld(Refusal):
    """No cluster goes by that name."""


def disks(hosts: int, per_host: int, size_bytes: int, racks: int = 0) -> tuple[OsdSpec, ...]:
    """`hosts` x `per_host` equal disks, numbered host by host; hosts in `racks` equal racks, or in none."""
    return tuple(
        OsdSpec(
            id=OsdId(host * per_host + slot),
            host=HostName(f"stor-{host + 1:02d}"),
            rack=f"rack-{host * racks // hosts + 1}" if racks else None,
            size_bytes=size_bytes,
        )
        for host in range(hosts)
        for slot in range(per_host)
    )


def cisco(seed: int) -> ClusterSpec:
    """One of the clusters of Cisco's talk of 2016: 450 disks of 4 TB on 45 hosts in 3 racks, 69 % full.

    CRUSH spreads 16,384 PGs so that fullness has a standard deviation of 6 to 6.5 points, as they reported. The
    few disks beyond their 83.5 % have a lower CRUSH weight, where they reweighted by utilization. Placement is the
    same for every seed; the seed is for what happens on it.
    """
    del seed
    osds = disks(hosts=45, per_host=10, size_bytes=4 * TB, racks=3)
    pool = Pool(1, "volumes", size=3, min_size=2, pg_num=16_384, pg_num_target=16_384, rule=0, erasure=False)
    shard = int(0.69 * 450 * 4 * TB / (3 * pool.pg_num))
    return ClusterSpec(
        name="cisco",
        osds=osds,
        pools=(PoolSpec(pool, shard_bytes=shard),),
        crush=levelled(osds, pool, most=int(0.825 * 4 * TB / shard)),
    )


def tiny(seed: int) -> ClusterSpec:
    """Four hosts of three disks: a replicated pool of 64 PGs, half full. For tests."""
    del seed
    osds = disks(hosts=4, per_host=3, size_bytes=100 * GB)
    pool = Pool(1, "rbd", size=3, min_size=2, pg_num=64, pg_num_target=64, rule=0, erasure=False)
    return ClusterSpec(
        name="tiny",
        osds=osds,
        pools=(PoolSpec(pool, shard_bytes=int(0.5 * 12 * 100 * GB / (3 * 64))),),
        crush=crush_tree(osds),
    )


def ec_no_spare(seed: int) -> ClusterSpec:
    """Erasure code 3+1 over exactly four hosts of one disk: no host to spare, no disk can be drained."""
    del seed
    osds = disks(hosts=4, per_host=1, size_bytes=100 * GB)
    pool = Pool(1, "archive", size=4, min_size=3, pg_num=16, pg_num_target=16, rule=1, erasure=True)
    return ClusterSpec(
        name="ec_no_spare",
        osds=osds,
        pools=(PoolSpec(pool, shard_bytes=int(0.3 * 100 * GB / 16), data_shards=3),),
        crush=crush_tree(osds),
    )


def ec_two_a_host(seed: int) -> ClusterSpec:
    """Erasure code 3+1 over four hosts of two disks: a drained disk's shards can only go to its sibling."""
    del seed
    osds = disks(hosts=4, per_host=2, size_bytes=100 * GB)
    pool = Pool(1, "archive", size=4, min_size=3, pg_num=32, pg_num_target=32, rule=1, erasure=True)
    return ClusterSpec(
        name="ec_two_a_host",
        osds=osds,
        pools=(PoolSpec(pool, shard_bytes=int(0.3 * 100 * GB / 16), data_shards=3),),
        crush=crush_tree(osds),
    )


def levelled(osds: tuple[OsdSpec, ...], pool: Pool, most: int) -> CrushMap:
    """A tree in which no OSD is chosen for more than `most` PGs: those above lose CRUSH weight until it holds."""
    scale: dict[OsdId, float] = {}
    everything_in = {osd.id: 1.0 for osd in osds}
    for _ in range(_ROUNDS):
        crush = crush_tree(osds, scale=scale)
        placed = place(crush, {pool.id: pool}, everything_in, {})
        held = np.bincount([osd for up in placed.values() for osd in up], minlength=len(osds))
        over = [osd.id for osd in osds if held[osd.id] > most]
        if not over:
            return crush
        for osd in over:
            scale[osd] = scale.get(osd, 1.0) * (most - 1) / float(held[osd])
    return crush_tree(osds, scale=scale)


WORLDS: Mapping[str, Callable[[int], ClusterSpec]] = {
    "cisco": cisco,
    "tiny": tiny,
    "ec_no_spare": ec_no_spare,
    "ec_two_a_host": ec_two_a_host,
}


def world(name: str, seed: int) -> ClusterSpec:
    """The named cluster. Raises UnknownWorld."""
    if name not in WORLDS:
        raise UnknownWorld(f"There is no simulated cluster {name!r}; choose one of {', '.join(WORLDS)}.")
    return WORLDS[name](seed)
