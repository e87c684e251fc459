"""An OSD's folder on a disk that answers no more: it delays its own look, once, and nothing else."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from predrain.collector.osd_devices import TimeoutRunner, seat_map
from predrain.data.reading import Role
from tests.collector.osd_devices.device_rows import data, disks, key
from tests.collector.osd_devices.fake_host import FakeHost
from tests.deadlines import idle_seconds

_DETACH = 2
FUSE = pytest.mark.skipif(
    os.geteuid() != 0 or not os.access("/dev/fuse", os.W_OK), reason="mounts a file system that hangs"
)


@contextmanager
def hung(folder: Path) -> Iterator[None]:
    """Mount a file system at `folder` whose server never answers: a process that lists it waits inside the kernel."""
    libc = ctypes.CDLL(None, use_errno=True)
    server = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={server},rootmode=40000,user_id=0,group_id=0".encode()
    try:
        if libc.mount(b"hung", os.fsencode(folder), b"fuse", 0, options):
            pytest.skip(f"no file system can be mounted: {os.strerror(ctypes.get_errno())}")
        yield
    finally:
        os.close(server)
        libc.umount2(os.fsencode(folder), _DETACH)


def filestore(host: FakeHost, osd: int, disk: str) -> Path:
    """A FileStore OSD: its folder is a mounted partition."""
    folder = host.osd(osd, journal=f"/dev/{host.partition(host.disk(disk), 2)}")
    host.mount(f"/dev/{host.partition(disk, 1)}", f"/var/lib/ceph/osd/ceph-{osd}")
    return folder


@FUSE
def test_a_folder_on_a_hung_disk_costs_its_own_deadline_once_and_keeps_its_seat(host: FakeHost) -> None:
    sick = filestore(host, 4, "sdb")
    filestore(host, 5, "sdc")
    host.osd(6, block=host.volume("vg", "lv", host.disk("sdd")))
    patience = TimeoutRunner(0.5)
    with hung(sick):
        began = idle_seconds()
        found = seat_map(host.root, patience=patience)
        assert idle_seconds() - began < 5
        assert found.osds == (key(4), key(5), key(6))
        assert found.find_osds_on("/dev/sdb") == (data(4),)
        assert disks(found, 5) == {Role.DATA: ["sdc"], Role.JOURNAL: ["sdc"]}
        assert (
            "osd.4: /var/lib/ceph/osd/ceph-4 does not answer; what is mounted there, /dev/sdb1"
            in found.trouble[0]
        )
        waiting = threading.active_count()
        for _ in range(3):
            assert seat_map(host.root, patience=patience).osds == (key(4), key(5), key(6))
        assert threading.active_count() == waiting, "it is not asked again while it hangs"


def test_a_look_that_hangs_is_neither_waited_for_again_nor_doubled_and_is_asked_when_it_came_back() -> None:
    answers = threading.Event()
    patience, looks = TimeoutRunner(0.05), list[int]()

    def look() -> str:
        looks.append(1)
        answers.wait()
        return "seen"

    assert patience.run_with_timeout("a", look) is None
    assert patience.run_with_timeout("a", look) is None
    assert patience.run_with_timeout("b", lambda: "another") == "another"
    assert len(looks) == 1
    answers.set()
    while patience.run_with_timeout("a", look) is None:
        pass
    assert len(looks) == 2
