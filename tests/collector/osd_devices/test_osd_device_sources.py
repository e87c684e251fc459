"""Links, LVM tags and metadata of OSDs: the source that is believed where they differ, and the reported trouble."""

from __future__ import annotations

import json

from predrain.collector.osd_devices import seat_map
from predrain.data.reading import Role
from tests.collector.osd_devices.device_rows import FSID, OTHER, data, disks, key, metadata, volume
from tests.collector.osd_devices.fake_host import FakeHost


def test_without_folders_the_lvm_tags_seat_the_osds(host: FakeHost) -> None:
    block = host.volume("vg", "block", host.disk("sdb"))
    db = host.volume("flash", "db", host.partition(host.nvme(0, 1), 1))
    listed = {"3": [volume(3, "block", block, "/dev/sdb"), volume(3, "db", db, "/dev/nvme0n1p1")]}
    found = seat_map(host.root, volumes=json.dumps(listed).encode())
    assert disks(found, 3) == {Role.DATA: ["sdb"], Role.DB: ["nvme0n1"]}


def test_a_volume_that_is_not_active_is_seated_by_its_physical_disk(host: FakeHost) -> None:
    host.disk("sdb")
    listed = {"3": [volume(3, "block", "/dev/vg/inactive", "/dev/sdb")]}
    assert seat_map(host.root, volumes=json.dumps(listed).encode()).find_osds_on("/dev/sdb") == (
        data(3, FSID),
    )


def test_a_link_wins_over_the_lvm_tags_and_the_difference_is_told(host: FakeHost) -> None:
    host.osd(3, block=f"/dev/{host.disk('sda')}")
    other = host.volume("vg", "block", host.disk("sdb"))
    found = seat_map(host.root, volumes=json.dumps({"3": [volume(3, "block", other)]}).encode())
    assert found.find_osds_on("/dev/sda") == (data(3, FSID),)
    assert found.find_osds_on("/dev/sdb") == ()
    assert "its data is on sda by its folder, but its LVM tags put it on sdb" in found.trouble[0]


def test_a_link_wins_over_the_metadata_and_the_difference_is_told(host: FakeHost) -> None:
    host.disk("sdb")
    host.osd(3, block=f"/dev/{host.disk('sda')}")
    told = json.dumps([metadata(3, bluestore_bdev_devices="sdb", bluefs_db_devices="sdb")]).encode()
    found = seat_map(host.root, metadata=told)
    assert found.list_osd_disks(key(3)) == ((Role.DATA, "sda"),)
    assert len(found.trouble) == 2
    assert "its metadata put it on sdb" in found.trouble[0]
    assert "put its DB on sdb" in found.trouble[1]


def test_sources_that_name_the_same_disk_differently_agree(host: FakeHost) -> None:
    cache = host.virtual("bcache1")
    (host.root / "sys/class/block/bcache1/slaves").mkdir()
    (host.root / "sys/class/block/bcache1/slaves" / host.disk("vdc")).mkdir()
    block = host.volume("ceph-a", "osd-block", cache)
    host.osd(0, block=block)
    told = json.dumps([metadata(0, bluestore_bdev_devices="bcache1")]).encode()
    listed = json.dumps({"0": [volume(0, "block", block, "/dev/bcache1")]}).encode()
    found = seat_map(host.root, volumes=listed, metadata=told)
    assert found.find_osds_on("/dev/vdc") == found.find_osds_on("/dev/bcache1") == (data(0, FSID),)
    assert found.trouble == ()


def test_a_source_that_cannot_tell_the_disk_takes_nothing_from_one_that_can(host: FakeHost) -> None:
    host.osd(3, block=f"/dev/{host.disk('sda')}")
    listed = json.dumps({"3": [volume(3, "block", "/dev/vg/gone", "/dev/sdz")]}).encode()
    found = seat_map(host.root, volumes=listed)
    assert found.find_osds_on("/dev/sda") == (data(3, FSID),)
    assert found.trouble == ()


def test_where_a_link_leads_nowhere_the_next_source_tells_the_disk(host: FakeHost) -> None:
    host.disk("sdb")
    host.osd(3, block="/dev/vg/inactive")
    found = seat_map(host.root, metadata=json.dumps(metadata(3, bluestore_bdev_devices="sdb")).encode())
    assert found.find_osds_on("/dev/sdb") == (data(3),)
    assert "is not there" in found.trouble[0]


def test_a_folder_whose_disk_is_gone_still_decides_which_roles_there_are(host: FakeHost) -> None:
    host.disk("sdb")
    host.disk("sdc")
    host.osd(3, block="/dev/vg/inactive")
    told = metadata(3, bluestore_bdev_devices="sdb", bluefs_db_devices="sdc")
    found = seat_map(host.root, metadata=json.dumps(told).encode())
    assert disks(found, 3) == {Role.DATA: ["sdb"]}
    assert "its metadata put its DB on sdc, and its folder has no such device" in found.trouble[1]


def test_metadata_of_other_hosts_say_nothing_of_the_disks_here(host: FakeHost) -> None:
    host.disk("sdb")
    told = [
        metadata(3, "host-b", bluestore_bdev_devices="sdb"),
        metadata(4, "host-a.example.org", bluestore_bdev_devices="sdb"),
        metadata(5, "", bluestore_bdev_devices="sdb"),
    ]
    found = seat_map(host.root, metadata=json.dumps(told).encode())
    assert found.find_osds_on("/dev/sdb") == (data(4),)
    assert found.trouble == ()


def test_an_osd_that_says_it_runs_elsewhere_keeps_its_link_and_is_told(host: FakeHost) -> None:
    host.osd(3, block=f"/dev/{host.disk('sda')}")
    told = json.dumps([metadata(3, "host-b", bluestore_bdev_devices="sdx")]).encode()
    found = seat_map(host.root, metadata=told)
    assert found.find_osds_on("/dev/sda") == (data(3),)
    assert "runs on host-b" in found.trouble[0]


def test_metadata_of_before_nautilus_name_the_devices_too(host: FakeHost) -> None:
    host.disk("sdb")
    host.nvme(0, 1)
    told = metadata(3, bluestore_bdev_dev_node="sdb", bluefs_db_dev_node="nvme0n1")
    found = seat_map(host.root, metadata=json.dumps([told]).encode())
    assert disks(found, 3) == {Role.DATA: ["sdb"], Role.DB: ["nvme0n1"]}


def test_volumes_of_another_cluster_are_passed_over_and_told(host: FakeHost) -> None:
    host.osd(0, fsid=FSID, block=host.volume("ours", "block", host.disk("sda")))
    theirs = host.volume("theirs", "block", host.disk("sdb"))
    listed = {"0": [volume(0, "block", theirs, fsid=OTHER)]}
    found = seat_map(host.root, volumes=json.dumps(listed).encode())
    assert found.find_osds_on("/dev/sda") == (data(0, FSID),)
    assert found.find_osds_on("/dev/sdb") == ()
    assert "of several clusters" in found.trouble[0]


def test_volumes_of_two_clusters_that_a_host_serves_are_kept_apart_by_their_cluster(host: FakeHost) -> None:
    host.osd(1, fsid=FSID, block=f"/dev/{host.disk('sda')}")
    host.osd(2, fsid=OTHER, block=f"/dev/{host.disk('sdb')}")
    host.disk("sdc")
    listed = {
        "3": [
            volume(3, "block", "", "/dev/sdc"),
            volume(3, "block", "", "/dev/sdb", fsid=OTHER),
        ]
    }
    found = seat_map(host.root, volumes=json.dumps(listed).encode())
    assert found.osds == (key(1, FSID), key(2, OTHER), key(3, OTHER), key(3, FSID))
    assert (disks(found, 3, FSID), disks(found, 3, OTHER)) == ({Role.DATA: ["sdc"]}, {Role.DATA: ["sdb"]})
    assert found.trouble == ()


def test_a_volume_without_a_cluster_is_not_believed_beside_one_of_its_number_with_a_cluster(
    host: FakeHost,
) -> None:
    host.osd(1, fsid=FSID, block=f"/dev/{host.disk('sda')}")
    host.disk("sdb")
    listed = {"3": [volume(3, "block", "", "/dev/sda"), volume(3, "block", "", "/dev/sdb", fsid="")]}
    found = seat_map(host.root, volumes=json.dumps(listed).encode())
    assert found.osds == (key(1, FSID),)
    assert "osd.3" in found.trouble[0]


def test_metadata_which_name_no_cluster_are_not_believed_of_a_number_that_two_clusters_have(
    host: FakeHost,
) -> None:
    host.osd(3, fsid=FSID, block=f"/dev/{host.disk('sda')}")
    host.osd(3, fsid=OTHER, block=f"/dev/{host.disk('sdb')}")
    told = json.dumps([metadata(3, bluefs_db_devices="sdb")]).encode()
    found = seat_map(host.root, metadata=told)
    assert (disks(found, 3, FSID), disks(found, 3, OTHER)) == ({Role.DATA: ["sda"]}, {Role.DATA: ["sdb"]})


def test_a_difference_is_told_with_the_cluster_where_two_clusters_have_the_number(host: FakeHost) -> None:
    host.osd(3, fsid=FSID, block=f"/dev/{host.disk('sda')}")
    host.osd(3, fsid=OTHER, block=f"/dev/{host.disk('sdb')}")
    listed = {"3": [volume(3, "block", "", "/dev/sdb")]}
    (sentence,) = seat_map(host.root, volumes=json.dumps(listed).encode()).trouble
    assert sentence.startswith(f"osd.3 of cluster {FSID}: its data is on sda by its folder")
