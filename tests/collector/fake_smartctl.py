"""A real executable in smartctl's place: it serves what real drives said, and misbehaves as real ones do.

The answers are the real outputs in tests/data/smart/samples, given a serial number and the current time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.processes import ends

SAMPLES = Path(__file__).parents[1] / "data" / "smart" / "samples"

How = Literal[
    "answer", "asleep", "gone", "hang", "stubborn", "garbage", "endless", "vanish", "slow", "orphan", "mute"
]
"""asleep: in standby. gone: cannot be opened. stubborn: hangs and ignores SIGTERM. vanish: smartctl dies.
orphan: answers, and leaves a child behind that holds the pipe. mute: says nothing and exits with 0."""

_SCRIPT = """#!/bin/sh
here='{here}'
printf '%s\\n' "$*" >> "$here/asked"
scan= json=text text= kind=auto path= test=
while [ $# -gt 0 ]; do
  case "$1" in
    --scan-open) scan=open ;;
    --scan) scan=plain ;;
    --json=*o*) json=json text=.text ;;
    --json*) json=json ;;
    -d) shift; kind=$1 ;;
    -n) shift ;;
    -t) shift; test=$1 ;;
    -X) test=abort ;;
    -*) ;;
    *) path=$1 ;;
  esac
  shift
done
if [ -n "$scan" ]; then
  [ -e "$here/$scan.hangs" ] && exec sleep 1000
  cat "$here/$scan.$json"
  exit 0
fi
disk="$here/disks/$(printf '%s %s' "$path" "$kind" | tr '/ ,+' '____')"
how=gone
[ -d "$disk" ] && read -r how < "$disk/how"
case "$how" in
  hang) echo $$ >> "$here/hung"; exec sleep 1000 ;;
  stubborn) echo $$ >> "$here/hung"; trap '' TERM INT HUP; while :; do sleep 1; done ;;
  garbage) printf '\\000\\377}}{{not json' ; exit 0 ;;
  endless) exec yes '{{"json_format_version":' ;;
  vanish) kill -9 $$ ;;
  slow) sleep 0.4 ;;
  orphan) sleep 1000 & ;;
  mute) exit 0 ;;
  asleep) cat "$here/asleep.json"; exit 3 ;;
  gone) sed "s,@PATH@,$path," "$here/gone.json"; exit 2 ;;
esac
if [ -n "$test" ]; then
  if [ -e "$disk/untested" ]; then cat "$disk/untested"; exit 4; fi
  state=idle
  [ "$test" = abort ] || state=running
  for form in "" .text; do cp "$disk/$state$form" "$disk/answer$form"; done
  echo '{{"smartctl":{{"exit_status":0}}}}'
  exit 0
fi
sed "s/\\"@NOW@\\"/$(date +%s)/" "$disk/answer$text"
read -r status < "$disk/status"
exit "$status"
"""


@dataclass(frozen=True, slots=True)
class Disk:
    """One drive as smartctl finds it."""

    path: str
    type: str = "sat"
    sample: str = "ata-001"
    serial: str | None = None
    """None: as in the sample."""
    wwn: int | None = None
    """The drive's own part of its WWN (ATA) or the whole (SCSI); None: as in the sample."""
    how: How = "answer"
    listed: bool = True
    """True if a scan lists the drive; drives behind cciss and areca are not listed."""
    text: tuple[str, ...] = ()
    """Lines of smartctl's text, which come along with `--json=o`."""
    lacks: tuple[str, ...] = ()
    """Keys of the sample that it does not tell."""
    local_time: int | None = None
    """None: the time when smartctl runs."""


class FakeSmartctl:
    """The executable `program` in `folder`, and the drives that it finds."""

    def __init__(self, folder: Path, disks: Iterable[Disk]) -> None:
        self._here = folder
        self._disks: dict[tuple[str, str], Disk] = {}
        (folder / "disks").mkdir(parents=True)
        for name, status, severity, words in (
            ("asleep", 3, "information", "Device is in STANDBY mode, exit(3)"),
            ("gone", 2, "error", "Smartctl open device: @PATH@ failed: No such device"),
        ):
            said = {"exit_status": status, "messages": [{"string": words, "severity": severity}]}
            (folder / f"{name}.json").write_text(json.dumps({"smartctl": said}))
        self._program = folder / "smartctl"
        self._program.write_text(_SCRIPT.format(here=folder))
        self._program.chmod(0o755)
        self.plug(*disks)

    @property
    def program(self) -> str:
        """Absolute path."""
        return str(self._program)

    @property
    def disks(self) -> Sequence[Disk]:
        """Return the drives that are plugged in."""
        return tuple(self._disks.values())

    def plug(self, *disks: Disk) -> None:
        """Add drives, or change those that are there."""
        for disk in disks:
            self._disks[disk.path, disk.type] = disk
            folder = self._folder(disk.path, disk.type)
            folder.mkdir(exist_ok=True)
            answer = answer_of(disk)
            program = {**answer.get("smartctl", {}), "output": list(disk.text)}
            for name, told in (
                ("answer", answer),
                ("idle", answer),
                ("running", _while_it_is_tested(answer)),
            ):
                (folder / name).write_text(json.dumps(told))
                (folder / f"{name}.text").write_text(json.dumps({**told, "smartctl": program}))
            (folder / "status").write_text(f"{answer.get('smartctl', {}).get('exit_status', 0)}\n")
            (folder / "how").write_text(f"{disk.how}\n")
            for kind in (
                "auto",
                "sat",
            ):  # what smartctl detects by itself, and what the kernel may know better
                if not (other := self._folder(disk.path, kind)).exists():
                    other.symlink_to(folder)
        self._list()

    def unplug(self, path: str, type: str = "sat") -> None:  # noqa: A002 - smartctl's word
        """Take a drive away."""
        del self._disks[path, type]
        (self._folder(path, type) / "how").write_text("gone\n")
        self._list()

    def end_test(self, path: str, type: str = "sat") -> None:  # noqa: A002
        """Let the test of a drive end; its log stays as it is in the sample."""
        folder = self._folder(path, type)
        for form in ("", ".text"):
            (folder / f"answer{form}").write_text((folder / f"idle{form}").read_text())

    def refuse_tests(self, path: str, words: str, type: str = "sat") -> None:  # noqa: A002
        """Let smartctl refuse every test of a drive from now on, with `words` as its message."""
        said = {"exit_status": 4, "messages": [{"string": words, "severity": "error"}]}
        (self._folder(path, type) / "untested").write_text(json.dumps({"smartctl": said}))

    def is_tested(self, path: str, type: str = "sat") -> bool:  # noqa: A002
        """Return True if a self-test runs on a drive."""
        folder = self._folder(path, type)
        return (folder / "answer").read_text() == (folder / "running").read_text()

    def hang_scan(self, *, opened: bool, unopened: bool = False) -> None:
        """Let `--scan-open` or `--scan` hang from now on."""
        for name, hangs in (("open", opened), ("plain", unopened)):
            mark = self._here / f"{name}.hangs"
            mark.touch() if hangs else mark.unlink(missing_ok=True)

    def list_also(self, *entries: dict[str, str]) -> None:
        """Add raw entries to the list of `--scan-open --json`."""
        self._list(entries)

    def asked(self) -> list[str]:
        """The arguments of every run so far."""
        log = self._here / "asked"
        return log.read_text().splitlines() if log.exists() else []

    def hanging(self) -> int:
        """Return the number of hanging runs that have not ended, after waiting for the end of each."""
        hung = self._here / "hung"
        numbers = hung.read_text().split() if hung.exists() else []
        return sum(not ends(int(number)) for number in numbers)

    def _folder(self, path: str, type: str) -> Path:  # noqa: A002
        name = f"{path} {type}"
        return self._here / "disks" / "".join("_" if letter in "/ ,+" else letter for letter in name)

    def _list(self, also: Iterable[dict[str, str]] = ()) -> None:
        listed = [disk for disk in self._disks.values() if disk.listed]
        opened = [_entry(disk, disk.type) for disk in listed]
        plain = [_entry(disk, "scsi" if disk.path.startswith("/dev/sd") else disk.type) for disk in listed]
        for name, entries in (("open", [*opened, *also]), ("plain", plain)):
            document: dict[str, Any] = {"smartctl": {"version": [7, 3], "exit_status": 0}}
            if entries:
                document["devices"] = entries
            (self._here / f"{name}.json").write_text(json.dumps(document))
            lines = [f"{each['name']} -d {each['type']} # {each['name']}, device\n" for each in entries]
            (self._here / f"{name}.text").write_text("".join(lines))


def _entry(disk: Disk, kind: str) -> dict[str, str]:
    entry = {"name": disk.path, "info_name": disk.path, "type": kind}
    return entry | ({"open_error": "No such device"} if disk.how == "gone" else {})


def answer_of(disk: Disk) -> dict[str, Any]:
    """Return the document that smartctl prints of a drive, with `"@NOW@"` in place of the time."""
    answer: dict[str, Any] = json.loads((SAMPLES / f"{disk.sample}.json").read_bytes())
    answer = {key: value for key, value in answer.items() if key not in disk.lacks}
    answer["device"] = {**answer.get("device", {}), "name": disk.path, "type": disk.type}
    answer["local_time"] = {"time_t": "@NOW@" if disk.local_time is None else disk.local_time}
    if disk.serial is not None:
        answer["serial_number"] = disk.serial
    if disk.wwn is not None and "wwn" in answer:
        answer["wwn"] = {"naa": 5, "oui": 3152, "id": disk.wwn}
    elif disk.wwn is not None:
        answer["logical_unit_id"] = f"0x{disk.wwn:016x}"
    return answer


def _while_it_is_tested(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the document that smartctl prints while a short test runs, with 90 % of the test remaining."""
    if answer.get("device", {}).get("protocol") == "NVMe":
        now = {"current_self_test_operation": {"value": 1}, "current_self_test_completion_percent": 10}
        return {**answer, "nvme_self_test_log": {**answer.get("nvme_self_test_log", {}), **now}}
    data = answer.get("ata_smart_data", {})
    status = {"value": 249, "string": "in progress", "remaining_percent": 90}
    return {
        **answer,
        "ata_smart_data": {**data, "self_test": {**data.get("self_test", {}), "status": status}},
    }


def every_kind() -> list[Disk]:
    """24 drives on every kind of way in, all answering; two of them with a verdict FAILED or grown defects."""
    sata = ("ata-001", "ata-026", "ata-046", "ata-053", "ata-070", "ata-040", "ata-009", "ata-012", "ata-034")
    sas = ("scsi-001", "scsi-003", "scsi-006")
    nvme = ("nvme-003", "nvme-004", "nvme-022", "nvme-025")
    hidden = (("/dev/bus/0", "megaraid,8", "ata-017"), ("/dev/bus/0", "megaraid,9", "ata-055"))
    slots = (("/dev/sg3", "cciss,0", "scsi-010"), ("/dev/sg7", "areca,2", "ata-059"))
    usb = (("/dev/sdy", "usbjmicron", "ata-052"), ("/dev/sdz", "sntasmedia", "nvme-012"))
    jbod = (("/dev/sdx", "sat", "ata-067"), ("/dev/sdw", "sat", "ata-030"))
    found = [
        *((f"/dev/sd{'abcdefghi'[i]}", "sat", sample) for i, sample in enumerate(sata)),
        *((f"/dev/sd{'jkl'[i]}", "scsi", sample) for i, sample in enumerate(sas)),
        *((f"/dev/nvme{i}", "nvme", sample) for i, sample in enumerate(nvme)),
        *hidden, *slots, *usb, *jbod,
    ]  # fmt: skip
    return [
        Disk(path, kind, sample, f"FAKE{i:04d}", 1000 + i, listed=(path, kind, sample) not in slots)
        for i, (path, kind, sample) in enumerate(found)
    ]


def plant_controllers(root: Path) -> None:
    """The /sys of a host with a Smart Array at /dev/sg3 and an Areca at /dev/sg7, for `every_kind`."""
    for number, host, driver, kind in ((3, 1, "hpsa", 12), (4, 1, "hpsa", 0), (7, 2, "arcmsr", 3)):
        device = root / f"sys/devices/host{host}/target{host}:0:{number}/{host}:0:{number}:0"
        device.mkdir(parents=True)
        (device / "type").write_text(f"{kind}\n")
        generic = root / f"sys/class/scsi_generic/sg{number}"
        generic.mkdir(parents=True)
        (generic / "device").symlink_to(device)
        card = root / f"sys/class/scsi_host/host{host}"
        card.mkdir(parents=True, exist_ok=True)
        (card / "proc_name").write_text(f"{driver}\n")


def plant_vendor(root: Path, block: str, vendor: str) -> None:
    """Write the vendor that the disk `block` answered to the kernel's INQUIRY into the /sys below `root`."""
    device = root / "sys/block" / block / "device"
    device.mkdir(parents=True, exist_ok=True)
    (device / "vendor").write_text(f"{vendor}\n")


def plant_wwid(root: Path, block: str, wwid: str) -> None:
    """Write the WWID by which the kernel of a host names the disk `block` into the /sys below `root`."""
    device = root / "sys/block" / block / "device"
    device.mkdir(parents=True, exist_ok=True)
    (device / "wwid").write_text(f"{wwid}\n")
