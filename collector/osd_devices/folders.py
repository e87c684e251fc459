"""The folders of this host's OSDs, and where their links (block, block.db, block.wal, journal) point.

Classic hosts keep them in `/var/lib/ceph/osd/CLUSTER-N`, cephadm in `/var/lib/ceph/FSID/osd.N`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from predrain.collector.osd_devices.blocks import MOST, followed
from predrain.collector.osd_devices.timeouts import Patience
from predrain.data.ids import OsdId
from predrain.data.reading import Role

LINKS = {"block": Role.DATA, "block.db": Role.DB, "block.wal": Role.WAL, "journal": Role.JOURNAL}
_CLASSIC = re.compile(r".+-(\d{1,9})", re.ASCII)
_CEPHADM = re.compile(r"osd\.(\d{1,9})", re.ASCII)
_FSID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MOUNTED = re.compile(r"\\([0-7]{3})")
MOST_MOUNTS = 4 << 20
"""Bytes of the table of mounts."""


@dataclass(frozen=True, slots=True)
class Folder:
    """One OSD's folder; paths as seen from the host's root."""

    osd: OsdId
    path: str
    fsid: str
    """The cluster's; empty where the folder does not tell."""
    links: Mapping[Role, str]
    """Where each link ends, all links followed: a device, or a file."""


def folders(root: Path, trouble: list[str], patience: Patience) -> tuple[Folder, ...]:
    """Every OSD folder under `root`, by path. What cannot be looked into is told in `trouble`."""
    found: list[Folder] = []
    mounts = _mounts(root)
    for folder, number, fsid in _candidates(root / "var/lib/ceph", trouble):
        path = "/" + str(folder.relative_to(root))
        device = mounts.get(path)
        look = partial(_looked, root, folder, path)
        seen = look() if device is None else patience.ask(path, look)
        if seen is None:
            trouble.append(
                f"osd.{number}: {path} does not answer; what is mounted there, {device}, hangs and counts as its data."
            )
        links, told, unread = seen or ({}, "", [])
        trouble.extend(unread)
        # FileStore: the folder is a mounted disk.
        if device and Role.DATA not in links and (seen is None or Role.JOURNAL in links):
            links[Role.DATA] = followed(root, device)
        found.append(Folder(OsdId(number), path, fsid or told, links))
    return tuple(found)


def _looked(root: Path, folder: Path, path: str) -> tuple[dict[Role, str], str, list[str]]:
    """Links, the cluster's fsid and what could not be looked into."""
    trouble: list[str] = []
    links = {
        LINKS[name]: followed(root, f"{path}/{name}") for name in _entries(folder, trouble) if name in LINKS
    }
    return links, _line(folder / "ceph_fsid"), trouble


def _candidates(ceph: Path, trouble: list[str]) -> Iterator[tuple[Path, int, str]]:
    for name in _entries(ceph / "osd", trouble):
        if match := _CLASSIC.fullmatch(name):
            yield ceph / "osd" / name, int(match[1]), ""
    for fsid in _entries(ceph, trouble):
        if _FSID.fullmatch(fsid):
            for name in _entries(ceph / fsid, trouble):
                if match := _CEPHADM.fullmatch(name):
                    yield ceph / fsid / name, int(match[1]), fsid


def _entries(folder: Path, trouble: list[str]) -> list[str]:
    """Names in a folder; none where it is not there."""
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


def _line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(64).decode("ascii", errors="replace").strip()
    except OSError:
        return ""


def _mounts(root: Path) -> dict[str, str]:
    """Devices by mount point."""
    try:
        with (root / "proc/self/mounts").open("rb") as file:
            rows = file.read(MOST_MOUNTS).decode(errors="replace").splitlines()
    except OSError:
        return {}
    split = (row.split(" ", 2) for row in rows if row.count(" ") > 1)
    return {_MOUNTED.sub(lambda octal: chr(int(octal[1], 8)), where): device for device, where, _ in split}
