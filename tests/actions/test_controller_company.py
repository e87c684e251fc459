"""The controller in company: balancer, throttles, outlooks, lost answers, operators and other drains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from predrain.actions.cluster.cluster_port import Balancer, Reweight, SetOption
from predrain.actions.core.capacity import OsdCapacity
from predrain.actions.core.drain_policy import Mode, Policy
from predrain.actions.core.in_flight import Allowance
from predrain.actions.guards import AUTOMATIC
from predrain.actions.mechanics import override_reweight
from predrain.actions.mechanics.step_batch import CommandBatch
from predrain.data.drain import DrainState, JournalEvent
from predrain.data.hold_reason import HoldReason
from predrain.data.ids import OsdId, PgId
from predrain.data.outlook import Status
from tests.actions.made import bad_outlook, device, tiny_spec, wide_spec
from tests.actions.run import Run, empty, list_refusals, whole

pytestmark = pytest.mark.slow

S = DrainState


@pytest.fixture
def run() -> Iterator[Run]:
    with Run(wide_spec()) as run:
        yield run


# -- balancer and throttles
# -------------------------------------------------------------------------------------------


def test_the_balancer_is_off_while_draining_and_on_again_after(run: Run) -> None:
    with Run(replace(wide_spec(), balancer=True)) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        assert not run.cluster.view().balancer_active
        run.until(drain, S.VERIFIED)
        assert run.cluster.view().balancer_active


def test_a_balancer_turned_on_again_holds_the_drain(run: Run) -> None:
    with Run(replace(wide_spec(), balancer=True)) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        run.ticks(2)
        run.cluster.apply(Balancer(True))
        run.ticks(2)
        assert any("balancer was turned on again" in sentence for sentence in run.known(drain).held_by)


def test_throttles_above_the_seeds_are_lowered_never_raised_and_restored() -> None:
    spec = replace(wide_spec(), settings={"osd/osd_max_backfills": "8", "osd/osd_recovery_op_priority": "1"})
    with Run(spec) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        assert run.cluster.view().settings["osd/osd_max_backfills"] == "1"
        assert run.cluster.view().settings["osd/osd_recovery_op_priority"] == "1"
        run.until(drain, S.VERIFIED)
        assert dict(run.cluster.view().settings) == dict(spec.settings)


def test_a_death_elsewhere_gives_the_throttles_back_at_once_and_holds_until_it_has_healed() -> None:
    spec = replace(wide_spec(hosts=8), settings={"osd/osd_max_backfills": "8"})
    with Run(spec, policy=Policy(out_share_max=0.5, recovering_share_max=0.0)) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        run.ticks(6)
        run.cluster.fail_osd(OsdId(9))
        run.ticks(3)
        assert run.cluster.view().settings["osd/osd_max_backfills"] == "8"
        assert run.known(drain).state is S.HOLDING
        run.until(drain, S.DRAINING)
        run.ticks(3)
        assert run.cluster.view().settings["osd/osd_max_backfills"] == "1"
        run.until(drain, S.VERIFIED)
        assert run.cluster.view().settings["osd/osd_max_backfills"] == "8"
        assert whole(run)


def test_two_drains_share_the_balancer_and_the_last_one_gives_it_back() -> None:
    spec = replace(wide_spec(hosts=8, pg_num=128), balancer=True, settings={"osd/osd_max_backfills": "4"})
    with Run(spec, policy=Policy(out_share_max=0.5)) as run:
        first, second = run.drain("osd.0"), run.drain("osd.9")
        run.until(first, S.VERIFIED)
        if run.known(second).state is not S.VERIFIED:
            assert not run.cluster.view().balancer_active
            assert run.cluster.view().settings["osd/osd_max_backfills"] == "1"
        run.until(second, S.VERIFIED)
        run.until(first, S.VERIFIED)
        assert run.cluster.view().balancer_active
        assert run.cluster.view().settings["osd/osd_max_backfills"] == "4"
        assert empty(run, 0)
        assert empty(run, 9)


# -- proposals
# --------------------------------------------------------------------------------------------------------


CALM = {"p_fail_7d": 0.001, "p_fail_14d": 0.002, "p_fail_30d": 0.004}


def believe(run: Run, *osds: int, **changes: Any) -> None:
    for osd in osds:
        run.outlooks[device(osd)] = bad_outlook(osd, at=run.cluster.now, **changes)


@pytest.mark.parametrize(
    ("mode", "state"), [(Mode.OBSERVE, None), (Mode.PROPOSE, S.PROPOSED), (Mode.ACT, S.VERIFIED)]
)
def test_a_bad_disk_is_watched_proposed_or_drained_as_the_mode_says(
    mode: Mode, state: DrainState | None
) -> None:
    with Run(wide_spec(), policy=Policy(mode=mode)) as run:
        believe(run, 3)
        for _ in range(400):
            run.tick()
        states = [drain.state for drain in run.store.drains()]
        assert states == ([] if state is None else [state])
        if mode is not Mode.ACT:
            assert run.watched.commands == []


def test_a_warning_whose_drain_does_not_pay_proposes_nothing(run: Run) -> None:
    believe(run, 3, status=Status.WARNING, **CALM)
    believe(run, 5, status=Status.WARNING, p_fail_7d=None, p_fail_14d=None, p_fail_30d=None)
    run.ticks(3)
    assert run.store.drains() == ()


def test_an_unconfirmed_bad_disk_is_not_proposed_and_the_report_says_why(run: Run) -> None:
    believe(run, 3, readings=1, span_hours=0.0)
    report = run.tick()
    assert run.store.drains() == ()
    assert "1 reading over 0 min bears out that a drain pays" in list_refusals(report)[device(3)][0].sentence


def test_a_mass_of_bad_disks_of_one_model_proposes_none_of_them(run: Run) -> None:
    believe(run, *range(6))
    report = run.tick()
    assert run.store.drains() == ()
    assert {refusal.code for refusals in list_refusals(report).values() for refusal in refusals} == {
        "mass-suspicion"
    }


def test_a_proposal_is_made_once_and_is_withdrawn_when_the_disk_has_long_been_better(run: Run) -> None:
    believe(run, 3)
    run.ticks(5)
    (drain,) = run.store.drains()
    assert drain.asked_by == AUTOMATIC
    assert drain.reason.startswith("Pending sectors rose")
    believe(run, 3, status=Status.GOOD, span_hours=80.0, **CALM)
    run.ticks(2)
    assert run.known(drain).state is S.PROPOSED
    run.cluster.advance(timedelta(days=4).total_seconds())
    run.tick()
    assert run.known(drain).state is S.CANCELLED


def test_a_cancelled_disk_is_not_proposed_again_the_same_week(run: Run) -> None:
    believe(run, 3)
    run.tick()
    (drain,) = run.store.drains()
    run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
    run.ticks(5)
    assert [found.state for found in run.store.drains()] == [S.CANCELLED]


def test_a_new_disk_in_the_slot_ends_the_old_ones_drain(run: Run) -> None:
    drain = run.drain("osd.0")
    run.until(drain, S.VERIFIED)
    run.cluster.replace(OsdId(0), device(99), "D100", reweight=1.0)
    run.tick()
    assert run.known(drain).state is S.HANDED_OVER


def test_a_bad_disk_that_is_no_longer_there_is_not_proposed_and_keeps_nobody_busy() -> None:
    with Run(tiny_spec(), policy=Policy(mode=Mode.ACT)) as run:
        run.tick()
        run.cluster.replace(OsdId(5), device=device(99))
        run.tick(7200.0)
        assert whole(run)
        run.outlooks[device(5)] = bad_outlook(5, run.cluster.now)
        assert run.tick().idle
        assert run.store.drains() == ()
        run.outlooks[device(99)] = bad_outlook(99, run.cluster.now)
        run.tick()
        assert [drain.device for drain in run.store.drains()] == [device(99)]


def test_a_bad_disk_that_has_died_and_is_out_keeps_nobody_busy() -> None:
    with Run(tiny_spec(), policy=Policy(mode=Mode.ACT)) as run:
        run.tick()
        run.cluster.fail_osd(OsdId(5))
        run.outlooks[device(5)] = bad_outlook(5, run.cluster.now)
        run.ticks(65)
        assert run.tick().idle
        assert run.store.drains() == ()


def test_urgent_disks_go_before_healthier_ones(run: Run) -> None:
    with Run(wide_spec(hosts=8, racks=0), policy=Policy(drains_per_cluster=1, out_share_max=0.5)) as run:
        run.tick()
        calm, urgent = run.drain("osd.0"), run.drain("osd.8")
        run.outlooks[device(8)] = bad_outlook(8, at=run.cluster.now, p_fail_7d=0.9)
        run.until(urgent, S.PREPARING)
        assert run.known(calm).state is S.APPROVED


# -- lost answers
# -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("carried_out", [True, False])
def test_a_lost_answer_is_read_back_and_never_counted_twice(run: Run, carried_out: bool) -> None:
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    run.cluster.lose_answers(2, carried_out=carried_out)
    run.until(drain, S.VERIFIED)
    assert empty(run, 0)
    assert "no answer" in run.transcript(drain)


def test_a_pg_that_was_never_sent_away_is_not_waited_for_however_long_it_was_idle(run: Run) -> None:
    drain = run.drain("osd.0")
    while not run.cluster.view().upmap_items:
        run.tick()
    run.ticks(20)
    run.cluster.lose_answers(1, carried_out=False)
    run.until(drain, S.VERIFIED)
    assert "no answer" in run.transcript(drain)


def test_a_drain_whose_command_fails_three_times_running_needs_a_person(run: Run) -> None:
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    run.cluster.lose_answers(3, carried_out=False)
    failed = run.until(drain, S.FAILED)
    assert "3 times running" in failed.ended_why
    run.controller.requests.resume(drain.id, "operator", run.cluster.now)
    run.until(drain, S.VERIFIED)


def test_a_cluster_that_does_not_answer_is_held_with_the_reason(run: Run) -> None:
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    run.cluster.restart_mgr()
    report = run.controller.tick(run.cluster.now, {})
    assert report.view is None
    held = run.known(drain)
    assert held.held_for == (HoldReason.UNREACHABLE,)
    assert "does not answer" in held.held_by[0]
    (line,) = [line for line in run.store.journal(drain.id) if line.event is JournalEvent.HELD]
    assert line.decided == f"hold: {held.held_by[0]}"
    run.until(drain, S.VERIFIED)


def test_a_halt_while_the_cluster_is_silent_is_the_first_reason_and_no_way_out_is_offered(run: Run) -> None:
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    run.controller.halt("maintenance")
    run.cluster.restart_mgr()
    run.controller.tick(run.cluster.now, {})
    held = run.known(drain)
    assert held.held_for == (HoldReason.HALT, HoldReason.UNREACHABLE)
    assert held.held_by[0].startswith("Halted: maintenance.")


def test_an_operators_hand_on_the_weight_is_a_conflict_and_a_cancel_leaves_it(run: Run) -> None:
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    run.ticks(4)
    run.cluster.apply(Reweight(OsdId(0), 0.5))
    run.ticks(3)
    assert any("another party changed it" in sentence for sentence in run.known(drain).held_by)
    run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
    ended = run.until(drain, S.CANCELLED)
    assert run.cluster.view().osds[OsdId(0)].reweight == 0.5
    assert "left as found by others: osd.0/reweight" in run.transcript(ended)


def test_settings_that_the_osds_ignore_are_not_written_for_ever() -> None:
    spec = replace(wide_spec(), scheduler="mclock", settings={"osd/osd_recovery_op_priority": "9"})
    with Run(spec) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.VERIFIED)
        written = [command for command in run.watched.commands if isinstance(command, SetOption)]
        assert len(written) <= 8


def test_the_tiny_world_is_drained_too() -> None:
    with Run(tiny_spec()) as run:
        run.until(run.drain("osd.5"), S.VERIFIED)
        assert empty(run, 5)


def test_data_moves_only_inside_the_window_that_the_policy_sets() -> None:
    with Run(wide_spec(used=0.3), policy=Policy(window=(1, 2)), tick_seconds=60.0) as run:
        drain = run.drain("osd.0")
        while run.cluster.now.hour < 1:
            assert run.watched.commands == []
            run.tick()
        run.until(drain, S.VERIFIED)
        assert run.cluster.now.hour == 1


def test_a_hold_that_says_the_same_again_is_one_line_of_the_journal(run: Run) -> None:
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    run.store.set_halt("smoke")
    run.ticks(30)
    assert run.transcript(drain).count("Halted: smoke") == 1


def test_drains_that_share_pgs_one_after_the_other_do_not_call_each_other_strangers() -> None:
    with Run(wide_spec(hosts=8, racks=0, pg_num=64, used=0.3), policy=Policy(out_share_max=0.9)) as run:
        drains = [run.drain(f"osd.{osd}") for osd in (0, 2, 4, 6)]
        for drain in drains:
            run.until(drain, S.VERIFIED)
        assert "another party" not in "".join(run.transcript(drain) for drain in drains)
        assert whole(run)


def test_a_cancel_of_the_elder_of_two_drains_leaves_the_youngers_pins() -> None:
    with Run(wide_spec(hosts=8, racks=0, pg_num=64, used=0.3), policy=Policy(out_share_max=0.9)) as run:
        elder, younger = run.drain("osd.0"), run.drain("osd.2")
        run.ticks(60)
        run.controller.requests.cancel(elder.id, "operator", run.cluster.now)
        run.until(elder, S.CANCELLED)
        run.until(younger, S.VERIFIED)
        assert empty(run, 2)
        assert whole(run)
        assert run.cluster.view().osds[OsdId(0)].reweight == 1.0


def test_a_cancel_has_ended_only_when_every_pg_is_back(run: Run) -> None:
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    run.ticks(60)
    run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
    run.until(drain, S.CANCELLED)
    assert not [pg.id for pg in run.cluster.life.pgs.values() if pg.list_missing()]


def test_a_cancel_holds_while_there_is_no_room_for_what_comes_back_and_says_so(run: Run) -> None:
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    run.ticks(8)
    roomy = run.policy
    run.policy = run.watched.policy = replace(roomy, backfillfull_margin=0.85)
    run.started()
    run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
    run.ticks(60)
    assert any("osd.0 has no room for it any more" in sentence for sentence in run.known(drain).held_by)
    run.policy = run.watched.policy = roomy
    run.started()
    run.until(drain, S.CANCELLED)
    assert whole(run)


def test_of_two_drains_that_end_together_only_one_changes_a_weight_in_a_look() -> None:
    with Run(wide_spec(hosts=8, racks=0, pg_num=64, used=0.3), policy=Policy(out_share_max=0.9)) as run:
        drains = [run.drain("osd.0"), run.drain("osd.2")]
        for drain in drains:
            while any(drain.osds[0] in pg.up for pg in run.cluster.truth().pgs.values()):
                run.tick()
            run.controller.requests.pause(drain.id, "operator", run.cluster.now)
        run.ticks(30)
        for drain in drains:
            run.controller.requests.resume(drain.id, "operator", run.cluster.now)
        looks: list[set[OsdId]] = []
        while any(run.known(drain).state is not S.VERIFIED for drain in drains):
            before = len(run.watched.commands)
            run.tick()
            sent = run.watched.commands[before:]
            looks.append({command.osd for command in sent if isinstance(command, Reweight)})
        assert set.union(*looks) == {0, 2}
        assert max(map(len, looks)) == 1


def test_an_override_goes_no_further_than_a_pg_that_another_drain_stirs_in_the_same_look(run: Run) -> None:
    drain = run.drain("osd.0")
    while any(0 in {*pg.up, *pg.acting} for pg in run.cluster.truth().pgs.values()):
        run.tick()
    run.controller.requests.pause(drain.id, "operator", run.cluster.now)
    run.ticks(6)
    view = run.cluster.view()
    hanging = {id_ for id_, pairs in view.upmap_items.items() if any(old == 0 for old, _ in pairs)}

    def rung(taken: set[PgId]) -> CommandBatch:
        look = run.cluster.view()
        beside = Allowance(3, 8, 2, OsdCapacity(look, 0.85, {}), {}, taken)
        return override_reweight.finish_walk_override(look, OsdId(0), beside)

    alone = rung(set())
    assert 0 < len(alone.pgs) <= 3
    assert not rung(set(alone.pgs)).pgs & alone.pgs
    nearest = rung(set(hanging))
    assert nearest.pgs == frozenset()
    (command,) = nearest.commands
    run.cluster.apply(command)
    run.ticks(6)
    assert rung(set(hanging)).commands == ()
    assert rung(set(hanging)).waits_for == "another drain's step in this poll is on the same PGs"
    assert rung(set()).pgs
