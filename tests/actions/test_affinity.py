"""Primary affinity in steps: each step names the PGs that change their primary, and these are no more than may peer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.actions.cluster.cluster_port import PrimaryAffinity
from predrain.actions.core.capacity import compute_osd_capacity
from predrain.actions.core.in_flight import compute_allowance
from predrain.actions.mechanics.primary_affinity import (
    at_stake,
    build_affinity_step,
    compute_pg_primaries,
    find_primary_pgs,
)
from predrain.actions.simulator import SimulatedCluster
from predrain.data.ids import OsdId
from tests.actions.made import POLICY, a_context, ec_spec, wide_spec

OSD = OsdId(0)


def _rungs(cluster: SimulatedCluster, goal: float) -> list[int]:
    """Change the affinity to the goal in steps. Check that each step changes exactly the PGs that it names, and return
    their number for each step.
    """
    changed = []
    for _ in range(200):
        cluster.advance(30)
        view = cluster.view()
        context = a_context(view)
        left = compute_allowance(context, POLICY, compute_osd_capacity(context.survey, POLICY))
        batch = build_affinity_step(view, OSD, goal, left)
        if not batch.commands:
            return changed
        before = {pg.id: pg.up for pg in view.pgs.values()}
        assert cluster.apply(batch.commands[0]).ok
        cluster.advance(30)
        after = {pg.id: pg.up for pg in cluster.view().pgs.values()}
        assert {pg for pg in after if after[pg] != before[pg]} == batch.pgs
        assert all(set(after[pg]) == set(before[pg]) for pg in batch.pgs)
        changed.append(len(batch.pgs))
    raise AssertionError("it never arrived")


def test_every_rung_changes_the_leaders_that_it_names_and_no_more_than_may_peer() -> None:
    cluster = SimulatedCluster(wide_spec(pg_num=128), 1)
    leading = find_primary_pgs(cluster.view(), OSD)
    moved = cluster.moved_bytes
    down = _rungs(cluster, 0.0)
    assert max(down) <= POLICY.peering_max
    assert sum(down) == len(leading) > 10
    assert find_primary_pgs(cluster.view(), OSD) == frozenset()
    assert cluster.view().osds[OSD].primary_affinity == 0.0
    up = _rungs(cluster, 1.0)
    assert max(up) <= POLICY.peering_max
    assert find_primary_pgs(cluster.view(), OSD) == leading
    assert cluster.moved_bytes == moved


def test_nothing_is_sent_while_the_peering_budget_is_spent() -> None:
    view = SimulatedCluster(wide_spec(), 1).view()
    context = a_context(view)
    spent = compute_allowance(context, POLICY, compute_osd_capacity(context.survey, POLICY))
    spent.peering = 0
    assert build_affinity_step(view, OSD, 0.0, spent).waits_for == "PGs still peer"


def test_of_two_osds_that_share_pgs_one_changes_its_affinity_in_a_look() -> None:
    cluster = SimulatedCluster(wide_spec(), 1)
    view, one = cluster.view(), OSD
    together = {OsdId(osd) for pg in view.pgs.values() if one in pg.up for osd in pg.up}
    other, apart = max(together - {one}), min(view.osds.keys() - together)
    context = a_context(view)
    left = compute_allowance(context, POLICY, compute_osd_capacity(context.survey, POLICY))
    left.peering = 99
    assert build_affinity_step(view, one, 0.9999, left).commands
    assert "the primaries of the same PGs" in build_affinity_step(view, other, 0.9999, left).waits_for
    assert build_affinity_step(view, apart, 0.9999, left).commands


@pytest.mark.parametrize("affinity", [0.0, 0.25, 0.5, 0.9])
def test_the_computed_leader_is_the_one_that_the_map_shows(affinity: float) -> None:
    cluster = SimulatedCluster(wide_spec(pg_num=128), 1)
    cluster.apply(PrimaryAffinity(OSD, affinity))
    cluster.apply(PrimaryAffinity(OsdId(3), 0.4))
    cluster.advance(60)
    view = cluster.view()
    assert compute_pg_primaries(view, list(view.pgs), {}) == {pg.id: pg.up[0] for pg in view.pgs.values()}


@pytest.mark.slow
@given(st.integers(0, 65536), st.integers(0, 65536))
def test_draws_say_at_which_affinity_a_pg_changes_hands(one: int, other: int) -> None:
    view = SimulatedCluster(ec_spec(), 1).view()
    stake = at_stake(view, OSD)
    low, high = sorted((one, other))
    held = [pg.id for pg in view.pgs.values() if OSD in pg.up]
    at_low = compute_pg_primaries(view, held, {OSD: low / 65536})
    at_high = compute_pg_primaries(view, held, {OSD: high / 65536})
    assert {pg for pg in held if at_low[pg] != at_high[pg]} == {
        pg for pg, draw in stake.items() if low <= draw < high
    }
