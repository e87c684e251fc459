"""Placement is what real clusters computed: recorded dumps of three releases, osdmaptool's own figures."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predrain.actions.crush.affected_pgs import find_affected_pgs
from predrain.actions.crush.crush_dump import UnreadableCrushDump, crush_of_dump
from predrain.actions.crush.crush_hash import hash_three_words
from predrain.actions.crush.crush_map import ITEM_NONE, Bucket, CrushMap, CrushRule, RuleStep
from predrain.actions.crush.crush_rules import CannotPlace
from predrain.actions.crush.pg_placement import place_pgs
from predrain.actions.crush.pool import Pool
from predrain.data.ids import OsdId, PgId

RECORDED = Path(__file__).resolve().parents[1] / "data" / "recorded"
STATES = ("clean", "degraded", "drained", "draining", "fullish")


@dataclass(frozen=True)
class Recording:
    crush: CrushMap
    pools: dict[int, Pool]
    reweights: dict[OsdId, float]
    upmaps: dict[PgId, tuple[tuple[int, int], ...]]
    down: frozenset[OsdId]
    up: dict[PgId, tuple[int, ...]]

    def computed(self) -> dict[PgId, tuple[int, ...]]:
        return place_pgs(self.crush, self.pools, self.reweights, self.upmaps, self.down)


def recording(crush: bytes, osd_dump: dict[str, Any], pg_dump: dict[str, Any]) -> Recording:
    return Recording(
        crush=crush_of_dump(crush),
        pools={
            pool["pool"]: Pool(
                id=pool["pool"],
                name=pool["pool_name"],
                size=pool["size"],
                min_size=pool["min_size"],
                pg_num=pool["pg_num"],
                pg_num_target=pool["pg_num_target"],
                rule=pool["crush_rule"],
                erasure=pool["type"] == 3,
            )
            for pool in osd_dump["pools"]
        },
        reweights={OsdId(osd["osd"]): float(osd["weight"]) for osd in osd_dump["osds"]},
        upmaps={
            PgId(entry["pgid"]): tuple((pair["from"], pair["to"]) for pair in entry["mappings"])
            for entry in osd_dump["pg_upmap_items"]
        },
        down=frozenset(OsdId(osd["osd"]) for osd in osd_dump["osds"] if not osd["up"]),
        up={PgId(pg["pgid"]): tuple(pg["up"]) for pg in pg_dump["pg_map"]["pg_stats"]},
    )


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.json")), ids=lambda path: path.stem)
def test_every_pg_of_a_recorded_cluster_is_placed_where_ceph_placed_it(path: Path) -> None:
    document = json.loads(path.read_bytes())
    real = recording(
        json.dumps(document["osd_crush_dump"]).encode(), document["osd_dump"], document["pg_dump"]
    )
    assert len(real.up) == 65
    assert real.computed() == real.up


@pytest.mark.parametrize("release", ["pacific", "reef", "tentacle"])
@pytest.mark.parametrize("state", STATES)
def test_every_recorded_state_of_every_release_is_reproduced(
    release: str, state: str, shared_data: Path
) -> None:
    folder = shared_data / "recorded" / release / state
    real = recording(
        (folder / "osd_crush_dump.json").read_bytes(),
        json.loads((folder / "osd_dump.json").read_bytes()),
        json.loads(gzip.decompress((folder / "pg_dump.json.gz").read_bytes())),
    )
    assert len(real.up) == 65
    assert real.computed() == real.up


def tree(racks: int, hosts: int, osds: int, rule: CrushRule, weight: int = 0x10000) -> CrushMap:
    """`crushtool --build` of racks x hosts x osds: buckets are numbered from the leaves up, then the root."""
    buckets: dict[int, Bucket] = {}
    host_ids = [-1 - host for host in range(racks * hosts)]
    for host, host_id in enumerate(host_ids):
        items = tuple(range(host * osds, (host + 1) * osds))
        buckets[host_id] = Bucket(host_id, f"host{host}", "host", items, (weight,) * osds)
    rack_ids = [-1 - racks * hosts - rack for rack in range(racks)]
    for rack, rack_id in enumerate(rack_ids):
        items = tuple(host_ids[rack * hosts : (rack + 1) * hosts])
        buckets[rack_id] = Bucket(rack_id, f"rack{rack}", "rack", items, (weight * osds,) * hosts)
    root = rack_ids[-1] - 1
    buckets[root] = Bucket(root, "root", "root", tuple(rack_ids), (weight * osds * hosts,) * racks)
    take = RuleStep("take", item=root)
    return CrushMap(
        buckets, {rule.id: CrushRule(rule.id, rule.name, (*rule.steps[:-2], take, *rule.steps[-2:]))}
    )


FIRSTN = CrushRule(0, "replicated", (RuleStep("chooseleaf_firstn", type="host"), RuleStep("emit")))
INDEP = CrushRule(
    0,
    "ec",
    (
        RuleStep("set_chooseleaf_tries", item=5),
        RuleStep("set_choose_tries", item=100),
        RuleStep("chooseleaf_indep", type="host"),
        RuleStep("emit"),
    ),
)


def pool(size: int, pg_num: int, erasure: bool) -> dict[int, Pool]:
    return {1: Pool(1, "pool", size, 2, pg_num, pg_num, 0, erasure)}


def reweighted(crush: CrushMap, osd: int, weight: int) -> CrushMap:
    """`osd crush reweight`, with the change carried up the tree."""
    buckets = dict(crush.buckets)
    item, change = osd, None
    while holder := next((b for b in buckets.values() if item in b.items), None):
        at = holder.items.index(item)
        change = weight - holder.weights[at] if change is None else change
        weights = (*holder.weights[:at], holder.weights[at] + change, *holder.weights[at + 1 :])
        buckets[holder.id] = Bucket(holder.id, holder.name, holder.type, holder.items, weights)
        item = holder.id
    return CrushMap(buckets, crush.rules)


@pytest.mark.slow
def test_a_generated_map_of_6000_osds_gives_osdmaptools_own_figures() -> None:
    """osdmaptool 16.2.15, same map: 82 PGs on osd.17; out changes 82, CRUSH weight 0 243, 238 between."""
    crush = tree(30, 10, 20, INDEP)
    pools = pool(10, 48_000, erasure=False)
    whole = {OsdId(osd): 1.0 for osd in range(6000)}
    before = place_pgs(crush, pools, whole, {})
    assert before[PgId("1.0")] == (2060, 2380, 1206, 5703, 3181, 1260, 3466, 5637, 426, 212)
    assert before[PgId("1.1")] == (2345, 1008, 1383, 3760, 3401, 5961, 3642, 5123, 3787, 1134)
    assert before[PgId("1.5")] == (3019, 458, 2640, 1408, 403, 5704, 1720, 2824, 4852, 4762)
    assert sum(17 in up for up in before.values()) == 82

    out = place_pgs(crush, pools, {**whole, OsdId(17): 0.0}, {})
    gone = place_pgs(reweighted(crush, 17, 0), pools, whole, {})
    both = place_pgs(reweighted(crush, 17, 0), pools, {**whole, OsdId(17): 0.0}, {})

    def changed(a: dict[PgId, tuple[int, ...]], b: dict[PgId, tuple[int, ...]]) -> int:
        return sum(a[pg] != b[pg] for pg in a)

    assert changed(before, out) == 82
    assert changed(before, gone) == 243
    assert changed(out, gone) == 238
    assert gone == both


def test_each_of_16384_pgs_is_placed_on_three_hosts_of_450_osds() -> None:
    crush = tree(3, 15, 10, FIRSTN)
    reweights = {OsdId(osd): 1.0 for osd in range(450)}
    placed = place_pgs(crush, pool(3, 16_384, erasure=False), reweights, {})
    assert len(placed) == 16_384
    assert {len({osd // 10 for osd in osds}) for osds in placed.values()} == {3}


SMALL = tree(1, 5, 2, FIRSTN)
SMALL_EC = tree(1, 4, 1, INDEP)
SMALL_EC_WIDE = tree(1, 5, 2, INDEP)
ALL_IN = {OsdId(osd): 1.0 for osd in range(10)}
PG = PgId("1.0")


@settings(max_examples=40)
@given(st.lists(st.sampled_from([0.0, 0.2, 0.7, 1.0]), min_size=10, max_size=10))
def test_a_replicated_set_never_repeats_a_host_nor_uses_an_osd_that_is_out(weights: list[float]) -> None:
    reweights = {OsdId(osd): weight for osd, weight in enumerate(weights)}
    for up in place_pgs(SMALL, pool(3, 32, erasure=False), reweights, {}).values():
        assert len({osd // 2 for osd in up}) == len(up)
        assert all(weights[osd] > 0 for osd in up)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.sets(st.integers(0, 63), max_size=20))
def test_placing_a_few_pgs_gives_what_placing_all_gives(seeds: set[int]) -> None:
    pools = pool(3, 64, erasure=False)
    wanted = [PgId(f"1.{seed:x}") for seed in seeds]
    every = place_pgs(SMALL, pools, ALL_IN, {})
    assert place_pgs(SMALL, pools, ALL_IN, {}, only=wanted) == {pg: every[pg] for pg in wanted}


def test_a_down_osd_leaves_a_replicated_set_shorter() -> None:
    up = place_pgs(SMALL, pool(3, 1, erasure=False), ALL_IN, {})[PG]
    down = frozenset({OsdId(up[1])})
    assert place_pgs(SMALL, pool(3, 1, erasure=False), ALL_IN, {}, down)[PG] == (up[0], up[2])


def test_a_down_osd_leaves_a_hole_in_an_erasure_coded_set() -> None:
    up = place_pgs(SMALL_EC, pool(4, 1, erasure=True), ALL_IN, {})[PG]
    down = frozenset({OsdId(up[1])})
    assert place_pgs(SMALL_EC, pool(4, 1, erasure=True), ALL_IN, {}, down)[PG] == (up[0], ITEM_NONE, *up[2:])


def test_an_erasure_code_as_wide_as_the_hosts_has_a_hole_once_an_osd_is_out() -> None:
    placed = place_pgs(SMALL_EC, pool(4, 16, erasure=True), {**ALL_IN, OsdId(0): 0.0}, {})
    assert all(ITEM_NONE in up for up in placed.values())


def test_an_upmap_moves_one_member_and_keeps_the_others() -> None:
    up = place_pgs(SMALL, pool(3, 1, erasure=False), ALL_IN, {})[PG]
    free = next(osd for osd in range(10) if osd // 2 not in {member // 2 for member in up})
    mapped = place_pgs(SMALL, pool(3, 1, erasure=False), ALL_IN, {PG: ((up[1], free),)})[PG]
    assert mapped == (up[0], free, up[2])


def test_an_upmap_to_an_osd_that_is_out_or_already_there_does_nothing() -> None:
    pools = pool(3, 1, erasure=False)
    up = place_pgs(SMALL, pools, ALL_IN, {})[PG]
    free = next(osd for osd in range(10) if osd // 2 not in {member // 2 for member in up})
    out = {**ALL_IN, OsdId(free): 0.0}
    assert place_pgs(SMALL, pools, out, {PG: ((up[1], free),)})[PG] == place_pgs(SMALL, pools, out, {})[PG]
    assert place_pgs(SMALL, pools, ALL_IN, {PG: ((up[1], up[2]),)})[PG] == up


def test_an_osd_without_primary_affinity_follows_and_its_set_stays_the_same() -> None:
    pools = pool(3, 64, erasure=False)
    before = place_pgs(SMALL, pools, ALL_IN, {})
    after = place_pgs(SMALL, pools, ALL_IN, {}, affinities={OsdId(3): 0.0})
    assert any(up[0] == 3 for up in before.values())
    assert all(up[0] != 3 for up in after.values())
    assert {pg: set(up) for pg, up in after.items()} == {pg: set(up) for pg, up in before.items()}


@pytest.mark.parametrize(
    ("algorithm", "cure"),
    [
        ("straw", "set-all-straw-buckets-to-straw2"),
        ("uniform", "a new straw2 bucket"),
        ("list", "a new straw2 bucket"),
        ("tree", "a new straw2 bucket"),
    ],
)
def test_a_bucket_of_another_algorithm_is_refused_by_name_with_its_cure(algorithm: str, cure: str) -> None:
    root = next(bucket for bucket in SMALL.buckets.values() if bucket.type == "root")
    legacy = Bucket(root.id, root.name, root.type, root.items, root.weights, algorithm=algorithm)
    with pytest.raises(CannotPlace, match=f"Bucket root uses {algorithm};.*{cure}.*or drain by hand"):
        place_pgs(CrushMap({**SMALL.buckets, root.id: legacy}, SMALL.rules), pool(3, 1, False), ALL_IN, {})


@pytest.mark.parametrize(
    "steps",
    [
        (RuleStep("take", item=-7), RuleStep("choose_msr", num=3, type="host"), RuleStep("emit")),
        (RuleStep("set_msr_descents", item=3), RuleStep("take", item=-7), RuleStep("emit")),
    ],
)
def test_a_rule_with_multi_step_retries_is_refused_by_name(steps: tuple[RuleStep, ...]) -> None:
    crush = CrushMap(SMALL.buckets, {0: CrushRule(0, "wide", steps)})
    with pytest.raises(CannotPlace, match=r"Rule wide has multi-step retries \(MSR\), .*osd pool set POOL"):
        place_pgs(crush, pool(3, 1, erasure=False), ALL_IN, {})


def test_bytes_that_are_no_crush_dump_are_refused_with_one_sentence() -> None:
    with pytest.raises(UnreadableCrushDump, match="ceph osd crush dump"):
        crush_of_dump(b'{"devices": 3}')


@pytest.mark.slow
@settings(max_examples=30)
@given(st.integers(0, 9), st.lists(st.integers(0, 0x10000), min_size=1, max_size=4), st.booleans())
def test_only_affected_pgs_move_at_any_weight_that_an_osd_passes_on_its_way_to_0(
    osd: int, weights: list[int], erasure: bool
) -> None:
    crush = SMALL_EC_WIDE if erasure else SMALL
    pools = pool(3, 64, erasure)
    found = find_affected_pgs(crush, reweighted(crush, osd, 0), pools, ALL_IN)
    before = place_pgs(crush, pools, ALL_IN, {})
    for weight in weights:
        after = place_pgs(reweighted(crush, osd, weight), pools, ALL_IN, {})
        assert {pg for pg in after if after[pg] != before[pg]} <= found
    assert len(found) < 64


@settings(max_examples=40)
@given(
    st.integers(0, 9),
    st.lists(st.sampled_from([0.0, 0.4, 1.0, 1.0, 1.0]), min_size=10, max_size=10),
    st.booleans(),
)
def test_affected_pgs_are_the_same_when_another_root_forces_every_osd_to_be_drawn(
    osd: int, overrides: list[float], erasure: bool
) -> None:
    crush = SMALL_EC_WIDE if erasure else SMALL
    host = next(bucket for bucket in crush.buckets.values() if min(bucket.items) >= 0)
    other = Bucket(-99, "other", "root", (host.id,), (sum(host.weights),))
    shared = CrushMap({**crush.buckets, other.id: other}, crush.rules)
    reweights = {OsdId(number): weight for number, weight in enumerate(overrides)}
    pools, lowest = pool(3, 64, erasure), reweighted(crush, osd, 0)
    shared_lowest = CrushMap({**lowest.buckets, other.id: other}, crush.rules)
    assert find_affected_pgs(crush, lowest, pools, reweights) == find_affected_pgs(
        shared, shared_lowest, pools, reweights
    )


@settings(max_examples=20)
@given(st.integers(0, 70_000))
def test_a_hash_does_not_depend_on_how_many_are_computed_at_once(seed: int) -> None:
    seeds = np.arange(seed, seed + 20_000, dtype=np.uint32)
    items, r = np.array([3, 0xFFFFFFF0], dtype=np.uint32), np.array([[5]], dtype=np.uint32)
    together = hash_three_words(seeds[:, None], items, r)
    rows = [0, 1, 16_383, 16_384, 19_999]
    alone = [hash_three_words(seeds[row : row + 1, None], items, r)[0] for row in rows]
    assert together[rows].tolist() == np.array(alone).tolist()
