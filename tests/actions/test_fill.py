"""The way back: a new disk in a drained slot gets its share by the same engine, under the same guards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from predrain.actions.cluster.cluster_port import DeviceLight
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import DeviceId, OsdId
from predrain.data.messages import describe_plan_refusal
from predrain.data.plan_refusal import PlanRefusal, PlanRefusalKind
from tests.actions.made import ec_spec, wide_spec
from tests.actions.run import Run, empty, whole

S = DrainState
SLOT = OsdId(0)


@pytest.fixture(params=["replicated", "erasure"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    with Run(wide_spec(used=0.3) if request.param == "replicated" else ec_spec(hosts=6)) as run:
        yield run


def drained_and_replaced(run: Run) -> None:
    """The slot's disk was drained, handed over and swapped; the OSD is up on the new one, and still out."""
    run.until(run.drain(f"osd.{SLOT}"), S.VERIFIED)
    run.cluster.replace(SLOT, device=DeviceId("NEW_0"), model="NEW", reweight=None)
    run.ticks(5)
    assert run.cluster.view().osds[SLOT].reweight == 0.0
    assert empty(run, SLOT)


def asked(run: Run, target: str = f"osd.{SLOT}") -> Drain:
    return run.controller.requests.propose(target, "operator", "new disk", run.cluster.now, Intent.FILL)


def approved(run: Run, drain: Drain) -> Drain:
    return run.controller.requests.approve(drain.id, "operator", run.cluster.now)


@pytest.mark.slow
def test_a_new_disk_gets_back_what_the_old_one_held_a_few_pgs_at_a_time(run: Run) -> None:
    run.tick()
    held = {pg.id for pg in run.cluster.view().pgs.values() if SLOT in pg.up}
    drained_and_replaced(run)
    before = run.cluster.moved_bytes
    drain = asked(run)
    assert drain.intent is Intent.FILL
    assert drain.plan is not None
    assert {move.pg for move in drain.plan.moves if move.target == SLOT} == held
    done = run.until(approved(run, drain), S.VERIFIED)
    assert run.cluster.view().osds[SLOT].reweight == 1.0
    assert {pg.id for pg in run.cluster.view().pgs.values() if SLOT in pg.up and SLOT in pg.acting} == held
    assert whole(run)
    assert run.cluster.moved_bytes - before == pytest.approx(drain.plan.bytes, rel=0.1)
    assert done.progress.moved_pgs == done.progress.planned_pgs
    rungs = [line for line in run.store.journal(drain.id) if "override of" in line.decided]
    assert len(rungs) >= len(held) / run.policy.peering_max
    run.controller.requests.hand_over(done.id, "operator", run.cluster.now)
    assert DeviceLight(DeviceId("NEW_0"), on=True) not in run.watched.commands, (
        "nobody is to pull the new disk"
    )


@pytest.mark.slow
def test_a_filled_disk_can_be_drained_whether_or_not_its_fill_was_closed(run: Run) -> None:
    run.tick()
    drained_and_replaced(run)
    filled = run.until(approved(run, asked(run)), S.VERIFIED)
    drain = run.controller.requests.propose(f"osd.{SLOT}", "operator", "noisy", run.cluster.now)
    run.until(approved(run, drain), S.VERIFIED)
    assert empty(run, SLOT)
    assert run.known(filled).state is S.VERIFIED


@pytest.mark.slow
def test_a_fill_that_is_cancelled_empties_the_disk_again_a_few_pgs_at_a_time(run: Run) -> None:
    drained_and_replaced(run)
    drain = approved(run, asked(run))
    while not run.known(drain).progress.moved_pgs >= 4:
        run.tick()
    run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
    run.until(drain, S.CANCELLED)
    assert run.cluster.view().osds[SLOT].reweight == 0.0
    assert empty(run, SLOT)
    assert whole(run)


def test_a_disk_that_is_in_already_is_not_touched_and_the_plan_says_what_to_do(run: Run) -> None:
    run.tick()
    drain = asked(run)
    assert drain.plan is not None
    assert drain.plan.refusals == (PlanRefusal(PlanRefusalKind.FILL_OF_IN_OSD, osd=SLOT),)
    assert "`ceph osd out 0` first" in describe_plan_refusal(drain.plan.refusals[0])
    approved(run, drain)
    run.ticks(5)
    assert run.known(drain).state is S.APPROVED
    assert run.cluster.moved_bytes == 0


@pytest.mark.slow
def test_a_disk_that_is_down_is_waited_for_with_a_sentence(run: Run) -> None:
    drained_and_replaced(run)
    run.cluster.stop_osd(SLOT)
    run.ticks(2)
    drain = asked(run)
    assert drain.plan is not None
    assert [describe_plan_refusal(one) for one in drain.plan.refusals] == [
        "osd.0 is down; start it on the new disk first."
    ]


@pytest.mark.slow
def test_a_halt_stops_a_fill_like_any_drain(run: Run) -> None:
    drained_and_replaced(run)
    drain = approved(run, asked(run))
    while not run.known(drain).progress.moved_pgs:
        run.tick()
    run.store.set_halt("stop")
    weight = run.cluster.view().osds[SLOT].reweight
    run.ticks(10)
    assert run.cluster.view().osds[SLOT].reweight == weight


@pytest.mark.slow
def test_a_fill_survives_the_death_of_its_controller(run: Run) -> None:
    drained_and_replaced(run)
    drain = approved(run, asked(run))
    while not run.known(drain).progress.moved_pgs:
        run.tick()
    run.started()
    run.until(drain, S.VERIFIED)
    assert run.cluster.view().osds[SLOT].reweight == 1.0
    assert whole(run)
