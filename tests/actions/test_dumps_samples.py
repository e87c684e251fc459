"""Every sample of other people's clusters and tools: read by its parser, or refused, as the table says.

Samples of Luminous and Nautilus, and those that tools made up for their tests, lack what every later release prints.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path

import pytest

from predrain.actions.cluster.dumps.daemon_dumps import (
    balancer_active,
    parse_health_status,
    parse_running_release,
)
from predrain.actions.cluster.dumps.device_dumps import device_ls, osd_metadata
from predrain.actions.cluster.dumps.dump_decoding import NotUnderstood
from predrain.actions.cluster.dumps.osd_df import osd_df
from predrain.actions.cluster.dumps.osd_dump import osd_dump
from predrain.actions.cluster.dumps.osd_tree import parse_crush_tree
from predrain.actions.cluster.dumps.pg_dump import parse_pg_rows
from tests.conftest import data_folder

Parser = Callable[[bytes], object]


def _pgs(raw: bytes) -> object:
    return parse_pg_rows("pg_dump", raw)


def _running(raw: bytes) -> object:
    return parse_running_release(raw, "octopus")


READ: dict[str, Parser] = {
    "cluster-hotsos/ceph_balancer_status.json": balancer_active,
    "cluster-hotsos/ceph_device_ls__json_output.json": device_ls,
    "cluster-hotsos/ceph_osd_crush_dump.json": parse_crush_tree,
    "cluster-hotsos/ceph_osd_df__json_output.json": osd_df,
    "cluster-hotsos/ceph_osd_df_tree__json_output.json": osd_df,
    "cluster-hotsos/ceph_osd_dump*.json": osd_dump,
    "cluster-hotsos/ceph_osd_metadata.json": osd_metadata,
    "cluster-hotsos/ceph_pg_dump__json_output.json": _pgs,
    "cluster-hotsos/ceph_status__json_output.json": parse_health_status,
    "cluster-hotsos/ceph_versions.json": _running,
    "crush-dump__rook__crush_01.json": parse_crush_tree,
    "device-ls__virtio.json": device_ls,
    "osd-df-tree__insights-core__*.json": osd_df,
    "status__rook__*.json": parse_health_status,
    "status__telegraf__*.json": parse_health_status,
    "versions__ceph_exporter__*.json": _running,
}
"""Octopus and later, as real clusters printed them or faithful copies."""

REFUSED: dict[str, tuple[Parser, str]] = {
    "device-ls__text.txt": (device_ls, "JSON"),
    "cluster-hotsos/ceph_device_ls.txt": (device_ls, "JSON"),
    "cluster-hotsos/ceph_osd_df*.txt": (osd_df, "JSON"),
    "cluster-hotsos/ceph_osd_dump.txt": (osd_dump, "JSON"),
    "cluster-hotsos/ceph_pg_dump.txt": (_pgs, "JSON"),
    "cluster-hotsos/ceph_status.txt": (parse_health_status, "JSON"),
    "osd-df-and-perf__checkmk_nvme.json": (osd_df, "nodes"),
    "osd-dump__*.json": (osd_dump, "ceph osd dump"),
    "osd-metadata__reef_hyperv.json": (osd_metadata, "array"),
    "osd-metadata-tree__*.json": (osd_metadata, "array"),
    "pg-dump-brief__*.json": (_pgs, "object"),
    "status__ceph_exporter__*.json": (parse_health_status, "ceph status"),
    "status__insights-core__*.json": (parse_health_status, "ceph status"),
}
"""Fragments, texts and shapes of old releases; `osd metadata N` and a bare list of PGs are other commands' answers."""

NOBODYS = (
    "ceph-volume-*", "dashboard-api__*", "device-health-history__*", "df__*", "get-health-metrics__*", "health__*",
    "insights-report__*", "logs/*", "mon-status__*", "osd-ok-to-stop__*", "osd-perf*", "osd-pool-stats__*",
    "osd-safe-to-destroy__*", "osd-tree__*", "perf-dump*", "smart-as-stored__*", "telemetry_*", "INDEX.csv",
    "cluster-hotsos/ceph_df*", "cluster-hotsos/ceph_health*", "cluster-hotsos/ceph_mgr_metadata.json",
    "cluster-hotsos/ceph_mon_dump.txt", "cluster-hotsos/ceph_osd_blocked*", "cluster-hotsos/ceph_osd_perf*",
    "cluster-hotsos/ceph_osd_pool*", "cluster-hotsos/ceph_osd_stat*", "cluster-hotsos/ceph_osd_tree*",
    "cluster-hotsos/ceph_pg_stat*", "cluster-hotsos/ceph_quorum*", "cluster-hotsos/ceph_report.json",
    "cluster-hotsos/ceph_time*", "cluster-hotsos/daemon_osd*",
)  # fmt: skip
"""Answers to commands that a look does not ask (latencies and SMART are read in other rooms)."""


def _samples() -> list[str]:
    data = data_folder()
    folder = data / "evidence" / "ceph-samples" if data else Path("nowhere")
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def _bytes(shared_data: Path, name: str) -> bytes:
    return (shared_data / "evidence" / "ceph-samples" / name).read_bytes()


@pytest.mark.parametrize("name", [name for name in _samples() if any(fnmatch(name, one) for one in READ)])
def test_a_sample_is_read(shared_data: Path, name: str) -> None:
    parser = next(parser for pattern, parser in READ.items() if fnmatch(name, pattern))
    assert parser(_bytes(shared_data, name)) is not None


@pytest.mark.parametrize("name", [name for name in _samples() if any(fnmatch(name, one) for one in REFUSED)])
def test_a_sample_is_refused_with_a_sentence_that_names_what_is_wrong(shared_data: Path, name: str) -> None:
    parser, why = next(row for pattern, row in REFUSED.items() if fnmatch(name, pattern))
    with pytest.raises(NotUnderstood, match=why):
        parser(_bytes(shared_data, name))


def test_every_sample_has_its_one_place_in_the_tables(shared_data: Path) -> None:
    patterns = (*READ, *REFUSED, *NOBODYS)
    places = {name: [one for one in patterns if fnmatch(name, one)] for name in _samples()}
    assert len(places) > 100
    assert {name: found for name, found in places.items() if len(found) != 1} == {}


def test_octopus_is_read_down_to_its_pgs(shared_data: Path) -> None:
    osdmap = osd_dump(_bytes(shared_data, "cluster-hotsos/ceph_osd_dump__json_output.json"))
    pgs = parse_pg_rows("pg_dump", _bytes(shared_data, "cluster-hotsos/ceph_pg_dump__json_output.json"))
    assert osdmap.release == "octopus"
    assert len(pgs.rows) == osdmap.pg_count
    assert pgs.heard is not None
