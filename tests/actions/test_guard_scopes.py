"""A guard holds what it concerns: the PGs, OSDs and pools that a step would touch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from predrain.actions.cluster.cluster_port import SetUpmap
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.guards import Pass, Refuse
from predrain.actions.guards.safety_guards import refuse_short
from predrain.data.drain import Drain, DrainState
from predrain.data.hold_reason import HoldReason
from predrain.data.ids import OsdId
from tests.actions.guarded import a_member_down, other_pg, planned, verdict, with_states
from tests.actions.made import POLICY, a_context, a_drain, calm_view, changed_osd, changed_pg, wide_spec
from tests.actions.run import Run, whole

S = DrainState


@pytest.mark.parametrize("guard", ["unhealthy", "whole", "redundancy", "scrub-errors", "autoscale"])
@pytest.mark.parametrize(
    "elsewhere",
    [
        lambda: with_states("active", "degraded", "undersized", elsewhere=1),
        lambda: with_states("active", "recovering", "degraded", elsewhere=2),
        lambda: a_member_down(beside=False),
    ],
)
def test_trouble_of_pgs_that_no_step_touches_does_not_hold_a_drain(
    guard: str, elsewhere: Callable[[], tuple[ClusterView, Drain, Policy, Context]]
) -> None:
    assert isinstance(verdict(guard, *elsewhere()), Pass)


def test_a_walk_goes_on_with_pgs_that_are_whole_beside_one_that_is_not() -> None:
    view = calm_view()
    drain = planned(view)
    assert drain.plan is not None
    short = drain.plan.moves[0].pg
    gone = next(osd for osd in view.pgs[short].acting if osd != 0)
    pgs = {id_: pg for id_, pg in view.pgs.items() if id_ == short or gone not in pg.up}
    view = changed_osd(replace(view, pgs=pgs), gone, up=False)
    view = changed_pg(view, short, states=frozenset({"active", "undersized", "degraded"}))
    context = a_context(view, drain)
    assert len({move.pg for move in drain.plan.moves} & pgs.keys()) > 1
    for guard in ("unhealthy", "redundancy"):
        assert isinstance(
            verdict(guard, view, drain, replace(POLICY, recovering_share_max=1.0), context), Pass
        )
    alone = replace(drain, plan=replace(drain.plan, moves=drain.plan.moves[:1]))
    for guard in ("unhealthy", "redundancy"):
        assert isinstance(verdict(guard, view, alone, POLICY, a_context(view, alone)), Refuse)


def test_a_pool_that_splits_holds_the_drains_of_its_own_pgs_only() -> None:
    view = calm_view()
    pool = next(iter(view.pools.values()))
    other = replace(pool, id=99, name="else", pg_num_target=pool.pg_num * 2)
    drain = a_drain()
    elsewhere = replace(view, pools={**view.pools, 99: other})
    assert isinstance(verdict("autoscale", elsewhere, drain, POLICY, a_context(elsewhere, drain)), Pass)
    here = replace(view, pools={**view.pools, pool.id: replace(pool, pg_num_target=pool.pg_num * 2)})
    assert isinstance(verdict("autoscale", here, drain, POLICY, a_context(here, drain)), Refuse)


def test_a_step_that_would_change_a_pg_short_of_copies_is_refused_whoever_names_it() -> None:
    view = calm_view()
    pg = view.pgs[other_pg(view)]
    short = changed_osd(
        changed_pg(view, pg.id, states=frozenset({"active", "undersized", "degraded"})), pg.up[0], up=False
    )
    refused = refuse_short({pg.id}, a_context(short))
    assert refused is not None
    assert refused.code == "redundancy"
    assert refuse_short({pg.id}, a_context(view)) is None


@pytest.mark.slow
def test_beside_a_death_elsewhere_one_pg_moves_at_a_time_under_the_operators_throttles() -> None:
    spec = replace(wide_spec(hosts=8, pg_num=128), settings={"osd/osd_max_backfills": "8"})
    with Run(spec, policy=Policy(out_share_max=0.5, recovering_share_max=1.0)) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        run.ticks(6)
        run.cluster.fail_osd(OsdId(9))
        run.ticks(20)
        moved = run.known(drain).progress.moved_pgs
        while not whole(run):
            assert run.cluster.view().settings["osd/osd_max_backfills"] == "8"
            sent = len(run.watched.commands)
            run.tick()
            assert sum(isinstance(command, SetUpmap) for command in run.watched.commands[sent:]) <= 1
        assert run.known(drain).progress.moved_pgs > moved
        run.until(drain, S.VERIFIED)
        assert run.cluster.view().settings["osd/osd_max_backfills"] == "8"
        assert whole(run)


def test_a_moved_pg_that_is_stuck_in_its_peering_holds_its_drain_and_names_the_command_that_finds_the_cause() -> (
    None
):
    with Run(wide_spec(hosts=6, per_host=2, racks=0, pg_num=64, used=0.3), 1) as run:
        run.ticks(3)
        drain = run.drain("osd.3")
        plan = run.known(drain).plan
        assert plan is not None
        pg, target = plan.moves[0].pg, plan.moves[0].target
        run.cluster.silence_peer(target, 1e9)
        run.until(drain, S.HOLDING)
        held = run.known(drain)
        assert held.held_for == (HoldReason.UNHEALTHY,)
        assert f"PG {pg} is peering" in held.held_by[0]
        assert f"`ceph pg {pg} query`" in held.held_by[0]
        stuck = [pg for pg in run.cluster.view().pgs.values() if "peering" in pg.states]
        assert len(stuck) == 1, "no other PG is sent to an OSD that hangs"
        run.cluster.flap(target, 1, 20.0)
        run.until(drain, S.VERIFIED)
        assert whole(run)
