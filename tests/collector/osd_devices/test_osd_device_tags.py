"""OSDs that are not activated: their folders are empty or lead nowhere, and LVM knows where they lie."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from predrain.collector.osd_devices import VolumeTags, seat_map
from predrain.collector.osd_devices.volume_tags import ASKED, LVS
from predrain.data.reading import Role
from tests.collector.osd_devices.device_rows import FSID, data, disks, key
from tests.collector.osd_devices.fake_host import FakeHost

NOT_ACTIVE = (Path(__file__).parent / "samples" / "lvs-not-active.json").read_bytes()
"""The output of lvs 2.03.16 for an OSD with its data on /dev/loop0 and its DB on /dev/loop1."""
DOUBT = frozenset({"/var/lib/ceph/osd/ceph-3"})


def test_an_encrypted_osd_that_was_stopped_is_seated_by_the_volume_beneath(host: FakeHost) -> None:
    """cephadm closes it with `ceph-volume lvm deactivate` and leaves the link, which names the volume's UUID."""
    host.mapped(
        "ceph--93550251-osd--block--dbe407e0",
        host.disk("sdb"),
        uuid="LVM-zAslgQB0hhe1DLSPfDj3vtrxHmOFnGHhX39WpsQewqd8LVkj2pZqC3IFQnC35sV7",
    )
    host.osd(3, fsid=FSID, block="/dev/mapper/X39Wps-Qewq-d8LV-kj2p-ZqC3-IFQn-C35sV7")
    found = seat_map(host.root)
    assert found.find_osds_on("/dev/sdb") == (data(3, FSID),)
    assert (found.trouble, found.doubts) == ((), frozenset())


def test_an_osd_that_a_restart_of_the_host_left_unactivated_is_seated_by_its_tags(host: FakeHost) -> None:
    host.virtual("loop0")
    host.virtual("loop1")
    host.osd(3)
    assert seat_map(host.root).doubts == DOUBT
    found = seat_map(host.root, volumes=NOT_ACTIVE)
    assert disks(found, 3) == {Role.DATA: ["loop0"], Role.DB: ["loop1"]}
    assert found.doubts == frozenset()


def test_a_volume_of_ceph_on_a_disk_that_no_folder_tells_of_is_a_doubt(host: FakeHost) -> None:
    host.volume("ceph-9355", "osd-block-dbe4", host.disk("sdb"))
    host.osd(5, block=host.volume("ceph-1c2a", "osd-block-77aa", host.disk("sdc")))
    host.volume("system", "root", host.disk("sda"))
    assert seat_map(host.root).doubts == {"ceph--9355-osd--block--dbe4"}


class Lvs:
    """A program in the place of lvs, which writes down that it was asked."""

    def __init__(self, folder: Path) -> None:
        self.program, self._asked = folder / "lvs", folder / "asked"
        self.answer(f"cat '{folder}/told'")
        (folder / "told").write_bytes(NOT_ACTIVE)

    def answer(self, how: str) -> None:
        """A line of shell."""
        self.program.write_text(f"#!/bin/sh\necho \"$*\" >>'{self._asked}'\n{how}\n")
        self.program.chmod(0o755)

    @property
    def asked(self) -> list[str]:
        return self._asked.read_text().splitlines() if self._asked.exists() else []


@pytest.fixture
def lvs(tmp_path: Path) -> Lvs:
    return Lvs(tmp_path)


def test_lvm_is_asked_only_in_doubt_and_again_only_when_that_has_changed(lvs: Lvs) -> None:
    tags = VolumeTags(None, str(lvs.program))
    assert tags.read_lvm_tags(frozenset()) is None
    assert tags.read_lvm_tags(DOUBT) == tags.read_lvm_tags(DOUBT) == NOT_ACTIVE
    assert lvs.asked == [" ".join(ASKED)]
    tags.read_lvm_tags(DOUBT | {"osd.4"})
    assert len(lvs.asked) == 2
    assert tags.trouble == ()


def test_a_refusal_of_sudo_is_told_with_the_cure_and_not_provoked_again(lvs: Lvs) -> None:
    lvs.answer("echo 'sudo: a password is required' >&2; exit 1")
    tags = VolumeTags(str(lvs.program), str(lvs.program))
    assert tags.read_lvm_tags(DOUBT) is None
    assert tags.read_lvm_tags(DOUBT) is None
    assert len(lvs.asked) == 1
    assert "a password is required" in tags.trouble[0]
    assert "sudoers" in tags.trouble[0]


def test_an_lvm_that_hangs_costs_its_deadline_and_is_not_doubled(
    lvs: Lvs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("predrain.collector.osd_devices.volume_tags.SECONDS", 0.3)
    lvs.answer("exec sleep 1000")
    tags = VolumeTags(None, str(lvs.program))
    assert tags.read_lvm_tags(DOUBT) is None
    assert "did not answer" in tags.trouble[0]
    monkeypatch.undo()  # a program that answers may take long to start on a busy machine
    lvs.answer(f"cat '{lvs.program.parent}/told'")
    assert tags.read_lvm_tags(DOUBT) == NOT_ACTIVE
    assert tags.trouble == ()


def test_a_host_without_lvm_is_no_trouble(tmp_path: Path) -> None:
    tags = VolumeTags("/usr/bin/sudo", str(tmp_path / "lvs"))
    assert tags.read_lvm_tags(DOUBT) is None
    assert tags.trouble == ()


@pytest.fixture
def prepared(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Two loop devices, on which LVM keeps an OSD's data and DB with ceph-volume's tags; neither is active."""

    def run(*command: str) -> str:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def lvm(what: str, *arguments: str) -> None:
        run(what, "--driverloaded", "n", "-y", *arguments)

    loops: list[str] = []
    groups: list[str] = []
    try:
        for role in ("block", "db"):
            image = tmp_path / role
            image.touch()
            os.truncate(image, 64 << 20)
            loops.append(run("losetup", "--find", "--show", str(image)))
            lvm("vgcreate", f"ceph-predrain-{os.getpid()}-{role}", loops[-1])
            groups.append(f"ceph-predrain-{os.getpid()}-{role}")
            tags = ("ceph.osd_id=987654321", f"ceph.type={role}", f"ceph.cluster_fsid={FSID}")
            tagged = [part for tag in tags for part in ("--addtag", tag)]
            lvm("lvcreate", "-an", "-Wn", "-Zn", "-l", "4", "-n", f"osd-{role}", *tagged, groups[-1])
        yield loops[0], loops[1]
    finally:
        for group in groups:
            lvm("vgremove", "-ff", group)
        for loop in loops:
            run("losetup", "--detach", loop)


@pytest.mark.system
@pytest.mark.skipif(os.geteuid() != 0 or not Path(LVS).exists(), reason="asks the real LVM, as root")
def test_the_real_lvm_tells_an_osd_that_is_not_activated(prepared: tuple[str, str]) -> None:
    told = VolumeTags(None).read_lvm_tags(DOUBT)
    found = seat_map(volumes=told)
    data_disk, db_disk = (Path(loop).name for loop in prepared)
    assert dict(found.list_osd_disks(key(987654321))) == {Role.DATA: data_disk, Role.DB: db_disk}
