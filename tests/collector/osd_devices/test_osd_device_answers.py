"""Real and broken answers of Ceph and LVM, and the properties of a map that hold for any answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.collector.osd_devices import seat_map
from predrain.data.ids import ClusterId, OsdId
from predrain.data.reading import OsdDevice, Role
from tests.collector.osd_devices.device_rows import FSID, data, key, metadata, volume
from tests.collector.osd_devices.fake_host import FakeHost

SAMPLES = Path(__file__).parent / "samples"


def sample(name: str) -> bytes:
    return (SAMPLES / name).read_bytes()


def two_volumes(host: FakeHost) -> None:
    for disk, group, block in (
        ("sdb", "ceph-93550251-f76c-4219-a33f-df8805de7b9e", "osd-data-d1cb42c3-60f6-4347-82eb-3188dc3df894"),
        ("sdc", "ceph-dfb1ca03-eb4f-4a5f-84b4-f4734aaefd42", "osd-data-5100eb6b-3a61-4fc1-80ee-86aec275b8b0"),
    ):
        host.volume(group, block, host.disk(disk))


def test_a_real_list_of_volumes_seats_its_osds(host: FakeHost) -> None:
    two_volumes(host)
    found = seat_map(host.root, volumes=sample("lvm-list-two-osds.json"))
    assert (found.find_osds_on("/dev/sdb"), found.find_osds_on("/dev/sdc")) == (
        (data(0, FSID),),
        (data(1, FSID),),
    )
    assert found.trouble == ()


def test_of_a_real_list_of_two_clusters_volumes_none_is_believed_where_nobody_knows_ours(
    host: FakeHost,
) -> None:
    two_volumes(host)
    found = seat_map(host.root, volumes=sample("lvm-list-two-clusters.json"))
    assert found.osds == ()
    assert [sentence.partition(":")[0] for sentence in found.trouble] == ["osd.0", "osd.1"]


def test_the_folders_cluster_tells_whose_volumes_are_ours(host: FakeHost) -> None:
    two_volumes(host)
    (host.osd(1, block="/dev/gone") / "ceph_fsid").write_text(f"{FSID}\n")
    found = seat_map(host.root, volumes=sample("lvm-list-two-clusters.json"))
    assert found.find_osds_on("/dev/sdc") == (data(1, FSID),)
    assert found.find_osds_on("/dev/sdb") == ()


def test_real_raw_lists_seat_partitions_and_encrypted_devices(host: FakeHost) -> None:
    host.partition(host.disk("vdb"), 1)
    assert seat_map(host.root, volumes=sample("raw-list-partition.json")).find_osds_on("/dev/vdb") == (
        data(0, FSID),
    )
    for osd, name in enumerate(("set2-data-0jkntr-block-dmcrypt", "set3-data-0sc77p-block-dmcrypt")):
        host.mapped(name, host.disk(f"nbd{osd}"), uuid="CRYPT-LUKS1-x")
    found = seat_map(host.root, volumes=sample("raw-list-dmcrypt.json"))
    assert (found.find_osds_on("/dev/nbd0"), found.find_osds_on("/dev/nbd1")) == (
        (data(0, FSID),),
        (data(1, FSID),),
    )


def test_the_tags_of_lvs_are_read_as_text_and_as_json(host: FakeHost) -> None:
    path = host.volume("vg", "lv", host.disk("sdb"))
    tags = f"ceph.block_device={path},ceph.cluster_fsid={FSID},ceph.osd_id=3,ceph.type=block"
    report = {
        "report": [{"lv": [{"lv_tags": tags, "lv_path": "", "devices": "/dev/sdb(0)"}, {"lv_tags": ""}]}]
    }
    for told in (f"  {path} {tags}\n  /dev/rhel/root\n", f"  {tags}\n", json.dumps(report)):
        assert seat_map(host.root, volumes=told.encode()).find_osds_on("/dev/sdb") == (data(3, FSID),)


def test_a_db_on_a_partition_is_known_from_the_tags_of_its_data(host: FakeHost) -> None:
    """Check a DB without tags of its own: ceph-volume lists such a DB with its path and nothing that names an OSD."""
    host.partition(host.disk("vda"), 14)
    path, wal = host.volume("vg", "block", host.disk("vdb")), host.volume("vg", "wal", host.disk("vdc"))
    whose = f"ceph.cluster_fsid={FSID},ceph.osd_id=30"
    tags = f"ceph.type=block,{whose},ceph.db_device=/dev/vda14,ceph.wal_device={wal}"
    row = {"devices": ["/dev/vdb"], "lv_path": path, "lv_tags": tags, "type": "block"}
    own = {"devices": ["/dev/vdc"], "lv_path": wal, "lv_tags": f"ceph.type=wal,{whose}", "type": "wal"}
    part = {"path": "/dev/vda14", "tags": {"PARTUUID": "40dba738-2c45-4236-a681-75198bc111ae"}, "type": "db"}
    listed, report = {"30": [row, own, part]}, {"report": [{"lv": [row | {"devices": "/dev/vdb(0)"}]}]}
    for told in (json.dumps(listed), json.dumps(report), f"  {path} {tags}\n"):
        found = seat_map(host.root, volumes=told.encode())
        assert found.find_osds_on("/dev/vda") == (OsdDevice(OsdId(30), Role.DB, ClusterId(FSID)),)
        assert found.find_osds_on("/dev/vdb") == (data(30, FSID),)
        assert found.find_osds_on("/dev/vdc") == (OsdDevice(OsdId(30), Role.WAL, ClusterId(FSID)),)
        assert found.trouble == ()


def test_where_the_segments_of_a_volume_begin_tells_its_disks(host: FakeHost) -> None:
    host.partition(host.disk("sda"), 1)
    host.disk("sdb")
    row = {"lv_tags": "ceph.osd_id=3,ceph.type=block", "devices": "/dev/sda1(0),/dev/sdb(25599),/dev/sda1(9)"}
    found = seat_map(host.root, volumes=json.dumps({"report": [{"lv": [row]}]}).encode())
    assert found.list_osd_disks(key(3)) == ((Role.DATA, "sda"), (Role.DATA, "sdb"))


@pytest.mark.parametrize("number", ["", "²", "-1", "99999999999", "1.5", "x"])
def test_a_tag_that_is_no_osds_number_seats_nobody(host: FakeHost, number: str) -> None:
    host.disk("sdb")
    listed = {"3": [volume(3, "block", "", "/dev/sdb")]}
    listed["3"][0]["tags"]["ceph.osd_id"] = number
    assert seat_map(host.root, volumes=json.dumps(listed).encode()).osds == ()


def test_real_metadata_of_a_hosts_osd_seat_it(tmp_path: Path) -> None:
    host = FakeHost(tmp_path, "compute4")
    (host.root / "sys/class/block").mkdir(parents=True)
    host.virtual("bcache1")
    found = seat_map(host.root, metadata=sample("osd-metadata-bcache.json"))
    assert found.osds == (key(0),), "the two others run on other hosts"
    assert found.find_osds_on("/dev/bcache1") == (data(0),)


def test_a_broken_row_is_told_and_does_not_cost_the_others(host: FakeHost) -> None:
    host.disk("sdb")
    listed = {"2": "no list", "3": [volume(3, "block", "", "/dev/sdb")]}
    rows = [metadata(3, bluestore_bdev_devices="sdb"), {"id": "x"}, 7]
    found = seat_map(host.root, volumes=json.dumps(listed).encode(), metadata=json.dumps(rows).encode())
    assert found.find_osds_on("/dev/sdb") == (data(3, FSID),)
    assert ["1 of 2 rows" in found.trouble[0], "2 of 3 rows" in found.trouble[1]] == [True, True]


def test_bytes_beyond_measure_are_refused_unread(host: FakeHost) -> None:
    found = seat_map(host.root, volumes=b"{" * (65 << 20), metadata=b"[" * (65 << 20))
    assert ["bytes" in sentence for sentence in found.trouble] == [True, True]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELD = st.sampled_from(["", "sda", "sda,sdb", "sdz", "\x00", "../sda"]) | st.integers() | st.none()
ROW = st.fixed_dictionaries(
    {"id": st.integers(-2, 3) | st.text(max_size=3)},
    optional={
        "hostname": st.sampled_from(["host-a", "host-b"]),
        "bluestore_bdev_devices": FIELD,
        "bluefs_db_devices": FIELD,
    },
)
VOLUME = st.fixed_dictionaries(
    {},
    optional={
        "devices": st.lists(st.sampled_from(["/dev/sda", "/dev/\x00", ""]), max_size=2),
        "lv_path": st.sampled_from(["/dev/vg/lv", "\x00"]),
        "tags": st.dictionaries(
            st.sampled_from(["ceph.osd_id", "ceph.type", "ceph.cluster_fsid"]),
            st.sampled_from(["0", "1", "²", "99999999999", "block", "db", "wal"]),
        ),
    },
)


@pytest.fixture(scope="module")
def two_disks(tmp_path_factory: pytest.TempPathFactory) -> FakeHost:
    host = FakeHost(tmp_path_factory.mktemp("host"))
    host.osd(0, block=f"/dev/{host.disk('sda')}")
    host.disk("sdb")
    return host


@given(
    volumes=st.binary(max_size=40)
    | JSON.map(lambda x: json.dumps(x).encode())
    | st.dictionaries(st.sampled_from("0123"), st.lists(VOLUME, max_size=3)).map(
        lambda x: json.dumps(x).encode()
    ),
    told=st.binary(max_size=40)
    | JSON.map(lambda x: json.dumps(x).encode())
    | st.lists(ROW, max_size=4).map(lambda x: json.dumps(x).encode()),
)
def test_the_linked_disk_stays_and_the_map_is_consistent_for_any_answers_of_ceph_and_lvm(
    two_disks: FakeHost, volumes: bytes, told: bytes
) -> None:
    found = seat_map(two_disks.root, volumes=volumes, metadata=told)
    assert found.list_osd_disks(key(0)) == ((Role.DATA, "sda"),)
    for osd in found.osds:
        for role, disk in found.list_osd_disks(osd):
            assert OsdDevice(osd.osd, role, osd.cluster) in found.find_osds_on(f"/dev/{disk}")
    for disk in ("sda", "sdb"):
        for seat in found.find_osds_on(disk):
            assert (seat.role, disk) in found.list_osd_disks(key(seat.osd, seat.cluster))


@given(st.text(max_size=30))
def test_no_name_of_a_device_raises(two_disks: FakeHost, device: str) -> None:
    found = seat_map(two_disks.root)
    assert set(found.find_osds_on(device)) <= {data(0)}
    assert found.disk_of(device) in (None, "sda", "sdb")


@given(
    layers=st.lists(st.sampled_from(["partition", "lvm", "crypt", "mpath"]), max_size=5),
    roots=st.integers(1, 3),
)
def test_however_deep_the_layers_are_the_disks_beneath_are_found(
    tmp_path_factory: pytest.TempPathFactory, layers: list[str], roots: int
) -> None:
    host = FakeHost(tmp_path_factory.mktemp("layers"))
    names = [host.disk(f"sd{chr(ord('a') + n)}") for n in range(roots)]
    wanted = set(names)
    for depth, layer in enumerate(layers):
        if layer == "partition" and depth == 0:
            names = [host.partition(name, 1) for name in names]
        elif layer == "mpath":
            names = [host.mapped(f"m{depth}", *names, uuid="mpath-x")]
        else:
            names = [host.mapped(f"l{depth}", *names, uuid="CRYPT-x" if layer == "crypt" else "LVM-x")]
    host.osd(0, block=f"/dev/{names[0]}")
    found = seat_map(host.root)
    reached = {disk for _, disk in found.list_osd_disks(key(0))}
    assert reached == (wanted if len(names) == 1 else {"sda"})
    assert all(found.find_osds_on(f"/dev/{disk}") == (data(0),) for disk in reached)
