"""CNAF's two clouds: disks and flash in one tree, and flash devices that hold the DBs of a dozen disks each."""

from __future__ import annotations

from dataclasses import replace

from predrain.actions.crush.pool import Pool
from predrain.actions.simulator.cluster_spec import ClusterSpec, OsdSpec, PoolSpec
from predrain.actions.simulator.worlds.shapes import (
    TB,
    assign_drive_model,
    assign_shared_devices,
    build_osd_specs,
    class_tree,
)
from predrain.data.ids import DeviceId, HostName, OsdId

_HDD_COPIES, _SSD_COPIES, _HDD_SHARDS = 2, 3, 4
"""Rule ids."""


def cnaf_sdds(seed: int) -> ClusterSpec:
    """Return CNAF SDDS: 291 OSDs (275 HDD, 16 NVMe) on 8 servers of 24 x 16 TB and 2 of 42 x 14 TB, 4 % full.

    Pools have 3 copies on HDD and on flash and EC 6+2 on HDD: 7,680 PGs in four pools, where the talk counts
    7,657 in twelve. DB and WAL of 12 disks (21 on the two large servers) are on one NVMe.
    """
    del seed
    small = assign_shared_devices(
        assign_drive_model(build_osd_specs(8, 24, 16 * TB), "SAS 16T"), "NVME DB", of=12
    )
    large = tuple(
        replace(osd, id=OsdId(192 + osd.id), host=HostName(f"stor-{9 + osd.id // 42:02d}"))
        for osd in build_osd_specs(2, 42, 14 * TB)
    )[:83]
    large = assign_shared_devices(assign_drive_model(large, "SAS 14T"), "NVME DB", of=21)
    hdd = (*small, *large)
    flash = _build_flash_osds(range(275, 291), [HostName(f"stor-{n + 1:02d}") for n in range(8)], 4 * TB)
    pools = (
        _build_pool(1, "volumes", _HDD_COPIES, 3, 4_096),
        _build_pool(2, "images", _HDD_COPIES, 3, 2_048),
        _build_pool(3, "archive", _HDD_SHARDS, 8, 512),
        _build_pool(4, "fast", _SSD_COPIES, 3, 1_024),
    )
    return _build_cloud_spec("cnaf-sdds", (*hdd, *flash), pools, used=(0.015, 0.01, 0.015, 0.10))


def cnaf_t1(seed: int) -> ClusterSpec:
    """Return CNAF T1: 312 OSDs on 12 servers, 24 x 18 TB and two NVMe each, 16 % full."""
    del seed
    hdd = assign_shared_devices(
        assign_drive_model(build_osd_specs(12, 24, 18 * TB), "SATA 18T"), "NVME DB", of=12
    )
    flash = _build_flash_osds(range(288, 312), [HostName(f"stor-{n + 1:02d}") for n in range(12)], 2 * TB)
    pools = (
        _build_pool(1, "volumes", _HDD_COPIES, 3, 4_096),
        _build_pool(2, "archive", _HDD_SHARDS, 8, 1_024),
        _build_pool(3, "fast", _SSD_COPIES, 3, 512),
    )
    return _build_cloud_spec("cnaf-t1", (*hdd, *flash), pools, used=(0.08, 0.08, 0.10))


def _build_flash_osds(ids: range, hosts: list[HostName], size: int) -> tuple[OsdSpec, ...]:
    return tuple(
        OsdSpec(
            OsdId(id_),
            hosts[turn % len(hosts)],
            None,
            size,
            device=DeviceId(f"NVME_DATA_{id_:05d}"),
            model="NVME DATA",
            device_class="ssd",
        )
        for turn, id_ in enumerate(ids)
    )


def _build_pool(id_: int, name: str, rule: int, size: int, pg_num: int) -> Pool:
    erasure = rule == _HDD_SHARDS
    return Pool(id_, name, size, 7 if erasure else 2, pg_num, pg_num, rule, erasure)


def _build_cloud_spec(
    name: str, osds: tuple[OsdSpec, ...], pools: tuple[Pool, ...], used: tuple[float, ...]
) -> ClusterSpec:
    """used: the share of its own class that each pool fills, in [0, 1]."""
    by_host = tuple(sorted(osds, key=lambda osd: (osd.host, osd.id)))
    raw = {kind: sum(osd.size_bytes for osd in osds if osd.device_class == kind) for kind in ("hdd", "ssd")}
    filled = tuple(
        PoolSpec(
            pool,
            shard_bytes=int(
                share * raw["ssd" if pool.rule == _SSD_COPIES else "hdd"] / (pool.size * pool.pg_num)
            ),
            data_shards=6 if pool.erasure else 1,
        )
        for pool, share in zip(pools, used, strict=True)
    )
    crush = class_tree(by_host, copies={_HDD_COPIES: "hdd", _SSD_COPIES: "ssd"}, shards={_HDD_SHARDS: "hdd"})
    return ClusterSpec(name=name, osds=by_host, pools=filled, crush=crush, release="pacific")
