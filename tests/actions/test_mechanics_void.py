"""Upmap items that would put two shards of a PG into one host are removed before the weight changes, because the mon
drops them seconds later.

The judge of every run refuses a PG whose shards lie closer together than before, and more PGs on their way than the
policy allows.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from predrain.actions.cluster.cluster_port import SetUpmap
from predrain.actions.core.drain_policy import Policy
from predrain.actions.crush.crush_map import ITEM_NONE, CrushRule, RuleStep
from predrain.actions.crush.upmap_check import find_upmap_check
from predrain.actions.placement.failure_domains import find_failure_domains
from predrain.actions.placement.what_if import (
    apply_crush_weights,
    compute_up_sets,
    find_dropped_upmaps,
    find_kept_pairs,
    find_void_upmaps,
    is_choice_changed,
)
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import OsdId, PgId
from tests.actions.made import GB, build_osd_specs, crush_tree, ec_spec, wide_spec
from tests.actions.run import Run, map_of, whole

S = DrainState
POLICY = Policy(out_share_max=0.5)


def removed(run: Run, osd: int) -> Drain:
    """A drain of the OSD for good, approved."""
    drain = run.controller.requests.propose(f"osd.{osd}", "operator", "test", run.cluster.now, Intent.REMOVE)
    return run.controller.requests.approve(drain.id, "operator", run.cluster.now)


def cancelled(run: Run, drain: Drain) -> None:
    run.controller.requests.cancel(drain.id, "operator", run.cluster.now)


@pytest.mark.slow
def test_on_the_way_back_of_a_removal_its_own_pin_is_given_back_before_the_weight_that_makes_it_void() -> (
    None
):
    with Run(wide_spec(hosts=12, racks=0, pg_num=512, used=0.1), policy=POLICY) as run:
        before = map_of(run)
        run.tick()
        drain = removed(run, 0)
        run.until(drain, S.VERIFIED)
        cancelled(run, drain)
        run.until(drain, S.CANCELLED)
        run.ticks(20)
        assert map_of(run) == before


@pytest.mark.slow
def test_the_upmap_of_another_person_comes_back_though_crush_chose_its_target_while_an_osd_was_removed() -> (
    None
):
    with Run(wide_spec(hosts=12, per_host=2, racks=0, pg_num=128, used=0.1), policy=POLICY) as run:
        view = run.cluster.view()
        emptied = apply_crush_weights(view, {OsdId(6): 0.0})
        after = compute_up_sets(view, crush=emptied)
        pg, target = next(
            (pg, max(set(after[pg]) - set(up)))
            for pg, up in compute_up_sets(view).items()
            if set(up) - set(after[pg]) == {7}  # the other OSD of the host
        )
        run.cluster.apply(SetUpmap(pg, ((7, target),)))
        run.ticks(20)
        before = map_of(run)
        drain = removed(run, 6)
        run.until(drain, S.VERIFIED)
        run.ticks(120)
        assert run.cluster.view().osds[OsdId(6)].crush_weight == 0.0
        assert pg not in run.cluster.view().upmap_items, "the mon dropped it"
        cancelled(run, drain)
        run.until(drain, S.CANCELLED)
        run.ticks(20)
        assert map_of(run) == before


def test_an_upmap_falls_where_a_weight_leaves_its_source_to_no_pg() -> None:
    view = Run(wide_spec(hosts=12, per_host=2, racks=0, pg_num=128)).cluster.view()
    pg = next(pg for pg in view.pgs.values() if 6 in pg.up)
    free = next(
        osd for osd in view.osds if view.osds[osd].host not in {view.osds[OsdId(o)].host for o in pg.up}
    )
    mapped = replace(view, upmap_items={pg.id: ((6, int(free)),)})
    six = OsdId(6)
    assert find_dropped_upmaps(mapped, {six: 0.0}, {}) == {pg.id}
    assert find_dropped_upmaps(mapped, {}, {six: 0.0}) == {pg.id}
    assert not find_dropped_upmaps(mapped, {OsdId(free): 0.5}, {}), "its target stays in"
    assert not find_dropped_upmaps(mapped, {}, {})
    assert not find_dropped_upmaps(mapped, {}, {six: 0.0}, [PgId("1.ffff")]), "the weight does not reach it"


def test_a_weight_changes_the_choice_of_those_pgs_alone_for_which_crush_chooses_the_osd() -> None:
    view = Run(wide_spec(hosts=12, per_host=2, racks=0, pg_num=128)).cluster.view()
    six = OsdId(6)
    on_it = [pg.id for pg in view.pgs.values() if 6 in pg.up]
    others = [pg.id for pg in view.pgs.values() if 6 not in pg.up and 7 not in pg.up]
    assert is_choice_changed(view, {six: 0.0}, {}, on_it)
    assert is_choice_changed(view, {}, {six: 0.0}, on_it[:1])
    assert not is_choice_changed(view, {six: 0.0}, {}, others)
    assert not is_choice_changed(view, {six: 1.0}, {}, on_it), "the weight that it has"
    assert not is_choice_changed(view, {}, {}, on_it)


@pytest.mark.slow
def test_removals_that_are_cancelled_one_after_the_other_take_the_pins_of_the_others_off_in_time() -> None:
    with Run(wide_spec(racks=0, pg_num=128, used=0.3), policy=POLICY) as run:
        before = map_of(run)["weights"]
        run.tick()
        drains = []
        for osd, looks in ((10, 53), (1, 7), (6, 155)):
            drains.append(removed(run, osd))
            run.ticks(looks)
        for drain, looks in zip(drains, (2, 272, 234), strict=True):
            run.ticks(looks)
            cancelled(run, drain)
        for drain in drains:
            run.until(drain, S.CANCELLED)
        run.ticks(20)
        assert map_of(run)["weights"] == before
        assert whole(run)


def test_a_pin_is_void_where_it_puts_two_shards_into_one_host() -> None:
    view = Run(wide_spec()).cluster.view()
    pg = view.pgs[PgId("1.0")]
    source, stays, beside = pg.up[0], pg.up[1], OsdId(pg.up[1] ^ 1)
    assert view.osds[beside].host == view.osds[OsdId(stays)].host
    elsewhere = next(
        osd for osd in view.osds if view.osds[osd].host not in {view.osds[OsdId(one)].host for one in pg.up}
    )
    assert find_kept_pairs(view, {pg.id: ((source, beside),)}) == {pg.id: ()}
    assert find_kept_pairs(view, {pg.id: ((source, elsewhere),)}) == {pg.id: ((source, elsewhere),)}
    stranger = next(osd for osd in view.osds if osd not in (*pg.up, elsewhere))
    pairs = ((source, elsewhere), (int(stranger), beside))
    assert find_kept_pairs(view, {pg.id: pairs}) == {pg.id: ((source, elsewhere),)}
    assert not find_void_upmaps(view, {pg.id: (beside, *pg.up[1:])}), "no pin stands"


def test_the_mon_keeps_an_upmap_that_leaves_the_racks_uneven_and_predrain_sends_none() -> None:
    spec = ec_spec(hosts=12, per_host=1, k=4, m=2)
    osds = build_osd_specs(hosts=12, per_host=1, size_bytes=100 * GB, racks=4)
    way = (RuleStep("choose_indep", num=3, type="rack"), RuleStep("chooseleaf_indep", num=2, type="host"))
    tree = crush_tree(osds)
    root = next(bucket.id for bucket in tree.buckets.values() if bucket.type == "root")
    rule = CrushRule(1, "two in each of three racks", (RuleStep("take", item=root), *way, RuleStep("emit")))
    crush, pool = replace(tree, rules={1: rule}), spec.pools[0].pool
    racks = [bucket for bucket in tree.buckets.values() if bucket.type == "rack"]
    hosts = [[tree.buckets[host].items[0] for host in rack.items] for rack in racks]
    even = [*hosts[0][:2], *hosts[1][:2], *hosts[2][:2]]
    uneven = [*hosts[0][:3], *hosts[1][:2], hosts[2][0]]
    four_racks = [*hosts[0][:2], *hosts[1][:2], hosts[2][0], hosts[3][0]]
    check, region = find_upmap_check(crush, pool), find_failure_domains(crush, pool)
    assert [check.keeps_upmap(members) for members in (even, uneven, four_racks)] == [True, True, False]
    assert [region.is_legal(members) for members in (even, uneven, four_racks)] == [True, False, True]
    assert not check.keeps_upmap([*even[:5], even[0]]), "an OSD twice"
    assert not check.keeps_upmap([*even[:5], ITEM_NONE]), "no OSD at one position"
