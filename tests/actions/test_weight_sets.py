"""Weight-sets (`choose_args`): placement by them is what Ceph's own tools computed, and no CRUSH weight is touched."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predrain.actions.cluster.cluster_port import CrushReweight, Reweight
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.capacity import OsdCapacity
from predrain.actions.core.in_flight import Allowance
from predrain.actions.crush.affected_pgs import find_affected_pgs
from predrain.actions.crush.crush_dump import UnreadableCrushDump, crush_of_dump
from predrain.actions.crush.crush_map import (
    COMPAT_SET,
    ITEM_NONE,
    ChooseArg,
    ChooseArgs,
    CrushMap,
    CrushRule,
    RuleStep,
)
from predrain.actions.crush.crush_reweight import find_bounds, with_crush_weight, without_osd
from predrain.actions.crush.crush_rules import Chooser
from predrain.actions.crush.pg_placement import place_pgs
from predrain.actions.crush.pool import Pool
from predrain.actions.mechanics import crush_removal
from predrain.actions.mechanics import crush_weight_ladder as weight
from predrain.actions.placement.what_if import (
    apply_crush_weights,
    compute_map_fingerprint,
    compute_up_sets,
    find_weight_affected_pgs,
)
from predrain.actions.simulator import SimulatedCluster
from predrain.actions.simulator.cluster_spec import ClusterSpec, crush_tree
from predrain.data.drain import DrainState, Intent, Mechanic
from predrain.data.ids import OsdId, PgId
from predrain.data.messages import describe_plan_refusal
from predrain.data.plan_refusal import PlanRefusalKind
from tests.actions.made import a_context, a_drain, a_plan, calm_view, ec_spec, wide_spec
from tests.actions.run import Run, map_of
from tests.actions.test_crush_golden import CRUSHED, golden
from tests.actions.test_crush_place import ALL_IN, SMALL, SMALL_EC_WIDE, pool

FIRSTN_RULES, INDEP_RULES = (0, 1, 2), (3, 4)
GRAINS = st.sampled_from([0, 0x3000, 0x8000, 0x10000, 0x10000, 0x18000, 0x40000])


@pytest.mark.parametrize("rule", FIRSTN_RULES)
@pytest.mark.parametrize("name", ["weight-set-of-all-pools", "weight-set-of-one-pool"])
def test_copies_are_placed_by_the_weights_of_their_position(name: str, rule: int) -> None:
    assert golden(name).differing(rule) == []


@pytest.mark.parametrize("rule", INDEP_RULES)
@pytest.mark.parametrize("name", ["weight-set-of-all-pools", "weight-set-of-one-pool"])
def test_shards_are_placed_by_the_weights_of_their_position(name: str, rule: int) -> None:
    assert golden(name).differing(rule) == []


@pytest.mark.parametrize("rule", [*FIRSTN_RULES, *INDEP_RULES])
def test_the_golden_placements_are_not_those_without_weight_sets(rule: int) -> None:
    for name in ("weight-set-of-all-pools", "weight-set-of-one-pool"):
        made = golden(name)
        plain = replace(made, crush=replace(made.crush, choose_args={}))
        assert len(plain.differing(rule)) > 10


def test_a_pool_without_a_weight_set_of_its_own_is_placed_by_the_compat_set() -> None:
    crush = golden("weight-set-of-one-pool").crush
    assert set(crush.choose_args) == {COMPAT_SET, 0, 7}
    assert crush.find_choose_args(7) == crush.choose_args[7]
    assert crush.find_choose_args(1) == crush.choose_args[COMPAT_SET]


def test_an_empty_weight_set_of_a_pool_hides_the_compat_set() -> None:
    crush = golden("weight-set-of-all-pools").crush
    hidden = replace(crush, choose_args={**crush.choose_args, 3: {}})
    seeds = np.arange(64)
    reweights = dict.fromkeys(range(12), 0x10000)
    plain = Chooser(replace(crush, choose_args={}), reweights).place(crush.rules[0], seeds, 3)
    assert (Chooser(hidden, reweights).place(crush.rules[0], seeds, 3, 3) == plain).all()
    assert (Chooser(hidden, reweights).place(crush.rules[0], seeds, 3, 4) != plain).any()


@lru_cache
def recorded() -> Any:
    """A real cluster with a compat weight-set and one of a pool, before and after a CRUSH weight has changed."""
    return json.loads((CRUSHED / "weight-sets-of-a-cluster.json").read_bytes())


def crush_of(when: str) -> CrushMap:
    return crush_of_dump(json.dumps(recorded()[when]["crush"]).encode())


@pytest.mark.parametrize("when", ["before", "after"])
def test_every_pg_of_a_real_cluster_with_weight_sets_is_placed_where_osdmaptool_places_it(when: str) -> None:
    pools = {
        row["pool"]: Pool(
            id=row["pool"],
            name=row["pool_name"],
            size=row["size"],
            min_size=row["min_size"],
            pg_num=row["pg_num"],
            pg_num_target=row["pg_num"],
            rule=row["crush_rule"],
            erasure=row["type"] == 3,
        )
        for row in recorded()["pools"]
    }
    reweights = {OsdId(int(osd)): float(known) for osd, known in recorded()["reweights"].items()}
    up = {PgId(pg): tuple(members) for pg, members in recorded()[when]["up"].items()}
    assert len(up) > 40
    assert place_pgs(crush_of(when), pools, reweights, {}) == up
    plain = replace(crush_of(when), choose_args={})
    assert place_pgs(plain, pools, reweights, {}) != up


def test_a_crush_weight_changes_weight_sets_as_the_mon_changed_them() -> None:
    assert crush_of("after") != crush_of("before")
    assert with_crush_weight(crush_of("before"), recorded()["osd"], recorded()["weight"]) == crush_of("after")


def test_a_crush_weight_that_is_given_back_does_not_give_the_weight_set_back() -> None:
    before = crush_of("before")
    osd = recorded()["osd"]
    own = next(
        weight
        for bucket in before.buckets.values()
        for item, weight in zip(bucket.items, bucket.weights, strict=True)
        if item == osd
    )
    there_and_back = with_crush_weight(with_crush_weight(before, osd, 0.0), osd, own / 0x10000)
    assert there_and_back.buckets == before.buckets
    assert there_and_back.choose_args != before.choose_args


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"-1": [{"bucket_id": -10, "weight_set": [[1.0]]}]}, "another number of items"),
        ({"-1": [{"bucket_id": -10, "ids": [1, 2, 3]}]}, "another number of items"),
        ({"-1": [{"bucket_id": -10, "weight_set": [[-1.0, 1.0]]}]}, "out of range"),
        ({"rbd": []}, "not the id of a pool"),
        ({"-1": [{"weight_set": [[1.0, 1.0]]}]}, "bucket_id"),
    ],
)
def test_choose_args_that_do_not_fit_the_map_are_refused(args: Any, told: str) -> None:
    document = json.loads((CRUSHED / "weight-set-of-all-pools.json").read_bytes())["crush"]
    with pytest.raises(UnreadableCrushDump, match=told):
        crush_of_dump(json.dumps({**document, "choose_args": args}).encode())


def weight_sets(crush: CrushMap) -> st.SearchStrategy[ChooseArgs]:
    """Weights of one to three positions for some of a map's buckets."""

    def rows(width: int) -> st.SearchStrategy[tuple[tuple[int, ...], ...]]:
        return st.lists(st.tuples(*[GRAINS] * width), min_size=1, max_size=3).map(tuple)

    return st.fixed_dictionaries(
        {},
        optional={id_: rows(len(bucket.items)).map(ChooseArg) for id_, bucket in crush.buckets.items()},
    )


@pytest.mark.slow
@settings(max_examples=60)
@given(st.data(), st.integers(0, 9), st.lists(st.integers(0, 0x10000), min_size=1, max_size=3), st.booleans())
def test_only_affected_pgs_move_under_weight_sets_at_any_crush_weight_that_an_osd_passes(
    data: st.DataObject, osd: int, weights: list[int], erasure: bool
) -> None:
    plain = SMALL_EC_WIDE if erasure else SMALL
    sets = {COMPAT_SET: data.draw(weight_sets(plain)), 2: data.draw(weight_sets(plain))}
    crush = replace(plain, choose_args=sets)
    pools = {**pool(3, 64, erasure), 2: replace(pool(3, 64, erasure)[1], id=2)}
    way = [crush, *(with_crush_weight(crush, osd, grains / 0x10000) for grains in (0x10000, 0, *weights))]
    lowest, highest = find_bounds(way[:3])
    found = find_affected_pgs(highest, lowest, pools, ALL_IN)
    before = place_pgs(crush, pools, ALL_IN, {})
    for passed in way:
        after = place_pgs(passed, pools, ALL_IN, {})
        assert {pg for pg in after if after[pg] != before[pg]} <= found


@pytest.mark.slow
@settings(max_examples=30)
@given(st.data(), st.booleans())
def test_any_map_between_two_bounds_moves_only_affected_pgs(data: st.DataObject, erasure: bool) -> None:
    plain = SMALL_EC_WIDE if erasure else SMALL
    ends = [replace(plain, choose_args={COMPAT_SET: data.draw(weight_sets(plain))}) for _ in range(3)]
    lowest, highest = find_bounds(ends)
    pools = pool(3, 64, erasure)
    found = find_affected_pgs(highest, lowest, pools, ALL_IN)
    one, *others = (place_pgs(each, pools, ALL_IN, {}) for each in ends)
    for other in others:
        assert {pg for pg in one if one[pg] != other[pg]} <= found


def test_a_weight_that_differs_at_the_second_position_alone_stirs_the_pgs_that_it_moves() -> None:
    host = next(bucket for bucket in SMALL.buckets.values() if min(bucket.items) >= 0)
    same = {id_: ChooseArg((bucket.weights,) * 2) for id_, bucket in SMALL.buckets.items()}
    second = {**same, host.id: ChooseArg((host.weights, (0, *host.weights[1:])))}
    ends = [replace(SMALL, choose_args={COMPAT_SET: args}) for args in (same, second)]
    pools = pool(3, 64, erasure=False)
    lowest, highest = find_bounds(ends)
    found = find_affected_pgs(highest, lowest, pools, ALL_IN)
    one, other = (place_pgs(each, pools, ALL_IN, {}) for each in ends)
    moved = {pg for pg in one if one[pg] != other[pg]}
    assert moved
    assert moved <= found
    assert len(found) < 64


def a_balanced_spec(spec: ClusterSpec | None = None) -> ClusterSpec:
    """A cluster with a compat weight-set that differs from its CRUSH weights, as a balancer leaves it."""
    spec = spec or wide_spec(pg_num=64, used=0.2)
    numbers = count()

    def shifted(weights: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(round(weight * (0.8 + 0.1 * (next(numbers) % 4))) for weight in weights)

    args = {id_: ChooseArg((shifted(bucket.weights),)) for id_, bucket in spec.crush.buckets.items()}
    return replace(spec, crush=replace(spec.crush, choose_args={COMPAT_SET: args}))


def balanced_view() -> ClusterView:
    view = SimulatedCluster(a_balanced_spec(), 1).view()
    return replace(view, as_of=calm_view().as_of)


def test_a_drain_on_a_map_with_weight_sets_is_planned_as_a_walk_by_upmap() -> None:
    made = a_plan(balanced_view(), a_drain())
    assert made.mechanic is Mechanic.UPMAP_WALK
    assert made.refusals == ()
    assert made.moves


@pytest.mark.slow
def test_a_drain_on_a_map_with_weight_sets_ends_and_its_cancel_gives_all_back() -> None:
    with Run(a_balanced_spec()) as run:
        run.tick()
        before, crush = map_of(run), run.cluster.view().crush
        drain = run.until(run.drain("osd.0"), DrainState.VERIFIED)
        assert all(0 not in pg.acting for pg in run.cluster.view().pgs.values())
        assert run.cluster.view().crush == crush
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        run.until(drain, DrainState.CANCELLED)
        assert map_of(run) == before
        assert not any(isinstance(command, CrushReweight) for command in run.watched.commands)


def test_a_fill_on_a_map_with_weight_sets_plans_every_pg_that_belongs_on_the_new_disk() -> None:
    cluster = SimulatedCluster(a_balanced_spec(), 1)
    home = {pg.id for pg in cluster.view().pgs.values() if 0 in pg.up}
    cluster.apply(Reweight(OsdId(0), 0.0))
    while any(0 in pg.acting for pg in cluster.view().pgs.values()):
        cluster.advance(60)
    made = a_plan(cluster.view(), a_drain(0, DrainState.PROPOSED, intent=Intent.FILL))
    assert made.refusals == ()
    assert {move.pg for move in made.moves if move.target == 0} == home


def test_old_clients_on_a_map_with_weight_sets_get_rungs_of_the_override() -> None:
    view = replace(balanced_view(), require_min_compat_client="jewel")
    made = a_plan(view, a_drain())
    assert made.mechanic is Mechanic.OVERRIDE_LADDER
    assert made.refusals == ()


def test_a_removal_on_a_map_with_weight_sets_is_refused_with_the_cure() -> None:
    made = a_plan(balanced_view(), a_drain(intent=Intent.REMOVE))
    assert [one.kind for one in made.refusals] == [PlanRefusalKind.REMOVAL_WITH_WEIGHT_SETS]
    told = describe_plan_refusal(made.refusals[0])
    assert "overwrites weights in them, which predrain does not give back" in told
    assert "weight-set rm-compat" in told
    assert made.affected_pgs == ()


def test_a_host_that_is_emptied_by_crush_weight_is_refused_on_a_map_with_weight_sets() -> None:
    steps = (
        RuleStep("set_chooseleaf_tries", item=1),
        RuleStep("set_choose_tries", item=11),
        RuleStep("take", item=-1),
        RuleStep("chooseleaf_indep", type="host"),
        RuleStep("emit"),
    )
    spec = ec_spec(hosts=3, per_host=3)
    spec = replace(spec, crush=crush_tree(spec.osds, {1: CrushRule(1, "few", steps)}))
    plain = SimulatedCluster(spec, 1).view()
    assert a_plan(plain, a_drain()).mechanic is Mechanic.CRUSH_LADDER
    view = SimulatedCluster(a_balanced_spec(spec), 1).view()
    made = a_plan(view, a_drain())
    assert [one.kind for one in made.refusals] == [PlanRefusalKind.ZERO_WITH_WEIGHT_SETS]
    told = describe_plan_refusal(made.refusals[0])
    assert "the mechanic that is left, CRUSH weight 0, is not to be had" in told
    assert "weight-set rm-compat" in told


def an_allowance(view: ClusterView) -> Allowance:
    return Allowance(3, 8, 2, OsdCapacity(view, 0.85, {}), {})


def test_a_crush_weight_does_not_go_down_while_weight_sets_stand() -> None:
    view = balanced_view()
    drain = a_drain(0, DrainState.DRAINED, intent=Intent.REMOVE)
    context = a_context(view, drain)
    for batch in (
        crush_removal.build_removal_step(view, drain, OsdId(0), context, an_allowance(view)),
        weight.build_weight_step(view, OsdId(0), 0.0, an_allowance(view), 4, idle=True),
    ):
        assert batch.commands == ()
        assert "weight-sets (choose_args)" in batch.waits_for


def test_a_fingerprint_changes_with_a_weight_set() -> None:
    view, drain = balanced_view(), a_drain()
    args = view.crush.choose_args[COMPAT_SET]
    bucket = next(iter(args))
    row = args[bucket].weight_set[0]
    other = {COMPAT_SET: {**args, bucket: ChooseArg(((row[0] + 1, *row[1:]),))}}
    changed = replace(view, crush=replace(view.crush, choose_args=other))
    assert compute_map_fingerprint(changed, drain, frozenset()) != compute_map_fingerprint(
        view, drain, frozenset()
    )


def test_pgs_that_a_weight_can_move_hold_those_that_the_weight_set_moves() -> None:
    view = balanced_view()
    found = find_weight_affected_pgs(view, (OsdId(0),), {})
    for share in (1.0, 0.5, 0.0):
        crush = apply_crush_weights(view, {OsdId(0): view.osds[OsdId(0)].crush_weight * share})
        moved = {pg for pg, up in compute_up_sets(view, crush=crush).items() if up != view.pgs[pg].up}
        assert moved
        assert moved <= found


def test_a_purged_osd_leaves_every_weight_set_without_it() -> None:
    crush = golden("weight-set-of-one-pool").crush
    left = without_osd(with_crush_weight(crush, 0, 0.0), 0)
    bucket = left.buckets[-10]
    assert bucket.items == (1,)
    assert all(
        {len(row) for row in args[-10].weight_set} == {1} for args in left.choose_args.values() if -10 in args
    )
    assert left.choose_args[0][-10].ids == (101,)
    sets = Chooser(left, dict.fromkeys(range(1, 12), 0x10000)).place(left.rules[0], np.arange(64), 3, 0)
    assert 0 not in sets
    assert ITEM_NONE not in sets
