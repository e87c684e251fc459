"""STFC's Echo, the largest simulated cluster: 6,000 disks, erasure-coded 8+3, five drive generations side by
side.
"""

from __future__ import annotations

from dataclasses import replace

from predrain.actions.crush.pool import Pool
from predrain.actions.simulator.cluster_spec import ClusterSpec, OsdSpec, Physics, PoolSpec, crush_tree
from predrain.actions.simulator.worlds.shapes import (
    TB,
    assign_drive_model,
    assign_shared_devices,
    build_osd_specs,
)
from predrain.data.ids import HostName, OsdId

_GENERATIONS = ((12, "GEN A"), (16, "GEN B"), (18, "GEN C"), (20, "GEN D"), (24, "GEN E"))
"""Size in TB and drive model. The talk names five generations in production, up to 24 TB; mean 18 TB."""
_FLASH_DB = "GEN C"
"""The generation whose 18 TB drives keep their 200 GB block.db on flash."""


def build_echo_cluster(seed: int) -> ClusterSpec:
    """Return STFC's Echo: 6,000 OSDs on 300 hosts, 110 PB raw, one pool of 65,536 PGs, EC 8+3, 60 % full.

    A host that backfills has 25 Gb/s for its 20 disks, about 130 MB/s each. Drives give fewer than ten random
    reads per second and TB, so a rebuilt shard, which costs eight reads, is expensive. The distribution of
    disks over generations is assumed: 60 hosts of each.
    """
    del seed
    rows: list[OsdSpec] = []
    for number, (size, model) in enumerate(_GENERATIONS):
        row = assign_drive_model(build_osd_specs(hosts=60, per_host=20, size_bytes=size * TB), model)
        if model == _FLASH_DB:
            row = assign_shared_devices(row, "FLASH DB", of=10)
        first, host = 1_200 * number, 60 * number
        rows += [
            replace(
                osd,
                id=OsdId(first + osd.id),
                host=HostName(f"stor-{host + osd.id // 20 + 1:03d}"),
                device=None if osd.device is None else type(osd.device)(f"{osd.device}-{number}"),
                shared_devices=tuple(type(flash)(f"{flash}-{number}") for flash in osd.shared_devices),
            )
            for osd in row
        ]
    pool = Pool(1, "grid", size=11, min_size=9, pg_num=65_536, pg_num_target=65_536, rule=1, erasure=True)
    raw = sum(osd.size_bytes for osd in rows)
    return ClusterSpec(
        name="echo",
        osds=tuple(rows),
        pools=(PoolSpec(pool, shard_bytes=int(0.60 * raw / (11 * pool.pg_num)), data_shards=8),),
        crush=crush_tree(rows),
        release="quincy",
        scheduler="wpq",
        physics=Physics(disk_bytes_per_second=130e6),
    )
