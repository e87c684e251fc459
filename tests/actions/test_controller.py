"""The controller on simulated clusters: drains that go well, that are stopped, killed, refused, and
undone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from predrain.actions.cluster.cluster_port import Reweight
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.controller.request_execution import ConcurrentDrainChange, NoSuchDrain, NotProposed
from predrain.actions.core.state_machine import NotInTable
from predrain.actions.crush.crush_map import CrushRule, RuleStep
from predrain.actions.simulator.cluster_spec import SIMULATED_CLUSTER, crush_tree
from predrain.data.drain import Drain, DrainStands, DrainState, JournalEntry, Mechanic, NoSuchTarget
from predrain.data.ids import OsdId
from tests.actions.made import a_drain, device, ec_spec, wide_spec
from tests.actions.run import Run, empty, map_of, whole

S = DrainState


@pytest.fixture
def run() -> Iterator[Run]:
    with Run(wide_spec()) as run:
        yield run


def test_a_drain_empties_the_osd_and_leaves_every_pg_whole(run: Run) -> None:
    drain = run.drain("osd.0")
    before = run.cluster.truth().used_bytes[OsdId(0)]
    ended = run.until(drain, S.VERIFIED)
    assert empty(run, 0)
    assert whole(run)
    assert run.cluster.view().osds[OsdId(0)].reweight == 0.0
    assert all(0 not in pair for pairs in run.cluster.view().upmap_items.values() for pair in pairs)
    assert ended.progress.moved_pgs == ended.progress.planned_pgs > 0
    assert run.cluster.recovered_bytes == 0
    assert run.cluster.moved_bytes <= 1.1 * before


@pytest.mark.slow
def test_the_plan_says_beforehand_how_many_bytes_move(run: Run) -> None:
    drain = run.drain("osd.0")
    assert drain.plan is not None
    run.until(drain, S.VERIFIED)
    assert run.cluster.moved_bytes == pytest.approx(drain.plan.bytes, rel=0.1)


@pytest.mark.slow
def test_the_last_override_moves_nothing(run: Run) -> None:
    drain = run.drain("osd.0")
    while not any("override of osd.0" in entry.decided for entry in run.store.journal(drain.id)):
        run.tick()
    moved = run.cluster.moved_bytes
    run.until(drain, S.VERIFIED)
    assert run.cluster.moved_bytes == moved


def test_ec_over_exactly_its_hosts_is_drained_onto_the_siblings_in_the_host() -> None:
    with Run(ec_spec(hosts=3, per_host=3, k=2, m=1)) as run:
        drain = run.drain("osd.0")
        assert drain.plan is not None
        assert {move.target for move in drain.plan.moves} <= {1, 2}
        run.until(drain, S.VERIFIED)
        assert empty(run, 0)
        assert whole(run)


def test_where_the_override_leaves_no_legal_choice_the_crush_weight_is_lowered_instead() -> None:
    few_tries = {
        1: CrushRule(
            1,
            "few",
            (
                RuleStep("set_chooseleaf_tries", item=1),
                RuleStep("set_choose_tries", item=11),
                RuleStep("take", item=-1),
                RuleStep("chooseleaf_indep", type="host"),
                RuleStep("emit"),
            ),
        )
    }
    spec = ec_spec(hosts=3, per_host=3, k=2, m=1)
    with Run(replace(spec, crush=crush_tree(spec.osds, few_tries))) as run:
        drain = run.drain("osd.0")
        assert drain.plan is not None
        assert drain.plan.mechanic is Mechanic.CRUSH_LADDER
        assert "no spare failure domain" in drain.plan.why
        assert {move.target for move in drain.plan.moves if move.source == 0} <= {1, 2}
        run.until(drain, S.VERIFIED)
        assert empty(run, 0)
        assert whole(run)


def test_ec_without_a_spare_host_or_disk_is_refused_with_the_reason() -> None:
    with Run(ec_spec(hosts=3, per_host=1, k=2, m=1)) as run:
        drain = run.drain("osd.0")
        run.ticks(5)
        held = run.known(drain)
        assert held.state is S.APPROVED
        assert any("It cannot be emptied" in sentence for sentence in held.held_by)
        assert run.watched.commands == []


def test_an_erasure_coded_drain_keeps_every_shard_in_its_place() -> None:
    with Run(ec_spec(hosts=5, per_host=2, k=2, m=1)) as run:
        run.until(run.drain("osd.3"), S.VERIFIED)
        assert empty(run, 3)
        assert whole(run)


@pytest.mark.slow
def test_a_cluster_of_old_clients_is_drained_by_rungs_of_the_override() -> None:
    with Run(wide_spec(used=0.4)) as run:

        class OldClients:
            def view(self) -> ClusterView:
                return replace(run.watched.view(), require_min_compat_client="jewel")

            def apply(self, command: Any) -> Any:
                return run.watched.apply(command)

        run.started(OldClients())
        drain = run.drain("osd.0")
        assert drain.plan is not None
        assert drain.plan.mechanic is Mechanic.OVERRIDE_LADDER
        run.until(drain, S.VERIFIED)
        assert empty(run, 0)
        assert whole(run)
        assert all(isinstance(command, Reweight) for command in run.watched.commands)


@pytest.mark.slow
def test_a_device_under_two_osds_is_one_drain_and_its_osds_go_one_by_one() -> None:
    spec = wide_spec()
    shared = {osd.id: (device(0), "D100") for osd in spec.osds if osd.id in (0, 1)}
    with Run(spec.with_devices(shared)) as run:
        drain = run.drain(device(0))
        assert drain.osds == (0, 1)
        half = False
        while run.known(drain).state is not S.VERIFIED:
            run.tick()
            half = half or (empty(run, 0) and not empty(run, 1))
        assert half
        assert empty(run, 0)
        assert empty(run, 1)


# -- stopping
# -----------------------------------------------------------------------------------------------------


def test_no_command_is_sent_while_halted_and_the_drain_goes_on_when_it_is_lifted(run: Run) -> None:
    drain = run.drain("osd.0")
    run.ticks(6)
    run.store.set_halt("smoke")
    sent = len(run.watched.commands)
    run.ticks(20)
    held = run.known(drain)
    assert len(run.watched.commands) == sent
    assert held.state is S.HOLDING
    assert held.held_by[0].startswith("Halted: smoke")
    run.store.set_halt(None)
    run.until(drain, S.VERIFIED)


def test_a_halt_between_two_commands_of_one_step_stops_the_second() -> None:
    with Run(replace(wide_spec(), balancer=True, settings={"osd/osd_max_backfills": "8"})) as run:

        class HaltsItself:
            def view(self) -> ClusterView:
                return run.watched.view()

            def apply(self, command: Any) -> Any:
                answer = run.watched.apply(command)
                run.store.set_halt("enough")
                return answer

        run.started(HaltsItself())
        drain = run.drain("osd.0")
        run.ticks(10)
        assert len(run.watched.commands) == 1
        assert "not sent, halted: enough" in run.transcript(drain)


def test_a_pause_stays_until_a_person_resumes(run: Run) -> None:
    drain = run.drain("osd.0")
    run.ticks(6)
    run.controller.requests.pause(drain.id, "operator", run.cluster.now)
    sent = len(run.watched.commands)
    run.ticks(30)
    assert run.known(drain).state is S.PAUSED
    assert len(run.watched.commands) == sent
    run.controller.requests.resume(drain.id, "operator", run.cluster.now)
    run.until(drain, S.VERIFIED)


@pytest.mark.slow
@pytest.mark.parametrize("ticks", [2, 4, 20, 60])
def test_a_cancel_puts_the_map_back_as_it_was(run: Run, ticks: int) -> None:
    run.tick()
    before = map_of(run)
    drain = run.drain("osd.0")
    run.ticks(ticks)
    run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
    run.until(drain, S.CANCELLED)
    run.cluster.advance(3600)
    assert map_of(run) == before
    assert whole(run)


@pytest.mark.slow
def test_a_cancel_after_the_drain_refills_the_disk_and_restores_all_settings() -> None:
    options = {"osd/osd_max_backfills": "4", "osd/osd_recovery_max_active": "8"}
    spec = replace(wide_spec(), settings=options, balancer=True)
    with Run(spec) as run:
        run.tick()
        before = map_of(run)
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINED)
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        run.until(drain, S.CANCELLED)
        after = map_of(run)
        assert {key: after[key] for key in ("weights", "flags", "settings", "balancer")} == {
            key: before[key] for key in ("weights", "flags", "settings", "balancer")
        }
        assert after["up"] == before["up"]


def test_a_request_that_the_state_table_lacks_is_refused_and_changes_nothing(run: Run) -> None:
    run.tick()
    drain = run.controller.requests.propose("osd.0", "operator", "test", run.cluster.now)
    with pytest.raises(NotInTable):
        run.controller.requests.resume(drain.id, "operator", run.cluster.now)
    assert run.known(drain) == drain


def test_requests_name_what_they_do_not_find(run: Run) -> None:
    run.tick()
    with pytest.raises(NoSuchTarget, match="neither an OSD"):
        run.controller.requests.propose("osd.999", "operator", "test", run.cluster.now)
    with pytest.raises(NoSuchDrain, match="drain list"):
        run.controller.requests.cancel("nothing", "operator", run.cluster.now)
    run.drain("osd.0")
    with pytest.raises(DrainStands, match=r"osd\.0 already has drain"):
        run.controller.requests.propose("osd.0", "operator", "test", run.cluster.now)


def test_a_rejection_ends_a_proposed_drain_without_a_look_and_is_its_persons_cancel(run: Run) -> None:
    run.tick()
    before = map_of(run)
    drain = run.controller.requests.propose("osd.0", "operator", "test", run.cluster.now)
    ended = run.controller.requests.reject(drain.id, "ada", run.cluster.now)
    assert (ended.state, ended.cancelled_by, ended.ended_why) == (S.CANCELLED, "ada", "reject by ada")
    run.ticks(5)
    assert run.known(drain) == ended
    assert map_of(run) == before


def test_a_rejection_during_which_another_process_approves_changes_nothing(run: Run) -> None:
    run.tick()
    drain = run.controller.requests.propose("osd.0", "operator", "test", run.cluster.now)
    requests, other = run.controller.requests, run.started()

    def save_late(rejected: Drain, entries: Sequence[JournalEntry]) -> None:
        assert rejected.state is S.CANCELLED
        other.requests.approve(drain.id, "operator", run.cluster.now)
        requests.save(rejected, entries)

    with pytest.raises(NotProposed, match=f"{drain.id} is approved, .*predrain drain cancel {drain.id}"):
        replace(requests, save=save_late).reject(drain.id, "ada", run.cluster.now)
    assert run.known(drain).state is S.APPROVED
    assert "(ada)" not in run.transcript(drain)


def test_the_refusal_of_a_late_rejection_names_the_cancel_command_only_while_a_cancel_is_possible() -> None:
    assert str(NotProposed(a_drain(state=S.PAUSED))).endswith("give it up: predrain drain cancel osd.0-test")
    for state in (S.CANCELLING, S.CANCELLED, S.HANDED_OVER):
        assert str(NotProposed(a_drain(state=state))).endswith("no longer proposed, and was not rejected")


def test_every_line_of_a_drains_journal_names_the_cluster(run: Run) -> None:
    drain = run.drain("osd.0")
    run.ticks(3)
    assert {line.cluster for line in run.store.journal(drain.id)} == {SIMULATED_CLUSTER}


def test_every_request_is_journalled_with_its_caller(run: Run) -> None:
    drain = run.drain("osd.0")
    assert [(e.decided, e.caller) for e in run.store.journal(drain.id)] == [
        ("propose", "operator"),
        ("approve", "operator"),
    ]


def test_a_verified_disk_is_handed_over_and_a_half_drained_one_is_not(run: Run) -> None:
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    with pytest.raises((ConcurrentDrainChange, NotInTable)):
        run.controller.requests.hand_over(drain.id, "operator", run.cluster.now)
    run.until(drain, S.VERIFIED)
    run.tick()
    assert run.controller.requests.hand_over(drain.id, "operator", run.cluster.now).state is S.HANDED_OVER
