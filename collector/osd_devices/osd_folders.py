"""The folders of this host's OSDs, and the targets of their links (block, block.db, block.wal, journal).

Classic hosts keep the folders in `/var/lib/ceph/osd/CLUSTER-N`, cephadm in `/var/lib/ceph/FSID/osd.N`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from predrain.collector.osd_devices.block_devices import MOST, resolve_links
from predrain.collector.osd_devices.read_timeouts import TimeoutRunner
from predrain.data.ids import OsdId, OsdKey, parse_cluster_id
from predrain.data.reading import Role

LINKS = {"block": Role.DATA, "block.db": Role.DB, "block.wal": Role.WAL, "journal": Role.JOURNAL}
_CLASSIC = re.compile(r".+-(\d{1,9})", re.ASCII)
_CEPHADM = re.compile(r"osd\.(\d{1,9})", re.ASCII)
_FSID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MOUNTED = re.compile(r"\\([0-7]{3})")
MOST_MOUNTS = 4 << 20
"""Bytes of the table of mounts that are read."""


@dataclass(frozen=True, slots=True)
class Folder:
    """One OSD's folder; its paths are as seen from the host's root."""

    key: OsdKey
    """Without a cluster if the folder does not give its fsid."""
    path: str
    links: Mapping[Role, str]
    """The target of each link, all links followed: a device, or a file."""


def list_osd_folders(root: Path, trouble: list[str], patience: TimeoutRunner) -> tuple[Folder, ...]:
    """List every OSD folder under `root`, by path. `trouble` gets a sentence for each folder that cannot be read."""
    found: list[Folder] = []
    mounts = _read_mounts(root)
    for folder, number, fsid in _find_candidate_folders(root / "var/lib/ceph", trouble):
        path = "/" + str(folder.relative_to(root))
        device = mounts.get(path)
        look = partial(_read_folder_links, root, folder, path)
        seen = look() if device is None else patience.run_with_timeout(path, look)
        if seen is None:
            trouble.append(
                f"osd.{number}: {path} does not answer; what is mounted there, {device}, hangs and counts as its data."
            )
        links, told, unread = seen or ({}, "", [])
        trouble.extend(unread)
        # With FileStore the folder is a mounted disk.
        if device and Role.DATA not in links and (seen is None or Role.JOURNAL in links):
            links[Role.DATA] = resolve_links(root, device)
        found.append(Folder(OsdKey(parse_cluster_id(fsid or told), OsdId(number)), path, links))
    return tuple(found)


def _read_folder_links(root: Path, folder: Path, path: str) -> tuple[dict[Role, str], str, list[str]]:
    """Return the links, the cluster's fsid, and sentences about what could not be read."""
    trouble: list[str] = []
    links = {
        LINKS[name]: resolve_links(root, f"{path}/{name}")
        for name in _list_folder_entries(folder, trouble)
        if name in LINKS
    }
    return links, _read_short_text(folder / "ceph_fsid"), trouble


def _find_candidate_folders(ceph: Path, trouble: list[str]) -> Iterator[tuple[Path, int, str]]:
    for name in _list_folder_entries(ceph / "osd", trouble):
        if match := _CLASSIC.fullmatch(name):
            yield ceph / "osd" / name, int(match[1]), ""
    for fsid in _list_folder_entries(ceph, trouble):
        if _FSID.fullmatch(fsid):
            for name in _list_folder_entries(ceph / fsid, trouble):
                if match := _CEPHADM.fullmatch(name):
                    yield ceph / fsid / name, int(match[1]), fsid


def _list_folder_entries(folder: Path, trouble: list[str]) -> list[str]:
    """Return the names in a folder, or none if there is no such folder."""
    try:
        return sorted(entry.name for entry in islice(folder.iterdir(), MOST))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        trouble.append(
            f"{folder} cannot be listed ({error.strerror}), so the OSDs in it are not known; run the collector as the "
            "user ceph."
        )
        return []


def _read_short_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(64).decode("ascii", errors="replace").strip()
    except OSError:
        return ""


def _read_mounts(root: Path) -> dict[str, str]:
    """Return the devices by mount point."""
    try:
        with (root / "proc/self/mounts").open("rb") as file:
            rows = file.read(MOST_MOUNTS).decode(errors="replace").splitlines()
    except OSError:
        return {}
    split = (row.split(" ", 2) for row in rows if row.count(" ") > 1)
    return {_MOUNTED.sub(lambda octal: chr(int(octal[1], 8)), where): device for device, where, _ in split}
