"""OSDs whose folders are not here name their disks themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from predrain.collector.osd_devices import named_disks, seat_map
from predrain.data.ids import OsdKey
from tests.collector.latency.fake_osd import FakeOsd, garbage
from tests.collector.osd_devices.device_rows import FSID, OTHER, data, key
from tests.collector.osd_devices.fake_host import FakeHost

ONE, TWO = key(1), key(2)
DISK = b'[{"device":"/dev/sda","device_id":"MINI_HDD4T_Z0000000"}]'
"""As Pacific, Reef and Tentacle say it."""


@pytest.fixture
def osds(tmp_path: Path) -> Iterator[dict[OsdKey, FakeOsd]]:
    made = {osd: FakeOsd(tmp_path / f"{osd.osd}", {"list_devices": DISK}) for osd in (ONE, TWO)}
    yield made
    for one in made.values():
        one.stop()


def test_an_osd_names_its_disks_and_one_that_does_not_is_left_out(osds: dict[OsdKey, FakeOsd]) -> None:
    sockets = {one.path: osd for osd, one in osds.items()}
    assert named_disks(sockets) == {ONE: ("/dev/sda",), TWO: ("/dev/sda",)}
    osds[TWO].fault = garbage
    assert named_disks(sockets) == {ONE: ("/dev/sda",)}
    osds[ONE].stop()
    assert named_disks(sockets) == {}


def test_an_osd_names_its_cluster_with_its_disks(osds: dict[OsdKey, FakeOsd]) -> None:
    """Rook's sockets lie in one folder, whose path names no cluster."""
    for osd, fsid in ((ONE, FSID), (TWO, OTHER)):
        osds[osd].answers["status"] = json.dumps({"cluster_fsid": fsid}).encode()
    sockets = {osds[ONE].path: key(3), osds[TWO].path: key(3)}
    assert named_disks(sockets) == {key(3, FSID): ("/dev/sda",), key(3, OTHER): ("/dev/sda",)}


def test_an_osd_without_a_folder_keeps_its_data_on_the_one_disk_that_it_names(host: FakeHost) -> None:
    volume = host.volume("vg", "block", host.disk("sda"))
    found = seat_map(host.root, named={ONE: ("/dev/dm-0", "/dev/sda"), TWO: (volume,)})
    assert found.find_osds_on("/dev/sda") == (data(1), data(2))
    assert found.osds == (ONE, TWO)
    assert found.trouble == ()


def test_an_osd_that_names_both_paths_of_one_disk_keeps_its_data_there(host: FakeHost) -> None:
    """Ceph follows device mapper down to the disks (blkdev.cc, `get_raw_devices`)."""
    host.mapped("mpatha", host.disk("sda"), host.disk("sdq"), uuid="mpath-35000c500")
    found = seat_map(host.root, named={ONE: ("/dev/sda", "/dev/sdq")})
    assert found.find_osds_on("/dev/sda") == found.find_osds_on("/dev/sdq") == (data(1),)
    assert found.trouble == ()


def test_an_osd_that_names_two_disks_is_not_guessed_at(host: FakeHost) -> None:
    named = {ONE: (f"/dev/{host.disk('sda')}", f"/dev/{host.disk('sdb')}")}
    found = seat_map(host.root, named=named)
    assert found.osds == ()
    assert "osd.1 lies on sda and sdb, and which of them holds its data nobody tells" in found.trouble[0]


def test_the_link_of_an_osd_wins_over_what_it_names(host: FakeHost) -> None:
    host.osd(1, block=f"/dev/{host.disk('sda')}")
    host.disk("sdb")
    assert seat_map(host.root, named={ONE: ("/dev/sdb",)}).find_osds_on("/dev/sdb") == ()
