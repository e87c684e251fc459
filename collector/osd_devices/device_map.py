"""Maps the OSDs of this host to disks, with the role of each disk.

There are three sources, in this order: the links in the OSDs' folders, LVM tags, and `ceph osd metadata`. The first
source that knows an OSD decides which roles it has. If that source cannot find a device (the link of a disk that is
gone leads nowhere), the next source is asked. If two sources differ, the earlier one is taken and the difference is
reported. For an OSD that no source knows, the devices that the OSD itself reports are used.

A host may serve OSDs of several clusters, which have the same numbers. A source that does not name the cluster is
about the only OSD of its number, if the other sources name one cluster for that number.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from predrain.collector.osd_devices.block_devices import Blocks, read_block_devices
from predrain.collector.osd_devices.osd_folders import Folder, list_osd_folders
from predrain.collector.osd_devices.other_claims import DeviceClaim, metadata_claims, volume_claims
from predrain.collector.osd_devices.read_timeouts import TimeoutRunner
from predrain.data.ids import ClusterId, OsdId, OsdKey, find_osd
from predrain.data.reading import OsdDevice, Role

Places = dict[OsdKey, dict[Role, tuple[str, ...]]]
"""Disks by OSD and role; () for a role that the source names without a disk that can be found."""
ROLE_TEXTS = {
    Role.DATA: "its data",
    Role.DB: "its DB",
    Role.WAL: "its WAL",
    Role.JOURNAL: "its journal",
}
_OF_CEPH = re.compile(r"-osd--(?:block|data|db|wal|journal)--")
"""Part of device mapper's name of a volume that ceph-volume made."""
_FOLDER, _TAGS, _METADATA = "its folder", "its LVM tags", "its metadata"
_CURE = {
    _TAGS: "compare with `ceph-volume lvm list`",
    _METADATA: "restart the OSD, so that it reports to the cluster again",
}


@dataclass(frozen=True, slots=True)
class OsdDeviceMap:
    """A snapshot of the OSDs' devices. Build a new one when disks or OSDs may have been added or removed."""

    osds: tuple[OsdKey, ...] = ()
    """The OSDs with a known disk, in the order of their numbers."""
    trouble: tuple[str, ...] = ()
    """Sentences about devices that could not be found or on which two sources differ, each with the cure."""
    doubts: frozenset[str] = frozenset()
    """Signs of OSDs that no source knows: folders without a disk, and volumes of ceph-volume on disks without an
    OSD."""
    blocks: Blocks = field(default_factory=Blocks, repr=False)
    _places: Mapping[OsdKey, Mapping[Role, tuple[str, ...]]] = field(default_factory=dict)
    _osd_devices: Mapping[str, tuple[OsdDevice, ...]] = field(default_factory=dict)

    def find_osds_on(self, device: str) -> tuple[OsdDevice, ...]:
        """Return the OSDs on the whole disk beneath a device; () if they are unknown.

        The device is /dev/sda, a partition or a volume of it, a link to it (/dev/disk/by-id/..), an NVMe controller,
        /dev/sgN, or a kernel name.
        """
        found = (one for disk in self.blocks.disks_of(device) for one in self._osd_devices.get(disk, ()))
        return tuple(dict.fromkeys(found))

    def list_osd_disks(self, osd: OsdKey) -> tuple[tuple[Role, str], ...]:
        """Return (role, kernel name of a whole disk) of an OSD, the data first; () for an OSD that is not on this
        host.

        A disk with several paths has one entry for each path. If the cluster is not known, neither here nor in
        `osd`, the only OSD of the number is meant.
        """
        found = find_osd(osd, self._places)
        roles = self._places[found] if found is not None else {}
        return tuple((role, disk) for role, disks in roles.items() for disk in disks)

    def disk_of(self, device: str) -> str | None:
        """Return the kernel name of the one whole disk beneath a path, the first if the disk has several paths.

        Return None if the disk is unknown or there is more than one.
        """
        return self.blocks.one_disk(device)


def seat_map(
    root: Path = Path("/"),
    *,
    volumes: bytes | None = None,
    metadata: bytes | None = None,
    named: Mapping[OsdKey, tuple[str, ...]] = MappingProxyType({}),
    patience: TimeoutRunner | None = None,
) -> OsdDeviceMap:
    """Build the map of the host whose tree is at `root`.

    The caller needs the right to read the OSDs' folders (as the user ceph).

    `volumes`: output of `ceph-volume lvm list --format json` or `lvs -o lv_path,lv_tags`.
    `metadata`: output of `ceph osd metadata --format json`; OSDs of other hosts are passed over.
    `named`: the devices that OSDs report of themselves (`named_disks`).
    `patience`: kept from map to map.

    Never raises: `trouble` says what is missing.
    """
    trouble: list[str] = []
    tree = read_block_devices(root)
    found = list_osd_folders(root, trouble, patience or TimeoutRunner())
    served = {key.cluster for key in (*(folder.key for folder in found), *named) if key.cluster}
    claims = _of_served_clusters(volume_claims(volumes or b"", trouble), served, trouble)
    keys = (*(folder.key for folder in found), *(claim.key for claim in claims), *named)
    certain = frozenset(key for key in keys if key.cluster is not None)
    found = tuple(replace(folder, key=find_osd(folder.key, certain) or folder.key) for folder in found)
    linked = _map_linked_roles(tree, found, trouble)
    tagged = _map_claimed_roles(tree, claims, certain)
    here = frozenset(key.osd for key in (*linked, *tagged))
    rows = metadata_claims(metadata, trouble) if metadata else ()
    told = _map_claimed_roles(tree, _of_this_host(rows, root, here, trouble), certain)
    places = _settle_sources({_FOLDER: linked, _TAGS: tagged, _METADATA: told}, trouble)
    unknown = {osd: devices for osd, devices in named.items() if find_osd(osd, places) is None}
    more = _find_single_disk_osds(tree, unknown, trouble)
    places = dict(sorted((*more, *places.items()), key=lambda one: _order_osds(one[0])))
    if not tree.below and here:
        trouble.append("/sys/class/block is empty, so no disk is known; give the collector the host's /sys.")
    for osd, roles in places.items():
        trouble.extend(_made_up(tree, _name_osd(osd, places), roles))
    osd_devices: dict[str, list[OsdDevice]] = defaultdict(list)
    for osd, roles in places.items():
        for role, disks in roles.items():
            for disk in disks:
                osd_devices[disk].append(OsdDevice(osd.osd, role, osd.cluster))
    by_disk = {disk: tuple(listed) for disk, listed in osd_devices.items()}
    doubts = _find_doubts(tree, found, places, by_disk)
    return OsdDeviceMap(tuple(places), tuple(dict.fromkeys(trouble)), doubts, tree, places, by_disk)


def _order_osds(osd: OsdKey) -> tuple[OsdId, str]:
    return osd.osd, osd.cluster or ""


def _name_osd(osd: OsdKey, others: Collection[OsdKey]) -> str:
    """Return the name for people: with its cluster if the host has OSDs of that number in several clusters."""
    several = any(one.osd == osd.osd and one != osd for one in others)
    return f"osd.{osd.osd} of cluster {osd.cluster or 'unknown'}" if several else f"osd.{osd.osd}"


def _find_doubts(
    tree: Blocks,
    found: Iterable[Folder],
    places: Mapping[OsdKey, Mapping[Role, tuple[str, ...]]],
    by_disk: Mapping[str, tuple[OsdDevice, ...]],
) -> frozenset[str]:
    bare = {folder.path for folder in found if Role.DATA not in places.get(folder.key, {})}
    volumes = {
        mapped
        for mapped, device in tree.mapped.items()
        if _OF_CEPH.search(mapped) and not any(disk in by_disk for disk in tree.disks_under(device))
    }
    return frozenset(bare | volumes)


def _map_linked_roles(tree: Blocks, found: Iterable[Folder], trouble: list[str]) -> Places:
    places: Places = {}
    for folder in found:
        if not folder.links:
            trouble.append(
                f"osd.{folder.key.osd}: {folder.path} holds no link to a device; the OSD is not activated, or the "
                "folder is left over and can go."
            )
            continue
        roles = {
            role: _find_link_disks(tree, folder, role, end, trouble) for role, end in folder.links.items()
        }
        known = places.get(folder.key)
        if known is None or (not any(known.values()) and any(roles.values())):
            places[folder.key] = roles
        elif any(roles.values()) and roles != known:
            trouble.append(
                f"osd.{folder.key.osd} has two folders on this host with different disks, so neither is believed; "
                f"remove the one that is left over ({folder.path} is the second)."
            )
            places[folder.key] = dict.fromkeys(known, ())
    return places


def _find_link_disks(
    tree: Blocks, folder: Folder, role: Role, end: str, trouble: list[str]
) -> tuple[str, ...]:
    disks = tree.disks_of(end)
    if disks or not tree.below:
        return disks
    if end.startswith("/dev/"):
        trouble.append(
            f"osd.{folder.key.osd}: {ROLE_TEXTS[role]} should be on {end}, which is not there; the disk is gone, or "
            "its volume is not active (`ceph-volume lvm activate --all`)."
        )
    else:
        trouble.append(
            f"osd.{folder.key.osd} keeps {ROLE_TEXTS[role]} in the file {end}, not on a disk of its own: its disk is "
            "not known."
        )
    return ()


def _map_claimed_roles(tree: Blocks, claims: Iterable[DeviceClaim], certain: Collection[OsdKey]) -> Places:
    """Map the claims, each under the key of `certain` that it means.

    A claim without a cluster is passed over if OSDs of several clusters have its number.
    """
    places: Places = defaultdict(dict)
    for claim in claims:
        osd = find_osd(claim.key, certain)
        if osd is None and any(claim.key.could_be(one) for one in certain):
            continue
        osd = osd or claim.key
        disks = tree.disks_of(claim.volume) if claim.volume else ()
        if not disks:
            disks = tuple(disk for device in claim.devices for disk in tree.disks_of(device))
        before = places[osd].get(claim.role, ())
        places[osd][claim.role] = tuple(dict.fromkeys((*before, *disks)))
    return places


def _of_served_clusters(
    claims: tuple[DeviceClaim, ...], served: Collection[ClusterId], trouble: list[str]
) -> tuple[DeviceClaim, ...]:
    """Return the claims without the volumes of other clusters that a disk once served.

    served: the clusters that folders, or OSDs that run, name. If they name none and the volumes are of several
    clusters, no volume is believed. Of a number that one volume has without a cluster and another one with a
    cluster, none is believed.
    """
    named = {claim.key.cluster for claim in claims if claim.key.cluster}
    known = {None, *(served or (named if len(named) == 1 else ()))}
    ours = [claim for claim in claims if claim.key.cluster in known]
    clusters: dict[OsdId, set[ClusterId | None]] = defaultdict(set)
    for claim in ours:
        clusters[claim.key.osd].add(claim.key.cluster)
    doubtful = {osd for osd, found in clusters.items() if None in found and len(found) > 1}
    kept = tuple(claim for claim in ours if claim.key.osd not in doubtful)
    trouble.extend(
        f"osd.{osd}: volumes on this host are of OSDs of several clusters, and one of that number is passed over; if "
        "its disk was moved here, clear the old volume (`ceph-volume lvm zap`)."
        for osd in sorted({claim.key.osd for claim in set(claims) - set(kept)})
    )
    return kept


def _of_this_host(
    claims: tuple[DeviceClaim, ...], root: Path, here: frozenset[OsdId], trouble: list[str]
) -> Iterable[DeviceClaim]:
    """Yield the rows of the OSDs of this host: the kernel names of another host mean nothing here."""
    name = _read_hostname(root)
    elsewhere: set[tuple[OsdId, str]] = set()
    for claim in claims:
        host = claim.host.partition(".")[0]
        if name and host and host != name:
            if claim.key.osd in here:
                elsewhere.add((claim.key.osd, claim.host))
        elif claim.key.osd in here or (name and host):
            yield claim
    for osd, host in sorted(elsewhere):
        trouble.append(
            f"osd.{osd} has its folder on this host, but reported to the cluster that it runs on {host[:253]}; if it "
            "was moved, remove what is left of it here."
        )


def _read_hostname(root: Path) -> str:
    try:
        with (root / "proc/sys/kernel/hostname").open("rb") as file:
            return file.read(256).decode(errors="replace").strip().partition(".")[0]
    except OSError:
        return ""


def _settle_sources(sources: Mapping[str, Places], trouble: list[str]) -> Places:
    """Decide on one answer for every OSD; the data comes first among its roles."""
    settled: Places = {}
    osds = {osd for places in sources.values() for osd in places}
    for osd in sorted(osds, key=_order_osds):
        name = _name_osd(osd, osds)
        taken: dict[Role, tuple[str, ...]] = {}
        by: dict[Role, str] = {}
        decides = next((source for source, places in sources.items() if Role.DATA in places.get(osd, {})), "")
        for source, places in sources.items():
            complete = Role.DATA in taken
            for role, disks in places.get(osd, {}).items():
                if role not in taken and complete and disks:
                    trouble.append(
                        f"{name}: {source} put {ROLE_TEXTS[role]} on {_join_disk_names(disks)}, and {decides} "
                        f"has no such device; predrain follows {decides}: {_CURE[source]}."
                    )
                elif role in taken and taken[role] and disks and set(disks) != set(taken[role]):
                    trouble.append(
                        f"{name}: {ROLE_TEXTS[role]} is on {_join_disk_names(taken[role])} by {by[role]}, "
                        f"but {source} put it on "
                        f"{_join_disk_names(disks)}; the former is believed: {_CURE[source]}."
                    )
                elif not taken.get(role) and (disks or not complete):
                    taken[role], by[role] = disks, source
        known = {role: taken[role] for role in Role if taken.get(role)}
        if known:
            settled[osd] = known
    return settled


def _made_up(tree: Blocks, name: str, roles: Mapping[Role, tuple[str, ...]]) -> Iterable[str]:
    for role, disks in roles.items():
        for disk in disks:
            if (what := tree.made_up(disk)) is not None:
                behind = f", which is the file {what}" if what != disk else ""
                part = f"{name} keeps {ROLE_TEXTS[role]} on {disk}{behind}"
                yield f"{part}: no hardware, so no SMART can be read of it."


def _find_single_disk_osds(
    tree: Blocks, named: Mapping[OsdKey, tuple[str, ...]], trouble: list[str]
) -> Iterator[tuple[OsdKey, dict[Role, tuple[str, ...]]]]:
    """Yield the OSDs that have all their data on one disk. For a disk with several paths Ceph names each path."""
    for osd, devices in named.items():
        disks = tuple(dict.fromkeys(disk for device in devices for disk in tree.disks_of(device)))
        paths_of_one = any(set(disks) <= set(tree.below[path]) for path in tree.multipath)
        if len(disks) == 1 or (disks and paths_of_one):
            yield osd, {Role.DATA: disks}
        elif disks:
            trouble.append(
                f"{_name_osd(osd, named)} lies on {_join_disk_names(disks)}, and which of them holds its data nobody "
                "tells; give the collector"
                " the folder of the OSD below /var/lib/ceph."
            )


def _join_disk_names(disks: Iterable[str]) -> str:
    return " and ".join(disks)
