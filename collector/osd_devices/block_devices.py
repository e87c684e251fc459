"""The block devices of a host: which whole disks lie beneath a name, be it a partition, a volume or a path.

The devices are read from `/sys/class/block`. The folder that a partition lies in is its disk. The devices beneath
device mapper, md and bcache are listed under `slaves`. A disk with several paths (multipath) is all of those paths.
No privilege is needed.
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
"""Links that are followed in one path, as in the kernel."""
MOST_BYTES = 4096
_SCSI_ADDRESS = re.compile(r"\d+:\d+:\d+:\d+")
_VOLUME = re.compile(r"LVM-\w{32}(\w{6})(\w{4})(\w{4})(\w{4})(\w{4})(\w{4})(\w{6})")
"""Device mapper's UUID of a volume: the UUID of its group, then its own, which LVM writes with hyphens."""
_NAMESPACE = re.compile(r"nvme(\d+)(?:c\d+)?n(\d+)")


@dataclass(frozen=True, slots=True)
class Blocks:
    """A snapshot of the host's block devices by kernel name (`sda1`, `dm-3`, `nvme0n1`)."""

    root: Path = Path("/")
    below: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The devices directly beneath each device; a whole disk has none."""
    mapped: Mapping[str, str] = field(default_factory=dict)
    """Kernel names of device mapper's devices by their name under /dev/mapper. LVM's volumes also have their UUID
    here, because ceph-volume opens encrypted volumes by it."""
    multipath: frozenset[str] = frozenset()
    """Device mapper's devices that are one disk seen over several paths."""
    where: Mapping[str, str] = field(default_factory=dict)
    """The folder in sysfs of each device."""

    def name_of(self, device: str) -> str | None:
        """Return the kernel name for the path or name of a block device, or None if it is no block device."""
        path = resolve_links(self.root, device if "/" in device else f"/dev/{device}")
        number = _read_device_number(self.root / path.lstrip("/"))
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
        """Return the kernel names of the whole disks beneath a kernel name, each once; () if the name is unknown."""
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
        """Return the kernel names of the whole disks of a path; () if they are unknown.

        The path is a block device or a link to one, an NVMe controller (/dev/nvme0, all its namespaces) or a SCSI
        generic device (/dev/sg3).
        """
        name = self.name_of(device)
        if name is not None:
            return self.disks_under(name)
        last = device.rpartition("/")[2]
        if not re.fullmatch(r"nvme\d+|sg\d+", last):
            return ()
        if last.startswith("nvme"):
            return list_controller_disks(self.root, last)
        return tuple(
            d
            for d in _list_entry_names(self.root / "sys/class/scsi_generic" / last / "device/block")
            if d in self.below
        )

    def one_disk(self, device: str) -> str | None:
        """Return the one whole disk of a path; the first one of a disk with several paths.

        Return None if the disk is unknown or the path is spread over several disks.
        """
        disks = self.disks_of(device)
        name = self.name_of(device)
        same = len(disks) == 1 or (
            name is not None and any(part in self.multipath for part in self._above(name))
        )
        return disks[0] if disks and same else None

    def _above(self, name: str) -> Iterator[str]:
        """Yield the name and then the devices beneath it, as long as there is exactly one."""
        for _ in range(MOST_LINKS):
            yield name
            if len(self.below.get(name, ())) != 1:
                return
            name = self.below[name][0]

    def made_up(self, disk: str) -> str | None:
        """Return the file behind a loop device, or the name of another device without hardware; None
        for a real disk.
        """
        if "/devices/virtual/block/" not in self.where.get(disk, ""):
            return None
        return _read_text_file(self.root / "sys/class/block" / disk / "loop/backing_file") or disk

    def find_scsi_disk(self, address: str) -> tuple[str, ...]:
        """Return the disk at HOST:CHANNEL:TARGET:LUN, or ()."""
        return tuple(disk for disk, at in self._addresses() if at == address)

    def find_ata_disk(self, port: int, device: int | None) -> tuple[str, ...]:
        """Return the disk on ataPORT.

        Behind a port multiplier, or with two disks on a cable, it is the disk of that number.
        """
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


def find_namespace_disk(name: str) -> str | None:
    """Return the disk of an NVMe namespace or of a path to it: `nvme0n1` for `nvme0c1n1`.

    Return None for any other name.
    """
    match = _NAMESPACE.fullmatch(name)
    return f"nvme{match[1]}n{match[2]}" if match else None


def list_controller_disks(root: Path, controller: str) -> tuple[str, ...]:
    """Return the disks behind an NVMe controller (`nvme0`).

    The path of a shared namespace (`nvme0c1n1`) becomes the disk that it leads to (`nvme0n1`).
    """
    listed = (find_namespace_disk(entry) for entry in _list_entry_names(root / "sys/class/nvme" / controller))
    return tuple(dict.fromkeys(name for name in listed if name is not None))


def read_block_devices(root: Path = Path("/")) -> Blocks:
    """Read the block devices that sysfs lists under `root` now. Never raises: without sysfs there are none."""
    folder = root / "sys/class/block"
    below: dict[str, tuple[str, ...]] = {}
    mapped: dict[str, str] = {}
    volumes: dict[str, str] = {}
    where: dict[str, str] = {}
    multipath: set[str] = set()
    for name in _list_entry_names(folder):
        entry = folder / name
        where[name] = real = os.path.realpath(entry)
        below[name] = (
            (Path(real).parent.name,)
            if (entry / "partition").exists()
            else _list_entry_names(entry / "slaves")
        )
        if dm_name := _read_text_file(entry / "dm/name"):
            mapped[dm_name] = name
            uuid = _read_text_file(entry / "dm/uuid")
            if uuid.startswith("mpath-"):
                multipath.add(name)
            elif volume := _VOLUME.fullmatch(uuid):
                volumes["-".join(volume.groups())] = name
    return Blocks(root, below, {**volumes, **mapped}, frozenset(multipath), where)


def resolve_links(root: Path, path: str) -> str:
    """Follow every link of the path as if `root` were /.

    Links of a fake tree, or of a host's tree seen from a container, do not lead out of it. A missing part is kept as
    it is. A loop ends where it is noticed.
    """
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


def _read_device_number(path: Path) -> str | None:
    """Return MAJOR:MINOR of a block device's node, or None."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    if not stat.S_ISBLK(found.st_mode):
        return None
    return f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"


def _list_entry_names(folder: Path) -> tuple[str, ...]:
    try:
        return tuple(sorted(entry.name for entry in islice(folder.iterdir(), MOST)))
    except OSError:
        return ()


def _read_text_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES).decode(errors="replace").strip()
    except OSError:
        return ""
