"""A person insists: past guards that are marked for it, in one step of one drain, for an hour at most."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.actions.cluster.cluster_port import SetUpmap
from predrain.actions.controller.request_execution import INSISTENCE_MAX, CannotInsist
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.state_machine import STEPS, TABLE, Event, NotInTable, apply_event
from predrain.actions.guards import GUARDS, INSISTABLE, Refuse, evaluate_guards, list_refusals
from predrain.data.drain import Drain, DrainState, Insistence
from tests.actions.guarded import with_states, world
from tests.actions.made import NOW, a_drain, calm_view, wide_spec
from tests.actions.run import Run
from tests.actions.test_guards import DANGERS, Danger

S = DrainState
CODES = [guard.code for guard in GUARDS]
MAY_BE_OVERRULED = {"window", "budget", "trust", "mass-suspicion", "scrub-errors", "upgrade", "autoscale"}


def insisting(*guards: str, minutes: float = 30.0) -> Insistence:
    return Insistence(guards, "admin", "it dies tonight", NOW + timedelta(minutes=minutes))


def test_these_guards_and_no_others_let_a_person_insist() -> None:
    assert INSISTABLE == MAY_BE_OVERRULED


@pytest.mark.slow
@given(
    danger=st.sampled_from(DANGERS),
    guards=st.lists(st.sampled_from([*CODES, "no-such-guard"]), max_size=len(CODES)),
    minutes=st.floats(-60, 60),
    halted=st.booleans(),
)
def test_no_insistence_lets_the_refusal_of_another_guard_through(
    danger: Danger, guards: list[str], minutes: float, halted: bool
) -> None:
    view, drain, policy, context = danger.make()
    context = replace(context, halted="smoke" if halted else context.halted)
    plain = list_refusals(view, drain, policy, context)
    insists = replace(drain, insistence=insisting(*guards, minutes=minutes))
    left = {refuse.code for refuse in list_refusals(view, insists, policy, context)}
    passed = {refuse.code for refuse in plain} - left
    assert passed <= set(guards) & INSISTABLE
    assert not passed or minutes > 0
    assert {refuse.code for refuse in plain if refuse.firm} <= left


@pytest.mark.parametrize(
    "danger", [one for one in DANGERS if one.code in INSISTABLE], ids=lambda one: one.says
)
def test_a_guard_that_is_overruled_still_says_what_it_sees(danger: Danger) -> None:
    view, drain, policy, context = danger.make()
    insists = replace(drain, insistence=insisting(danger.code))
    answers = dict(evaluate_guards(view, insists, policy, context))
    answer = answers[danger.code]
    assert isinstance(answer, Refuse)
    assert answer.overruled or answer.firm
    assert danger.says in answer.sentence


@pytest.mark.parametrize("danger", DANGERS, ids=lambda one: f"{one.code}: {one.says}")
def test_every_refusal_says_what_ends_it(danger: Danger) -> None:
    guard = next(guard for guard in GUARDS if guard.code == danger.code)
    assert guard.ends.endswith(".")
    answer = guard(*danger.make())
    assert isinstance(answer, Refuse)
    assert answer.sentence.endswith(f". {guard.ends}")


def test_nobody_insists_past_objects_that_are_not_found() -> None:
    view, drain, policy, context = with_states("active", "recovery_unfound")
    insists = replace(drain, insistence=insisting("scrub-errors"))
    assert "scrub-errors" in {refuse.code for refuse in list_refusals(view, insists, policy, context)}
    view, drain, policy, context = with_states("active", "clean", "inconsistent")
    insists = replace(drain, insistence=insisting("scrub-errors"))
    assert "scrub-errors" not in {refuse.code for refuse in list_refusals(view, insists, policy, context)}


def test_an_insistence_ends_with_its_time() -> None:
    policy = Policy(window=((NOW.hour + 1) % 24, (NOW.hour + 2) % 24))
    view, drain, _, context = world(calm_view(), a_drain(insistence=insisting("window")), policy)
    assert list_refusals(view, drain, policy, context) == ()
    late = replace(context, now=NOW + timedelta(minutes=30))
    assert "window" in {refuse.code for refuse in list_refusals(view, drain, policy, late)}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.state.value}, {row.event.value}")
def test_an_insistence_ends_with_its_step(row: object) -> None:
    drain = a_drain(state=row.state, insistence=insisting("window"), resume_to=S.DRAINING)  # type: ignore[attr-defined]
    moved = apply_event(drain, row.event, NOW)  # type: ignore[attr-defined]
    same_step = any({drain.state, moved.state} <= step for step in STEPS)
    assert (moved.insistence is not None) is same_step


def test_a_hold_for_another_reason_does_not_end_an_insistence() -> None:
    insists = a_drain(insistence=insisting("window"))
    holding = apply_event(insists, Event.REFUSED, NOW)
    assert apply_event(holding, Event.PASSED, NOW).insistence == insists.insistence


def closed(run: Run) -> Drain:
    """A drain that the window holds while it moves data."""
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    run.ticks(3)
    hour = run.cluster.now.hour
    hours = ((hour + 3) % 24, (hour + 4) % 24)
    run.policy = run.watched.policy = replace(run.policy, window=hours)
    run.started()
    run.ticks(3)
    held = run.known(drain)
    assert held.held_for == ("window",)
    return held


def insist(run: Run, drain: Drain, *guards: str, minutes: float = 60.0, reason: str = "it dies") -> Drain:
    said = Insistence(guards, "admin", reason, run.cluster.now + timedelta(minutes=minutes))
    return run.controller.requests.insist(drain.id, said, "osd.0", run.cluster.now)


@pytest.mark.slow
def test_a_drain_moves_while_a_person_insists_and_holds_again_when_the_time_is_over() -> None:
    with Run(wide_spec(used=0.3)) as run:
        drain = closed(run)
        insist(run, drain, "window", minutes=10)
        before = len(run.watched.commands)
        run.ticks(20)
        assert any(isinstance(command, SetUpmap) for command in run.watched.commands[before:])
        run.cluster.advance(600)
        run.ticks(2)
        before = len(run.watched.commands)
        run.ticks(20)
        assert len(run.watched.commands) == before
        assert run.known(drain).held_for == ("window",)
        assert "insist: past window until" in run.transcript(drain)
        assert "every guard passes again, or is overruled by admin" in run.transcript(drain)


@pytest.mark.slow
def test_a_drain_of_which_nobody_insists_holds_beside_one_of_which_somebody_does() -> None:
    with Run(wide_spec(used=0.3), policy=Policy(out_share_max=0.9)) as run:
        other = run.drain("osd.6")
        run.until(other, S.DRAINING)
        drain = closed(run)
        insist(run, drain, "window")
        run.ticks(10)
        assert run.known(drain).state is S.DRAINING
        assert run.known(other).held_for == ("window",)


@pytest.mark.slow
def test_a_drain_with_an_insistence_is_still_held_by_every_other_guard() -> None:
    with Run(wide_spec(used=0.3)) as run:
        drain = closed(run)
        insist(run, drain, "window")
        run.store.set_halt("stop")
        before = len(run.watched.commands)
        run.ticks(10)
        assert len(run.watched.commands) == before
        assert run.known(drain).held_for == ("halt",)


@pytest.mark.slow
def test_an_insistence_is_refused_that_is_too_long_or_without_reason_or_for_what_does_not_refuse() -> None:
    with Run(wide_spec(used=0.3)) as run:
        drain = closed(run)
        for guards, changed, says in (
            (("window",), {"minutes": INSISTENCE_MAX.total_seconds() / 60 + 1}, "at most 60 minutes"),
            (("window",), {"minutes": 0.0}, "at most 60 minutes"),
            (("window",), {"reason": "  "}, "say why you insist"),
            ((), {}, "name the guards"),
            (("budget",), {}, "budget does not refuse now"),
            (("trust",), {}, "trust has no say while a drain is holding"),
            (("space",), {}, "nobody may insist past 'space'"),
        ):
            with pytest.raises(CannotInsist, match=says):
                insist(run, drain, *guards, **changed)
        run.controller.requests.pause(drain.id, "operator", run.cluster.now)
        with pytest.raises(NotInTable):
            insist(run, drain, "window")
