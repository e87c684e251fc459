"""Pools that change on the simulated cluster: PGs are split and merged, and another CRUSH rule places them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predrain.actions.cluster.cluster_port import SetUpmap
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.crush.crush_map import CrushRule, RuleStep
from predrain.actions.crush.pool import Pool
from predrain.actions.placement.failure_domains import find_failure_domains
from predrain.actions.simulator import SimulatedCluster
from predrain.actions.simulator.cluster_spec import DEFAULT_RULES, ClusterSpec
from predrain.actions.simulator.simulated_osdmap import find_parent
from predrain.actions.simulator.worlds import build_world
from predrain.data.ids import OsdId, PgId, pg_id
from tests.actions.made import ec_spec, wide_spec
from tests.actions.test_simulated_invariants import check_books, mend_all, mishap

BY_RACK, BELOW_A_RACK = 2, 3


def with_more_rules(spec: ClusterSpec) -> ClusterSpec:
    """The cluster with a rule of one copy a rack, and one that keeps all copies in the first rack."""
    rack = next(bucket.id for bucket in spec.crush.buckets.values() if bucket.type == "rack")
    steps = {BY_RACK: (-1, "rack"), BELOW_A_RACK: (rack, "osd")}
    rules = {
        rule: CrushRule(
            rule,
            f"rule{rule}",
            (
                RuleStep("take", item=take),
                RuleStep("chooseleaf_firstn" if kind == "rack" else "choose_firstn", type=kind),
                RuleStep("emit"),
            ),
        )
        for rule, (take, kind) in steps.items()
    }
    return replace(spec, crush=replace(spec.crush, rules={**DEFAULT_RULES, **rules}))


@pytest.fixture(params=["copies", "shards"])
def cluster(request: pytest.FixtureRequest) -> SimulatedCluster:
    spec = wide_spec(pg_num=24, used=0.2) if request.param == "copies" else ec_spec(pg_num=24)
    return SimulatedCluster(spec, 1)


@pytest.fixture
def ruled() -> SimulatedCluster:
    return SimulatedCluster(with_more_rules(wide_spec(pg_num=32, used=0.2)), 1)


def pool_of(cluster: SimulatedCluster) -> Pool:
    return cluster.osdmap.pools[1]


def let_settle(cluster: SimulatedCluster) -> None:
    """Let the mgr come to its targets and the data arrive."""
    for _ in range(2000):
        cluster.advance(30)
        if not pool_of(cluster).changes and not cluster.backfills:
            break
    cluster.advance(60)
    assert not pool_of(cluster).changes


def find_other(view: ClusterView, pg: PgId) -> tuple[int, int]:
    """A pair that sends one member of the PG elsewhere, legally."""
    up = view.pgs[pg].up
    return up[0], min(find_failure_domains(view.crush, view.pools[1]).list_substitutes(up, up[0]))


def send_away(cluster: SimulatedCluster, pg: PgId) -> tuple[int, int]:
    pair = find_other(cluster.view(), pg)
    assert cluster.apply(SetUpmap(pg, (pair,))).ok
    cluster.advance(3600)
    return pair


def test_children_begin_on_the_osds_of_their_parent_and_nothing_moves(cluster: SimulatedCluster) -> None:
    before = {pg: truth.members for pg, truth in cluster.truth().pgs.items()}
    cluster.set_pg_num(1, 32)
    cluster.advance(2.5)
    assert (pool_of(cluster).pg_num, pool_of(cluster).pgp_num) == (32, 24)
    truth = cluster.truth().pgs
    for seed in range(24, 32):
        assert truth[pg_id(1, seed)].members == before[pg_id(1, find_parent(seed))]
        assert truth[pg_id(1, seed)].up == truth[pg_id(1, find_parent(seed))].up


def test_a_child_takes_half_of_its_parents_objects(cluster: SimulatedCluster) -> None:
    before = {pg.id: (pg.shard_bytes, pg.objects) for pg in cluster.life.pgs.values()}
    used = dict(cluster.truth().used_bytes)
    cluster.set_pg_num(1, 32)
    cluster.advance(2.5)
    after = {pg.id: (pg.shard_bytes, pg.objects) for pg in cluster.life.pgs.values()}
    child, parent = after[pg_id(1, 24)], after[pg_id(1, 8)]
    assert tuple(map(sum, zip(child, parent, strict=True))) == before[pg_id(1, 8)]
    assert abs(child[0] - parent[0]) <= 1
    assert dict(cluster.truth().used_bytes) == used


def test_pgp_num_follows_in_steps_until_every_pg_has_a_place_of_its_own(cluster: SimulatedCluster) -> None:
    cluster.set_pg_num(1, 32)
    seen: list[int | None] = []
    for _ in range(2000):
        cluster.advance(10)
        if pool_of(cluster).pgp_num not in seen:
            seen.append(pool_of(cluster).pgp_num)
        if not pool_of(cluster).changes:
            break
    assert seen == sorted(seen, key=lambda number: number or 0)
    assert len(seen) > 2
    assert seen[-1] == 32
    let_settle(cluster)
    check_books(cluster)


def test_a_child_does_not_inherit_its_parents_upmaps(cluster: SimulatedCluster) -> None:
    parent, child = pg_id(1, 8), pg_id(1, 24)
    home = cluster.view().pgs[parent].up
    send_away(cluster, parent)
    cluster.set_pg_num(1, 32)
    cluster.advance(2.5)
    assert child not in cluster.view().upmap_items
    assert cluster.truth().pgs[child].up == home
    assert set(cluster.truth().pgs[child].members) == set(cluster.truth().pgs[parent].members)


def test_a_new_pg_is_unknown_until_its_first_report(cluster: SimulatedCluster) -> None:
    cluster.set_pg_num(1, 25)
    cluster.advance(2.5)
    assert cluster.view().pgs[pg_id(1, 24)].states == {"unknown"}
    cluster.advance(10)
    assert "active" in cluster.view().pgs[pg_id(1, 24)].states


def test_data_that_was_copied_before_a_pg_was_split_is_not_copied_again(cluster: SimulatedCluster) -> None:
    parent = pg_id(1, 8)
    pair = find_other(cluster.view(), parent)
    cluster.apply(SetUpmap(parent, (pair,)))
    cluster.advance(30)
    cluster.set_pg_num(1, 25)
    cluster.advance(2.0)
    pg = cluster.life.pgs[cluster.osdmap.index[parent]]
    assert min(pg.partial.values()) > 20 * 20e6  # of twenty seconds and more, half
    check_books(cluster)
    check_books(cluster)


def test_pgs_are_merged_one_at_a_time_into_their_parents(cluster: SimulatedCluster) -> None:
    used = sum(cluster.truth().used_bytes.values())
    cluster.set_pg_num(1, 20)
    seen = [24]
    for _ in range(20_000):
        cluster.advance(1)
        if pool_of(cluster).pg_num != seen[-1]:
            seen.append(pool_of(cluster).pg_num)
            check_books(cluster)
        if not pool_of(cluster).changes:
            break
    assert seen == [24, 23, 22, 21, 20]
    let_settle(cluster)
    assert len(cluster.truth().pgs) == len(cluster.view().pgs) == 20
    assert sum(cluster.truth().used_bytes.values()) == used


def test_a_split_and_a_merge_bring_every_pg_back_to_where_it_was(cluster: SimulatedCluster) -> None:
    before = {pg: truth.up for pg, truth in cluster.truth().pgs.items()}
    cluster.set_pg_num(1, 32)
    let_settle(cluster)
    cluster.set_pg_num(1, 24)
    let_settle(cluster)
    assert {pg: truth.up for pg, truth in cluster.truth().pgs.items()} == before


def test_upmaps_of_both_pgs_go_before_they_are_merged(cluster: SimulatedCluster) -> None:
    source, target, other = pg_id(1, 23), pg_id(1, 7), pg_id(1, 3)
    for pg in (source, target, other):
        send_away(cluster, pg)
    cluster.set_pg_num(1, 23)
    let_settle(cluster)
    assert set(cluster.osdmap.upmaps) == {other}
    assert source not in cluster.truth().pgs


def test_an_upmap_that_comes_just_before_its_pg_is_gone_does_not_stay(cluster: SimulatedCluster) -> None:
    cluster.set_pg_num(1, 23)
    source = pg_id(1, 23)
    while pool_of(cluster).pg_num_pending == 24:
        cluster.advance(1)
    pair = find_other(cluster.view(), source)
    cluster.apply(SetUpmap(source, (pair,)))
    let_settle(cluster)
    assert not cluster.osdmap.upmaps
    assert "does not exist" in cluster.apply(SetUpmap(source, (pair,))).text


def test_pgs_wait_to_be_merged_while_one_of_them_is_undersized(cluster: SimulatedCluster) -> None:
    cluster.set_pg_num(1, 23)
    while pool_of(cluster).pg_num_pending == 24:
        cluster.advance(1)
    osd = OsdId(cluster.truth().pgs[pg_id(1, 23)].up[0])
    cluster.stop_osd(osd)
    cluster.advance(60)
    assert (pool_of(cluster).pg_num, pool_of(cluster).pg_num_pending) == (24, 24)
    cluster.revive(osd)
    let_settle(cluster)
    assert pool_of(cluster).pg_num == 23


def test_another_rule_places_every_pg(ruled: SimulatedCluster) -> None:
    ruled.set_crush_rule(1, BY_RACK)
    let_settle(ruled)
    racks = {int(osd.id): osd.rack for osd in ruled.spec.osds}
    for pg in ruled.truth().pgs.values():
        assert len({racks[osd] for osd in pg.members}) == 3
    check_books(ruled)


def test_upmaps_against_the_new_rule_go_and_those_that_obey_it_stay(ruled: SimulatedCluster) -> None:
    view = ruled.view()
    ruled.set_crush_rule(1, BY_RACK)
    let_settle(ruled)
    racks = {int(osd.id): osd.rack for osd in ruled.spec.osds}
    within: dict[PgId, tuple[int, int]] = {}
    for pg in list(view.pgs)[:8]:
        up = ruled.truth().pgs[pg].up
        within[pg] = (up[0], min(osd for osd in racks if osd not in up and racks[osd] == racks[up[0]]))
        ruled.apply(SetUpmap(pg, (within[pg],)))
    ruled.advance(3600)
    assert ruled.osdmap.upmaps == {pg: (pair,) for pg, pair in within.items()}
    ruled.set_crush_rule(1, 0)
    ruled.advance(10)
    chosen = {pg: ruled.osdmap.get_raw_set(ruled.osdmap.index[pg]) for pg in within}
    assert all(within[pg][0] in chosen[pg] for pg in ruled.osdmap.upmaps)

    ruled.set_crush_rule(1, BY_RACK)
    ruled.advance(10)
    for pg in ruled.osdmap.upmaps:
        mapped = ruled.osdmap.get_upmapped_set(ruled.osdmap.index[pg])
        assert len({racks[osd] for osd in mapped}) == 3


def test_upmaps_to_osds_that_the_new_rule_does_not_take_go(ruled: SimulatedCluster) -> None:
    ruled.set_crush_rule(1, BELOW_A_RACK)
    let_settle(ruled)
    rack = {int(osd.id): osd.rack for osd in ruled.spec.osds}
    inside = {osd for pg in ruled.truth().pgs.values() for osd in pg.up}
    assert len({rack[osd] for osd in inside}) == 1
    pg = pg_id(1, 0)
    out = min(set(rack) - inside)
    ruled.apply(SetUpmap(pg, ((ruled.truth().pgs[pg].up[0], out),)))
    assert out in ruled.truth().pgs[pg].up
    ruled.advance(10)
    assert not ruled.osdmap.upmaps
    assert out not in ruled.truth().pgs[pg].up


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tiny", "ec_two_a_host"])
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32))
def test_splits_and_merges_amid_mishaps_keep_the_books_and_come_to_their_ends(name: str, seed: int) -> None:
    cluster, chance = SimulatedCluster(build_world(name, seed), seed), Random(seed)
    pool = cluster.osdmap.pools[1]
    for _ in range(25):
        if chance.random() < 0.3:
            cluster.set_pg_num(1, pool.pg_num + chance.choice([-9, -4, -1, 1, 3, 8, 20]))
        else:
            mishap(cluster, chance)
        cluster.advance(chance.choice([0.0, 0.5, 1.0, 2.0, 5.0, 60.0, 700.0, 5000.0]))
        check_books(cluster)

    mend_all(cluster)
    check_books(cluster)
    if not cluster.truth().lost:
        assert not cluster.osdmap.pools[1].changes
        assert all(set(pg.members) == set(pg.up) for pg in cluster.truth().pgs.values())
