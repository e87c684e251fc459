"""The lines of sudoers: they let through what the collector runs, and nothing that writes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from predrain.collector.disks import DiskPath, Smartctl
from predrain.collector.osd_devices.volume_tags import ASKED, LVS
from predrain.data.self_test import SelfTestKind

FILE = Path(__file__).resolve().parents[2] / "deploy" / "sudoers.d" / "predrain-collector"
REQUESTS = FILE.with_name("predrain-collector-requests")
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


def allowed(*arguments: str, program: str = "/usr/sbin/smartctl", lines: int = 2, file: Path = FILE) -> bool:
    """By the patterns of the file, as sudo matches them: against the arguments with blanks between."""
    rules = [line for line in file.read_text().splitlines() if line.startswith("ceph ")]
    patterns = [found for line in rules for found in re.findall(rf"{program} (\^.*?\$)(?:, |$)", line)]
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
def test_a_smartctl_command_that_writes_or_reads_another_file_is_not_allowed(arguments: str) -> None:
    assert not allowed(*arguments.split())


def test_the_second_file_allows_tests_and_lights_and_the_first_allows_neither() -> None:
    smartctl = Smartctl(sudo="/usr/bin/sudo")
    for spot in SPOTS:
        for command in (
            smartctl.build_test_command(spot, SelfTestKind.SHORT),
            smartctl.build_test_command(spot, SelfTestKind.LONG),
            smartctl.build_abort_command(spot),
        ):
            assert allowed(*command[3:], lines=1, file=REQUESTS), command
            assert not allowed(*command[3:])
    for verb in ("locate", "locate_off"):
        lit = ("--listed-only", f"{verb}=/dev/sdab")
        assert allowed(*lit, program="/usr/sbin/ledctl", lines=1, file=REQUESTS)


@pytest.mark.parametrize(
    "arguments",
    [
        "-t long --json=c -d sat -s off /dev/sda",
        "-t long --json=c -d sat /dev/sda -s off",
        "-t offline --json=c -d sat /dev/sda",
        "-t select,0-9 --json=c -d sat /dev/sda",
        "-s off /dev/sda",
        "-t short --json=c -d sat /etc/shadow",
    ],
)
def test_no_other_test_and_no_other_option_is_allowed_by_the_second_file(arguments: str) -> None:
    assert not allowed(*arguments.split(), lines=1, file=REQUESTS)


@pytest.mark.parametrize(
    "arguments", ["failure=/dev/sda", "--listed-only failure=/dev/sda", "--listed-only locate=/dev/../etc/x"]
)
def test_no_other_light_is_allowed(arguments: str) -> None:
    assert not allowed(*arguments.split(), program="/usr/sbin/ledctl", lines=1, file=REQUESTS)


@pytest.mark.system
@pytest.mark.parametrize("file", [FILE, REQUESTS], ids=lambda file: file.name)
@pytest.mark.skipif(shutil.which("visudo") is None and "CI" not in os.environ, reason="needs sudo")
def test_sudo_can_read_the_file(file: Path) -> None:
    subprocess.run(["visudo", "-cf", file], check=True, capture_output=True)
