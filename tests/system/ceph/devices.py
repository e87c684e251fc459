"""Disks for test OSDs: loop devices with an identity (read by libudev) and a smartctl answer."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any


class Devices:
    """Loop devices by OSD number. A file in the folder lists the devices, so that `sweep` can free them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        kept = folder / "loops.json"
        self._loops: dict[str, str] = json.loads(kept.read_text()) if kept.exists() else {}

    def attach(self, osd: int, size: int) -> str:
        """A loop device of `size` bytes on a sparse file; its path."""
        backing = self._folder / "osd" / f"{osd}.disk"
        with backing.open("wb") as disk:
            disk.truncate(size)
        found = subprocess.run(
            ["losetup", "--find", "--show", str(backing)], check=True, capture_output=True, text=True
        )
        self._loops[str(osd)] = found.stdout.strip()
        (self._folder / "loops.json").write_text(json.dumps(self._loops))
        return self._loops[str(osd)]

    def attached(self) -> list[str]:
        """All loop devices of the cluster."""
        return list(self._loops.values())

    def describe(self, osd: int, model: str, serial: str, smart: dict[str, Any] | None) -> None:
        """Set the answers that udev and smartctl give about the OSD's device from now on."""
        loop = Path(self._loops[str(osd)]).name
        serial = serial or f"Z{osd:07d}"
        known = {"ID_MODEL": model.replace(" ", "_"), "ID_SERIAL_SHORT": serial}
        known["ID_SERIAL"] = f"{known['ID_MODEL']}_{serial}"
        number = Path("/sys/block", loop, "dev").read_text().strip()
        lines = "".join(f"E:{name}={value}\n" for name, value in known.items())
        (self._folder / "udev/data" / f"b{number}").write_text(f"I:1\n{lines}")
        answer = smart if smart is not None else healthy(f"/dev/{loop}", model, serial, osd)
        (self._folder / "smart" / f"{loop}.json").write_text(json.dumps(answer))


def healthy(device: str, model: str, serial: str, osd: int) -> dict[str, Any]:
    """smartctl's JSON of a drive with nothing wrong."""
    raw = {"value": osd, "string": str(osd)}
    sectors = {"id": 5, "name": "Reallocated_Sector_Ct", "value": 100, "worst": 100, "thresh": 10, "raw": raw}
    return {
        "json_format_version": [1, 0],
        "device": {"name": device, "type": "sat", "protocol": "ATA"},
        "model_name": model,
        "serial_number": serial,
        "smart_status": {"passed": True},
        "power_on_time": {"hours": 1000 + osd},
        "ata_smart_attributes": {"revision": 16, "table": [sectors]},
    }


def write_programs(folder: Path, inside: Path) -> None:
    """sudo and smartctl as an OSD calls them; the answer comes from smart/DEVICE.json."""
    answer = f'for each in "$@"; do device=$each; done; cat "{inside}/smart/${{device##*/}}.json"'
    for name, text in {"sudo": 'exec "$@"', "smartctl": answer}.items():
        file = folder / "bin" / name
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
