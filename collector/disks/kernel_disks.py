"""The kernel's own knowledge of the disks, read from /sys: no disk is asked, so none can hang the collector."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from predrain.collector.disks.smartctl import DiskPath
from predrain.data.ids import DeviceId

_CONTROLLER = re.compile(r"nvme\d+")
_NAMESPACE = re.compile(r"(nvme\d+)(?:c\d+)?(n\d+)")
_LONGEST_ID = 256
_MOST_NOTED = 1 << 16
_DISK = "0"  # SPC-5: peripheral device type of a block device

_CCISS_SLOTS = range(32)
_ARECA_SLOTS = range(1, 25)
_ARECA_ENCLOSURES = range(1, 5)


def block_names(spot: DiskPath, root: Path) -> tuple[str, ...]:
    """Return the kernel names of the block devices of a disk: `sda`, or the namespaces of an NVMe controller.

    Return () for a drive behind a RAID controller: the block device there is the volume, not the drive.
    """
    if spot.is_behind_controller:
        return ()
    device = root / spot.path.lstrip("/")
    name = (device.resolve() if device.is_symlink() else device).name
    if not _CONTROLLER.fullmatch(name):
        return (name,)
    # When a drive dropped off the bus and came back, its namespace keeps the number of its earlier
    # controller.
    for folder, names in ((f"sys/class/nvme/{name}", "nvme*"), ("sys/block", f"{name}n*")):
        found = (_NAMESPACE.fullmatch(path.name) for path in (root / folder).glob(names))
        if blocks := {match[1] + match[2] for match in found if match}:
            return tuple(sorted(blocks))
    return (f"{name}n1",)


def kernel_id(spot: DiskPath, root: Path) -> str | None:
    """Return the identifier that the kernel stored when the disk appeared (`naa.5000c500a1b2c3d4`), or None.

    The identifier shows whether a disk that hangs is still the one that was read at its place: letters change on a
    reboot.
    """
    for name in block_names(spot, root):
        for attribute in ("wwid", "device/wwid"):
            try:
                told = (root / "sys/block" / name / attribute).read_bytes()[:_LONGEST_ID]
            except OSError:
                continue
            if words := " ".join(told.decode("utf-8", "replace").replace("\0", " ").split()):
                return words
    return None


def is_sata(spot: DiskPath, root: Path) -> bool:
    """Return whether the kernel found a SATA drive there: INQUIRY's vendor is then `ATA` (SAT-4, 8.2)."""
    for name in block_names(spot, root):
        with contextlib.suppress(OSError):
            return (root / "sys/block" / name / "device/vendor").read_bytes()[:_LONGEST_ID].strip() == b"ATA"
    return False


def translated_names(spots: Iterable[DiskPath], root: Path) -> Mapping[str, DeviceId]:
    """Return by serial number the device id that Ceph gives a SATA drive which udev knows from the SCSI layer alone.

    With the udev rules of sg3_utils the id has the model that fits into INQUIRY. Source: ceph src/common/blkdev.cc
    `get_device_id`; udev keeps its properties of a device in /run/udev/data.
    """
    found: dict[str, DeviceId] = {}
    for name in dict.fromkeys(name for spot in spots for name in block_names(spot, root)):
        with contextlib.suppress(OSError, ValueError):
            number = (root / "sys/block" / name / "dev").read_text().strip()
            with (root / "run/udev/data" / f"b{number}").open("rb") as file:
                noted = file.read(_MOST_NOTED).decode("utf-8", "replace").splitlines()
            pairs = (line[2:].partition("=") for line in noted if line.startswith("E:"))
            told = {key: value for key, _, value in pairs}
            model, serial = told.get("ID_MODEL", "").strip(), " ".join(told.get("ID_SCSI_SERIAL", "").split())
            if told.get("ID_VENDOR", "").strip() == "ATA" and model and serial:
                found[serial] = DeviceId(f"ATA_{model}_{serial.replace(' ', '_')}")
    return found


def list_raid_slots(root: Path) -> tuple[DiskPath, ...]:
    """List the places behind RAID controllers that `smartctl --scan` does not cover.

    Source: smartctl(8), `-d cciss,N` and `-d areca,N[/E]`; megaraid is scanned by smartctl itself.
    """
    found: list[DiskPath] = []
    for path, driver in _list_controllers(root):
        if driver in ("hpsa", "smartpqi", "cciss"):
            found.extend(DiskPath(path, f"cciss,{slot}") for slot in _CCISS_SLOTS)
        elif driver == "arcmsr":
            found.extend(DiskPath(path, f"areca,{slot}") for slot in _ARECA_SLOTS)
            found.extend(
                DiskPath(path, f"areca,{slot}/{box}") for box in _ARECA_ENCLOSURES for slot in _ARECA_SLOTS
            )
    return tuple(found)


def _list_controllers(root: Path) -> Iterator[tuple[str, str]]:
    """Yield (generic SCSI device, driver) of each SCSI host: the controller's own device before those
    of its volumes.
    """
    found: dict[str, tuple[bool, int, str]] = {}
    for generic in (root / "sys/class/scsi_generic").glob("sg*"):
        try:
            # `device` is a link to a folder named HOST:CHANNEL:TARGET:LUN.
            host = (generic / "device").resolve().name.split(":")[0]
            volume = (generic / "device/type").read_text().strip() == _DISK
            place = (volume, int(generic.name.removeprefix("sg")), host)
        except (OSError, ValueError):
            continue
        found[host] = min(found.get(host, place), place)
    for _, number, host in sorted(found.values()):
        with contextlib.suppress(OSError, ValueError):
            driver = (root / f"sys/class/scsi_host/host{host}/proc_name").read_text().strip()
            yield f"/dev/sg{number}", driver
