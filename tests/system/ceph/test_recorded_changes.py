"""A flapping OSD, shadow trees, freed space, idle PGs and gathered maps, beside recordings in `tests/actions/facts`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from tests.actions.recorded_facts import keep_map
from tests.system.ceph.conftest import CheckFact, Start
from tests.system.ceph.minicluster import MiniCluster

POOL = "rep"
FLAPPING = 5
SETTLED_SECONDS = 8.0
COMMAND_OFFSETS = (0.0, 0.3, 0.5, 0.7, 1.5)
"""Seconds at which commands are sent, in one second and the half after it."""
SHORT_REPORT_SECONDS, SHORTEST_GAP = 20, 0.95
CONF = "osd_max_pg_log_entries = 10\nosd_min_pg_log_entries = 10\n"


@pytest.fixture(scope="module")
def changing(start: Start) -> MiniCluster:
    cluster = start(hosts=4, per_host=2, size_gib=2, conf=CONF)
    cluster.command("osd set-require-min-compat-client", version="luminous")
    cluster.command("balancer off", to="mgr")
    cluster.pool(POOL, pg_num=8, size=3)
    cluster.write(POOL, objects=400, size=131072)
    cluster.wait_clean()
    return cluster


@pytest.fixture(autouse=True)
def at_rest(changing: MiniCluster) -> Iterator[None]:
    """Restore weights, classes and upmap items after each test, so that each test finds those of the first one."""
    before = {osd["id"]: osd for osd in changing.json("osd tree")["nodes"] if osd["type"] == "osd"}
    yield
    after = {osd["id"]: osd for osd in changing.json("osd tree")["nodes"] if osd["type"] == "osd"}
    for osd, held in before.items():
        if after[osd]["reweight"] != held["reweight"]:
            changing.command("osd reweight", id=osd, weight=float(held["reweight"]))
        if after[osd]["crush_weight"] != held["crush_weight"]:
            changing.command("osd crush reweight", name=f"osd.{osd}", weight=float(held["crush_weight"]))
        if after[osd].get("device_class") != held.get("device_class"):
            changing.command("osd crush rm-device-class", ids=[str(osd)])
            changing.command("osd crush set-device-class", ids=[str(osd)], **{"class": held["device_class"]})
    for item in changing.json("osd dump")["pg_upmap_items"]:
        changing.command("osd rm-pg-upmap-items", pgid=item["pgid"])
    changing.command("config rm", who="mon", name="mon_osd_down_out_interval")
    changing.wait(lambda: len(changing.osds()) == 8, 60, "all OSDs up")
    time.sleep(SETTLED_SECONDS)  # until the mgr shows the PGs under what was put back
    changing.wait_clean()


def begin_fact(cluster: MiniCluster) -> dict[str, Any]:
    return {"osd_dump": keep_map(cluster.json("osd dump")), "crush": cluster.json("osd crush dump")}


def place_item(cluster: MiniCluster, up: list[int], source: int, target: int) -> list[int] | None:
    """Return the pair if the target's host has no other member."""
    others = {osd // cluster.per_host for osd in up if osd != source}
    free = target not in up and target // cluster.per_host not in others
    return [source, target] if source in up and free else None


def show_stage(cluster: MiniCluster, stage: str) -> dict[str, Any]:
    """Return what map and statistics say of the OSDs and of every PG with data."""
    cluster.flush()
    dump = cluster.json("osd dump")
    pool = next(pool["pool"] for pool in dump["pools"] if pool["pool_name"] == POOL)
    pgs = {pg["pgid"]: pg for pg in cluster.pgs() if pg["pgid"].startswith(f"{pool}.")}
    return {
        "stage": stage,
        "weights": [osd["weight"] for osd in dump["osds"]],
        "old_weight": next(row["old_weight"] for row in dump["osd_xinfo"] if row["osd"] == FLAPPING),
        "upmapped": sorted(item["pgid"] for item in dump["pg_upmap_items"]),
        "up": {name: pg["up"] for name, pg in sorted(pgs.items())},
        "clean": sorted(name for name, pg in pgs.items() if pg["state"] == "active+clean"),
        "undersized": sorted(name for name, pg in pgs.items() if "undersized" in pg["state"]),
    }


@pytest.mark.timeout(900)
def test_an_osd_that_flaps_keeps_its_weight_and_its_upmap_items_as_recorded(
    changing: MiniCluster, check_fact: CheckFact
) -> None:
    fact = begin_fact(changing)
    pgs = {pg["pgid"]: pg["up"] for pg in changing.pgs() if pg["pgid"].startswith("2.")}
    changing.command("osd reweight", id=FLAPPING, weight=0.8)
    time.sleep(
        SETTLED_SECONDS
    )  # until the mgr shows `up` under this weight: the mon drops an item of another one
    changing.wait_clean()
    pgs = {pg["pgid"]: pg["up"] for pg in changing.pgs() if pg["pgid"] in pgs}
    onto = next(
        (pg, pair)
        for pg, up in pgs.items()
        for osd in up
        if (pair := place_item(changing, up, osd, FLAPPING))
    )
    away = next(
        (pg, pair)
        for pg, up in pgs.items()
        for osd in changing.osds()
        if pg != onto[0] and (pair := place_item(changing, up, FLAPPING, osd))
    )
    for pg, pair in (onto, away):
        changing.command("osd pg-upmap-items", pgid=pg, id=pair)
    time.sleep(SETTLED_SECONDS)
    changing.wait_clean()
    stages = [show_stage(changing, "before")]
    for stage, interval in (("down", "600"), ("out", "4")):
        changing.command("config set", who="mon", name="mon_osd_down_out_interval", value=interval)
        changing.kill(f"osd.{FLAPPING}")
        changing.command("osd down", ids=[str(FLAPPING)])
        changing.wait(lambda: FLAPPING not in changing.osds(), 60, "the OSD down")
        if stage == "out":
            changing.wait(lambda: not changing.json("osd dump")["osds"][FLAPPING]["weight"], 90, "out")
            time.sleep(SETTLED_SECONDS)
            changing.wait_clean()
        else:
            time.sleep(SETTLED_SECONDS)
        stages.append(show_stage(changing, stage))
        changing.spawn(f"osd.{FLAPPING}")
        changing.wait(lambda: FLAPPING in changing.osds(), 60, "the OSD up")
        time.sleep(SETTLED_SECONDS)
        changing.wait_clean()
        stages.append(show_stage(changing, f"up after {stage}"))
    moved = [{"pg": pg, "pair": pair} for pg, pair in (onto, away)]
    kept = {"reweight": {"osd": FLAPPING, "weight": 0.8}, "moved": moved, "stages": stages}
    check_fact(
        "flapping_osd",
        {**fact, **kept},
        lambda made: [
            (stage["stage"], stage["weights"], stage["old_weight"], len(stage["upmapped"]))
            for stage in made["stages"]
        ],
    )


def read_bucket_weights(cluster: MiniCluster) -> dict[str, list[list[int]]]:
    """Return the items of each bucket with their weights in 16.16, by the bucket's name."""
    return {
        bucket["name"]: sorted([item["id"], item["weight"]] for item in bucket["items"])
        for bucket in cluster.json("osd crush dump")["buckets"]
    }


def list_weights(buckets: dict[str, list[list[int]]]) -> dict[str, list[int]]:
    """Return the weights in each bucket. The ids of buckets depend on the order in which the OSDs started."""
    return {name: sorted(weight for _, weight in items) for name, items in buckets.items()}


def test_a_crush_weight_counts_in_the_shadow_tree_of_its_class_as_recorded(
    changing: MiniCluster, check_fact: CheckFact
) -> None:
    classes = {osd: ("ssd" if osd % 2 else "hdd") for osd in changing.osds()}
    for osd, kind in classes.items():
        changing.command("osd crush rm-device-class", ids=[str(osd)])
        changing.command("osd crush set-device-class", ids=[str(osd)], **{"class": kind})
    changing.wait_clean()
    fact = begin_fact(changing)
    changing.command("osd crush reweight", name="osd.0", weight=0.0005)
    stages = [{"step": "crush reweight", "buckets": read_bucket_weights(changing)}]
    changing.command("osd reweight", id=0, weight=0.5)
    stages.append({"step": "reweight", "buckets": read_bucket_weights(changing)})
    changing.command("osd crush rm-device-class", ids=["1"])
    changing.command("osd crush set-device-class", ids=["1"], **{"class": "hdd"})
    stages.append({"step": "class", "buckets": read_bucket_weights(changing)})
    check_fact(
        "shadow_trees",
        {**fact, "osd": 0, "weight": 0.0005, "stages": stages},
        lambda made: [list_weights(stage["buckets"]) for stage in made["stages"]],
    )


def read_osd_space(cluster: MiniCluster, osd: int) -> int:
    row = next(row for row in cluster.json("osd df")["nodes"] if row["id"] == osd)
    return int(row["kb_used_data"])


def wait_for_steady_space(cluster: MiniCluster, osd: int) -> int:
    """Return the space that the OSD uses, once two reports say the same.

    An OSD counts its space with its heartbeats, so that the report after a move may still be of the time before it.
    """
    reports: list[int] = []

    def is_steady() -> bool:
        time.sleep(SETTLED_SECONDS)
        cluster.flush()
        reports.append(read_osd_space(cluster, osd))
        return len(reports) > 1 and reports[-1] == reports[-2]

    cluster.wait(is_steady, 120, f"osd.{osd} reports the same space twice")
    return reports[-1]


def test_the_space_of_a_pg_that_has_left_is_freed_later_as_recorded(
    changing: MiniCluster, check_fact: CheckFact
) -> None:
    pg, pair, objects = next(
        (pg["pgid"], pair, pg["stat_sum"]["num_objects"])
        for pg in changing.pgs()
        if pg["stat_sum"]["num_objects"] > 20
        for source in pg["up"]
        for osd in changing.osds()
        if (pair := place_item(changing, pg["up"], source, osd))
    )
    held = wait_for_steady_space(changing, pair[0])
    changing.command("osd pg-upmap-items", pgid=pg, id=pair)

    def has_moved() -> bool:
        found = next(each for each in changing.pgs() if each["pgid"] == pg)
        return bool(found["state"] == "active+clean" and pair[1] in found["acting"])

    changing.wait(has_moved, 120, "the PG has moved")
    began, samples = time.monotonic(), list[list[float]]()
    while time.monotonic() - began < 60:
        samples.append([round(time.monotonic() - began, 1), held - read_osd_space(changing, pair[0])])
        time.sleep(2)
    sleep = changing.json("config show", who=f"osd.{pair[0]}", key="osd_delete_sleep_hdd")
    check_fact(
        "freed_space",
        {
            "objects": objects,
            "bytes": objects * 131072,
            "osd_delete_sleep": sleep,
            "freed_kib_by_second": samples,
        },
        lambda made: max(freed for _, freed in made["freed_kib_by_second"]) > 0,
    )


def watch_idle_pgs(cluster: MiniCluster, seconds: float) -> list[list[float]]:
    """Change the map in a way that concerns no PG. Return how many PGs have reported the new map, over time."""
    cluster.flush()
    time.sleep(SETTLED_SECONDS)
    cluster.command("osd set", key="noscrub")
    epoch = cluster.json("osd dump")["epoch"]
    began, samples = time.monotonic(), list[list[float]]()
    while time.monotonic() - began < seconds:
        current = sum(pg["reported_epoch"] >= epoch for pg in cluster.pgs())
        samples.append([round(time.monotonic() - began, 1), current])
        time.sleep(5)
    cluster.command("osd unset", key="noscrub")
    return samples


def test_an_idle_pg_reports_nothing_for_a_minute_with_either_report_interval_as_recorded(
    changing: MiniCluster, check_fact: CheckFact
) -> None:
    option = "osd_pg_stat_report_interval_max"
    usual = int(changing.command("config get", who="osd.0", key=option))
    found = {"interval_seconds": usual, "current_by_second": watch_idle_pgs(changing, 60)}
    changing.command("config set", who="osd", name=option, value=str(SHORT_REPORT_SECONDS))
    short = {"interval_seconds": SHORT_REPORT_SECONDS, "current_by_second": watch_idle_pgs(changing, 60)}
    changing.command("config rm", who="osd", name=option)
    check_fact(
        "idle_pgs",
        {"pgs": len(changing.pgs()), "runs": [found, short]},
        lambda made: [run["current_by_second"][-1][1] > 0 for run in made["runs"]],
    )


def list_gaps(maps: list[dict[str, Any]]) -> list[float]:
    """Return the seconds between the maps."""
    stamps = [datetime.fromisoformat(each["modified"][:26]) for each in maps]
    return [(later - earlier).total_seconds() for earlier, later in pairwise(stamps)]


def test_commands_of_one_second_share_a_map_as_recorded(changing: MiniCluster, check_fact: CheckFact) -> None:
    agents = [changing.agent() for _ in COMMAND_OFFSETS]
    for agent in agents:
        agent.ask(op="command", to="mon", cmd={"prefix": "osd stat"}, inbuf="", timeout=60)
    time.sleep(3)
    first, began = changing.json("osd dump")["epoch"], time.monotonic() + 0.5

    def send(osd: int) -> float:
        time.sleep(max(0.0, began + COMMAND_OFFSETS[osd] - time.monotonic()))
        command = {"prefix": "osd primary-affinity", "id": osd, "weight": 0.5}
        agents[osd].ask(op="command", to="mon", cmd=command, inbuf="", timeout=60)
        return time.monotonic() - began

    with ThreadPoolExecutor(len(agents)) as threads:
        answered = list(threads.map(send, range(len(agents))))
    maps = []
    for epoch in range(first + 1, changing.json("osd dump")["epoch"] + 1):
        dump = changing.json("osd dump", epoch=epoch)
        changed = [osd["osd"] for osd in dump["osds"] if osd["primary_affinity"] < 1]
        maps.append({"modified": dump["modified"], "changed": changed})
    for agent in agents:
        agent.close()
    for osd in range(len(agents)):
        changing.command("osd primary-affinity", id=osd, weight=1.0)
    check_fact(
        "gathered_maps",
        {
            "sent_seconds": COMMAND_OFFSETS,
            "answered_seconds": [round(seconds, 2) for seconds in answered],
            "maps": maps,
        },
        lambda made: (len(made["maps"]) < len(COMMAND_OFFSETS), min(list_gaps(made["maps"])) > SHORTEST_GAP),
    )
