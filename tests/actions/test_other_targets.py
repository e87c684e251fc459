"""A drain that waits for targets in vain chooses others by a person's word."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from predrain.actions.cluster.cluster_port import SetFlag
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.controller.request_execution import NoOtherTargets
from predrain.actions.core.capacity import compute_osd_capacity, list_remaining_moves
from predrain.actions.core.drain_policy import Policy
from predrain.actions.engine.ways_out import find_troubled_targets
from predrain.actions.planning.plan_figures import PlanDraft, build_plan_from_draft
from predrain.data.drain import Drain, DrainState, Intent, Mechanic, Move
from predrain.data.ids import OsdId
from predrain.data.plan_refusal import PlanRefusal, PlanRefusalKind
from predrain.data.way_out import WayOut
from tests.actions.made import POLICY, a_context, a_drain, a_plan, calm_view, changed_osd, wide_spec
from tests.actions.run import Run, empty
from tests.actions.test_ways_out import SUSPECT, Altered, ways_of

S = DrainState


def hidden_target(run: Run) -> tuple[Drain, OsdId]:
    """Return a drain that waits for a target of unknown size, and this target. An operator's flag is set, so that no
    plan is made again by itself.
    """
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    run.ticks(4)
    held = run.known(drain)
    target = list_remaining_moves(run.cluster.view(), held)[-1].target
    run.started(Altered(run, lambda view: changed_osd(view, target, used_bytes=None, size_bytes=None)))
    assert run.cluster.apply(SetFlag("norebalance", on=True)).ok
    run.tick()
    return held, target


@pytest.mark.slow
def test_a_choice_of_other_targets_makes_a_plan_without_targets_in_trouble_and_the_drain_ends() -> None:
    policy = Policy(ways_out_after=timedelta(minutes=10))
    with Run(wide_spec(used=0.3), policy=policy) as run:
        drain, target = hidden_target(run)
        for _ in range(10):
            run.tick(120)
        assert ways_of(run, drain) == [WayOut.CHOOSE_OTHER_TARGETS, WayOut.CANCEL]
        chosen = run.controller.requests.choose_other_targets(drain.id, "operator", run.cluster.now)
        assert chosen.avoided == (target,)
        assert target not in {move.target for move in list_remaining_moves(run.cluster.view(), chosen)}
        assert f"without osd.{target}" in run.transcript(drain)
        run.cluster.apply(SetFlag("norebalance", on=False))
        run.until(drain, S.VERIFIED)
        assert empty(run, 0)


@pytest.mark.slow
def test_an_emptied_drain_that_waits_to_give_pgs_to_an_osd_of_unknown_size_can_leave_that_osd_out() -> None:
    with Run(wide_spec(used=0.3), policy=Policy(ways_out_after=timedelta(minutes=10))) as run:
        drain, target = hidden_target(run)
        run.ticks(70)
        run.controller.requests.choose_other_targets(drain.id, "operator", run.cluster.now)
        run.cluster.apply(SetFlag("norebalance", on=False))
        emptied = run.until(drain, S.VERIFIED)
        view = changed_osd(run.cluster.view(), target, used_bytes=None)
        assert find_troubled_targets(view, emptied, run.policy, a_context(view, emptied)) == ()
        anywhere = replace(emptied, avoided=())
        assert find_troubled_targets(view, anywhere, run.policy, a_context(view, anywhere)) == (target,)


def test_targets_that_were_left_out_stay_so_in_every_later_plan() -> None:
    view = calm_view()
    drain = a_drain()
    target = a_plan(view, drain).moves[0].target
    later = a_plan(view, replace(drain, avoided=(target,)))
    assert later.refusals == ()
    assert target not in {move.target for move in later.moves}


@pytest.mark.parametrize(
    ("change", "troubled"),
    [
        ({"reweight": 0.0}, True),
        ({"up": False}, True),
        ({"used_bytes": None}, True),
        ({"used_bytes": int(84.9e9)}, True),
        ({}, False),
    ],
)
def test_a_target_is_in_trouble_that_is_out_or_down_or_full_or_of_unknown_size(
    change: dict[str, object], troubled: bool
) -> None:
    view = calm_view()
    drain = replace(a_drain(), plan=a_plan(view, a_drain()))
    assert drain.plan is not None
    target = drain.plan.moves[0].target
    view = changed_osd(view, target, **change)
    found = find_troubled_targets(view, drain, POLICY, a_context(view, drain))
    assert (found == (target,)) is troubled


def test_only_a_drain_that_goes_pg_by_pg_can_choose_other_targets() -> None:
    view = calm_view()
    drain = replace(a_drain(), plan=replace(a_plan(view, a_drain()), mechanic=Mechanic.OVERRIDE_LADDER))
    view = changed_osd(view, drain.plan.moves[0].target, reweight=0.0)  # type: ignore[union-attr]
    assert find_troubled_targets(view, drain, POLICY, a_context(view, drain)) == ()
    assert find_troubled_targets(view, replace(drain, intent=Intent.FILL), POLICY, a_context(view)) == ()


@pytest.mark.slow
def test_no_plan_without_the_targets_in_trouble_changes_nothing_and_says_why() -> None:
    policy = Policy(replan_after=timedelta(days=30), ways_out_after=timedelta(minutes=1))
    with Run(wide_spec(used=0.3), policy=policy) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        others = [osd for osd in run.cluster.view().osds if osd != SUSPECT]

        def hide(view: ClusterView) -> ClusterView:
            for osd in others:
                view = changed_osd(view, osd, used_bytes=None)
            return view

        run.started(Altered(run, hide))
        run.ticks(20)
        before = run.known(drain)
        assert WayOut.CHOOSE_OTHER_TARGETS in ways_of(run, drain)
        with pytest.raises(NoOtherTargets, match="no other can be carried out"):
            run.controller.requests.choose_other_targets(drain.id, "operator", run.cluster.now)
        assert run.known(drain) == before


def test_a_move_that_is_over_does_not_wait_for_the_size_of_its_target() -> None:
    """Its target went out after it had taken the PG, and reports no sizes any more."""
    view = calm_view()
    drain = a_drain()
    pg = next(pg for pg in view.pgs.values() if 0 not in pg.up)
    out = next(osd for osd in view.osds if osd not in pg.up and osd != SUSPECT)
    view = changed_osd(view, out, reweight=0.0, used_bytes=None)
    over = Move(pg.id, SUSPECT, out, pg.shard_bytes)
    context = a_context(view, drain)

    def refusals(moves: tuple[Move, ...]) -> tuple[PlanRefusal, ...]:
        draft = PlanDraft(Mechanic.UPMAP_WALK, "test", moves)
        return build_plan_from_draft(
            view, drain, POLICY, context, draft, compute_osd_capacity(context.survey, POLICY)
        ).refusals

    assert refusals((over,)) == ()
    to_come = next(pg for pg in view.pgs.values() if 0 in pg.up)
    missing = Move(to_come.id, SUSPECT, out, to_come.shard_bytes)
    assert refusals((missing,)) == (PlanRefusal(PlanRefusalKind.SIZES_UNKNOWN, osd=out),)
