"""A cluster over two sites: a drain keeps each site's copies there, and while a site is away nothing is drained."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest

from predrain.actions.cluster.cluster_view import ClusterView, StretchMode
from predrain.actions.cluster.dumps.osd_dump import OsdDump, osd_dump
from predrain.actions.core.drain_policy import Policy
from predrain.actions.crush.crush_dump import crush_of_dump
from predrain.actions.crush.crush_map import CrushMap, CrushRule, RuleStep
from predrain.actions.crush.pg_placement import place_pgs
from predrain.actions.crush.pool import Pool
from predrain.actions.guards import Pass, Refuse, evaluate_guards
from predrain.actions.placement.failure_domains import find_failure_domains
from predrain.actions.simulator.cluster_spec import ClusterSpec
from predrain.data.drain import DrainState
from predrain.data.ids import PgId
from tests.actions.made import a_context, a_drain, calm_view, wide_spec
from tests.actions.recordings import CLEAN, changed, view_of
from tests.actions.run import Run
from tests.actions.test_crush_golden import CRUSHED

POLICY = Policy()


@lru_cache
def recorded() -> Any:
    """A real cluster stretched over dc1 and dc2: whole, without dc2, and while dc2 is filled again."""
    return json.loads((CRUSHED / "stretch-mode.json").read_bytes())


def crush() -> CrushMap:
    return crush_of_dump(json.dumps(recorded()["crush"]).encode())


def dump_in(mode: str) -> OsdDump:
    return osd_dump(json.dumps(recorded()[mode]).encode())


def sites(members: Sequence[int]) -> Counter[int]:
    """Return the number of members at each site. The OSDs of the recorded cluster stand at the two sites in turn."""
    return Counter(osd % 2 for osd in members)


@pytest.mark.parametrize("mode", [StretchMode.HEALTHY, StretchMode.DEGRADED, StretchMode.RECOVERING])
def test_a_stretched_cluster_is_seen_as_it_is(mode: StretchMode) -> None:
    assert dump_in(mode.value).stretch_mode is mode


def test_a_cluster_at_one_site_and_one_that_says_nothing_are_not_stretched() -> None:
    assert view_of(CLEAN).stretch_mode is StretchMode.OFF
    silent = changed(CLEAN, "osd_dump", lambda dump: dump.pop("stretch_mode"))
    assert view_of(silent).stretch_mode is StretchMode.OFF


def test_a_view_tells_the_stretch_mode_of_its_dump() -> None:
    def stretch(dump: Any) -> None:
        dump["stretch_mode"] = recorded()[StretchMode.RECOVERING.value]["stretch_mode"]

    assert view_of(changed(CLEAN, "osd_dump", stretch)).stretch_mode is StretchMode.RECOVERING


def test_every_pg_of_a_stretched_cluster_is_placed_where_osdmaptool_places_it_with_two_copies_a_site() -> (
    None
):
    dump = dump_in(StretchMode.HEALTHY.value)
    reweights = {osd: row.reweight for osd, row in dump.osds.items()}
    up = {PgId(pg): tuple(members) for pg, members in recorded()["up"].items()}
    assert place_pgs(crush(), dump.pools, reweights, {}) == up
    assert all(sites(members) == {0: 2, 1: 2} for members in up.values())


def pools_by_rule() -> dict[str, Pool]:
    pools = dump_in(StretchMode.HEALTHY.value).pools
    return {crush().rules[pool.rule].name: pool for pool in pools.values()}


@pytest.mark.parametrize("rule", ["each_site", "sites_first"])
def test_a_copy_of_a_stretched_pool_moves_within_its_site_alone(rule: str) -> None:
    region = find_failure_domains(crush(), pools_by_rule()[rule])
    members = (0, 2, 1, 3)
    assert region.is_legal(members)
    assert set(region.list_substitutes(members, 0)) == {4}
    assert set(region.list_substitutes(members, 3)) == {5}


@pytest.mark.parametrize("rule", ["each_site", "sites_first"])
def test_three_copies_at_one_site_are_not_legal_though_the_mon_would_pin_them(rule: str) -> None:
    region = find_failure_domains(crush(), pools_by_rule()[rule])
    assert not region.is_legal((0, 2, 4, 1))
    assert region.is_legal((0, 4, 5, 1))


def test_a_rule_that_takes_one_root_twice_may_put_the_copies_of_both_there() -> None:
    root = next(bucket.id for bucket in crush().buckets.values() if bucket.name == "default")
    half = (RuleStep("take", item=root), RuleStep("chooseleaf_firstn", num=2, type="host"), RuleStep("emit"))
    twice = replace(crush(), rules={0: CrushRule(0, "twice", (*half, *half))})
    pool = replace(pools_by_rule()["each_site"], rule=0)
    assert find_failure_domains(twice, pool).is_legal((0, 1, 2, 3))


def test_hosts_of_two_osds_each_within_two_racks_hold_as_many_as_the_rule_chooses() -> None:
    spec = wide_spec(hosts=4, per_host=2, racks=2)
    root = next(bucket.id for bucket in spec.crush.buckets.values() if bucket.type == "root")
    steps = (
        RuleStep("take", item=root),
        RuleStep("choose_firstn", num=2, type="rack"),
        RuleStep("choose_firstn", num=1, type="host"),
        RuleStep("choose_firstn", num=2, type="osd"),
        RuleStep("emit"),
    )
    pool = replace(spec.pools[0].pool, size=4)
    region = find_failure_domains(replace(spec.crush, rules={0: CrushRule(0, "pairs", steps)}), pool)
    found = place_pgs(
        replace(spec.crush, rules={0: CrushRule(0, "pairs", steps)}),
        {1: pool},
        {osd.id: 1.0 for osd in spec.osds},
        {},
    )
    assert all(region.is_legal(members) for members in found.values())


def judged(mode: StretchMode) -> Pass | Refuse:
    view = replace(calm_view(), stretch_mode=mode)
    drain = a_drain()
    return dict(evaluate_guards(view, drain, POLICY, a_context(view, drain)))["unhealthy"]


@pytest.mark.parametrize("mode", [StretchMode.DEGRADED, StretchMode.RECOVERING])
def test_a_site_that_is_away_or_being_filled_holds_every_drain_and_says_what_ends_it(
    mode: StretchMode,
) -> None:
    verdict = judged(mode)
    assert isinstance(verdict, Refuse)
    assert verdict.numbers == {"stretch_mode": mode.value}
    assert "degraded stretch mode" in verdict.sentence
    assert "goes on when Ceph has recovered" in verdict.sentence


@pytest.mark.parametrize("mode", [StretchMode.OFF, StretchMode.HEALTHY])
def test_a_stretched_cluster_with_both_sites_holds_no_drain(mode: StretchMode) -> None:
    assert isinstance(judged(mode), Pass)


def stretched_spec() -> ClusterSpec:
    """Two racks as sites, three hosts each, two copies at each site."""
    spec = wide_spec(hosts=6, per_host=2, racks=2, pg_num=32, used=0.15)
    root = next(bucket.id for bucket in spec.crush.buckets.values() if bucket.type == "root")
    steps = (
        RuleStep("take", item=root),
        RuleStep("choose_firstn", type="rack"),
        RuleStep("chooseleaf_firstn", num=2, type="host"),
        RuleStep("emit"),
    )
    pool = replace(spec.pools[0], pool=replace(spec.pools[0].pool, size=4))
    return replace(
        spec, pools=(pool,), crush=replace(spec.crush, rules={0: CrushRule(0, "sites_first", steps)})
    )


def check_sites(view: ClusterView) -> None:
    for pg in view.pgs.values():
        for members in (pg.up, pg.acting):
            racks = Counter(osd.rack for osd in view.osds.values() if osd.id in members)
            assert sorted(racks.values()) == [2, 2], pg


@pytest.mark.slow
def test_a_drain_of_a_stretched_cluster_keeps_two_copies_at_each_site_until_it_is_empty_and_back() -> None:
    with Run(stretched_spec()) as run:
        drain = run.drain("osd.0")
        assert drain.plan is not None
        assert drain.plan.moves
        while run.known(drain).state is not DrainState.VERIFIED:
            run.tick()
            check_sites(run.cluster.view())
        assert all(0 not in pg.acting for pg in run.cluster.view().pgs.values())
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        while run.known(drain).state is not DrainState.CANCELLED:
            run.tick()
            check_sites(run.cluster.view())
