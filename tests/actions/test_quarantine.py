"""Quarantine of slow OSDs on simulated clusters: it leads nothing, moves nothing, ends by itself, and gives way."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from predrain.actions.cluster.cluster_port import PrimaryAffinity, Reweight
from predrain.actions.core.drain_policy import Mode, Policy
from predrain.actions.engine.plan_building import plan_drain
from predrain.actions.mechanics.primary_affinity import find_primary_pgs
from predrain.data.drain import Drain, DrainStands, DrainState, Intent, Mechanic, Move
from predrain.data.ids import HostName, OsdId
from predrain.data.slow_osd import Slowness, SlowOsd
from tests.actions.made import a_context, a_drain, bad_outlook, device, ec_spec, wide_spec
from tests.actions.run import Run, empty, map_of

S = DrainState
OSD = OsdId(0)
ACT = Policy(mode=Mode.ACT)


@pytest.fixture
def run() -> Iterator[Run]:
    with Run(wide_spec(pg_num=128), policy=ACT) as run:
        run.tick()
        yield run


def slow(run: Run, *osds: int, hours: float = 4, lasting: bool = False) -> None:
    """From now on latencies say that these OSDs are slow, and have been for `hours`."""
    now = run.cluster.now
    since = now - timedelta(hours=hours)
    found = {
        OsdId(osd): SlowOsd(
            OsdId(osd),
            HostName("stor-01"),
            since,
            now,
            1.7,
            lasting,
            f"osd.{osd} answers 1.70 times as slowly",
        )
        for osd in osds
    }
    judged = frozenset(run.cluster.view().osds)
    run.controller.slow = Slowness(now, found, judged=judged)


def quarantines(run: Run) -> list[Drain]:
    """All that were ever asked for, eldest first."""
    found = [drain for drain in run.store.drains() if drain.intent is Intent.QUARANTINE]
    return sorted(found, key=lambda drain: drain.created_at)


def quarantined(run: Run, osd: int = 0) -> Drain:
    """Tick until a slow OSD leads nothing any more."""
    for _ in range(400):
        slow(run, osd)
        run.tick()
        if not find_primary_pgs(run.cluster.view(), OsdId(osd)) and quarantines(run):
            return quarantines(run)[-1]
    raise AssertionError(f"it still leads; {[(d.state, d.held_by) for d in quarantines(run)]}")


def test_a_slow_osd_stops_leading_pgs_and_no_data_moves(run: Run) -> None:
    leading = find_primary_pgs(run.cluster.view(), OSD)
    drain = quarantined(run)
    assert len(leading) > 5
    assert run.cluster.view().osds[OSD].primary_affinity == 0.0
    assert run.cluster.moved_bytes == 0
    assert drain.state is S.DRAINING
    assert drain.plan is not None
    assert drain.plan.mechanic is Mechanic.PRIMARY_AFFINITY
    run.tick()
    done = quarantines(run)[0].progress
    assert done.moved_pgs == done.planned_pgs == len(leading)


def test_no_step_changes_the_leader_of_more_pgs_than_may_peer(run: Run) -> None:
    leads = [find_primary_pgs(run.cluster.view(), OSD)]
    for _ in range(200):
        slow(run, 0)
        run.tick()
        leads.append(find_primary_pgs(run.cluster.view(), OSD))
        if not leads[-1]:
            break
    assert leads[-1] == frozenset()
    assert max(len(before - after) for before, after in itertools.pairwise(leads)) <= ACT.peering_max


def test_it_leads_again_when_it_answers_like_its_peers(run: Run) -> None:
    before = map_of(run)
    quarantined(run)
    slow(run)
    for _ in range(400):
        slow(run)
        run.tick()
        if quarantines(run)[0].state is S.CANCELLED:
            break
    assert quarantines(run)[0].state is S.CANCELLED
    assert map_of(run) == before
    assert run.cluster.moved_bytes == 0
    said = [entry.decided for entry in run.store.journal(quarantines(run)[0].id)]
    assert "it answers like its peers again" in said


@pytest.mark.slow
def test_unknown_is_not_well_again(run: Run) -> None:
    drain = quarantined(run)
    run.controller.slow = Slowness()
    run.ticks(20)
    run.controller.slow = Slowness(run.cluster.now, {}, judged=frozenset())
    run.ticks(20)
    assert run.known(drain).state in (S.DRAINING, S.HOLDING)
    assert run.cluster.view().osds[OSD].primary_affinity == 0.0


def test_a_quarantine_is_only_proposed_where_a_person_approves() -> None:
    with Run(wide_spec()) as run:
        for _ in range(10):
            run.tick()
            slow(run, 0)
        (drain,) = quarantines(run)
        assert drain.state is S.PROPOSED
        run.controller.requests.approve(drain.id, "operator", run.cluster.now)
        for _ in range(10):
            slow(run, 0)
            run.tick()
        assert run.cluster.view().osds[OSD].primary_affinity < 1.0


def test_a_proposal_is_withdrawn_when_the_osd_is_well_again() -> None:
    with Run(wide_spec()) as run:
        run.tick()
        slow(run, 0)
        run.tick()
        slow(run)
        run.tick()
        assert quarantines(run)[0].state is S.CANCELLED
        assert run.cluster.view().osds[OSD].primary_affinity == 1.0


@pytest.mark.slow
def test_a_cancel_restores_what_was_found_and_nothing_is_proposed_for_a_week(run: Run) -> None:
    run.cluster.apply(PrimaryAffinity(OSD, 0.75))
    run.ticks(3)
    before = map_of(run)
    drain = quarantined(run)
    run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
    for _ in range(400):
        slow(run, 0)
        run.tick()
        if run.known(drain).state is S.CANCELLED:
            break
    run.ticks(10)
    assert map_of(run) == before
    assert run.cluster.view().osds[OSD].primary_affinity == 0.75
    assert len(quarantines(run)) == 1


def test_a_cancel_gives_the_affinity_back_also_where_the_osd_is_down_and_out(run: Run) -> None:
    drain = quarantined(run)
    run.cluster.stop_osd(OSD)
    for _ in range(150):
        run.tick()
    assert run.cluster.view().osds[OSD].reweight == 0.0
    run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
    run.until(drain, S.CANCELLED)
    run.cluster.revive(OSD)
    run.ticks(60)
    assert run.cluster.view().osds[OSD].primary_affinity == 1.0


def test_an_affinity_that_somebody_else_set_holds_the_quarantine(run: Run) -> None:
    drain = quarantined(run)
    run.cluster.apply(PrimaryAffinity(OSD, 0.5))
    for _ in range(5):
        slow(run, 0)
        run.tick()
    held = run.known(drain)
    assert held.state is S.HOLDING
    assert "osd.0/affinity was set to 0.0" in held.held_by[0]
    assert run.cluster.view().osds[OSD].primary_affinity == 0.5


@pytest.mark.slow
def test_an_operators_weight_does_not_disturb_it(run: Run) -> None:
    drain = quarantined(run)
    run.cluster.apply(Reweight(OSD, 0.9))
    for _ in range(60):
        slow(run, 0)
        run.tick()
    assert run.known(drain).state is S.DRAINING


@pytest.mark.slow
def test_the_process_may_die_between_any_two_steps(run: Run) -> None:
    before = map_of(run)
    for number in range(150):
        slow(run, 0)
        run.tick()
        if number % 3 == 2:
            run.started()
    slow(run, 0)
    assert not find_primary_pgs(run.cluster.view(), OSD)
    assert len(quarantines(run)) == 1
    for _ in range(200):
        slow(run)
        run.tick()
    assert map_of(run) == before


@pytest.mark.slow
def test_an_osd_that_stays_slow_is_proposed_for_a_drain_that_takes_the_quarantine_over(run: Run) -> None:
    before = run.cluster.view().osds[OSD].primary_affinity
    first = quarantined(run)
    for _ in range(2_000):
        slow(run, 0, hours=100, lasting=True)
        run.tick()
        drains = [drain for drain in run.store.drains() if drain.intent is Intent.REPLACE]
        if drains and drains[0].state is S.VERIFIED:
            break
    (drain,) = drains
    assert drain.state is S.VERIFIED
    assert "for 4.2 days" in drain.reason
    assert drain.plan is not None
    assert drain.plan.mechanic is Mechanic.REBUILD
    assert run.known(first).state is S.CANCELLED
    assert run.known(first).ended_why == f"taken over by drain {drain.id}"
    assert empty(run, 0)
    assert run.cluster.view().osds[OSD].primary_affinity == before


@pytest.mark.slow
def test_a_drain_that_took_it_over_and_is_cancelled_restores_what_the_quarantine_found(run: Run) -> None:
    before = map_of(run)
    quarantined(run)
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    run.ticks(5)
    slow(run)
    run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
    run.until(drain, S.CANCELLED)
    after = map_of(run)
    assert after["weights"] == before["weights"]
    assert after["up"] == before["up"]


def test_a_bad_outlook_is_drained_though_a_quarantine_stands(run: Run) -> None:
    quarantined(run)
    run.outlooks = {device(0): bad_outlook(0, run.cluster.now)}
    slow(run, 0)
    run.ticks(3)
    assert any(drain.intent is Intent.REPLACE for drain in run.store.drains())


def test_only_one_quarantine_of_an_osd_may_stand(run: Run) -> None:
    quarantined(run)
    with pytest.raises(DrainStands):
        run.controller.requests.propose("osd.0", "operator", "again", run.cluster.now, Intent.QUARANTINE)


@pytest.mark.slow
def test_a_persons_quarantine_stays_until_a_person_ends_it(run: Run) -> None:
    drain = run.controller.requests.propose(
        "osd.0", "operator", "noisy neighbour", run.cluster.now, Intent.QUARANTINE
    )
    run.controller.requests.approve(drain.id, "operator", run.cluster.now)
    for _ in range(100):
        slow(run)
        run.tick()
    assert run.known(drain).state is S.DRAINING
    assert not find_primary_pgs(run.cluster.view(), OSD)


@pytest.mark.slow
def test_so_many_slow_osds_at_once_are_not_all_believed(run: Run) -> None:
    for _ in range(100):
        slow(run, 0, 3, 7)
        run.tick()
    lowered = [osd.id for osd in run.cluster.view().osds.values() if osd.primary_affinity < 1.0]
    assert len(lowered) == 1
    held = [drain.held_by for drain in quarantines(run) if drain.held_by]
    assert any("in quarantine, limit 1" in sentence for sentences in held for sentence in sentences)


def test_a_halt_stops_it(run: Run) -> None:
    run.store.set_halt("hands off")
    for _ in range(20):
        slow(run, 0)
        run.tick()
    assert run.cluster.view().osds[OSD].primary_affinity == 1.0


@pytest.mark.slow
def test_a_quarantine_is_no_drain_to_the_other_drains(run: Run) -> None:
    undisturbed = {move.pg: move.target for move in _plan_of_sibling(run)}
    quarantined(run)
    assert {move.pg: move.target for move in _plan_of_sibling(run)} == undisturbed
    sibling = run.drain("osd.1")
    for _ in range(1_500):
        slow(run, 0)
        run.tick()
        if run.known(sibling).state is S.VERIFIED:
            break
    assert run.known(sibling).state is S.VERIFIED
    assert run.cluster.view().osds[OSD].primary_affinity == 0.0


def _plan_of_sibling(run: Run) -> tuple[Move, ...]:
    made = plan_drain(run.cluster.view(), a_drain(1), ACT, a_context(run.cluster.view(), *run.store.drains()))
    return made.moves


def test_the_plan_of_an_erasure_coded_osd_says_what_is_not_spared() -> None:
    with Run(ec_spec(), policy=replace(ACT)) as run:
        run.tick()
        drain = run.controller.requests.propose(
            "osd.7", "operator", "slow", run.cluster.now, Intent.QUARANTINE
        )
        assert drain.plan is not None
        assert "its shards are still read" in drain.plan.why
        assert "the primary's role only" in drain.plan.why
