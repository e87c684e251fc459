"""Placement is what Ceph's own tools (16.2.15) computed from the same text maps, which lie in `crushed/`."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from predrain.actions.crush.crush_dump import crush_of_dump
from predrain.actions.crush.crush_map import ITEM_NONE, CrushMap
from predrain.actions.crush.crush_rules import CannotPlace, Chooser
from predrain.actions.crush.pg_placement import place_pgs
from predrain.actions.crush.pool import Pool
from predrain.data.ids import OsdId, pg_id
from tests.actions.recordings import CLEAN, changed, view_of

CRUSHED = Path(__file__).parent / "crushed"


@dataclass(frozen=True)
class Golden:
    """A text map as `crushtool --dump` shows it, and what Ceph's tool placed by it."""

    crush: CrushMap
    cases: list[dict[str, Any]]

    def differing(self, *rules: int) -> list[str]:
        """The mappings of all cases of these rules that come out otherwise."""
        found = []
        cases = [case for case in self.cases if case["rule"] in rules]
        assert {case["rule"] for case in cases} == set(rules)
        for case in cases:
            placed = self.placed(case["rule"], case["size"], len(case["sets"]), case["reweights"])
            for x, (got, told) in enumerate(zip(placed, case["sets"], strict=True)):
                if got != told + [ITEM_NONE] * (case["size"] - len(told)):
                    found.append(f"rule {case['rule']} x {x}: {told}, not {got}")
        return found

    def placed(self, rule: int, size: int, count: int, reweights: dict[str, float]) -> list[list[int]]:
        whole = {osd: 0x10000 for bucket in self.crush.buckets.values() for osd in bucket.items if osd >= 0}
        chooser = Chooser(self.crush, whole | {int(osd): int(w * 0x10000) for osd, w in reweights.items()})
        # crushtool places by the weight-set of pool 0, or by that of all pools
        sets: list[list[int]] = chooser.place(self.crush.rules[rule], np.arange(count), size, 0).tolist()
        return sets


def golden(name: str) -> Golden:
    document = json.loads((CRUSHED / f"{name}.json").read_bytes())
    return Golden(crush_of_dump(json.dumps(document["crush"]).encode()), document["cases"])


def test_a_pool_without_hashpspool_is_placed_by_the_sum_of_its_number_and_the_pgs() -> None:
    made = golden("pool-without-hashpspool")
    [case] = made.cases
    pool = Pool(1, "rbd", 3, 2, 18, 18, 0, erasure=False, hashpspool=False)
    whole = {OsdId(osd): 1.0 for osd in range(9)}
    placed = place_pgs(made.crush, {1: pool}, whole, {})
    assert [list(placed[pg_id(1, seed)]) for seed in range(18)] == case["sets"]
    assert place_pgs(made.crush, {1: replace(pool, hashpspool=True)}, whole, {}) != placed


@pytest.mark.parametrize(
    ("told", "hashed"),
    [
        ({"flags": 0, "flags_names": ""}, False),
        ({"flags": 8193, "flags_names": "hashpspool,selfmanaged_snaps"}, True),
        ({"flags_names": "nodelete"}, False),
        ({}, True),
    ],
)
def test_a_pool_has_hashpspool_when_its_dump_says_so_or_says_nothing(
    told: dict[str, Any], hashed: bool
) -> None:
    def tell(dump: Any) -> None:
        for pool in dump["pools"]:
            pool.pop("flags", None)
            pool.pop("flags_names", None)
            pool.update(told)

    pools = view_of(changed(CLEAN, "osd_dump", tell)).pools
    assert {pool.hashpspool for pool in pools.values()} == {hashed}


def test_copies_chosen_in_two_steps_end_where_the_pool_has_enough() -> None:
    assert golden("racks-of-one-host").differing(0) == []


def test_a_shard_without_a_rack_gives_its_position_to_the_shards_behind_it() -> None:
    assert golden("racks-of-one-host").differing(1) == []


def test_an_osd_that_a_rule_takes_by_name_stands_first_even_when_it_is_out() -> None:
    assert golden("racks-of-one-host").differing(2) == []


def test_shards_on_as_many_osds_keep_an_osd_that_is_out_as_ceph_does() -> None:
    made = golden("shards-on-osds")
    assert made.differing(0) == []
    assert any(3 in told for told in made.cases[0]["sets"])


def test_shards_two_to_a_host_are_placed_around_osds_that_are_out() -> None:
    assert golden("shards-on-osds").differing(1) == []


def test_an_osd_is_what_has_type_0_whatever_the_map_calls_it() -> None:
    assert golden("devices-named-otherwise").differing(0, 1) == []


def test_steps_that_ceph_dumps_as_numbers_are_obeyed() -> None:
    assert golden("legacy").differing(1) == []


def test_legacy_tunables_are_refused_only_for_rules_that_obey_them() -> None:
    made = golden("legacy")
    assert made.differing(2) == []
    with pytest.raises(CannotPlace, match=r"Rule replicated retries locally.*crush tunables jewel"):
        made.placed(0, 3, 8, {})


def test_a_straw_bucket_is_refused_only_for_rules_that_reach_it() -> None:
    made = golden("legacy")
    assert made.differing(1, 2) == []
    with pytest.raises(CannotPlace, match="Bucket old uses straw;"):
        made.placed(3, 3, 8, {})


def test_a_step_that_nobody_knows_is_refused_only_where_its_rule_is_used() -> None:
    document = json.loads((CRUSHED / "legacy.json").read_bytes())
    document["crush"]["rules"][0]["steps"].insert(0, {"opcode": 99, "arg1": 2, "arg2": 0})
    made = replace(golden("legacy"), crush=crush_of_dump(json.dumps(document["crush"]).encode()))
    assert made.differing(1, 2) == []
    with pytest.raises(CannotPlace, match="Rule replicated has a step 'opcode 99'"):
        made.placed(0, 3, 8, {})


def test_an_osd_that_hangs_in_two_hosts_is_one_copy_of_a_pg_but_may_be_two_shards() -> None:
    made = golden("osd-in-two-hosts")
    assert made.differing(0, 1) == []
    copies, shards = ([told.count(0) for told in case["sets"]] for case in made.cases)
    assert (max(copies), max(shards)) == (1, 2)


@pytest.mark.parametrize("name", sorted(file.name.split(".")[0] for file in CRUSHED.glob("*.txt")))
def test_a_set_without_an_osd_stays_as_it_is_when_the_override_of_the_osd_falls(name: str) -> None:
    made, chance, moved = golden(name), Random(name), 0
    kinds = {(case["rule"], case["size"]) for case in made.cases}
    osds = sorted({osd for bucket in made.crush.buckets.values() for osd in bucket.items if osd >= 0})
    for rule, size in sorted(kinds):
        high = {str(osd): chance.choice([0.5, 1.0, 1.0]) for osd in osds}
        before = made.placed(rule, size, 200, high)
        for osd in chance.sample(osds, min(4, len(osds))):
            low = high | {str(osd): high[str(osd)] * chance.choice([0.0, 0.4])}
            after = made.placed(rule, size, 200, low)
            assert [row for row in before if osd not in row] == [
                row for row, other in zip(after, before, strict=True) if osd not in other
            ]
            moved += before != after
    assert moved > 0
