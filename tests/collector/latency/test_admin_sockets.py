"""Admin sockets are found wherever a host has them, and only OSDs'."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from predrain.collector.latency import SocketsUnreadable, admin_sockets
from predrain.data.ids import ClusterId, OsdId, OsdKey

FSID = ClusterId("a1b2c3d4-0000-11ee-9f00-0123456789ab")


def put(root: Path, name: str, age: float = 0) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    return path


@pytest.mark.parametrize(
    "name",
    ["run/ceph/ceph-osd.12.asok", "var/run/ceph/backup-osd.12.asok", f"run/ceph/{FSID}/ceph-osd.12.asok",
     "var/lib/rook/exporter/ceph-osd.12.asok"],
)  # fmt: skip
def test_an_osd_is_found_where_packages_cephadm_and_rook_put_it(tmp_path: Path, name: str) -> None:
    path = put(tmp_path, name)
    cluster = FSID if FSID in name else None
    assert admin_sockets(tmp_path) == {path: OsdKey(cluster, OsdId(12))}


def test_only_osds_are_found(tmp_path: Path) -> None:
    for name in ("ceph-mon.a.asok", "ceph-mgr.x.asok", "ceph-client.osd.asok", "ceph-osd.x.asok", "ceph-osd.3.pid",
                 "other/ceph-osd.4.asok"):  # fmt: skip
        put(tmp_path / "run/ceph", name)
    assert admin_sockets(tmp_path) == {}


def test_sockets_of_one_number_are_all_found_the_newest_first(tmp_path: Path) -> None:
    """Check that no socket is left out: the sockets may be of several clusters, and only the OSDs behind them know."""
    old = put(tmp_path, "run/ceph/ceph-osd.3.asok", age=3600)
    new = put(tmp_path, f"run/ceph/{FSID}/ceph-osd.3.asok")
    between = put(tmp_path, "run/ceph/backup-osd.3.asok", age=60)
    found = admin_sockets(tmp_path)
    assert list(found) == [new, between, old]
    assert [found[path].cluster for path in found] == [FSID, None, None]


def test_a_socket_that_is_seen_by_run_and_by_var_run_is_one(tmp_path: Path) -> None:
    put(tmp_path, "run/ceph/ceph-osd.3.asok")
    (tmp_path / "var").mkdir()
    (tmp_path / "var/run").symlink_to("../run")
    assert len(admin_sockets(tmp_path)) == 1


def test_a_host_without_ceph_has_none(tmp_path: Path) -> None:
    assert admin_sockets(tmp_path) == {}


def test_a_folder_that_may_not_be_read_is_told_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/ceph").symlink_to("ceph")  # root may read any folder, but not a link to itself
    with pytest.raises(
        SocketsUnreadable, match=r"run/ceph may not be read .* as Ceph's user \(ceph\) or as root"
    ):
        admin_sockets(tmp_path)
