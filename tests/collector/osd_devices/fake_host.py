"""A host made of folders and links: sysfs as the kernel lays it out, /dev as udev does, OSD folders as Ceph does."""

from __future__ import annotations

import os
from pathlib import Path


class FakeHost:
    """Everything lies under `root`; absolute links are as on the host, so that they lead nowhere outside of it."""

    def __init__(self, root: Path, name: str = "host-a") -> None:
        self.root = root
        self._file("proc/sys/kernel/hostname", f"{name}\n")
        self._dm = 0

    def disk(self, name: str, bus: str = "") -> str:
        """A whole disk, behind a SATA port, a SAS address or a PCI function (`bus`: its folder in sysfs)."""
        bus = bus or f"pci0000:00/{name}-port"
        self._block(name, f"sys/devices/{bus}/block/{name}")
        return name

    def virtual(self, name: str, backing: str = "") -> str:
        """A block device without hardware."""
        self._block(name, f"sys/devices/virtual/block/{name}")
        if backing:
            self._file(f"sys/devices/virtual/block/{name}/loop/backing_file", f"{backing}\n")
        return name

    def sas(self, name: str, address: str) -> str:
        """A SCSI disk at HOST:CHANNEL:TARGET:LUN, with its generic device."""
        host, _, target, _ = address.split(":")
        bus = f"pci0000:00/host{host}/target{host}:0:{target}/{address}"
        self.disk(name, bus)
        self._link(f"sys/class/scsi_generic/sg{target}/device", f"../../../devices/{bus}")
        return name

    def sata(self, name: str, port: int, address: str) -> str:
        """A SATA disk on ataPORT."""
        return self.disk(name, f"pci0000:00/ata{port}/host{port}/target{address}/{address}")

    def nvme(self, controller: int, *namespaces: int) -> str:
        """An NVMe controller with its namespaces; the name of the first."""
        for number in namespaces:
            name = f"nvme{controller}n{number}"
            self._block(name, f"sys/devices/pci0000:00/nvme/nvme{controller}/{name}")
        self._link(f"sys/class/nvme/nvme{controller}", f"../../devices/pci0000:00/nvme/nvme{controller}")
        return f"nvme{controller}n{namespaces[0]}"

    def shared_nvme(self, controllers: tuple[int, ...], head: str) -> str:
        """A namespace that several controllers share: a hidden path under each, and one disk for all."""
        self._block(head, f"sys/devices/virtual/nvme-subsystem/nvme-subsys0/{head}")
        subsystem, number = head.removeprefix("nvme").split("n")
        for controller in controllers:
            path = f"nvme{subsystem}c{controller}n{number}"
            self._block(path, f"sys/devices/pci0000:00/nvme/nvme{controller}/{path}", node=False)
            self._link(f"sys/class/nvme/nvme{controller}", f"../../devices/pci0000:00/nvme/nvme{controller}")
        return head

    def partition(self, disk: str, number: int) -> str:
        """A partition; its kernel name."""
        name = f"{disk}p{number}" if disk[-1].isdigit() else f"{disk}{number}"
        whole = os.path.realpath(self.root / "sys/class/block" / disk)
        self._block(name, str(Path(whole, name).relative_to(os.path.realpath(self.root))))
        self._file(f"sys/class/block/{name}/partition", f"{number}\n")
        return name

    def mapped(self, name: str, *below: str, uuid: str = "LVM-x") -> str:
        """A device of device mapper over others; its kernel name."""
        dm, self._dm = f"dm-{self._dm}", self._dm + 1
        self._block(dm, f"sys/devices/virtual/block/{dm}")
        self._file(f"sys/class/block/{dm}/dm/name", f"{name}\n")
        self._file(f"sys/class/block/{dm}/dm/uuid", f"{uuid}\n")
        for part in below:
            self._link(f"sys/devices/virtual/block/{dm}/slaves/{part}", f"../../../../../class/block/{part}")
        self._link(f"dev/mapper/{name}", f"../{dm}")
        return dm

    def volume(self, group: str, volume: str, *below: str) -> str:
        """A logical volume; its path as ceph-volume links it."""
        dm = self.mapped(f"{group.replace('-', '--')}-{volume.replace('-', '--')}", *below)
        self._link(f"dev/{group}/{volume}", f"../{dm}")
        return f"/dev/{group}/{volume}"

    def by_id(self, name: str, device: str) -> str:
        """udev's link to a device; its path."""
        self._link(f"dev/disk/by-id/{name}", f"../../{device}")
        return f"/dev/disk/by-id/{name}"

    def osd(self, osd: int, *, cluster: str = "ceph", fsid: str = "", **links: str) -> Path:
        """An OSD's folder, cephadm's with `fsid`. `block`, `db`, `wal` and `journal` name what they link to."""
        folder = f"var/lib/ceph/{fsid}/osd.{osd}" if fsid else f"var/lib/ceph/osd/{cluster}-{osd}"
        (self.root / folder).mkdir(parents=True)
        for role, target in links.items():
            self._link(f"{folder}/{f'block.{role}' if role in ('db', 'wal') else role}", target)
        return self.root / folder

    def mount(self, device: str, point: str) -> None:
        """A line in the table of mounts."""
        table = self.root / "proc/self/mounts"
        table.parent.mkdir(parents=True, exist_ok=True)
        with table.open("a") as file:
            file.write(f"{device} {point} xfs rw,noatime 0 0\n")

    def _block(self, name: str, where: str, *, node: bool = True) -> None:
        (self.root / where).mkdir(parents=True)
        self._link(f"sys/class/block/{name}", f"../../../{where}")
        if node:
            self._file(f"dev/{name}", "")

    def _file(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def _link(self, path: str, target: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        if not (self.root / path).is_symlink():
            (self.root / path).symlink_to(target)
