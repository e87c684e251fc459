"""The drives of one host, which grow older and sicker, hang and die; and the record of all that they ever said.

The drives are the real outputs behind `tests.collector.fake_smartctl`. A program around that fake keeps every document
before the document is printed: a document that is not in `served` was not printed for any drive of this host.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from predrain.collector.disks.process import ProcessResult
from predrain.collector.disks.smartctl_result import interpret_smartctl_run
from predrain.data.ids import DeviceId
from predrain.data.reading import Smart
from predrain.data.smart import SmartDocument
from tests.collector.fake_smartctl import SAMPLES, Disk, FakeSmartctl, How

KINDS = (
    ("sd", "sat", "ata-001"), ("sd", "sat", "ata-053"), ("sd", "sat", "ata-026"), ("sd", "scsi", "scsi-001"),
    ("sd", "scsi", "scsi-003"), ("nvme", "nvme", "nvme-022"), ("nvme", "nvme", "nvme-025"), ("sd", "sat", "ata-012"),
)  # fmt: skip
SICK_SHARE = 0.2
MISBEHAVIOURS: tuple[How, ...] = ("hang", "stubborn", "garbage", "vanish", "gone", "asleep", "slow")
MISBEHAVES, RECOVERS = 0.02, 0.3
"""Chances each time that a drive ages."""
_PENDING = (5, 187, 197, 198)
# The collector runs smartctl with a PATH of its own, so this script sets PATH again: the fake gets the host's time from
# the `date` in the folder `bin`.
_WITNESS = """#!/bin/sh
PATH='{here}/bin':/usr/bin:/bin
case "$*" in *-x*) ;; *) exec '{fake}' "$@" ;; esac
part='{served}'/$$.part
'{fake}' "$@" > "$part"
status=$?
whole='{served}'/$$-$(/usr/bin/date +%s%N).$status
mv "$part" "$whole"
cat "$whole"
exit "$status"
"""
_DATE = """#!/bin/sh
exec /usr/bin/date -d "$(cat '{shift}') seconds" "$@"
"""


class Cabinet:
    """`count` drives whose serial numbers begin with `name`. `shift` holds by how many seconds its clock is wrong."""

    def __init__(self, folder: Path, name: str, count: int, random: Random) -> None:
        self._random, self._folder = random, folder
        self.shift = folder / "shift"
        self.shift.write_text("0")
        self._served, self._samples = folder / "served", folder / "samples"
        for part in (self._served, self._samples, folder / "bin"):
            part.mkdir()
        self._sick = {number for number in range(count) if random.random() < SICK_SHARE}
        self._ages = [0] * count
        self._drives = [self._made(name, number) for number in range(count)]
        self._fake = FakeSmartctl(folder / "fake", self._drives)
        self.program = folder / "smartctl"
        words = {"here": folder, "fake": self._fake.program, "served": self._served, "shift": self.shift}
        for path, script in ((self.program, _WITNESS), (folder / "bin/date", _DATE)):
            path.write_text(script.format(**words))
            path.chmod(0o755)

    def age(self, share: float = 0.5) -> None:
        """Some drives are older now: every document of theirs is another one. Few begin or cease to misbehave."""
        for number, drive in enumerate(self._drives):
            if self._random.random() >= share:
                continue
            self._ages[number] += 1
            how = drive.how
            if how == "answer" and self._random.random() < MISBEHAVES:
                how = self._random.choice(MISBEHAVIOURS)
            elif how != "answer" and self._random.random() < RECOVERS:
                how = "answer"
            self._drives[number] = replace(drive, sample=self._sample(number), how=how)
            self._fake.plug(self._drives[number])

    def said(self) -> Iterator[tuple[DeviceId, Smart]]:
        """Every drive's state that was ever printed, as the collector decodes it."""
        for path in self._served.iterdir():
            if path.suffix == ".part":
                continue  # ended before it was printed
            seen = interpret_smartctl_run(ProcessResult(int(path.suffix[1:]), path.read_bytes()))
            if isinstance(seen, SmartDocument) and seen.device_id is not None:
                yield seen.device_id, seen.smart

    @property
    def documents(self) -> int:
        """Return the number of documents that were printed."""
        return sum(path.suffix != ".part" for path in self._served.iterdir())

    def close(self) -> None:
        """End the runs of smartctl that still hang because the collector that started them was killed."""
        hung = self._folder / "fake" / "hung"
        for pid in hung.read_text().split() if hung.exists() else ():
            with suppress(OSError):
                told = Path("/proc", pid, "cmdline").read_bytes()
                if told == b"sleep\x001000\x00" or str(self._folder).encode() in told:
                    os.kill(int(pid), signal.SIGKILL)

    def _made(self, name: str, number: int) -> Disk:
        block, kind, _ = KINDS[number % len(KINDS)]
        # No real machine that this runs on has so many disks: the kernel knows nothing of these.
        path = f"/dev/nvme{100 + number}" if block == "nvme" else f"/dev/sdz{chr(97 + number)}"
        return Disk(path, kind, self._sample(number), f"{name}D{number:03d}", 0x100 + number)

    def _sample(self, number: int) -> str:
        """The drive's present state as the name of a sample."""
        age, worse = self._ages[number], 8 * self._ages[number] if number in self._sick else 0
        answer: dict[str, Any] = json.loads((SAMPLES / f"{KINDS[number % len(KINDS)][2]}.json").read_bytes())
        power_on = answer.setdefault("power_on_time", {"hours": 1000})
        power_on["hours"] += age
        for row in answer.get("ata_smart_attributes", {}).get("table", ()):
            grown = age if row["id"] == 9 else worse if row["id"] in _PENDING else 0
            count = row["raw"]["value"] + grown
            row["raw"] = {"value": count, "string": str(count)} if grown else row["raw"]
        if "nvme_smart_health_information_log" in answer:
            log = answer["nvme_smart_health_information_log"]
            log["power_on_hours"], log["media_errors"] = power_on["hours"], log["media_errors"] + worse
        if "scsi_grown_defect_list" in answer:
            answer["scsi_grown_defect_list"] += worse
        if worse > 100:
            answer["smart_status"]["passed"] = False
        path = self._samples / f"{number:03d}.json"
        path.write_text(json.dumps(answer))
        return str(path.with_suffix(""))
