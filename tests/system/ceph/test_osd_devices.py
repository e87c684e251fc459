"""The devices of real OSDs: links that ceph-osd made, real partitions, and what the OSDs reported to the cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from predrain.actions.cluster.dumps.device_dumps import osd_metadata
from predrain.collector.osd_devices import KernelErrors
from predrain.data.ids import OsdId
from tests.system.ceph.conftest import Start
from tests.system.ceph.minicluster import MiniCluster

ROOT = Path(__file__).resolve().parents[3]

# $1 an empty root, $2 the cluster's folder, then the command: the host as a container would see it.
HOST = """set -e
root=$1; folder=$2; shift 2; echo host0 >/proc/sys/kernel/hostname
for each in sys proc dev; do mkdir -p "$root/$each"; mount --rbind "/$each" "$root/$each"; done
for each in "$folder"/osd/*/; do osd="$root/var/lib/ceph/osd/ceph-$(basename "$each")"
mkdir -p "$osd"; mount --bind "$each" "$osd"; done
exec "$@"
"""
LOOK = """import json, sys
from pathlib import Path
from predrain.collector.osd_devices import seat_map
root, *devices = sys.argv[1:]
found = seat_map(Path(root), metadata=sys.stdin.buffer.read() or None)
print(json.dumps({
    "trouble": found.trouble,
    "disks": {osd.osd: found.list_osd_disks(osd) for osd in found.osds},
    "of": {device: [(seat.osd, seat.role) for seat in found.find_osds_on(device)] for device in devices},
}))
"""


def look(cluster: MiniCluster, root: Path, metadata: bytes = b"", *devices: str) -> Any:
    """The map of the cluster's host, made over bind mounts of its real folders, /sys and /dev."""
    entered = ["unshare", "--mount", "--uts", "--propagation", "private", "sh", "-c", HOST, "sh"]
    asked = [sys.executable, "-c", LOOK, str(root), *devices]
    done = subprocess.run(
        [*entered, str(root), str(cluster.folder), *asked],
        input=metadata, stdout=subprocess.PIPE, cwd=ROOT, check=True, timeout=60,
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.fixture(scope="module", autouse=True)
def flash(release: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A loop device with three real partitions; there before any cluster, and until the last has gone."""
    image = tmp_path_factory.mktemp("flash") / "disk"
    with image.open("wb") as disk:
        disk.truncate(4 << 30)
    parts = [f"mkpart p{n} {1 + n * 1280}MiB {1 + (n + 1) * 1280}MiB" for n in range(3)]
    subprocess.run(["parted", "-s", str(image), "mklabel", "gpt", *" ".join(parts).split()], check=True)
    made = subprocess.run(["losetup", "--find", "--show", str(image)], check=True, capture_output=True)
    device = made.stdout.decode().strip()
    try:
        subprocess.run(["partx", "--update", device], check=True)
        yield device
    finally:
        subprocess.run(["partx", "--delete", device], check=False)
        subprocess.run(["losetup", "--detach", device], check=True)


@pytest.fixture(scope="module")
def shared(start: Start, flash: str) -> MiniCluster:
    """One host, two OSDs on disks of their own with the DB of each, and the WAL of one, on one flash disk."""
    conf = f"""
[osd.0]
bluestore_block_db_path = {flash}p1
bluestore_block_wal_path = {flash}p3
[osd.1]
bluestore_block_db_path = {flash}p2
"""
    return start(hosts=1, per_host=2, store="loop", conf=conf)


@pytest.mark.release
def test_osds_on_files_are_told_and_have_no_disk(cluster: MiniCluster, tmp_path: Path) -> None:
    found = look(cluster, tmp_path)
    assert found["disks"] == {}
    assert len(found["trouble"]) == 4
    assert all("in the file /var/lib/ceph/osd/ceph-" in sentence for sentence in found["trouble"])


@pytest.mark.release
def test_a_real_flash_disk_carries_the_db_and_the_wal_of_its_osds(
    shared: MiniCluster, flash: str, tmp_path: Path
) -> None:
    found = look(shared, tmp_path, b"", flash, f"{flash}p2")
    disk, own = flash.removeprefix("/dev/"), [Path(loop).name for loop in shared.devices.attached()]
    assert found["disks"] == {
        "0": [["data", own[0]], ["db", disk], ["wal", disk]],
        "1": [["data", own[1]], ["db", disk]],
    }
    assert found["of"][flash] == found["of"][f"{flash}p2"] == [[0, "db"], [0, "wal"], [1, "db"]]
    assert all("no hardware" in sentence for sentence in found["trouble"])


@pytest.mark.release
def test_the_osd_metadata_agrees_with_the_device_links_of_the_osds(
    shared: MiniCluster, tmp_path: Path
) -> None:
    told = shared.command("osd metadata", format="json")
    assert look(shared, tmp_path / "a", told) == look(shared, tmp_path / "b")
    bodies = osd_metadata(told)
    for osd, places in look(shared, tmp_path / "c")["disks"].items():
        beside = [disk for role, disk in places if role != "data"]
        assert list(bodies[OsdId(int(osd))].beside) == list(dict.fromkeys(beside)), (
            "the planner's own reading of the metadata"
        )


@pytest.mark.release
def test_a_real_read_error_is_counted_of_its_disk_and_of_no_other(flash: str, tmp_path: Path) -> None:
    backing = tmp_path / "disk"
    with backing.open("wb") as disk:
        disk.truncate(16 << 20)
    made = subprocess.run(["losetup", "--find", "--show", str(backing)], check=True, capture_output=True)
    device = Path(made.stdout.decode().strip())
    errors = KernelErrors()
    try:
        with backing.open("r+b") as disk:
            disk.truncate(1 << 20)
        with device.open("rb", buffering=0) as opened:
            opened.seek(8 << 20)
            with pytest.raises(OSError, match="Input/output error"):
                opened.read(4096)
        assert errors.trouble == ()
        assert (errors.since_last(device.name) or 0) > 0
        assert errors.since_last(device.name) == 0
        assert errors.since_last(flash.removeprefix("/dev/")) == 0
    finally:
        errors.close()
        subprocess.run(["losetup", "--detach", str(device)], check=True)
