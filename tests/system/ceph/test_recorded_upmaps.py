"""The upmap items that the monitor keeps under each kind of rule, beside the recording in `tests/actions/facts`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from tests.actions.recorded_facts import keep_map
from tests.system.ceph.conftest import CheckFact, Start
from tests.system.ceph.minicluster import MiniCluster
from tests.system.ceph.stretch import add_rules

PER_HOST = 3
OUT, DOWN, WITHOUT_WEIGHT = 0, 3, 6
"""One OSD on each of the first three hosts that is no usual target. Every third OSD, from 2, is an SSD."""
SETTLED_SECONDS = 10.0
TAKE, EMIT = " step take default\n", " step emit\n"
RULES = {
    "a_copy_in_each_rack": f"{TAKE} step choose firstn 2 type rack\n step chooseleaf firstn 1 type host\n{EMIT}",
    "two_osds_of_two_hosts": f"{TAKE} step choose firstn 2 type host\n step choose firstn 2 type osd\n{EMIT}",
    "racks_hosts_osds": f"{TAKE} step choose firstn 2 type rack\n step choose firstn 1 type host\n"
    f" step choose firstn 1 type osd\n{EMIT}",
    "rack_after_rack": f" step take rack0\n step chooseleaf firstn 1 type host\n{EMIT}"
    f" step take rack1\n step chooseleaf firstn 1 type host\n{EMIT}",
    "hdd_only": f" step take default class hdd\n step chooseleaf firstn 0 type host\n{EMIT}",
}
SIZES = {"a_copy_in_each_rack": 2, "two_osds_of_two_hosts": 4, "racks_hosts_osds": 2, "rack_after_rack": 2,
         "hdd_only": 3}  # fmt: skip
USUAL = frozenset(range(4 * PER_HOST)) - {OUT, DOWN, WITHOUT_WEIGHT}

Up = list[int]
Pairs = list[list[int]]


class Case(NamedTuple):
    """An upmap item that is tried: the pool, and the pairs for a PG with these members, if the PG has some."""

    name: str
    pool: str
    find: Callable[[Up], Iterator[Pairs]]


def host(osd: int) -> int:
    return osd // PER_HOST


def rack(osd: int) -> int:
    return host(osd) // 2


def is_hdd(osd: int) -> bool:
    return osd % PER_HOST != 2


def move(allowed: Callable[[Up, int, int], bool]) -> Callable[[Up], Iterator[Pairs]]:
    """Move one member to another OSD: `allowed` gets the other members, the source and the target."""

    def find(up: Up) -> Iterator[Pairs]:
        for source in up:
            others = [osd for osd in up if osd != source]
            for target in set(range(4 * PER_HOST)) - set(up):
                if allowed(others, source, target):
                    yield [[source, target]]

    return find


def to_other_host(others: Up, source: int, target: int) -> bool:
    return target in USUAL and host(target) not in {host(osd) for osd in (*others, source)}


def to_same_host(_: Up, source: int, target: int) -> bool:
    return target in USUAL and host(target) == host(source)


def to_host_of_member(others: Up, source: int, target: int) -> bool:
    return target in USUAL and host(target) != host(source) and host(target) in map(host, others)


def to_one(target: int) -> Callable[[Up, int, int], bool]:
    """Return a move to this OSD, which is on no other member's host."""
    return lambda others, _, to: to == target and host(to) not in map(host, others)


def move_beside(up: Up, first: int) -> Iterator[Pairs]:
    """Move one member to `first`, and another one to an OSD of its own host."""
    for pair in move(to_one(first))(up):
        for other in move(to_same_host)(up):
            if {*pair[0]}.isdisjoint(other[0]):
                yield [*pair, *other]


CASES = (
    Case("a host without a member", "by_host", move(to_other_host)),
    Case("the host of the source", "by_host", move(to_same_host)),
    Case("the host of another member", "by_host", move(to_host_of_member)),
    Case("a member", "by_host", lambda up: iter([[[up[0], up[1]]]])),
    Case("an OSD that is out", "by_host", move(to_one(OUT))),
    Case("an OSD that is down", "by_host", move(to_one(DOWN))),
    Case("an OSD without CRUSH weight", "by_host", move(to_one(WITHOUT_WEIGHT))),
    Case(
        "a source that CRUSH does not choose",
        "by_host",
        lambda up: ([[a, b]] for a in USUAL - set(up) for b in USUAL - set(up) if to_same_host(up, a, b) and a != b),
    ),
    Case(
        "a source that CRUSH does not choose, and one that it chooses",
        "by_host",
        lambda up: (
            [[up[0], a], [b, c]]
            for a in USUAL - set(up)
            for b in USUAL - {a, *up}
            for c in USUAL - {a, b, *up}
            if to_same_host(up, up[0], a)
        ),
    ),
    Case("an OSD that is out, and another OSD of a member's host", "by_host", lambda up: move_beside(up, OUT)),
    Case("an OSD without CRUSH weight, and another OSD of a member's host", "by_host",
         lambda up: move_beside(up, WITHOUT_WEIGHT)),
    Case("the other rack, which has a member", "a_copy_in_each_rack",
         move(lambda others, source, to: to_other_host(others, source, to) and rack(to) != rack(source))),
    Case("another host of the same rack", "a_copy_in_each_rack",
         move(lambda others, source, to: to_other_host(others, source, to) and rack(to) == rack(source))),
    Case("a third host", "two_osds_of_two_hosts", move(to_other_host)),
    Case("another OSD of the same host", "two_osds_of_two_hosts", move(to_same_host)),
    Case("another OSD of the same host", "racks_hosts_osds", move(to_same_host)),
    Case("another OSD of the same host", "rack_after_rack", move(to_same_host)),
    Case("the other rack, which has a member", "rack_after_rack",
         move(lambda others, source, to: to_other_host(others, source, to) and rack(to) != rack(source))),
    Case("an OSD of the same class", "hdd_only",
         move(lambda others, source, to: to_other_host(others, source, to) and is_hdd(to))),
    Case("an OSD of another class", "hdd_only",
         move(lambda others, source, to: to_other_host(others, source, to) and not is_hdd(to))),
)  # fmt: skip


def build_rules(cluster: MiniCluster) -> None:
    """Put the hosts into two racks, and make a pool of each rule; then one OSD is out, one down, one without weight."""
    for number in (0, 1):
        cluster.command("osd crush add-bucket", name=f"rack{number}", type="rack")
        cluster.command("osd crush move", name=f"rack{number}", args=["root=default"])
    for osd in range(4 * PER_HOST):
        name = cluster.host_of(f"osd.{osd}")
        if osd % PER_HOST == 0:
            cluster.command("osd crush move", name=name, args=[f"rack=rack{rack(osd)}"])
        cluster.command("osd crush rm-device-class", ids=[str(osd)])
        cluster.command(
            "osd crush set-device-class", ids=[str(osd)], **{"class": "hdd" if is_hdd(osd) else "ssd"}
        )
    add_rules(cluster, RULES)
    cluster.command("osd set-require-min-compat-client", version="luminous")
    cluster.command("balancer off", to="mgr")
    for pool, size in {"by_host": 3, **SIZES}.items():
        cluster.command("osd pool create", pool=pool, pg_num=32, pgp_num=32, pool_type="replicated")
        cluster.command("osd pool set", pool=pool, var="size", val=str(size))
        if pool in RULES:
            cluster.command("osd pool set", pool=pool, var="crush_rule", val=pool)
    cluster.wait_clean()
    cluster.command("osd set", key="noout")
    cluster.kill(f"osd.{DOWN}")
    cluster.command("osd down", ids=[str(DOWN)])
    cluster.command("osd reweight", id=OUT, weight=0.0)
    cluster.command("osd crush reweight", name=f"osd.{WITHOUT_WEIGHT}", weight=0.0)
    cluster.wait(lambda: DOWN not in cluster.osds(), 60, "the OSD down")
    cluster.flush()


def choose_pairs(cluster: MiniCluster) -> list[dict[str, Any]]:
    """Choose a PG of its own for each case, and its pairs. PGs with a member that is down are left out.

    The monitor computes the members by its newest map; the statistics of PGs can still have those of an earlier one.
    """
    sizes = {pool["pool"]: (pool["pool_name"], pool["size"]) for pool in cluster.json("osd dump")["pools"]}
    by_pool: dict[str, dict[str, Up]] = {}
    for pg in sorted((pg["pgid"] for pg in cluster.pgs()), key=lambda pg: (len(pg), pg)):
        pool, size = sizes[int(pg.split(".")[0])]
        if len(up := cluster.json("pg map", pgid=pg)["up"]) == size:
            by_pool.setdefault(pool, {})[pg] = up
    chosen: list[dict[str, Any]] = []
    for case in CASES:
        pgs = by_pool[case.pool]
        pg, pairs = next((pg, pairs) for pg, up in pgs.items() for pairs in case.find(up))
        chosen.append({"to": case.name, "rule": case.pool, "pg": pg, "up": pgs.pop(pg), "pairs": pairs})
    return chosen


def read_pairs(cluster: MiniCluster) -> dict[str, Pairs]:
    """Return the pairs of each PG that has some."""
    return {
        item["pgid"]: [[pair["from"], pair["to"]] for pair in item["mappings"]]
        for item in cluster.json("osd dump")["pg_upmap_items"]
    }


@pytest.fixture(scope="module")
def ruled(start: Start) -> MiniCluster:
    cluster = start(hosts=4, per_host=PER_HOST, store="memstore", size_gib=1)
    build_rules(cluster)
    return cluster


def test_the_monitor_keeps_the_recorded_upmap_items(ruled: MiniCluster, check_fact: CheckFact) -> None:
    fact: dict[str, Any] = {
        "osd_dump": keep_map(ruled.json("osd dump")),
        "crush": ruled.json("osd crush dump"),
    }
    cases = choose_pairs(ruled)
    for case in cases:
        flat = [osd for pair in case["pairs"] for osd in pair]
        ruled.command("osd pg-upmap-items", pgid=case["pg"], id=flat)
    time.sleep(SETTLED_SECONDS)
    kept = read_pairs(ruled)
    for case in cases:
        case["kept"] = kept.get(case["pg"], [])
    check_fact(
        "upmap_items",
        {**fact, "cases": cases},
        lambda made: {(case["to"], case["rule"]): len(case["kept"]) for case in made["cases"]},
    )
