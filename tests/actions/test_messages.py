"""Messages about drains: the PGs that were moved, were lost or are to come back, and the time that this takes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from predrain.actions.cluster.dumps.daemon_dumps import read_errors
from predrain.actions.core.capacity import compute_fullness_limit, find_lost_pgs
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.messages import (
    INTENT_TEXTS,
    describe_estimate,
    describe_hours,
    describe_state,
    state_names_intent,
)
from predrain.data.drain import DrainStands, DrainState, Intent
from predrain.data.ids import OsdId
from predrain.data.messages import describe_limit
from tests.actions.made import wide_spec
from tests.actions.run import Run

S = DrainState


def test_a_pg_whose_disk_died_before_it_moved_is_lost_and_not_moved() -> None:
    with Run(wide_spec(pg_num=32)) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        while run.known(drain).progress.moved_pgs < 2:
            run.tick()
        run.cluster.fail_osd(OsdId(0))
        run.ticks(6)
        view, dead = run.cluster.view(), run.known(drain)
        assert dead.plan is not None
        unmoved = {
            move.pg
            for move in dead.plan.moves
            if move.target not in view.pgs[move.pg].acting and len(set(view.pgs[move.pg].acting)) < 3
        }
        assert unmoved
        assert find_lost_pgs(view, dead) == unmoved
        assert dead.progress.lost_pgs == len(unmoved)
        assert dead.progress.moved_pgs + dead.progress.lost_pgs <= dead.progress.planned_pgs
        assert dead.progress.in_flight <= dead.progress.planned_pgs - len(unmoved)


def test_a_cancel_says_what_comes_back_until_nothing_is_left_to_come() -> None:
    with Run(wide_spec(pg_num=32)) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        while run.known(drain).progress.moved_pgs < 3:
            run.tick()
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        run.until(drain, S.CANCELLED)
        journal = run.store.journal(drain.id)
        since = next(place for place, line in enumerate(journal) if line.decided == "cancel")
        seen = [line.seen for line in journal[since:] if line.seen.startswith("epoch")]
        assert all("left on" not in line for line in seen), seen
        counts = [int(line.split(": ")[1].split(" ")[0]) for line in seen if "to come back to osd.0" in line]
        assert counts[0] >= 3
        assert counts == sorted(counts, reverse=True)
        assert counts[-1] == 0


@pytest.mark.parametrize(
    ("hours", "said"),
    [
        (0.0, "less than a minute"),
        (0.01, "less than a minute"),
        (0.5, "30 min"),
        (1.96, "118 min"),
        (6.04, "6.0 h"),
    ],
)
def test_a_duration_never_reads_as_no_time_at_all(hours: float, said: str) -> None:
    assert describe_hours(hours) == said


def test_ratios_that_leave_no_room_are_said_and_no_limit_is_below_zero() -> None:
    with Run(wide_spec(pg_num=32)) as run:
        view = replace(run.cluster.view(), backfillfull_ratio=0.01)
    assert compute_fullness_limit(view, Policy()) == 0.0
    assert (
        describe_limit(compute_fullness_limit(view, Policy()))
        == "and the cluster's nearfull and backfillfull ratios leave no room"
    )
    assert describe_limit(0.8) == "limit 80%"


def test_reads_that_ceph_calls_failed_are_told_of_their_osd_and_of_no_other() -> None:
    checks = {
        "OSD_TOO_MANY_REPAIRS": {"detail": [{"message": "osd.7 had 12 reads repaired"}]},
        "BLUESTORE_SPURIOUS_READ_ERRORS": {"detail": [{"message": " osd.7 reads with retries: 3\x1b[2J"}]},
        "OSD_DOWN": {"detail": [{"message": "osd.3 (root=default,host=a) is down"}]},
    }
    assert read_errors(json.dumps({"status": "HEALTH_WARN", "checks": checks}).encode()) == {
        7: (
            "Ceph says OSD_TOO_MANY_REPAIRS: osd.7 had 12 reads repaired.",
            "Ceph says BLUESTORE_SPURIOUS_READ_ERRORS: osd.7 reads with retries: 3[2J.",
        )
    }
    assert read_errors(None) == {}


def test_pgs_of_a_dead_disk_that_ceph_rebuilds_at_their_planned_place_are_lost_and_not_moved() -> None:
    spec = wide_spec(pg_num=32)
    with Run(replace(spec, pools=(replace(spec.pools[0], young=True),))) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        while run.known(drain).progress.moved_pgs < 2:
            run.tick()
        sent = run.known(drain).progress
        run.cluster.fail_osd(OsdId(0))
        while run.cluster.view().osds[OsdId(0)].reweight > 0:
            run.tick()
        run.tick()
        view, dead = run.cluster.view(), run.known(drain)
        assert dead.plan is not None
        at_target = [
            pg
            for move in dead.plan.moves
            if move.target in (pg := view.pgs[move.pg]).acting and "degraded" in pg.states
        ]
        assert len(at_target) > sent.in_flight
        assert dead.progress.moved_pgs <= sent.moved_pgs + sent.in_flight
        assert dead.progress.lost_pgs > 0


def test_a_cancel_of_a_disk_that_is_down_does_not_say_that_pgs_come_back_to_it() -> None:
    with Run(wide_spec(pg_num=32, used=0.2)) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        run.cluster.fail_osd(OsdId(0))
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        run.until(drain, S.CANCELLED)
        seen = [line.seen for line in run.store.journal(drain.id) if "come" in line.seen]
        assert seen
        assert all("no PG comes back to osd.0, which Ceph has down or out" in line for line in seen)


def test_an_estimate_of_less_than_a_minute_is_shown_without_the_word_about() -> None:
    assert describe_estimate(0.001) == "less than a minute"
    assert describe_estimate(0.5) == "about 30 min"


def test_the_refusal_of_a_second_drain_does_not_advise_a_cancel_while_the_first_is_being_cancelled() -> None:
    with Run(wide_spec(pg_num=32)) as run:
        drain = run.drain("osd.0")
        said = str(DrainStands(replace(drain, state=S.CANCELLING)))
    assert said.endswith("(cancelling); ask again when a controller has put everything back")


@pytest.mark.parametrize(
    ("intent", "state", "said"),
    [
        (Intent.FILL, DrainState.DRAINING, True),
        (Intent.FILL, DrainState.PAUSED, False),
        (Intent.QUARANTINE, DrainState.CANCELLED, True),
        (Intent.REPLACE, DrainState.DRAINED, True),
        (Intent.REMOVE, DrainState.HANDED_OVER, False),
    ],
)
def test_a_state_with_a_name_of_one_intent_alone_tells_the_intent(
    intent: Intent, state: DrainState, said: bool
) -> None:
    assert state_names_intent(state, intent) is said


@pytest.mark.parametrize("intent", Intent)
def test_a_state_that_does_not_tell_the_intent_does_not_repeat_its_noun(intent: Intent) -> None:
    for state in DrainState:
        if not state_names_intent(state, intent):
            assert not describe_state(state, intent).startswith(INTENT_TEXTS[intent].noun)
