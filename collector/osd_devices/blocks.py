"""The block devices of a host: which whole disks lie beneath a name, be it a partition, a volume or a path.

Read from `/sys/class/block`: a partition's disk is the folder that it lies in, and what device mapper, md and bcache
lie on is listed under `slaves`. A disk with several paths (multipath) is all of them. Nothing here needs a privilege.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

MOST = 20_000
"""Entries of a folder that are read; a host of 60 disks and 60 OSDs has some 400 block devices."""
MOST_LINKS = 40
"""Links followed in one path, as in the kernel."""
MOST_BYTES = 4096
_SCSI_ADDRESS = re.compile(r"\d+:\d+:\d+:\d+")
_VOLUME = re.compile(r"LVM-\w{32}(\w{6})(\w{4})(\w{4})(\w{4})(\w{4})(\w{4})(\w{6})")
"""Device mapper's UUID of a volume: its group's, then its own, which LVM writes with hyphens."""
_NAMESPACE = re.compile(r"nvme(\d+)(?:c\d+)?n(\d+)")


@dataclass(frozen=True, slots=True)
class Blocks:
    """A snapshot of the host's block devices by kernel name (`sda1`, `dm-3`, `nvme0n1`)."""

    root: Path = Path("/")
    below: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What a device lies on directly; a whole disk lies on nothing."""
    mapped: Mapping[str, str] = field(default_factory=dict)
    """Kernel names of device mapper's devices by the name under /dev/mapper; of LVM's volumes by their UUID too, under
    which ceph-volume opens those that are encrypted."""
    multipath: frozenset[str] = frozenset()
    """Device mapper's devices that are one disk seen over several paths."""
    where: Mapping[str, str] = field(default_factory=dict)
    """Folder in sysfs of each device."""

    def name_of(self, device: str) -> str | None:
        """The kernel name of a block device's path (or of itself); None where it is none."""
        path = followed(self.root, device if "/" in device else f"/dev/{device}")
        number = _number(self.root / path.lstrip("/"))
        if number is not None:
            name = Path(os.path.realpath(self.root / "sys/dev/block" / number)).name
            if name in self.below:
                return name
        if not path.startswith("/dev/"):
            return None
        inside = path.removeprefix("/dev/")
        if inside.replace("/", "!") in self.below:  # how sysfs writes /dev/cciss/c0d0
            return inside.replace("/", "!")
        folder, _, last = inside.rpartition("/")
        mangled = f"{folder.replace('-', '--')}-{last.replace('-', '--')}"  # how LVM names GROUP/VOLUME
        return self.mapped.get(last if folder == "mapper" else mangled)

    def disks_under(self, name: str) -> tuple[str, ...]:
        """Kernel names of the whole disks beneath a kernel name, each once; () where the name is unknown."""
        found: dict[str, None] = {}
        seen: set[str] = set()
        left = [name] if name in self.below else []
        while left:
            name = left.pop()
            if name in seen:
                continue
            seen.add(name)
            beneath = self.below.get(name, ())
            left.extend(reversed(beneath))
            if not beneath:
                found[name] = None
        return tuple(found)

    def disks_of(self, device: str) -> tuple[str, ...]:
        """Kernel names of the whole disks that a path stands for: a block device or a link to one, an NVMe controller
        (/dev/nvme0, all its namespaces) or a SCSI generic device (/dev/sg3). () where nobody knows."""
        name = self.name_of(device)
        if name is not None:
            return self.disks_under(name)
        last = device.rpartition("/")[2]
        if not re.fullmatch(r"nvme\d+|sg\d+", last):
            return ()
        if last.startswith("nvme"):
            return namespaces(self.root, last)
        return tuple(
            d for d in _names(self.root / "sys/class/scsi_generic" / last / "device/block") if d in self.below
        )

    def one_disk(self, device: str) -> str | None:
        """The one whole disk of a path; of a disk with several paths the first. None where it is unknown or spread
        over several disks."""
        disks = self.disks_of(device)
        name = self.name_of(device)
        same = len(disks) == 1 or (
            name is not None and any(part in self.multipath for part in self._above(name))
        )
        return disks[0] if disks and same else None

    def _above(self, name: str) -> Iterator[str]:
        """The name, and what lies beneath it for as long as that is one device."""
        for _ in range(MOST_LINKS):
            yield name
            if len(self.below.get(name, ())) != 1:
                return
            name = self.below[name][0]

    def made_up(self, disk: str) -> str | None:
        """What a device without hardware is: the file behind a loop device, or its name; None for a real disk."""
        if "/devices/virtual/block/" not in self.where.get(disk, ""):
            return None
        return _text(self.root / "sys/class/block" / disk / "loop/backing_file") or disk

    def scsi(self, address: str) -> tuple[str, ...]:
        """The disk at HOST:CHANNEL:TARGET:LUN."""
        return tuple(disk for disk, at in self._addresses() if at == address)

    def ata(self, port: int, device: int | None) -> tuple[str, ...]:
        """The disk on ataPORT; behind a port multiplier, or with two on a cable, the one of that number."""
        behind = [(disk, at) for disk, at in self._addresses() if f"/ata{port}/" in self.where[disk]]
        if len(behind) > 1:
            behind = [
                (disk, at) for disk, at in behind if str(device) in (at.split(":")[1], at.split(":")[2])
            ]
        return (behind[0][0],) if len(behind) == 1 else ()

    def _addresses(self) -> Iterator[tuple[str, str]]:
        for disk, where in self.where.items():
            if not self.below[disk] and (found := _SCSI_ADDRESS.findall(where)):
                yield disk, found[-1]


def namespace(name: str) -> str | None:
    """The disk that a namespace or a path to it is known by: `nvme0c1n1` is `nvme0n1`. None for any other name."""
    match = _NAMESPACE.fullmatch(name)
    return f"nvme{match[1]}n{match[2]}" if match else None


def namespaces(root: Path, controller: str) -> tuple[str, ...]:
    """Disks behind an NVMe controller (`nvme0`). The path of a shared namespace (`nvme0c1n1`) is told as the disk that
    it leads to (`nvme0n1`)."""
    listed = (namespace(entry) for entry in _names(root / "sys/class/nvme" / controller))
    return tuple(dict.fromkeys(name for name in listed if name is not None))


def blocks(root: Path = Path("/")) -> Blocks:
    """What sysfs under `root` lists now. Never raises: without sysfs there is nothing."""
    folder = root / "sys/class/block"
    below: dict[str, tuple[str, ...]] = {}
    mapped: dict[str, str] = {}
    volumes: dict[str, str] = {}
    where: dict[str, str] = {}
    multipath: set[str] = set()
    for name in _names(folder):
        entry = folder / name
        where[name] = real = os.path.realpath(entry)
        below[name] = (
            (Path(real).parent.name,) if (entry / "partition").exists() else _names(entry / "slaves")
        )
        if dm_name := _text(entry / "dm/name"):
            mapped[dm_name] = name
            uuid = _text(entry / "dm/uuid")
            if uuid.startswith("mpath-"):
                multipath.add(name)
            elif volume := _VOLUME.fullmatch(uuid):
                volumes["-".join(volume.groups())] = name
    return Blocks(root, below, {**volumes, **mapped}, frozenset(multipath), where)


def followed(root: Path, path: str) -> str:
    """The path with every link followed as if `root` were /: links of a fake tree, or of a host's tree seen from a
    container, do not lead out of it. What is not there is kept as it stands; a loop ends where it was noticed."""
    left = [part for part in reversed(path.split("/")) if part]
    done: list[str] = []
    links = 0
    while left:
        part = left.pop()
        if part in ("", ".", ".."):
            del done[len(done) - (part == "..") :]
            continue
        try:
            target = str(root.joinpath(*done, part).readlink()) if links < MOST_LINKS else ""
        except (OSError, ValueError):
            target = ""
        if not target:
            done.append(part)
            continue
        links += 1
        if target.startswith("/"):
            done.clear()
        left.extend(reversed(target.split("/")))
    return "/" + "/".join(done)


def _number(path: Path) -> str | None:
    """MAJOR:MINOR of a block device's node."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    if not stat.S_ISBLK(found.st_mode):
        return None
    return f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"


def _names(folder: Path) -> tuple[str, ...]:
    try:
        return tuple(sorted(entry.name for entry in islice(folder.iterdir(), MOST)))
    except OSError:
        return ()


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES).decode(errors="replace").strip()
    except OSError:
        return ""
