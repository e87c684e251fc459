"""Which OSDs lie on which disks of this host, in which role.

Three sources, in this order: the links in the OSDs' folders, LVM tags, `ceph osd metadata`. The first that knows an
OSD decides which roles it has; for a device that it cannot tell (the link of a disk that went away leads nowhere) the
next is asked; where two differ the earlier is taken and the difference told. An OSD that none of them knows is where
it says itself that it is.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from predrain.collector.osd_devices.blocks import Blocks, blocks
from predrain.collector.osd_devices.claims import Claim, metadata_claims, volume_claims
from predrain.collector.osd_devices.folders import Folder, folders
from predrain.collector.osd_devices.timeouts import Patience
from predrain.data.ids import OsdId
from predrain.data.reading import Role, Seat

Places = dict[OsdId, dict[Role, tuple[str, ...]]]
"""Disks by OSD and role; () for a role that the source names and whose disk it cannot tell."""
_KEEPS = {
    Role.DATA: "its data",
    Role.DB: "its DB",
    Role.WAL: "its WAL",
    Role.JOURNAL: "its journal",
}
_OF_CEPH = re.compile(r"-osd--(?:block|data|db|wal|journal)--")
"""In device mapper's name of a volume that ceph-volume made."""
_FOLDER, _TAGS, _METADATA = "its folder", "its LVM tags", "its metadata"
_CURE = {
    _TAGS: "compare with `ceph-volume lvm list`",
    _METADATA: "restart the OSD, so that it tells the cluster anew",
}


@dataclass(frozen=True, slots=True)
class SeatMap:
    """A snapshot. Build a new one when disks or OSDs may have come or gone."""

    osds: tuple[OsdId, ...] = ()
    """Those with a disk that is known, in order."""
    trouble: tuple[str, ...] = ()
    """What could not be told, or is told differently by two sources, and the cure; a sentence each."""
    doubts: frozenset[str] = frozenset()
    """What speaks for OSDs here that nobody tells: folders without a disk, ceph-volume's volumes on disks without an
    OSD."""
    blocks: Blocks = field(default_factory=Blocks, repr=False)
    _places: Mapping[OsdId, Mapping[Role, tuple[str, ...]]] = field(default_factory=dict)
    _seats: Mapping[str, tuple[Seat, ...]] = field(default_factory=dict)

    def of(self, device: str) -> tuple[Seat, ...]:
        """The OSDs on a device: /dev/sda, a partition or a volume of it, a link to it (/dev/disk/by-id/..), an NVMe
        controller, /dev/sgN, or a kernel name. All that lies on the same whole disk; () where nobody knows."""
        found = (seat for disk in self.blocks.disks_of(device) for seat in self._seats.get(disk, ()))
        return tuple(dict.fromkeys(found))

    def disks(self, osd: OsdId) -> tuple[tuple[Role, str], ...]:
        """(role, kernel name of a whole disk) of an OSD, the data first. A disk with several paths stands once for
        each; () for an OSD that is not here."""
        return tuple((role, disk) for role, disks in self._places.get(osd, {}).items() for disk in disks)

    def disk_of(self, device: str) -> str | None:
        """Kernel name of the one whole disk that a path lies on; of several paths to it the first. None where it is
        unknown or more than one disk."""
        return self.blocks.one_disk(device)


def seat_map(
    root: Path = Path("/"),
    *,
    volumes: bytes | None = None,
    metadata: bytes | None = None,
    named: Mapping[OsdId, tuple[str, ...]] = MappingProxyType({}),
    patience: Patience | None = None,
) -> SeatMap:
    """The map of the host whose tree is at `root`. Needs to read the OSDs' folders (as the user ceph), nothing more.

    volumes: output of `ceph-volume lvm list --format json` or `lvs -o lv_path,lv_tags`. metadata: output of `ceph osd
    metadata --format json`; other hosts' OSDs are passed over. named: devices that OSDs say that they lie on
    (`named_disks`). patience: kept from map to map. Never raises: what is missing is in `trouble`.
    """
    trouble: list[str] = []
    tree = blocks(root)
    found = folders(root, trouble, patience or Patience())
    linked = _linked(tree, found, trouble)
    fsids = frozenset(folder.fsid for folder in found if folder.fsid)
    tagged = _claimed(tree, _of_one_cluster(volume_claims(volumes or b"", trouble), fsids, trouble))
    here = frozenset((*linked, *tagged))
    rows = metadata_claims(metadata, trouble) if metadata else ()
    told = _claimed(tree, _of_this_host(rows, root, here, trouble))
    places = _settled({_FOLDER: linked, _TAGS: tagged, _METADATA: told}, trouble)
    unknown = {osd: devices for osd, devices in named.items() if osd not in places}
    places = dict(sorted((*_alone(tree, unknown, trouble), *places.items())))
    if not tree.below and here:
        trouble.append("/sys/class/block is empty, so no disk is known; give the collector the host's /sys.")
    for osd, roles in places.items():
        trouble.extend(_made_up(tree, osd, roles))
    seats: dict[str, list[Seat]] = defaultdict(list)
    for osd, roles in places.items():
        for role, disks in roles.items():
            for disk in disks:
                seats[disk].append(Seat(osd, role))
    by_disk = {disk: tuple(listed) for disk, listed in seats.items()}
    doubts = _doubts(tree, found, places, by_disk)
    return SeatMap(tuple(places), tuple(dict.fromkeys(trouble)), doubts, tree, places, by_disk)


def _doubts(
    tree: Blocks,
    found: Iterable[Folder],
    places: Mapping[OsdId, Mapping[Role, tuple[str, ...]]],
    by_disk: Mapping[str, tuple[Seat, ...]],
) -> frozenset[str]:
    bare = {f"osd.{folder.osd}" for folder in found if Role.DATA not in places.get(folder.osd, {})}
    volumes = {
        mapped
        for mapped, device in tree.mapped.items()
        if _OF_CEPH.search(mapped) and not any(disk in by_disk for disk in tree.disks_under(device))
    }
    return frozenset(bare | volumes)


def _linked(tree: Blocks, found: Iterable[Folder], trouble: list[str]) -> Places:
    places: Places = {}
    for folder in found:
        if not folder.links:
            trouble.append(
                f"osd.{folder.osd}: {folder.path} holds no link to a device; the OSD is not activated, or the folder "
                "is left over and can go."
            )
            continue
        roles = {role: _at(tree, folder, role, end, trouble) for role, end in folder.links.items()}
        known = places.get(folder.osd)
        if known is None or (not any(known.values()) and any(roles.values())):
            places[folder.osd] = roles
        elif any(roles.values()) and roles != known:
            trouble.append(
                f"osd.{folder.osd} has two folders on this host with different disks, so neither is believed; remove "
                f"the one that is left over ({folder.path} is the second)."
            )
            places[folder.osd] = dict.fromkeys(known, ())
    return places


def _at(tree: Blocks, folder: Folder, role: Role, end: str, trouble: list[str]) -> tuple[str, ...]:
    disks = tree.disks_of(end)
    if disks or not tree.below:
        return disks
    if end.startswith("/dev/"):
        trouble.append(
            f"osd.{folder.osd}: {_KEEPS[role]} should be on {end}, which is not there; the disk is gone, or its volume "
            "is not active (`ceph-volume lvm activate --all`)."
        )
    else:
        trouble.append(
            f"osd.{folder.osd} keeps {_KEEPS[role]} in the file {end}, not on a disk of its own: its disk is not told."
        )
    return ()


def _claimed(tree: Blocks, claims: Iterable[Claim]) -> Places:
    places: Places = defaultdict(dict)
    for claim in claims:
        disks = tree.disks_of(claim.volume) if claim.volume else ()
        if not disks:
            disks = tuple(disk for device in claim.devices for disk in tree.disks_of(device))
        before = places[claim.osd].get(claim.role, ())
        places[claim.osd][claim.role] = tuple(dict.fromkeys((*before, *disks)))
    return places


def _of_one_cluster(
    claims: tuple[Claim, ...], fsids: frozenset[str], trouble: list[str]
) -> tuple[Claim, ...]:
    """Without the volumes of other clusters that a disk once served: their OSDs bear the same numbers. Where no folder
    tells which cluster is ours and the volumes are of several, none is believed."""
    named = {claim.fsid for claim in claims if claim.fsid}
    known = fsids or (named if len(named) == 1 else frozenset())
    ours = [claim for claim in claims if not claim.fsid or claim.fsid in known]
    clusters: dict[OsdId, set[str]] = defaultdict(set)
    for claim in ours:
        clusters[claim.osd].add(claim.fsid)
    kept = tuple(claim for claim in ours if len(clusters[claim.osd]) == 1)
    trouble.extend(
        f"osd.{osd}: volumes on this host are of OSDs of several clusters, and one of that number is passed over; if "
        "its disk was moved here, clear the old volume (`ceph-volume lvm zap`)."
        for osd in sorted({claim.osd for claim in set(claims) - set(kept)})
    )
    return kept


def _of_this_host(
    claims: tuple[Claim, ...], root: Path, here: frozenset[OsdId], trouble: list[str]
) -> Iterable[Claim]:
    """The rows of the OSDs of this host: kernel names mean nothing on another."""
    name = _host(root)
    elsewhere: set[tuple[OsdId, str]] = set()
    for claim in claims:
        host = claim.host.partition(".")[0]
        if name and host and host != name:
            if claim.osd in here:
                elsewhere.add((claim.osd, claim.host))
        elif claim.osd in here or (name and host):
            yield claim
    for osd, host in sorted(elsewhere):
        trouble.append(
            f"osd.{osd} has its folder on this host, but told the cluster that it runs on {host[:253]}; if it was "
            "moved, remove what is left of it here."
        )


def _host(root: Path) -> str:
    try:
        with (root / "proc/sys/kernel/hostname").open("rb") as file:
            return file.read(256).decode(errors="replace").strip().partition(".")[0]
    except OSError:
        return ""


def _settled(sources: Mapping[str, Places], trouble: list[str]) -> dict[OsdId, dict[Role, tuple[str, ...]]]:
    """One answer for every OSD, in order of its number; data first among its roles."""
    settled: dict[OsdId, dict[Role, tuple[str, ...]]] = {}
    for osd in sorted({osd for places in sources.values() for osd in places}):
        taken: dict[Role, tuple[str, ...]] = {}
        by: dict[Role, str] = {}
        decides = next((source for source, places in sources.items() if Role.DATA in places.get(osd, {})), "")
        for source, places in sources.items():
            complete = Role.DATA in taken
            for role, disks in places.get(osd, {}).items():
                if role not in taken and complete and disks:
                    trouble.append(
                        f"osd.{osd}: {source} put {_KEEPS[role]} on {_listed(disks)}, and {decides} told "
                        f"nothing of it; the latter is believed: {_CURE[source]}."
                    )
                elif role in taken and taken[role] and disks and set(disks) != set(taken[role]):
                    trouble.append(
                        f"osd.{osd}: {_KEEPS[role]} is on {_listed(taken[role])} by {by[role]}, but {source} put it on "
                        f"{_listed(disks)}; the former is believed: {_CURE[source]}."
                    )
                elif not taken.get(role) and (disks or not complete):
                    taken[role], by[role] = disks, source
        known = {role: taken[role] for role in Role if taken.get(role)}
        if known:
            settled[osd] = known
    return settled


def _made_up(tree: Blocks, osd: OsdId, roles: Mapping[Role, tuple[str, ...]]) -> Iterable[str]:
    for role, disks in roles.items():
        for disk in disks:
            if (what := tree.made_up(disk)) is not None:
                behind = f", which is the file {what}" if what != disk else ""
                yield f"osd.{osd} keeps {_KEEPS[role]} on {disk}{behind}: no hardware, so no SMART can be read of it."


def _alone(
    tree: Blocks, named: Mapping[OsdId, tuple[str, ...]], trouble: list[str]
) -> Iterator[tuple[OsdId, dict[Role, tuple[str, ...]]]]:
    """OSDs that lie on one disk with all that they keep; of a disk with several paths Ceph names each."""
    for osd, devices in named.items():
        disks = tuple(dict.fromkeys(disk for device in devices for disk in tree.disks_of(device)))
        paths_of_one = any(set(disks) <= set(tree.below[path]) for path in tree.multipath)
        if len(disks) == 1 or (disks and paths_of_one):
            yield osd, {Role.DATA: disks}
        elif disks:
            trouble.append(
                f"osd.{osd} lies on {_listed(disks)}, and which of them holds its data nobody tells; give the collector"
                " the folder of the OSD below /var/lib/ceph."
            )


def _listed(disks: Iterable[str]) -> str:
    return " and ".join(disks)
