"""Which OSDs lie on which disks: every layout as a tree of real folders and links."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from predrain.collector.osd_devices import seat_map
from predrain.data.ids import OsdId
from predrain.data.reading import OsdDevice, Role
from tests.collector.osd_devices.device_rows import FSID, data, disks, key
from tests.collector.osd_devices.fake_host import FakeHost


def test_a_host_without_ceph_has_no_osds_and_no_trouble(host: FakeHost) -> None:
    host.disk("sda")
    found = seat_map(host.root)
    assert (found.osds, found.trouble, found.find_osds_on("/dev/sda")) == ((), (), ())


def test_an_empty_tree_is_a_host_of_which_nothing_is_known(tmp_path: Path) -> None:
    found = seat_map(tmp_path / "not there")
    assert (found.osds, found.trouble, found.find_osds_on("/dev/sda"), found.disk_of("/dev/sda")) == (
        (),
        (),
        (),
        None,
    )


def test_a_volume_over_a_whole_disk_seats_its_osd_on_that_disk(host: FakeHost) -> None:
    path = host.volume("ceph-93550251", "osd-block-dbe407e0", host.disk("sdb"))
    host.osd(3, block=path)
    found = seat_map(host.root)
    assert found.osds == (key(3),)
    assert found.find_osds_on("/dev/sdb") == (data(3),)
    assert found.list_osd_disks(key(3)) == ((Role.DATA, "sdb"),)
    assert found.trouble == ()


def test_cephadms_folders_are_read_as_the_classic_ones(host: FakeHost) -> None:
    host.osd(3, fsid=FSID, block=host.volume("vg", "lv", host.disk("sdb")))
    assert seat_map(host.root).find_osds_on("/dev/sdb") == (data(3, FSID),)


def test_a_cluster_may_have_any_name(host: FakeHost) -> None:
    host.osd(12, cluster="my-cluster-2", block=host.volume("vg", "lv", host.disk("sdb")))
    assert seat_map(host.root).osds == (key(12),)


def test_a_partition_belongs_to_its_disk_and_is_asked_for_like_it(host: FakeHost) -> None:
    first, second = (host.partition(host.disk("sdb"), 1), host.partition("sdb", 2))
    host.osd(0, block=host.by_id("wwn-0x5000-part1", first), db=host.by_id("wwn-0x5000-part2", second))
    found = seat_map(host.root)
    both = (data(0), OsdDevice(OsdId(0), Role.DB))
    whole = host.by_id("wwn-0x5000", "sdb")
    for asked in ("/dev/sdb", "/dev/sdb1", "/dev/sdb2", "sdb", "sdb2", whole):
        assert found.find_osds_on(asked) == both
        assert found.disk_of(asked) == "sdb"


def test_an_nvme_partition_belongs_to_the_namespace_and_the_controller_stands_for_it(host: FakeHost) -> None:
    host.osd(0, block=f"/dev/{host.partition(host.nvme(0, 1, 2), 3)}")
    found = seat_map(host.root)
    assert (
        found.find_osds_on("/dev/nvme0n1")
        == found.find_osds_on("/dev/nvme0n1p3")
        == found.find_osds_on("/dev/nvme0")
        == (data(0),)
    )
    assert found.find_osds_on("/dev/nvme0n2") == found.find_osds_on("/dev/nvme1") == ()
    assert found.disk_of("/dev/nvme0n1p3") == "nvme0n1"
    assert found.disk_of("/dev/nvme0") is None, "two namespaces are two disks"


def test_a_namespace_behind_two_controllers_is_one_disk(host: FakeHost) -> None:
    host.osd(0, block=f"/dev/{host.shared_nvme((0, 1), 'nvme0n1')}")
    found = seat_map(host.root)
    assert (
        found.find_osds_on("/dev/nvme0")
        == found.find_osds_on("/dev/nvme1")
        == found.find_osds_on("/dev/nvme0n1")
        == (data(0),)
    )


def test_a_generic_scsi_device_stands_for_its_disk(host: FakeHost) -> None:
    host.osd(0, block=f"/dev/{host.sas('sdc', '0:0:7:0')}")
    assert seat_map(host.root).find_osds_on("/dev/sg7") == (data(0),)
    assert seat_map(host.root).find_osds_on("/dev/sg8") == ()


def test_both_paths_of_a_multipath_disk_carry_its_osd(host: FakeHost) -> None:
    mpath = host.mapped("mpatha", host.disk("sda"), host.disk("sdq"), uuid="mpath-35000c500")
    host.osd(5, block=host.volume("vg", "lv", host.mapped("mpatha1", mpath, uuid="part1-mpath-35000c500")))
    found = seat_map(host.root)
    assert (
        found.find_osds_on("/dev/sda")
        == found.find_osds_on("/dev/sdq")
        == found.find_osds_on("/dev/mapper/mpatha")
        == (data(5),)
    )
    assert found.list_osd_disks(key(5)) == ((Role.DATA, "sda"), (Role.DATA, "sdq"))
    assert found.disk_of("/dev/vg/lv") == found.disk_of("/dev/mapper/mpatha") == "sda"


def test_a_volume_over_two_disks_is_no_one_disk(host: FakeHost) -> None:
    host.osd(5, block=host.volume("vg", "striped", host.disk("sda"), host.disk("sdb")))
    found = seat_map(host.root)
    assert found.list_osd_disks(key(5)) == ((Role.DATA, "sda"), (Role.DATA, "sdb"))
    assert found.disk_of("/dev/vg/striped") is None


def test_an_encrypted_volume_is_seen_through(host: FakeHost) -> None:
    host.volume("ceph-vg", "osd-block", host.partition(host.disk("sdb"), 1))
    crypt = host.mapped("X39Wps-Qewq", "dm-0", uuid="CRYPT-LUKS2-x")
    host.osd(1, block=f"/dev/{crypt}")
    host.osd(2, block="/dev/mapper/X39Wps-Qewq")
    assert seat_map(host.root).find_osds_on("/dev/sdb") == (data(1), data(2))


def test_one_nvme_under_twelve_osds_carries_the_db_and_the_wal_of_each(host: FakeHost) -> None:
    flash = host.nvme(0, 1)
    for osd in range(12):
        host.osd(
            osd,
            block=host.volume(f"ceph-{osd}", "block", host.disk(f"sd{chr(ord('a') + osd)}")),
            db=host.volume("flash", f"db-{osd}", flash),
            wal=host.volume("flash", f"wal-{osd}", flash),
        )
    found = seat_map(host.root)
    found_osds = found.find_osds_on("/dev/nvme0n1")
    assert sorted(found_osds, key=lambda one: (one.osd, one.role)) == [
        OsdDevice(OsdId(osd), role) for osd in range(12) for role in (Role.DB, Role.WAL)
    ]
    assert disks(found, 11) == {Role.DATA: ["sdl"], Role.DB: [flash], Role.WAL: [flash]}
    assert found.trouble == ()


def test_a_filestore_osd_lies_on_the_disk_that_is_mounted_at_its_folder(host: FakeHost) -> None:
    host.osd(4, journal=f"/dev/{host.partition(host.disk('sdc'), 2)}")
    host.mount(f"/dev/{host.partition(host.disk('sdb'), 1)}", "/var/lib/ceph/osd/ceph-4")
    assert disks(seat_map(host.root), 4) == {Role.DATA: ["sdb"], Role.JOURNAL: ["sdc"]}


def test_a_name_with_a_slash_is_found_as_sysfs_writes_it(host: FakeHost) -> None:
    host.disk("cciss!c0d0")
    (host.root / "dev/cciss").mkdir()
    host.osd(0, block="/dev/cciss/c0d0")
    assert seat_map(host.root).find_osds_on("/dev/cciss/c0d0") == (data(0),)


def test_a_volume_without_udevs_links_is_found_by_device_mappers_name(host: FakeHost) -> None:
    host.volume("my-rhel", "ceph-data", host.disk("sdb"))
    (host.root / "dev/my-rhel/ceph-data").unlink()
    host.osd(0, block="/dev/my-rhel/ceph-data")
    assert seat_map(host.root).find_osds_on("/dev/sdb") == (data(0),)


def test_a_link_to_a_disk_that_is_gone_is_told_and_costs_no_other_osd(host: FakeHost) -> None:
    host.osd(0, block="/dev/ceph-gone/osd-block-gone")
    host.osd(1, block=host.volume("vg", "lv", host.disk("sdb")))
    found = seat_map(host.root)
    assert found.osds == (key(1),)
    assert len(found.trouble) == 1
    assert "osd.0" in found.trouble[0]
    assert "/dev/ceph-gone/osd-block-gone" in found.trouble[0]


def test_an_osd_on_a_file_is_told_and_has_no_disk(host: FakeHost) -> None:
    host.disk("sda")
    (host.osd(0) / "block").write_bytes(b"")
    found = seat_map(host.root)
    assert found.osds == ()
    assert "in the file /var/lib/ceph/osd/ceph-0/block" in found.trouble[0]


def test_an_osd_on_a_loop_device_is_seated_there_and_named_as_no_hardware(host: FakeHost) -> None:
    host.osd(0, block=f"/dev/{host.virtual('loop3', '/srv/osd0.disk')}")
    found = seat_map(host.root)
    assert found.find_osds_on("/dev/loop3") == (data(0),)
    assert "loop3, which is the file /srv/osd0.disk" in found.trouble[0]


def test_a_folder_without_links_is_told(host: FakeHost) -> None:
    host.osd(7)
    assert "osd.7: /var/lib/ceph/osd/ceph-7 holds no link" in seat_map(host.root).trouble[0]


def test_a_folder_that_may_not_be_listed_is_told_with_the_cure(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.osd(0, fsid=FSID, block=f"/dev/{host.disk('sda')}")
    host.osd(1, block="/dev/sda")
    listing = Path.iterdir

    def forbidden(folder: Path) -> Iterator[Path]:
        if folder.name == FSID:
            raise PermissionError(13, "Permission denied")
        return listing(folder)

    monkeypatch.setattr(Path, "iterdir", forbidden)
    found = seat_map(host.root)
    assert found.find_osds_on("/dev/sda") == (data(1),)
    assert "run the collector as the user ceph" in found.trouble[0]


def test_links_in_a_circle_end(host: FakeHost) -> None:
    host.disk("sda")
    host.by_id("a", "disk/by-id/b")
    host.osd(0, block=host.by_id("b", "disk/by-id/a"))
    found = seat_map(host.root)
    assert found.osds == ()
    assert len(found.trouble) == 1


def test_two_folders_of_one_osd_with_different_disks_are_both_disbelieved(host: FakeHost) -> None:
    host.osd(0, fsid=FSID, block=f"/dev/{host.disk('sda')}")
    host.osd(0, block=f"/dev/{host.disk('sdb')}")
    found = seat_map(host.root)
    assert found.osds == ()
    assert "two folders" in found.trouble[0]


def test_the_folder_that_cephadm_adopted_counts_once(host: FakeHost) -> None:
    host.osd(0, block=f"/dev/{host.disk('sda')}")
    host.osd(0, fsid=FSID, block="/dev/sda")
    found = seat_map(host.root)
    assert found.find_osds_on("/dev/sda") == (data(0, FSID),)
    assert found.trouble == ()
