"""The simulated cluster does what real clusters did in the same steps, as recorded in `facts/`."""

from __future__ import annotations

from typing import Any

import pytest

from predrain.actions.cluster.cluster_port import CrushReweight, Reweight, SetFlag, SetUpmap
from predrain.actions.placement.what_if import find_kept_pairs
from predrain.actions.simulator import SimulatedCluster
from predrain.data.ids import OsdId, PgId
from tests.actions.recorded_facts import build_recorded_cluster, list_pg_num_steps, read_fact

Pairs = tuple[tuple[int, int], ...]

UPMAPS = read_fact("upmap_items")
PG_NUM = read_fact("pg_num")
FLAPPING = read_fact("flapping_osd")
SHADOWS = read_fact("shadow_trees")
FREED = read_fact("freed_space")
IDLE = read_fact("idle_pgs")
MGR_STATS_PERIOD = 5.0
"""Seconds between two reports of an OSD, `mgr_stats_period`."""


def read_pairs(told: list[list[int]]) -> Pairs:
    return tuple((source, target) for source, target in told)


@pytest.fixture(scope="module")
def ruled() -> SimulatedCluster:
    cluster = build_recorded_cluster(UPMAPS)
    for osd in UPMAPS["osd_dump"]["osds"]:
        cluster.osdmap.set_reweight(osd["osd"], round(osd["weight"] * 0x10000))
        if not osd["up"]:
            cluster.stop_osd(OsdId(osd["osd"]))
    return cluster


def test_predrain_and_the_simulated_monitor_keep_the_upmap_items_that_the_real_one_kept(
    ruled: SimulatedCluster,
) -> None:
    cases = {PgId(case["pg"]): case for case in UPMAPS["cases"]}
    assert {pg: list(ruled.osdmap.compute_up_set(ruled.osdmap.index[pg])) for pg in cases} == {
        pg: case["up"] for pg, case in cases.items()
    }
    told = {pg: read_pairs(case["pairs"]) for pg, case in cases.items()}
    recorded = {pg: read_pairs(case["kept"]) for pg, case in cases.items()}
    assert find_kept_pairs(ruled.view(), told) == recorded
    for pg, pairs in told.items():
        assert ruled.apply(SetUpmap(pg, pairs)).ok
    ruled.advance(10)
    assert {pg: ruled.osdmap.upmaps.get(pg, ()) for pg in cases} == recorded


def show_pool(cluster: SimulatedCluster, pool_id: int) -> dict[str, Any]:
    pool = cluster.osdmap.pools[pool_id]
    return {
        "pg_num": pool.pg_num,
        "pgp_num": pool.pgp_num,
        "pg_num_pending": pool.pg_num_pending,
        "pg_num_target": pool.pg_num_target,
        "pgp_num_target": pool.pgp_num_target,
        "upmapped": sorted(cluster.osdmap.upmaps),
    }


def change_pg_num(cluster: SimulatedCluster, pool_id: int, pg_num: int) -> list[dict[str, Any]]:
    """Set `pg_num` and return what the map shows after each change, until nothing changes."""
    maps = [show_pool(cluster, pool_id)]
    cluster.set_pg_num(pool_id, pg_num)
    for _ in range(6000):
        if maps[-1] != (shown := show_pool(cluster, pool_id)):
            maps.append(shown)
        cluster.advance(0.1)
    assert not cluster.osdmap.pools[pool_id].changes
    return maps


def test_simulated_pgs_are_split_and_merged_with_their_upmap_items_as_real_ones() -> None:
    cluster = build_recorded_cluster(PG_NUM)
    pool_id = next(pool.id for pool in cluster.osdmap.pools.values() if pool.name == "rep")

    def move(moved: list[dict[str, Any]]) -> None:
        for each in moved:
            assert cluster.apply(SetUpmap(PgId(each["pg"]), read_pairs([each["pair"]]))).ok
        cluster.advance(120)

    move(PG_NUM["moved_before_split"])
    assert change_pg_num(cluster, pool_id, 16) == PG_NUM["split"]
    move(PG_NUM["moved_before_merge"])
    merged = change_pg_num(cluster, pool_id, 8)
    assert list_pg_num_steps(merged) == list_pg_num_steps(PG_NUM["merge"])


def show_stage(cluster: SimulatedCluster, stage: str, names: list[str]) -> dict[str, Any]:
    """Return the same parts of map and statistics as the recording of a stage."""
    osd = OsdId(FLAPPING["reweight"]["osd"])
    osdmap, pgs = cluster.osdmap, cluster.view().pgs
    return {
        "stage": stage,
        "weights": [weight / 0x10000 for weight in osdmap.reweights.values()],
        "old_weight": osdmap.old_weights.get(osd, 0),
        "upmapped": sorted(osdmap.upmaps),
        "up": {name: list(pgs[PgId(name)].up) for name in names},
        "clean": [name for name in names if pgs[PgId(name)].states == {"active", "clean"}],
        "undersized": [name for name in names if "undersized" in pgs[PgId(name)].states],
    }


def test_a_simulated_osd_that_flaps_keeps_its_weight_and_its_upmap_items_as_a_real_one() -> None:
    cluster = build_recorded_cluster(FLAPPING)
    osd, names = OsdId(FLAPPING["reweight"]["osd"]), list(FLAPPING["stages"][0]["up"])
    assert cluster.apply(Reweight(osd, FLAPPING["reweight"]["weight"])).ok
    cluster.advance(120)
    for moved in FLAPPING["moved"]:
        assert cluster.apply(SetUpmap(PgId(moved["pg"]), read_pairs([moved["pair"]]))).ok
    cluster.advance(120)
    stages = [show_stage(cluster, "before", names)]
    for stage, seconds in (("down", 20), ("out", 900)):
        cluster.stop_osd(osd)
        cluster.advance(seconds)
        stages.append(show_stage(cluster, stage, names))
        cluster.revive(osd)
        cluster.advance(120)
        stages.append(show_stage(cluster, f"up after {stage}", names))
    assert stages == FLAPPING["stages"]


def test_simulated_crush_weights_count_in_the_shadow_tree_of_a_class_as_real_ones() -> None:
    cluster = build_recorded_cluster(SHADOWS)
    for stage, command in zip(
        SHADOWS["stages"],
        (CrushReweight(OsdId(SHADOWS["osd"]), SHADOWS["weight"]), Reweight(OsdId(SHADOWS["osd"]), 0.5)),
        strict=False,
    ):
        assert cluster.apply(command).ok
        assert {
            bucket.name: sorted(list(item) for item in zip(bucket.items, bucket.weights, strict=True))
            for bucket in cluster.osdmap.crush.buckets.values()
        } == stage["buckets"]


def test_the_space_of_a_simulated_pg_that_has_left_is_freed_when_a_real_osd_frees_it() -> None:
    moved = FLAPPING["moved"][0]
    pg, source = PgId(moved["pg"]), OsdId(moved["pair"][0])
    cluster = build_recorded_cluster(
        FLAPPING, shard_bytes=FREED["bytes"], object_bytes=FREED["bytes"] // FREED["objects"]
    )
    assert cluster.apply(SetUpmap(pg, read_pairs([moved["pair"]]))).ok
    while not cluster.truth().deleting_bytes[source]:
        cluster.advance(0.1)
    began = cluster.now
    while cluster.truth().deleting_bytes[source]:
        cluster.advance(0.1)
    whole = FREED["freed_kib_by_second"][-1][1]
    recorded = next(second for second, freed in FREED["freed_kib_by_second"] if freed == whole)
    assert recorded > 0
    assert abs((cluster.now - began).total_seconds() - recorded) < MGR_STATS_PERIOD


def test_a_simulated_idle_pg_reports_no_map_that_does_not_concern_it_as_a_real_one() -> None:
    run = IDLE["runs"][0]
    cluster = build_recorded_cluster(FLAPPING)
    cluster.advance(60)
    assert cluster.apply(SetFlag("noscrub", True)).ok
    for second, current in run["current_by_second"]:
        cluster.advance(5 if second else 0)
        reported = [pg.reported_epoch for pg in cluster.view().pgs.values()]
        assert sum(epoch >= cluster.osdmap.epoch for epoch in reported if epoch is not None) == current
