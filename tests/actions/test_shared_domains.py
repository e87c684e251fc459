"""Rules that put several shards on one host: three hosts, then two disks of each."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.crush.crush_map import CrushRule, RuleStep
from predrain.actions.crush.pool import Pool
from predrain.actions.placement.failure_domains import find_failure_domains
from predrain.actions.simulator import SimulatedCluster
from predrain.actions.simulator.cluster_spec import ClusterSpec
from predrain.data.drain import DrainState, Mechanic
from tests.actions.made import a_drain, a_plan, changed_osd, ec_spec, wide_spec
from tests.actions.run import Run

_SHARDS = {
    "choose": (RuleStep("choose_indep", num=3, type="host"), RuleStep("choose_indep", num=2, type="osd")),
    "chooseleaf": (
        RuleStep("choose_indep", num=3, type="host"),
        RuleStep("chooseleaf_indep", num=2, type="osd"),
    ),
    "of the size": (
        RuleStep("choose_indep", num=-3, type="host"),
        RuleStep("choose_indep", num=-4, type="osd"),
    ),
}


def spec(rule: str = "choose", hosts: int = 4, per_host: int = 4) -> ClusterSpec:
    """EC 4+2, two shards a host."""
    made = ec_spec(hosts=hosts, per_host=per_host, k=4, m=2)
    before = made.crush.rules[1]
    take = next(step for step in before.steps if step.op == "take")
    tries = (RuleStep("set_chooseleaf_tries", 5), RuleStep("set_choose_tries", 100))
    pairs = CrushRule(1, "pairs", (*tries, take, *_SHARDS[rule], RuleStep("emit")))
    return replace(made, crush=replace(made.crush, rules={**made.crush.rules, 1: pairs}))


def on_hosts(view: ClusterView, up: tuple[int, ...]) -> dict[str, int]:
    hosts = [osd.host for osd in view.osds.values() if osd.id in up]
    return {host: hosts.count(host) for host in hosts}


@pytest.mark.parametrize("rule", _SHARDS)
def test_two_shards_a_host_are_legal_and_their_disk_is_drained(rule: str) -> None:
    view = SimulatedCluster(spec(rule), 1).view()
    region = find_failure_domains(view.crush, view.pools[1])
    assert all(region.is_legal(pg.up) for pg in view.pgs.values())
    made = a_plan(view, a_drain())
    assert made.mechanic is Mechanic.UPMAP_WALK
    assert {move.pg for move in made.moves} == {pg.id for pg in view.pgs.values() if 0 in pg.up}
    assert made.refusals == ()


def test_a_third_shard_on_a_host_a_fourth_host_an_osd_twice_and_a_hole_are_not_legal() -> None:
    region = find_failure_domains(calm().crush, calm().pools[1])
    assert region.is_legal((0, 1, 4, 5, 8, 9))
    assert not region.is_legal((0, 1, 2, 5, 8, 9))
    assert not region.is_legal((0, 1, 4, 5, 8, 12))
    assert not region.is_legal((0, 0, 4, 5, 8, 9))
    assert not region.is_legal((0, 1, 4, 5, 8, 0x7FFFFFFF))


@cache
def calm() -> ClusterView:
    return SimulatedCluster(spec(), 1).view()


@given(st.sampled_from([pg.up for pg in calm().pgs.values()]), st.integers(0, 5))
@settings(deadline=None)
def test_the_substitutes_for_a_member_are_exactly_the_legal_osds(members: tuple[int, ...], at: int) -> None:
    region = find_failure_domains(calm().crush, calm().pools[1])
    able = {
        osd
        for osd in range(16)
        if osd not in members and region.is_legal((*members[:at], osd, *members[at + 1 :]))
    }
    assert set(region.list_substitutes(members, members[at])) == able
    assert len(able) == 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("rule", ["choose", "chooseleaf"])
def test_every_map_of_such_a_drain_has_two_shards_a_host(rule: str, seed: int) -> None:
    with Run(spec(rule), seed) as run:
        drain = run.drain(f"osd.{5 * seed}")
        while run.known(drain).state is not DrainState.VERIFIED:
            run.tick()
            for pg in run.cluster.truth().pgs.values():
                held = on_hosts(run.cluster.view(), pg.up)
                assert sorted(held.values()) == [2, 2, 2], pg
        assert run.known(drain).plan is not None


def test_a_full_target_gives_way_to_another_disk_of_the_same_host_only() -> None:
    view = calm()
    target = a_plan(view, a_drain()).moves[0].target
    full = changed_osd(view, target, used_bytes=view.osds[target].size_bytes)
    made = a_plan(full, a_drain())
    assert made.refusals == ()
    assert target not in {move.target for move in made.moves}
    assert {view.osds[move.target].host for move in made.moves} == {view.osds[made.moves[0].source].host}


def copies_over(size: int, *steps: RuleStep) -> tuple[ClusterView, Pool]:
    made = wide_spec(used=0.1)
    take = made.crush.rules[0].steps[0]
    rule = CrushRule(0, "copies", (take, *steps, RuleStep("emit")))
    pool = replace(made.pools[0], pool=replace(made.pools[0].pool, size=size))
    spec = replace(made, pools=(pool,), crush=replace(made.crush, rules={0: rule}))
    view = SimulatedCluster(spec, 1).view()
    return view, view.pools[1]


@pytest.mark.parametrize("num", [0, 3, -1])
def test_one_copy_a_host_is_as_it_was(num: int) -> None:
    view, pool = copies_over(4 if num < 0 else 3, RuleStep("chooseleaf_firstn", num=num, type="host"))
    region = find_failure_domains(view.crush, pool)
    assert (region.share, region.spread) == (1, pool.size)
    assert region.is_legal((0, 2, 4))
    assert not region.is_legal((0, 1, 4))


def test_hosts_in_racks_keep_one_copy_a_host_and_their_rack() -> None:
    racks = RuleStep("choose_firstn", num=2, type="rack")
    view, pool = copies_over(4, racks, RuleStep("chooseleaf_firstn", num=2, type="host"))
    region = find_failure_domains(view.crush, pool)
    made = a_plan(view, a_drain())
    assert all(region.is_legal(pg.up) for pg in view.pgs.values())
    assert region.share == 1
    assert made.moves
    assert {view.osds[move.target].rack for move in made.moves} == {view.osds[made.moves[0].source].rack}
