"""Splits and merges of PGs with upmap items, map by map, beside the recording in `tests/actions/facts`."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.actions.recorded_facts import keep_map, list_pg_num_steps
from tests.system.ceph.conftest import CheckFact, Start
from tests.system.ceph.minicluster import MiniCluster

POOL, FEW, MANY = "rep", 8, 16
PARENT_SEED, CHILD_SEED, OTHER_SEED = 3, 11, 4
SETTLED_SECONDS = 10.0


@pytest.fixture(scope="module")
def pooled(start: Start) -> MiniCluster:
    cluster = start(hosts=4, per_host=2, store="memstore", size_gib=1)
    cluster.command("osd set-require-min-compat-client", version="luminous")
    cluster.command("balancer off", to="mgr")
    cluster.pool(POOL, pg_num=FEW, size=3)
    cluster.write(POOL, objects=200, size=16384)
    cluster.wait_clean()
    return cluster


def find_pool(dump: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(pool for pool in dump["pools"] if pool["pool_name"] == POOL)
    return found


def move_member(cluster: MiniCluster, seed: int) -> dict[str, Any]:
    """Move the last member of a PG to a host that has none of its members. Return the PG and the pair."""
    pool = find_pool(cluster.json("osd dump"))["pool"]
    pg = f"{pool}.{seed:x}"
    up = next(found["up"] for found in cluster.pgs() if found["pgid"] == pg)
    used = {osd // cluster.per_host for osd in up}
    target = next(osd for osd in cluster.osds() if osd // cluster.per_host not in used)
    cluster.command("osd pg-upmap-items", pgid=pg, id=[up[-1], target])
    return {"pg": pg, "pair": [up[-1], target]}


def read_maps(cluster: MiniCluster, first: int, last: int) -> list[dict[str, Any]]:
    """Return the pool's numbers and the PGs with upmap items after each map in which they changed."""
    found: list[dict[str, Any]] = []
    for epoch in range(first, last + 1):
        dump = cluster.json("osd dump", epoch=epoch)
        pool = find_pool(dump)
        shown = {
            "pg_num": pool["pg_num"],
            "pgp_num": pool["pg_placement_num"],
            "pg_num_pending": pool["pg_num_pending"],
            "pg_num_target": pool["pg_num_target"],
            "pgp_num_target": pool["pg_placement_num_target"],
            "upmapped": sorted(item["pgid"] for item in dump["pg_upmap_items"]),
        }
        if not found or found[-1] != shown:
            found.append(shown)
    return found


def change_pg_num(cluster: MiniCluster, pg_num: int) -> list[dict[str, Any]]:
    """Set `pg_num` and return the maps until `pgp_num` has followed and the mon has checked the upmap items."""
    first = cluster.json("osd dump")["epoch"]
    cluster.command("osd pool set", pool=POOL, var="pg_num", val=str(pg_num))

    def has_arrived() -> bool:
        pool = find_pool(cluster.json("osd dump"))
        return bool(pool["pg_num"] == pool["pg_placement_num"] == pool["pg_num_pending"] == pg_num)

    cluster.wait(has_arrived, 240, f"pg_num {pg_num}")
    time.sleep(SETTLED_SECONDS)
    cluster.wait_clean()
    return read_maps(cluster, first, cluster.json("osd dump")["epoch"])


@pytest.mark.timeout(900)
def test_pgs_are_split_and_merged_with_their_upmap_items_as_recorded(
    pooled: MiniCluster, check_fact: CheckFact
) -> None:
    fact: dict[str, Any] = {
        "osd_dump": keep_map(pooled.json("osd dump")),
        "crush": pooled.json("osd crush dump"),
        "moved_before_split": [move_member(pooled, seed) for seed in (PARENT_SEED, OTHER_SEED)],
    }
    time.sleep(SETTLED_SECONDS)
    pooled.wait_clean()
    fact["split"] = change_pg_num(pooled, MANY)
    fact["moved_before_merge"] = [move_member(pooled, CHILD_SEED)]
    time.sleep(SETTLED_SECONDS)
    pooled.wait_clean()
    fact["merge"] = change_pg_num(pooled, FEW)
    check_fact("pg_num", fact, lambda made: (made["split"], list_pg_num_steps(made["merge"])))
