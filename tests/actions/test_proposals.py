"""Which disks are proposed, and which are spoken for."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.cost_assessment import with_weighed_disks
from predrain.actions.core.decision_answers import DrainProposal, ProposalRefusal, StateChange
from predrain.actions.core.drain_cost import ChanceCurve
from predrain.actions.core.drain_policy import Mode, Policy
from predrain.actions.core.forecast_confirmation import ForecastPoint
from predrain.actions.core.situation import Context
from predrain.actions.engine.decision import decide_drain_steps
from predrain.actions.engine.proposals import name_drain, propose_drains
from predrain.actions.engine.strategies import explain_withdrawal
from predrain.actions.guards.forecast_guards import AUTOMATIC
from predrain.actions.placement.what_if import compute_map_fingerprint
from predrain.data.drain import Drain, DrainState, Intent, Plan
from predrain.data.ids import OsdId
from predrain.data.outlook import Outlook, Status
from predrain.data.plan_refusal import PlanRefusal, PlanRefusalKind
from tests.actions.made import (
    HOST,
    NOW,
    POLICY,
    a_context,
    a_drain,
    a_plan,
    bad_outlook,
    calm_view,
    changed_osd,
    device,
    settled_memory,
    wide_spec,
)
from tests.actions.run import Run

ASKING = replace(POLICY, mode=Mode.PROPOSE)


def proposed(ended: Drain) -> bool:
    view = calm_view()
    outlook = bad_outlook(0)
    context = a_context(view, ended, outlooks={device(0): outlook})
    return any(isinstance(answer, DrainProposal) for answer in propose_drains(view, POLICY, context))


def cancelled(days: float, by: str) -> Drain:
    drain = a_drain(0, DrainState.CANCELLED, asked_by="predrain", cancelled_by=by)
    return replace(drain, updated_at=NOW - timedelta(days=days))


def test_a_disk_whose_drain_a_person_cancelled_is_left_alone_for_a_week() -> None:
    assert not proposed(cancelled(6, "operator"))
    assert proposed(cancelled(8, "operator"))


def test_a_proposal_that_was_withdrawn_by_itself_does_not_keep_the_disk_from_being_proposed_again() -> None:
    assert proposed(cancelled(1, ""))


def test_a_disk_that_was_filled_is_proposed_like_any_other_once_it_is_bad() -> None:
    assert proposed(a_drain(0, DrainState.VERIFIED, intent=Intent.FILL))
    assert not proposed(a_drain(0, DrainState.DRAINING, intent=Intent.FILL))
    assert not proposed(a_drain(0, DrainState.VERIFIED))


CALM = {"p_fail_7d": 0.001, "p_fail_14d": 0.002, "p_fail_30d": 0.004}
NO_CHANCE = dict.fromkeys(CALM)


def held_outlook(status: Status = Status.WARNING) -> Outlook:
    """A rule's outlook: one reading calls the disk better; the severity stays bad until three in a row do."""
    return bad_outlook(0, status=status, held=Status.BAD, readings=1, span_hours=0.0, **NO_CHANCE)


@pytest.mark.parametrize("status", [Status.WARNING, Status.GOOD, Status.UNKNOWN])
def test_a_disk_that_a_rule_calls_bad_while_its_newest_reading_is_not_is_refused_and_says_why(
    status: Status,
) -> None:
    view = calm_view()
    (answer,) = propose_drains(view, POLICY, a_context(view, outlooks={device(0): held_outlook(status)}))
    assert isinstance(answer, ProposalRefusal)
    assert [(one.code, one.numbers) for one in answer.refusals] == [
        ("trust", {"status": status.value, "severity": "bad"})
    ]
    assert f"the newest reading says {status.value}" in answer.refusals[0].sentence


def weighed(outlook: Outlook, view: ClusterView | None = None, policy: Policy = POLICY) -> Context:
    view = view or calm_view()
    return with_weighed_disks(view, policy, a_context(view, outlooks={outlook.device: outlook}))


def test_a_bad_disk_whose_drain_does_not_pay_is_refused_with_what_moving_and_waiting_cost() -> None:
    (answer,) = propose_drains(calm_view(), POLICY, weighed(bad_outlook(0, **CALM)))
    assert isinstance(answer, ProposalRefusal)
    assert "now costs" in answer.refusals[0].sentence
    assert "A drain does not pay yet." in answer.refusals[0].sentence


def test_a_warning_whose_drain_pays_is_proposed_with_the_decision_in_one_line() -> None:
    (answer,) = propose_drains(calm_view(), POLICY, weighed(bad_outlook(0, status=Status.WARNING)))
    assert isinstance(answer, DrainProposal)
    assert answer.drain.reason.endswith("Moving 56 GiB now costs 56; waiting costs 335.")
    assert answer.drain.plan is not None
    assert "moving 56 GiB now costs 56; waiting costs 335" in answer.drain.plan.why


def test_the_cost_of_a_failure_decides_which_disks_are_proposed() -> None:
    outlook = bad_outlook(0, p_fail_7d=0.01, p_fail_14d=0.02, p_fail_30d=0.05)
    for cost, asked in ((10.0, 1), (30.0, 1)):
        policy = replace(POLICY, failure_cost=cost)
        answers = propose_drains(calm_view(), policy, weighed(outlook, policy=policy))
        assert len(answers) == asked
        assert isinstance(answers[0], DrainProposal) == (cost == 30.0)


def test_an_empty_disk_is_never_proposed_by_its_forecast() -> None:
    view = changed_osd(calm_view(), 0, used_bytes=0)
    (answer,) = propose_drains(view, POLICY, weighed(bad_outlook(0), view))
    assert isinstance(answer, ProposalRefusal)


def test_one_reading_is_never_enough_however_strong() -> None:
    sure = bad_outlook(0, p_fail_7d=1.0, p_fail_14d=1.0, p_fail_30d=1.0, readings=1, span_hours=0.0)
    (answer,) = propose_drains(calm_view(), POLICY, weighed(sure))
    assert isinstance(answer, ProposalRefusal)
    again = replace(sure, readings=2, span_hours=0.1)
    assert isinstance(propose_drains(calm_view(), POLICY, weighed(again))[0], DrainProposal)


def test_a_proposal_by_a_rule_stands_as_long_as_its_disk_is_called_bad() -> None:
    view, old = calm_view(), NOW - timedelta(days=9)
    drain = replace(a_drain(0, DrainState.PROPOSED, asked_by=AUTOMATIC), created_at=old)
    better = replace(held_outlook(), span_hours=80.0, readings=2)
    assert not explain_withdrawal(view, drain, POLICY, a_context(view, outlooks={device(0): better}))
    calm = replace(better, held=None, readings=3)
    assert explain_withdrawal(view, drain, POLICY, a_context(view, outlooks={device(0): calm}))


def test_a_disk_that_a_rule_calls_bad_keeps_its_proposal_though_its_chance_does_not_pay() -> None:
    view, old = calm_view(), NOW - timedelta(days=9)
    drain = replace(a_drain(0, DrainState.PROPOSED, asked_by=AUTOMATIC), created_at=old)
    bad = bad_outlook(0, **{**CALM, "status": Status.BAD, "rule_score": 0.9})
    assert not explain_withdrawal(view, drain, POLICY, a_context(view, outlooks={device(0): bad}))


def test_a_proposal_stands_as_long_as_its_drain_pays_or_did_so_within_three_days() -> None:
    view, old = calm_view(), NOW - timedelta(days=9)
    drain = replace(a_drain(0, DrainState.PROPOSED, asked_by=AUTOMATIC), created_at=old)
    warned = bad_outlook(0, status=Status.WARNING, span_hours=100.0)
    assert not explain_withdrawal(view, drain, POLICY, weighed(warned))
    calm = bad_outlook(0, **CALM)
    for days, gone in ((2, False), (4, True)):
        paid = ForecastPoint(NOW - timedelta(days=days), HOST, ChanceCurve.of_month(0.5), sound=True)
        points = {device(0): (paid, ForecastPoint(NOW, HOST, ChanceCurve.of_month(0.004), sound=True))}
        context = a_context(view, outlooks={device(0): calm}, forecasts=points)
        assert bool(explain_withdrawal(view, drain, POLICY, context)) == gone


def test_a_drain_that_was_proposed_is_not_begun_by_itself_while_it_does_not_pay() -> None:
    bad = bad_outlook(3)
    with Run(wide_spec(), policy=Policy(mode=Mode.PROPOSE)) as run:
        run.outlooks[device(3)] = replace(bad, as_of=run.cluster.now)
        run.ticks(5)
        run.controller.policy = Policy(mode=Mode.ACT)
        run.outlooks[device(3)] = bad_outlook(3, run.cluster.now, readings=1, span_hours=0, **CALM)
        run.ticks(5)
        assert [drain.state for drain in run.store.drains()] == [DrainState.PROPOSED]
        run.cluster.advance(timedelta(minutes=10).total_seconds())
        run.outlooks[device(3)] = replace(bad, as_of=run.cluster.now)
        run.ticks(5)
        assert [drain.state for drain in run.store.drains()] == [DrainState.PROPOSED]  # one reading again
        run.cluster.advance(timedelta(hours=2).total_seconds())
        run.outlooks[device(3)] = replace(bad, as_of=run.cluster.now)
        run.ticks(5)
        assert [drain.state for drain in run.store.drains()] == [DrainState.DRAINING]


NO_ROOM = PlanRefusal(PlanRefusalKind.TARGET_TOO_FULL, osd=OsdId(4), percent=86, limit_percent=85)


def waiting(view: ClusterView, **changes: object) -> Drain:
    """Return a proposed drain that no person has answered yet. Its plan is the plan of `view` with these changes."""
    drain = a_drain(0, DrainState.PROPOSED)
    return replace(drain, plan=replace(a_plan(view, drain), **changes))  # type: ignore[arg-type]


def planned_anew(
    view: ClusterView, drain: Drain, *, of: ClusterView | None = None, ago: timedelta = timedelta(0)
) -> Plan | None:
    """Return the drain's plan after a poll, or None if the poll kept the plan. The plan before was made `ago` on the
    map `of`.
    """
    mark = compute_map_fingerprint(of or view, drain, frozenset())
    memory = replace(settled_memory(view), planned={drain.id: (mark, NOW - ago)})
    answers = decide_drain_steps(view, ASKING, a_context(view, drain, memory=memory)).answers
    found = [one.drain for one in answers if isinstance(one, StateChange)]
    assert [one.state for one in found] in ([], [DrainState.PROPOSED])
    return found[0].plan if found else None


def test_a_person_is_shown_the_plan_of_the_map_as_it_is_not_of_the_day_on_which_it_was_proposed() -> None:
    before = calm_view()
    now = changed_osd(before, 5, reweight=0.0)
    drain = waiting(before)
    assert drain.plan is not None
    drain = replace(drain, plan=replace(drain.plan, eta_hours=99.0))
    assert planned_anew(now, drain, of=before) == a_plan(now, replace(drain, plan=None))


def test_a_proposal_that_had_no_room_may_be_approved_once_it_has() -> None:
    view = calm_view()
    drain = waiting(view, refusals=(NO_ROOM,))
    assert planned_anew(view, drain, ago=timedelta(minutes=5)) is None
    plan = planned_anew(view, drain, ago=timedelta(minutes=11))
    assert plan is not None
    assert plan.refusals == ()


def test_a_plan_in_which_nobody_would_read_a_difference_is_left_as_it_was_shown() -> None:
    before = calm_view()
    plan = waiting(before).plan
    assert plan is not None
    assert plan.fullest_after is not None
    drain = waiting(before, fullest_after=plan.fullest_after * 1.04)
    assert planned_anew(before, drain, ago=timedelta(hours=7)) is None
    drain = waiting(before, fullest_after=plan.fullest_after * 1.06)
    assert planned_anew(before, drain, ago=timedelta(hours=7)) == plan


def test_no_plan_is_made_anew_of_statistics_that_are_not_known() -> None:
    view = calm_view()
    drain = waiting(view, refusals=(NO_ROOM,))
    unknown = replace(view, statistics_known=False)
    assert planned_anew(unknown, drain, ago=timedelta(hours=7)) is None


def test_of_many_plans_that_are_out_of_date_one_is_made_anew_in_a_look() -> None:
    before = calm_view()
    now = changed_osd(before, 5, reweight=0.0)
    drains = [replace(waiting(before, eta_hours=99.0), id=f"d{number}") for number in range(3)]
    memory = settled_memory(now)
    for look in range(1, 4):
        decisions = decide_drain_steps(now, ASKING, a_context(now, *drains, memory=memory))
        made = {one.drain.id: one.drain for one in decisions.answers if isinstance(one, StateChange)}
        assert len(made) == 1
        drains = [made.get(drain.id, drain) for drain in drains]
        memory = replace(memory, planned={**memory.planned, **decisions.planned})
        assert sum(drain.plan is not None and drain.plan.eta_hours == 99.0 for drain in drains) == 3 - look


def test_an_id_names_the_first_osd_and_the_second_and_is_numbered_where_it_is_taken() -> None:
    known: list[str] = []
    for _ in range(3):
        known.append(name_drain(OsdId(3), Intent.REPLACE, NOW, known))
    second = f"osd.3-{NOW:%Y%m%d-%H%M%S}"
    assert known == [second, f"{second}-2", f"{second}-3"]
    assert name_drain(OsdId(3), Intent.QUARANTINE, NOW, known) == f"osd.3-quarantine-{NOW:%Y%m%d-%H%M%S}"


def test_a_drain_that_is_asked_for_in_the_second_of_one_that_ended_has_an_id_of_its_own() -> None:
    with Run(wide_spec()) as run:
        run.tick()
        made = []
        for _ in range(3):
            made.append(run.controller.requests.propose("osd.0", "operator", "test", run.cluster.now))
            run.controller.requests.reject(made[-1].id, "operator", run.cluster.now)
        assert len({drain.id for drain in made}) == 3
        assert {drain.state for drain in map(run.known, made)} == {DrainState.CANCELLED}
