"""Short forms of the entries of an OSD device map, and rows as Ceph and LVM answer them for an OSD."""

from __future__ import annotations

from typing import Any

from predrain.collector.osd_devices import OsdDeviceMap
from predrain.data.ids import ClusterId, OsdId, OsdKey
from predrain.data.reading import OsdDevice, Role

FSID = "4bfe8b72-5e69-4330-b6c0-4d914db8ab89"
OTHER = "451267e6-883f-4936-8dff-080d781c67d5"


def data(osd: int, cluster: str | None = None) -> OsdDevice:
    return OsdDevice(OsdId(osd), Role.DATA, ClusterId(cluster) if cluster else None)


def key(osd: int, cluster: str | None = None) -> OsdKey:
    return OsdKey(ClusterId(cluster) if cluster else None, OsdId(osd))


def disks(found: OsdDeviceMap, osd: int, cluster: str | None = None) -> dict[Role, list[str]]:
    by_role: dict[Role, list[str]] = {}
    for role, disk in found.list_osd_disks(key(osd, cluster)):
        by_role.setdefault(role, []).append(disk)
    return by_role


def metadata(osd: int, host: str = "host-a", **fields: str) -> dict[str, Any]:
    return {"id": osd, "hostname": host, **fields}


def volume(osd: int, role: str, path: str, *devices: str, fsid: str = FSID) -> dict[str, Any]:
    tags = {"ceph.osd_id": str(osd), "ceph.type": role, "ceph.cluster_fsid": fsid}
    return {"type": role, "lv_path": path, "path": path, "devices": list(devices), "tags": tags}
