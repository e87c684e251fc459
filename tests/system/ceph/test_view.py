"""The view of a real cluster, by the least user: both forms of a poll, the effect of an upmap item, a recording."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from predrain.actions.cluster.cluster_port import RemoveUpmap, SetUpmap
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.dumps import ClusterReader
from predrain.actions.cluster.live_ceph import LiveCluster
from predrain.actions.cluster.rados_connection import Rados
from predrain.actions.cluster.recorded_cluster import (
    RecordedCluster,
    read_recording,
    record_cluster_answers,
    write_recording,
)
from predrain.actions.controller.ceph_caps import CephUser, build_cephx_caps
from predrain.actions.core.pg_survey import survey_pgs
from predrain.data.ids import OsdId
from tests.deadlines import idle_seconds
from tests.system.ceph.minicluster import MiniCluster

Look = Callable[[int], LiveCluster]


def _now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture(scope="module")
def filled(cluster: MiniCluster) -> MiniCluster:
    """A replicated and an erasure-coded pool with objects in them."""
    cluster.pool("rep", pg_num=8, size=3)
    cluster.pool("ec", pg_num=8, k=2, m=1)
    cluster.write("rep", objects=40)
    cluster.write("ec", objects=40)
    cluster.wait_clean()
    return cluster


@pytest.fixture(scope="module")
def channel(filled: MiniCluster) -> Iterator[Rados]:
    """Yield a connection as the user that `predrain ceph auth` prints."""
    filled.client("client.predrain", build_cephx_caps(CephUser.SERVICE).by_service())
    opened = Rados(filled.connection("client.predrain"))
    yield opened
    opened.close()


def until(cluster: LiveCluster, holds: Callable[[ClusterView], bool], seconds: float = 60) -> ClusterView:
    end = idle_seconds() + seconds
    while not holds(view := cluster.view()):
        assert idle_seconds() < end, view
        time.sleep(1)
    return view


@pytest.mark.release
def test_a_quiet_cluster_is_seen_whole_known_and_at_rest(filled: MiniCluster, channel: Rados) -> None:
    cluster = LiveCluster(channel, _now)
    view = until(cluster, lambda view: view.statistics_known and not survey_pgs(view).unclean)
    assert view.release == filled.release
    assert not view.mixed_versions
    assert view.epoch == filled.json("osd dump")["epoch"]
    assert {osd.host for osd in view.osds.values()} == {"host0", "host1", "host2", "host3"}
    assert all(osd.size_bytes and osd.used_bytes for osd in view.osds.values())
    assert until(cluster, lambda view: view.scheduler != "", 5).scheduler == filled.scheduler
    assert view.health in ("HEALTH_OK", "HEALTH_WARN")
    held = {pg["pgid"]: pg["stat_sum"]["num_bytes"] for pg in filled.pgs()}
    spread = {pool.id: 2 if pool.erasure else 1 for pool in view.pools.values()}
    assert {pg.id: pg.shard_bytes for pg in view.pgs.values()} == {
        pgid: -(-count // spread[int(pgid.partition(".")[0])]) for pgid, count in held.items()
    }


@pytest.mark.release
def test_a_brief_look_sees_what_a_whole_one_sees(channel: Rados) -> None:
    whole, brief = (
        LiveCluster(channel, _now, ClusterReader(1 << 30)),
        LiveCluster(channel, _now, ClusterReader(0)),
    )
    brief.view()
    assert "pg_brief" in {question.name for question in brief.reader.list_due_commands(_now())}
    expected, found = whole.view(), brief.view()
    same = {"as_of": _now(), "dump_version": 0, "scheduler": "", "osds": {}, "health": ""}
    assert replace(found, **same) == replace(expected, **same)


@pytest.mark.release
def test_after_a_pin_a_brief_look_shows_the_epoch_at_which_the_pg_reported_it(channel: Rados) -> None:
    cluster = LiveCluster(channel, _now, ClusterReader(0))
    cluster.view()
    view = cluster.view()
    pg = next(
        pg
        for pg in view.pgs.values()
        if not view.pools[pg.pool].erasure and view.pools[pg.pool].name == "rep"
    )
    target = next(osd for osd in view.osds if osd not in pg.up)
    answer = cluster.apply(SetUpmap(pg.id, ((pg.up[0], target),)))
    assert answer.ok
    assert answer.epoch is not None
    epoch = answer.epoch
    shown = until(cluster, lambda view: view.pgs[pg.id].reported_epoch >= epoch)
    assert target in shown.pgs[pg.id].up
    assert "pg_brief" in {question.name for question in cluster.reader.list_due_commands(_now())}, (
        "it was no full dump that told"
    )
    cluster.apply(RemoveUpmap(pg.id))
    until(cluster, lambda view: OsdId(target) not in view.pgs[pg.id].up and not survey_pgs(view).unclean)


@pytest.mark.release
def test_a_recording_of_it_reads_back_to_the_same_cluster(channel: Rados, tmp_path: Path) -> None:
    write_recording(record_cluster_answers(channel, _now()), tmp_path / "here.zip")
    back = read_recording(tmp_path / "here.zip")
    assert back.osdmap is not None
    found, live = RecordedCluster(back).view(), LiveCluster(channel, _now).view()
    same = {"as_of": _now(), "dump_version": 0, "scheduler": "", "osds": {}, "pgs": {}, "health": ""}
    assert replace(found, **same) == replace(live, **same)
    assert found.pgs.keys() == live.pgs.keys()


@pytest.mark.release
def test_reads_that_the_cluster_had_to_repair_are_told_of_the_osd_whose_disk_failed_them(
    filled: MiniCluster, channel: Rados
) -> None:
    placed = {name: filled.json("osd map", pool="rep", object=name) for name in filled.read_back("rep")}
    failing = placed["object-000000"]["acting_primary"]
    spoilt = [name for name, found in placed.items() if found["acting_primary"] == failing]
    filled.command("config set", who="osd", name="bluestore_debug_inject_read_err", value="true")
    filled.command("config set", who="global", name="mon_osd_warn_num_repaired", value="1")
    more = [f"object-{index:06d}" for index in range(40, 80)]
    filled.write("rep", objects=40, start=40)
    spoilt += [n for n in more if filled.json("osd map", pool="rep", object=n)["acting_primary"] == failing]
    try:
        for name in spoilt:
            filled.command("injectdataerr", to=f"osd.{failing}", pool="rep", objname=name)
        assert len(filled.read_back("rep")) == 80, "clients are served from another copy"
        filled.wait(
            lambda: "OSD_TOO_MANY_REPAIRS" in filled.json("health")["checks"], 60, "Ceph counts repairs"
        )
        view = LiveCluster(channel, _now).view()
        assert set(view.read_errors) == {OsdId(failing)}
        (said,) = view.read_errors[OsdId(failing)]
        assert said.startswith(f"Ceph says OSD_TOO_MANY_REPAIRS: osd.{failing} ")
    finally:
        filled.command("config rm", who="osd", name="bluestore_debug_inject_read_err")
        filled.command("config rm", who="global", name="mon_osd_warn_num_repaired")
