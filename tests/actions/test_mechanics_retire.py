"""A disk that goes for good: CRUSH weight 0, and nothing moves for it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from threading import Event

import pytest

from predrain.actions.cluster.cluster_port import (
    ClusterUnreachable,
    Command,
    CommandResult,
    CrushReweight,
    SetFlag,
)
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.controller.cleanup import stale_flags
from predrain.actions.core.claimed_settings import collect_upmap_items
from predrain.actions.core.drain_policy import Policy
from predrain.actions.placement.what_if import apply_crush_weights, compute_up_sets
from predrain.actions.simulator.cluster_spec import Physics
from predrain.data.drain import BoundKind, Drain, DrainState, Intent
from predrain.data.ids import OsdId, PgId
from predrain.data.messages import describe_plan_refusal
from predrain.data.plan_refusal import PlanRefusal, PlanRefusalKind
from predrain.data.setting import OsdFlag
from tests.actions.made import a_context, a_drain, a_plan, calm_view, ec_spec, wide_spec
from tests.actions.run import Run, empty, map_of, whole
from tests.settings_by_text import by_setting

S = DrainState
SPEC = wide_spec(hosts=8, per_host=2, racks=4, pg_num=64, used=0.4)


def removed(run: Run, target: str = "osd.0") -> Drain:
    """A drain of the OSD for good, approved."""
    run.tick()
    drain = run.controller.requests.propose(target, "operator", "test", run.cluster.now, Intent.REMOVE)
    return run.controller.requests.approve(drain.id, "operator", run.cluster.now)


def moved_off(run: Run, before: dict[PgId, frozenset[int]]) -> set[PgId]:
    """PGs whose data lies elsewhere than before."""
    return {id_ for id_, pg in run.cluster.truth().pgs.items() if frozenset(pg.members) != before[id_]}


def places(run: Run) -> dict[PgId, frozenset[int]]:
    return {id_: frozenset(pg.members) for id_, pg in run.cluster.truth().pgs.items()}


@pytest.mark.slow
def test_the_crush_weight_ends_at_zero_and_only_the_suspects_own_pgs_have_moved() -> None:
    with Run(SPEC) as run:
        before = places(run)
        mine = {id_ for id_, members in before.items() if 0 in members}
        drain = removed(run)
        run.until(drain, S.VERIFIED)
        osd = run.cluster.view().osds[OsdId(0)]
        assert (osd.crush_weight, osd.reweight) == (0.0, 0.0)
        assert whole(run)
        assert empty(run, 0)
        assert moved_off(run, before) == mine
        assert not run.cluster.view().flags


def test_without_the_pins_the_same_weight_moves_bystanders() -> None:
    view = Run(SPEC).cluster.view()
    out = compute_up_sets(view, (OsdId(0),))
    gone = compute_up_sets(view, (OsdId(0),), crush=apply_crush_weights(view, {OsdId(0): 0.0}))
    bystanders = [pg for pg in out if set(out[pg]) != set(gone[pg])]
    assert len(bystanders) > 5


@pytest.mark.slow
def test_an_erasure_coded_pool_is_kept_in_place_too() -> None:
    with Run(ec_spec(hosts=6, per_host=2, k=2, m=2, pg_num=32)) as run:
        before = places(run)
        mine = {id_ for id_, members in before.items() if 0 in members}
        run.until(removed(run), S.VERIFIED)
        assert run.cluster.view().osds[OsdId(0)].crush_weight == 0.0
        assert moved_off(run, before) == mine
        assert whole(run)


@pytest.mark.slow
def test_each_rung_is_one_step_that_sets_the_flags_first_and_clears_them_last() -> None:
    with Run(SPEC) as run:
        run.until(removed(run), S.VERIFIED)
        sent = run.watched.commands
        rungs = [at for at, command in enumerate(sent) if isinstance(command, CrushReweight)]
        stirring = [at for at in rungs if at and sent[at - 1] == SetFlag("nobackfill", on=True)]
        assert stirring
        for at in stirring:
            assert sent[at - 2] == SetFlag("norebalance", on=True)
            after = sent[at : at + 20]
            assert SetFlag("norebalance", on=False) in after
            assert after.index(SetFlag("nobackfill", on=False)) < after.index(
                SetFlag("norebalance", on=False)
            )
        weights = [command.weight for command in sent if isinstance(command, CrushReweight)]
        assert weights == sorted(weights, reverse=True)
        assert weights[-1] == 0.0


@pytest.mark.slow
def test_a_disk_to_be_replaced_keeps_its_crush_weight() -> None:
    with Run(SPEC) as run:
        drain = run.drain("osd.0")
        was = run.cluster.view().osds[OsdId(0)].crush_weight
        run.until(drain, S.VERIFIED)
        assert run.cluster.view().osds[OsdId(0)].crush_weight == was


@pytest.mark.slow
def test_a_cancel_after_the_removal_puts_the_whole_map_back() -> None:
    with Run(SPEC) as run:
        before = map_of(run)
        drain = removed(run)
        run.until(drain, S.VERIFIED)
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        run.until(drain, S.CANCELLED)
        run.ticks(20)
        assert map_of(run) == before


@pytest.mark.slow
def test_the_pins_are_given_back_a_few_at_a_time_where_the_policy_says_so() -> None:
    with Run(SPEC, policy=Policy(remove_bystander_upmaps=True)) as run:
        run.until(removed(run), S.VERIFIED)
        assert not run.cluster.view().upmap_items
        assert whole(run)
    with Run(SPEC) as run:
        run.until(removed(run), S.VERIFIED)
        assert run.cluster.view().upmap_items


FLAGS_SET = SetFlag("nobackfill", on=True)


def halted_in_a_rung(run: Run, after: Command = FLAGS_SET) -> Drain:
    """A removal that a halt cut short right after its first such command."""
    drain = removed(run)

    def halt() -> None:
        if run.watched.commands[-1] == after:
            run.store.set_halt("test")
            run.watched.after_command = lambda: None

    run.watched.after_command = halt
    while not run.store.halt_reason():
        run.tick()
    return drain


@pytest.mark.slow
@pytest.mark.parametrize("after", [SetFlag("norebalance", on=True), FLAGS_SET])
def test_a_halt_in_the_middle_of_a_rung_gives_its_flags_back_at_once(after: Command) -> None:
    with Run(SPEC) as run:
        before = places(run)
        mine = {id_ for id_, members in before.items() if 0 in members}
        drain = halted_in_a_rung(run, after)
        assert not run.cluster.view().flags
        assert not any(isinstance(command, CrushReweight) for command in run.watched.commands)
        assert "put back what was left: flag/norebalance off" in run.transcript(drain)
        run.ticks(10)
        run.store.set_halt(None)
        run.until(drain, S.VERIFIED)
        assert run.cluster.view().osds[OsdId(0)].crush_weight == 0.0
        assert moved_off(run, before) == mine


@pytest.mark.slow
def test_flags_that_a_dead_process_left_are_given_back_under_a_halt_as_well() -> None:
    with Run(SPEC) as run:
        removed(run)
        dying = Dies(run, 2)
        run.started(dying)
        while dying.left or not dying.rung:
            run.tick()
        assert run.cluster.view().flags == {"norebalance", "nobackfill"}
        run.store.set_halt("test")
        run.started()
        run.tick()
        assert not run.cluster.view().flags


@pytest.mark.slow
def test_an_operators_flags_stay_under_a_halt_and_after_a_removal() -> None:
    with Run(SPEC) as run:
        drain = halted_in_a_rung(run)
        run.ticks(3)
        run.cluster.apply(SetFlag("norebalance", on=True))
        run.ticks(10)
        assert run.cluster.view().flags == {"norebalance"}
        run.cluster.apply(SetFlag("norebalance", on=False))
        run.store.set_halt(None)
        run.until(drain, S.VERIFIED)
        run.ticks(3)
        run.cluster.apply(FLAGS_SET)
        run.ticks(10)
        assert run.cluster.view().flags == {"nobackfill"}


class Dies:
    """A cluster that stops answering once it has carried out `carried_out` commands of a reweight step."""

    def __init__(self, run: Run, carried_out: int) -> None:
        self.run, self.left, self.rung = run, carried_out, False

    def view(self) -> ClusterView:
        return self.run.watched.view()

    def apply(self, command: Command) -> CommandResult:
        self.rung = self.rung or command == SetFlag("norebalance", on=True)
        if self.rung and self.left == 0:
            raise ClusterUnreachable("cut off")
        self.left -= self.rung
        return self.run.watched.apply(command)


class Slow:
    """A cluster that sets the first flag of a reweight step, and answers this command only when a test allows it."""

    def __init__(self, run: Run) -> None:
        self.run, self.begun, self.on = run, Event(), Event()

    def view(self) -> ClusterView:
        return self.run.watched.view()

    def apply(self, command: Command) -> CommandResult:
        if isinstance(command, SetFlag) and not self.begun.is_set():
            answer = self.run.watched.apply(command)
            self.begun.set()
            assert self.on.wait(30)
            return answer
        return self.run.watched.apply(command)


@pytest.mark.slow
def test_a_process_that_is_to_end_ends_the_rung_that_it_has_begun_and_begins_no_other() -> None:
    with Run(SPEC) as run:
        removed(run)
        slow = Slow(run)
        controller = run.started(slow)

        def ticks() -> None:
            while not slow.begun.is_set():
                run.tick()

        with ThreadPoolExecutor() as threads:
            ticking = threads.submit(ticks)
            assert slow.begun.wait(60)
            resting = threads.submit(controller.stop_new_steps, 30.0)
            wait([resting], 0.2)
            assert not resting.done()
            slow.on.set()
            resting.result(30)
            assert not run.cluster.view().flags
            ticking.result(30)
        controller.stop_new_steps(30.0)
        sent = len(run.watched.commands)
        run.ticks(10)
        assert len(run.watched.commands) == sent


@pytest.mark.slow
@pytest.mark.parametrize("carried_out", [1, 2, 3, 4])
def test_a_rung_cut_short_anywhere_is_taken_up_again_and_nothing_but_the_suspects_data_has_moved(
    carried_out: int,
) -> None:
    with Run(SPEC) as run:
        before = places(run)
        mine = {id_ for id_, members in before.items() if 0 in members}
        drain = removed(run)
        dying = Dies(run, carried_out)
        run.started(dying)
        while dying.left or not dying.rung:
            run.tick()
        run.started()
        run.until(drain, S.VERIFIED)
        assert run.cluster.view().osds[OsdId(0)].crush_weight == 0.0
        assert not run.cluster.view().flags
        assert moved_off(run, before) == mine
        assert whole(run)


def set_by_the_operator(run: Run) -> None:
    """Set by hand a flag that a reweight step also sets, and let five polls pass."""
    run.cluster.apply(SetFlag("norebalance", on=True))
    run.ticks(5)


@pytest.mark.slow
def test_a_removal_that_is_over_leaves_the_flags_to_the_operator() -> None:
    with Run(SPEC) as run:
        drain = run.until(removed(run), S.VERIFIED)
        set_by_the_operator(run)
        assert run.cluster.view().flags == {"norebalance"}
        run.cluster.apply(SetFlag("norebalance", on=False))
        run.ticks(5)
        run.controller.requests.hand_over(drain.id, "operator", run.cluster.now)
        run.cluster.purge(OsdId(0))
        set_by_the_operator(run)
        assert run.cluster.view().flags == {"norebalance"}
        assert not any(isinstance(key, OsdFlag) for key in run.known(drain).ours)


def test_flags_that_an_earlier_version_left_in_the_book_of_a_drain_that_is_over_are_the_operators() -> None:
    with Run(SPEC) as run:
        ours = by_setting({"flag/norebalance": "on"})
        run.store.save_drain(
            a_drain(state=S.HANDED_OVER, ours=ours, saved=by_setting({"flag/norebalance": "off"}))
        )
        set_by_the_operator(run)
        assert run.cluster.view().flags == {"norebalance"}


@pytest.mark.slow
def test_between_two_rungs_a_removal_that_is_paused_leaves_the_flags_to_the_operator() -> None:
    with Run(SPEC) as run:
        drain = removed(run)
        while not any(isinstance(command, CrushReweight) for command in run.watched.commands):
            run.tick()
        run.ticks(2)
        run.controller.requests.pause(drain.id, "operator", run.cluster.now)
        run.ticks(2)
        set_by_the_operator(run)
        assert run.cluster.view().flags == {"norebalance"}


def test_an_operators_flag_is_never_taken_for_ours() -> None:
    view = replace(calm_view(), flags=frozenset({"norebalance"}))
    assert stale_flags((a_drain(),), view) == ()
    ours = a_drain(ours=by_setting({"flag/nobackfill": "on"}), saved=by_setting({"flag/nobackfill": "off"}))
    assert stale_flags((ours,), view) == ()


@pytest.mark.parametrize("client", ["jewel"])
def test_without_upmaps_a_removal_is_refused_with_the_way_out(client: str) -> None:
    view = replace(calm_view(), require_min_compat_client=client)
    made = a_plan(view, replace(a_drain(), intent=Intent.REMOVE))
    assert made.refusals == (PlanRefusal(PlanRefusalKind.REMOVAL_WITH_OLD_CLIENTS, name=client),)
    told = describe_plan_refusal(made.refusals[0])
    assert f"require_min_compat_client is {client}. Drain it to be replaced, and take the weight" in told


def test_the_plan_of_a_removal_counts_the_pgs_that_it_will_keep_in_place() -> None:
    view = replace(Run(SPEC).cluster.view(), as_of=a_context(calm_view()).now)
    drain = replace(a_drain(), intent=Intent.REMOVE)
    made = a_plan(view, drain)
    gone = compute_up_sets(view, (), crush=apply_crush_weights(view, {OsdId(0): 0.0}))
    changed = {pg for pg in gone if gone[pg] != view.pgs[pg].up}
    assert changed <= set(made.affected_pgs)
    assert "kept in place by upmap items" in made.why
    assert made.bounds[-1].kind is BoundKind.WEIGHT_ZERO


@pytest.mark.slow
def test_a_pg_that_another_drain_sends_on_is_not_pinned_back_by_a_removal_that_kept_it_in_place() -> None:
    policy = Policy(out_share_max=0.5, drains_per_rack=9)
    with Run(replace(SPEC, physics=Physics(stream_bytes_per_second=8e6)), policy=policy) as run:
        removal = removed(run)
        while not (kept := kept_in_place(run, removal)):
            run.tick()
        run.controller.requests.pause(removal.id, "operator", run.cluster.now)
        other = run.drain(f"osd.{kept[0]}")
        run.until(other, S.DRAINING)
        run.controller.requests.resume(removal.id, "operator", run.cluster.now)
        run.until(other, S.VERIFIED)
        run.until(removal, S.VERIFIED)
        assert "the last ones do not stand" not in run.transcript(removal)
        assert whole(run)


@pytest.mark.slow
def test_removals_at_once_foresee_what_each_others_weights_have_changed() -> None:
    spec = wide_spec(hosts=8, per_host=2, racks=0, pg_num=128, used=0.4)
    with Run(spec, policy=Policy(out_share_max=0.5, peering_max=2)) as run:
        drains = [removed(run, target) for target in ("osd.0", "osd.3", "osd.9")]
        for drain in drains:
            run.until(drain, S.VERIFIED)
        assert whole(run)


def kept_in_place(run: Run, removal: Drain) -> tuple[int, ...]:
    """Return the `up` of a PG that the removal keeps in place by an upmap item, while reweight steps are still to come.
    Return () if there is none.
    """
    drain, view = run.known(removal), run.cluster.view()
    if drain.plan is None or view.osds[OsdId(0)].crush_weight == 0.0:
        return ()
    moved = {move.pg for move in drain.plan.moves}
    return next(
        (
            view.pgs[pg].up
            for pg, pairs in collect_upmap_items(drain.ours).items()
            if pairs and pg not in moved
        ),
        (),
    )
