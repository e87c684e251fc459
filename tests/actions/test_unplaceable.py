"""A map that cannot be computed: one drain is held for it, every other goes on, and what was set is given back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from predrain.actions.cluster.cluster_port import Command, CommandResult, Reweight
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.cost_assessment import with_weighed_disks
from predrain.actions.core.decision_answers import Step
from predrain.actions.core.drain_policy import Mode, Policy
from predrain.actions.crush.crush_map import CrushRule, RuleStep
from predrain.actions.engine.decision import decide_drain_steps
from predrain.actions.simulator.cluster_spec import ClusterSpec, PoolSpec
from predrain.data.drain import Drain, DrainState, Intent
from tests.actions.made import (
    a_context,
    a_drain,
    a_plan,
    bad_outlook,
    calm_view,
    changed_osd,
    device,
    wide_spec,
)
from tests.actions.run import ENOUGH, Run, map_of
from tests.settings_by_text import by_setting

STRANGE = 2
"""The rule of a pool on the first rack, osd.0 to osd.3."""
TOLD = "a step 'choose_by_moon'"


def two_pools() -> ClusterSpec:
    spec = wide_spec(pg_num=32, used=0.15)
    rack = next(bucket.id for bucket in spec.crush.buckets.values() if bucket.type == "rack")
    here = (RuleStep("take", item=rack), RuleStep("chooseleaf_firstn", type="host"), RuleStep("emit"))
    local = replace(spec.pools[0].pool, id=2, name="local", size=2, min_size=1, rule=STRANGE)
    rules = {**spec.crush.rules, STRANGE: CrushRule(STRANGE, "local", here)}
    return replace(
        spec,
        pools=(*spec.pools, PoolSpec(local, spec.pools[0].shard_bytes)),
        crush=replace(spec.crush, rules=rules),
    )


class Strange:
    """The cluster of a run, whose second pool's rule has a step that nobody knows while `strange`."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.strange = False

    def view(self) -> ClusterView:
        view = self.run.watched.view()
        if not self.strange:
            return view
        rule = view.crush.rules[STRANGE]
        rule = replace(rule, steps=(RuleStep("choose_by_moon"), *rule.steps))
        return replace(view, crush=replace(view.crush, rules={**view.crush.rules, STRANGE: rule}))

    def apply(self, command: Command) -> CommandResult:
        return self.run.watched.apply(command)


def made_strange(run: Run, *, now: bool = True) -> Strange:
    cluster = Strange(run)
    cluster.strange = now
    run.started(cluster)
    return cluster


def until_it_moves(run: Run, drain: Drain) -> Drain:
    for _ in range(ENOUGH):
        found = run.known(drain)
        if found.state is DrainState.DRAINING and found.progress.moved_pgs > 1:
            return found
        run.tick()
    raise AssertionError(f"{run.known(drain)}")


def spoiled(what: str) -> ClusterView:
    view = calm_view()
    crush = view.crush
    match what:
        case "straw":
            buckets = {id_: replace(bucket, algorithm="straw") for id_, bucket in crush.buckets.items()}
            crush = replace(crush, buckets=buckets)
        case "step":
            steps = (RuleStep("choose_by_moon"),)
            rules = {id_: replace(rule, steps=steps + rule.steps) for id_, rule in crush.rules.items()}
            crush = replace(crush, rules=rules)
        case "rule":
            crush = replace(crush, rules={})
    return replace(view, crush=crush)


@pytest.mark.slow
@pytest.mark.parametrize("state", DrainState)
@pytest.mark.parametrize("what", ["straw", "step", "rule"])
@pytest.mark.parametrize("intent", Intent)
def test_no_map_that_cannot_be_computed_ends_a_look(what: str, state: DrainState, intent: Intent) -> None:
    drain = a_drain(0, state, intent=intent, plan=a_plan(calm_view(), a_drain(0, intent=intent)))
    drain = replace(
        drain, saved=by_setting({"osd.0/reweight": "1.0"}), ours=by_setting({"osd.0/reweight": "0.5"})
    )
    for reweight in (1.0, 0.5):
        view = changed_osd(spoiled(what), 0, reweight=reweight)
        bad = {device(1): bad_outlook(1)}
        policy = Policy(mode=Mode.ACT)
        context = with_weighed_disks(view, policy, a_context(view, drain, outlooks=bad))
        answers = decide_drain_steps(view, policy, context).answers
        steps = [answer for answer in answers if isinstance(answer, Step)]
        assert all(isinstance(command, Reweight) for step in steps if step.pgs for command in step.commands)


def test_a_drain_that_cannot_be_planned_is_held_with_the_reason_and_another_ends() -> None:
    with Run(two_pools()) as run:
        made_strange(run)
        before = map_of(run)["settings"]
        held, free = run.drain("osd.0"), run.drain("osd.11")
        free = run.until(free, DrainState.VERIFIED)
        held = run.known(held)
        assert held.state is DrainState.APPROVED
        assert any(TOLD in sentence for sentence in held.held_by)
        assert map_of(run)["settings"] == before


@pytest.mark.slow
def test_a_drain_whose_map_becomes_unknown_on_its_way_is_held_and_goes_on_when_it_is_known_again() -> None:
    with Run(two_pools()) as run:
        cluster = made_strange(run, now=False)
        drain = until_it_moves(run, run.drain("osd.0"))
        cluster.strange = True
        held = run.until(drain, DrainState.HOLDING)
        assert any(TOLD in sentence for sentence in held.held_by)
        run.ticks(10)
        again = run.known(drain)
        assert again.state is DrainState.HOLDING
        assert again.revision - held.revision <= 10
        cluster.strange = False
        run.until(drain, DrainState.VERIFIED)


@pytest.mark.parametrize("intent", [Intent.REPLACE, Intent.REMOVE])
def test_a_cancelled_drain_is_given_back_although_the_map_cannot_be_computed_any_more(intent: Intent) -> None:
    with Run(two_pools()) as run:
        cluster = made_strange(run, now=False)
        run.tick()
        before = map_of(run)
        drain = run.controller.requests.propose("osd.0", "operator", "test", run.cluster.now, intent)
        drain = run.controller.requests.approve(drain.id, "operator", run.cluster.now)
        until_it_moves(run, drain)
        cluster.strange = True
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        run.until(drain, DrainState.CANCELLED)
        assert map_of(run) == before


@pytest.mark.slow
def test_a_weight_goes_back_in_rungs_although_the_map_cannot_be_computed() -> None:
    with Run(two_pools()) as run:
        cluster = made_strange(run, now=False)
        run.tick()
        before = map_of(run)
        drain = run.drain("osd.0")
        run.until(drain, DrainState.VERIFIED)
        cluster.strange = True
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        run.until(drain, DrainState.CANCELLED)
        assert map_of(run) == before


@pytest.mark.slow
def test_a_sick_disk_whose_drain_cannot_be_planned_is_proposed_with_the_reason_and_drained_when_it_can() -> (
    None
):
    with Run(two_pools(), policy=Policy(mode=Mode.ACT)) as run:
        cluster = made_strange(run)
        run.tick()
        run.outlooks = {device(0): bad_outlook(0, at=run.cluster.now)}
        run.ticks(3)
        (drain,) = run.store.drains()
        assert drain.state is DrainState.PROPOSED
        assert any(TOLD in sentence for sentence in drain.held_by)
        assert map_of(run)["upmaps"] == {}
        cluster.strange = False
        run.until(drain, DrainState.VERIFIED)
