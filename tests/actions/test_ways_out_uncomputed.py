"""A cancel whose placement cannot be computed holds, says what ends the hold, and can be given up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.drain_policy import Policy
from predrain.actions.engine.ways_out import WayNotOpen
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import OsdId
from predrain.data.store.store_port import AUDIT
from predrain.data.way_out import WayOut
from tests.actions.made import tiny_spec, wide_spec
from tests.actions.run import ENOUGH, Run, map_of
from tests.actions.test_ways_out import Altered, ways_of

pytestmark = pytest.mark.slow

S = DrainState
SUSPECT = OsdId(0)
SOON = Policy(ways_out_after=timedelta(minutes=5))


def turn_root_to_straw(view: ClusterView) -> ClusterView:
    """Return the view after a person restored an old CRUSH map whose root is a straw bucket."""
    buckets = {
        id_: replace(bucket, algorithm="straw") if bucket.type == "root" else bucket
        for id_, bucket in view.crush.buckets.items()
    }
    return replace(view, crush=replace(view.crush, buckets=buckets))


@pytest.fixture
def run() -> Iterator[Run]:
    spec = replace(wide_spec(), settings={"osd/osd_max_backfills": "8"})
    with Run(spec, policy=SOON) as run:
        run.tick()
        yield run


def cancel_uncomputed(run: Run) -> Drain:
    """Return a cancelled removal. Its CRUSH weight was on its way down when a bucket became straw, so that the
    placement for the way back cannot be computed.
    """
    found = run.cluster.view().osds[SUSPECT].crush_weight
    drain = run.controller.requests.propose("osd.0", "operator", "test", run.cluster.now, Intent.REMOVE)
    run.controller.requests.approve(drain.id, "operator", run.cluster.now)
    for _ in range(ENOUGH):
        if run.cluster.view().osds[SUSPECT].crush_weight < found:
            break
        run.tick()
    run.started(Altered(run, turn_root_to_straw))
    run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
    for _ in range(ENOUGH):
        run.tick()
        if ways_of(run, drain):
            return run.known(drain)
    raise AssertionError(run.transcript(drain))


def test_a_cancel_that_cannot_be_computed_holds_with_what_ends_the_hold_and_may_be_given_up(run: Run) -> None:
    held = cancel_uncomputed(run)
    assert held.state is S.CANCELLING
    assert held.held_for == ("plan",)
    (sentence,) = held.held_by
    assert sentence.startswith("Bucket default uses straw;")
    assert "convert it (ceph osd crush set-all-straw-buckets-to-straw2" in sentence
    assert sentence.endswith("It goes on when the placement can be computed again.")
    assert ways_of(run, held) == [WayOut.GIVE_UP_CANCEL]


def test_a_cancel_that_cannot_be_computed_has_given_back_all_that_needs_no_placement(run: Run) -> None:
    before = map_of(run)
    cancel_uncomputed(run)
    now = map_of(run)
    assert [now[key] for key in ("settings", "balancer", "flags")] == [
        before[key] for key in ("settings", "balancer", "flags")
    ]
    assert run.cluster.view().osds[SUSPECT].reweight == 1.0


def test_a_given_up_cancel_that_cannot_be_computed_ends_with_a_list_of_the_settings_left(run: Run) -> None:
    drain = cancel_uncomputed(run)
    before = map_of(run)
    run.controller.requests.give_up_cancel(drain.id, "admin", run.cluster.now)
    ended = run.until(drain, S.CANCELLED, most=5)
    run.ticks(5)
    assert map_of(run) == before
    left = [f"upmap/{pg}" for pg in run.cluster.view().upmap_items]
    assert left
    audited = [line.decided for line in run.store.journal(AUDIT) if line.caller == "admin"]
    for told in (ended.ended_why, audited[-1]):
        assert all(key in told for key in ("osd.0/crush_weight at ", *left))
    assert ways_of(run, ended) == []


def test_a_drain_that_could_not_go_on_is_not_offered_to_stay_drained(run: Run) -> None:
    drain = cancel_uncomputed(run)
    with pytest.raises(WayNotOpen, match=r"stay_drained is not open .* open are: give_up_cancel"):
        run.controller.requests.stay_drained(drain.id, "operator", run.cluster.now)
    assert run.known(drain).state is S.CANCELLING


def test_a_cancel_goes_on_by_itself_when_its_placement_can_be_computed_again(run: Run) -> None:
    before = map_of(run)
    drain = cancel_uncomputed(run)
    run.started()
    assert "as it was found" in run.until(drain, S.CANCELLED).ended_why
    run.ticks(20)
    assert map_of(run) == before


def test_an_osd_leads_again_after_a_cancel_although_no_placement_can_be_computed() -> None:
    with Run(tiny_spec()) as run:
        run.tick()
        before = map_of(run)
        drain = run.controller.requests.propose(
            "osd.0", "operator", "slow", run.cluster.now, spare_reads=True
        )
        run.controller.requests.approve(drain.id, "operator", run.cluster.now)
        while not run.cluster.view().upmap_items:
            run.tick()
        assert run.cluster.view().osds[SUSPECT].primary_affinity == 0.0
        run.started(Altered(run, turn_root_to_straw))
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        run.until(drain, S.CANCELLED)
        run.ticks(20)
        assert map_of(run) == before
