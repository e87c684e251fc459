"""OSDs whose folders are not here name their disks themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from predrain.collector.osd_devices import named_disks, seat_map
from predrain.data.ids import OsdId
from tests.collector.latency.fake_osd import FakeOsd, garbage
from tests.collector.seats.fake_host import FakeHost
from tests.collector.seats.told import data

ONE, TWO = OsdId(1), OsdId(2)
DISK = b'[{"device":"/dev/sda","device_id":"MINI_HDD4T_Z0000000"}]'
"""As Pacific, Reef and Tentacle say it."""


@pytest.fixture
def osds(tmp_path: Path) -> Iterator[dict[OsdId, FakeOsd]]:
    made = {osd: FakeOsd(tmp_path / f"{osd}", {"list_devices": DISK}) for osd in (ONE, TWO)}
    yield made
    for one in made.values():
        one.stop()


def test_an_osd_names_its_disks_and_one_that_does_not_is_left_out(osds: dict[OsdId, FakeOsd]) -> None:
    sockets = {osd: one.path for osd, one in osds.items()}
    assert named_disks(sockets) == {ONE: ("/dev/sda",), TWO: ("/dev/sda",)}
    osds[TWO].fault = garbage
    assert named_disks(sockets) == {ONE: ("/dev/sda",)}
    osds[ONE].stop()
    assert named_disks(sockets) == {}


def test_an_osd_without_a_folder_keeps_its_data_on_the_one_disk_that_it_names(host: FakeHost) -> None:
    volume = host.volume("vg", "block", host.disk("sda"))
    found = seat_map(host.root, named={ONE: ("/dev/dm-0", "/dev/sda"), TWO: (volume,)})
    assert found.of("/dev/sda") == (data(1), data(2))
    assert found.osds == (1, 2)
    assert found.trouble == ()


def test_an_osd_that_names_both_paths_of_one_disk_keeps_its_data_there(host: FakeHost) -> None:
    """Ceph follows device mapper down to the disks (blkdev.cc, `get_raw_devices`)."""
    host.mapped("mpatha", host.disk("sda"), host.disk("sdq"), uuid="mpath-35000c500")
    found = seat_map(host.root, named={ONE: ("/dev/sda", "/dev/sdq")})
    assert found.of("/dev/sda") == found.of("/dev/sdq") == (data(1),)
    assert found.trouble == ()


def test_an_osd_that_names_two_disks_is_not_guessed_at(host: FakeHost) -> None:
    named = {ONE: (f"/dev/{host.disk('sda')}", f"/dev/{host.disk('sdb')}")}
    found = seat_map(host.root, named=named)
    assert found.osds == ()
    assert "osd.1 lies on sda and sdb, and which of them holds its data nobody tells" in found.trouble[0]


def test_the_link_of_an_osd_wins_over_what_it_names(host: FakeHost) -> None:
    host.osd(1, block=f"/dev/{host.disk('sda')}")
    host.disk("sdb")
    assert seat_map(host.root, named={ONE: ("/dev/sdb",)}).of("/dev/sdb") == ()
