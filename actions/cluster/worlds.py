"""Named clusters to simulate. A world is a function of a seed; `--cluster NAME` looks it up in `WORLDS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from actions.cluster.simulated.spec import ClusterSpec, OsdSpec, PoolSpec, crush_tree
from actions.cluster.view import Pool
from actions.crush.map import CrushMap
from actions.crush.place import place
from data.ids import HostName, OsdId, PgId
from data.refusal import Refusal

TB = 10**12
GB = 10**9


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

    CRUSH alone spreads 16,384 PGs so that fullness has a standard deviation of 6.5 points, as they
    reported; the few disks beyond their 83.5 % are relieved by upmaps, where they had to reweight. The seed
    is for what moves on it.
    """
    del seed
    osds = disks(hosts=45, per_host=10, size_bytes=4 * TB, racks=3)
    pool = Pool(1, "volumes", size=3, min_size=2, pg_num=16_384, pg_num_target=16_384, rule=0, erasure=False)
    shard = int(0.69 * 450 * 4 * TB / (3 * pool.pg_num))
    crush = crush_tree(osds)
    return ClusterSpec(
        name="cisco",
        osds=osds,
        pools=(PoolSpec(pool, shard_bytes=shard),),
        crush=crush,
        upmap_items=relieve(crush, pool, osds, most=int(0.825 * 4 * TB / shard)),
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


def relieve(
    crush: CrushMap, pool: Pool, osds: tuple[OsdSpec, ...], most: int
) -> dict[PgId, tuple[tuple[int, int], ...]]:
    """Upmaps after which no OSD holds more than `most` PGs, from the fullest to the emptiest elsewhere."""
    placed = place(crush, {pool.id: pool}, {osd.id: 1.0 for osd in osds}, {})
    host = {int(osd.id): osd.host for osd in osds}
    held = np.bincount([osd for up in placed.values() for osd in up], minlength=len(osds))
    pins: dict[PgId, tuple[tuple[int, int], ...]] = {}
    for pg, up in placed.items():
        source = max(up, key=lambda osd: (held[osd], -osd))
        if held[source] <= most:
            continue
        used = {host[osd] for osd in up}
        target = next(int(osd) for osd in np.argsort(held, kind="stable") if host[int(osd)] not in used)
        pins[pg] = ((source, target),)
        held[source] -= 1
        held[target] += 1
    return pins


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
