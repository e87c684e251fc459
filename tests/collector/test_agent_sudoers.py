"""The one line of sudoers: it lets through what the collector runs, and nothing that writes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from predrain.collector.disks import DiskPath, Smartctl
from predrain.collector.osd_devices.volume_tags import ASKED, LVS

FILE = Path(__file__).resolve().parents[2] / "deploy" / "sudoers.d" / "predrain-collector"
SPOTS = (
    DiskPath("/dev/sda", "sat"),
    DiskPath("/dev/sda", "auto"),
    DiskPath("/dev/bus/0", "megaraid,8"),
    DiskPath("/dev/bus/0", "sat+megaraid,8"),
    DiskPath("/dev/sg3", "cciss,0"),
    DiskPath("/dev/sg7", "areca,2/1"),
    DiskPath("/dev/nvme0", "nvme"),
    DiskPath("/dev/sdz", "sntasmedia"),
    DiskPath("/dev/sdy", "usbjmicron,0"),
    DiskPath("/dev/disk/by-id/usb-WD_1:0@0", "sat"),
)


def allowed(*arguments: str, program: str = "/usr/sbin/smartctl", lines: int = 2) -> bool:
    """By the patterns of the file, as sudo matches them: against the arguments with blanks between."""
    (line,) = [line for line in FILE.read_text().splitlines() if line.startswith("ceph ")]
    patterns = re.findall(rf"{program} (\^.*?\$)(?:, |$)", line)
    assert len(patterns) == lines
    return any(re.search(re.sub(r"\\([,:=])", r"\1", pattern), " ".join(arguments)) for pattern in patterns)


def test_all_that_the_collector_runs_is_allowed() -> None:
    smartctl = Smartctl(sudo="/usr/bin/sudo")
    runs = [smartctl.list_opened(), smartctl.list_unopened()]
    runs += [run for spot in SPOTS for run in (smartctl.build_read_command(spot), smartctl.ask_name(spot))]
    for sudo, option, program, *arguments in runs:
        assert (sudo, option, program) == ("/usr/bin/sudo", "-n", "/usr/sbin/smartctl")
        assert allowed(*arguments), arguments


def test_lvm_may_be_asked_for_its_tags_and_for_nothing_else() -> None:
    assert allowed(*ASKED, program=LVS, lines=1)
    for more in (("--config", "devices/dir=/tmp"), ("-o", "all")):
        assert not allowed(*ASKED, *more, program=LVS, lines=1)


@pytest.mark.parametrize(
    "arguments",
    [
        "-s off /dev/sda",
        "-t long /dev/sda",
        "-x --json=co -n standby,3 -d sat -s off /dev/sda",
        "-x --json=co -n standby,3 -d sat /dev/sda -s off",
        "-x --json=co -n standby,3 -d sat /etc/shadow",
        "--scan-open --json=c -s off /dev/sda",
    ],
)
def test_what_writes_or_reads_elsewhere_is_not(arguments: str) -> None:
    assert not allowed(*arguments.split())


@pytest.mark.system
@pytest.mark.system
@pytest.mark.skipif(shutil.which("visudo") is None and "CI" not in os.environ, reason="needs sudo")
def test_sudo_can_read_the_file() -> None:
    subprocess.run(["visudo", "-cf", FILE], check=True, capture_output=True)
