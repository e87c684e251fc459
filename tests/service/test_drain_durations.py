"""How long a drain still takes, and took: against drains that were played to their end."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from predrain.actions.core.drain_policy import Policy
from predrain.actions.simulator.cluster_spec import Physics
from predrain.data.drain import Drain, DrainState, Intent, Progress
from predrain.service.fleet.drain_durations import (
    compute_hours_taken,
    estimate_cancel_hours,
    estimate_hours_left,
    measure_pace,
)
from predrain.service.fleet.drain_timeline import DrainSample, Timelines
from tests.actions.made import wide_spec
from tests.actions.run import Run

S = DrainState


def played(run: Run, intent: Intent) -> tuple[Drain, list[tuple[float, float, Drain]]]:
    """A drain played to its end: what it was then, and (hours gone by, hours said to be left, itself) look by look."""
    run.tick()
    asked = run.controller.requests.propose("osd.0", "operator", "test", run.cluster.now, intent)
    drain = run.controller.requests.approve(asked.id, "operator", run.cluster.now)
    said, timelines = [], Timelines()
    while (now := run.known(drain)).state is not S.VERIFIED:
        timelines.sample_running_drains(run.store.drains(), run.controller.view, run.cluster.now)
        if (hours := estimate_hours_left(now, timelines.list_samples(drain.id))) is not None:
            said.append((run.elapsed / 3600, hours, now))
        run.tick()
    return now, said


@pytest.mark.slow
@pytest.mark.parametrize("intent", [Intent.REPLACE, Intent.REMOVE])
@pytest.mark.parametrize("pg_num", [128, 512])
def test_the_estimated_time_left_of_a_drain_matches_the_time_it_takes_to_its_end(
    pg_num: int, intent: Intent
) -> None:
    policy = Policy(out_share_max=0.5)
    with Run(wide_spec(hosts=12, racks=0, pg_num=pg_num, used=0.1), policy=policy) as run:
        ended, said = played(run, intent)
        end, look = run.elapsed / 3600, policy.tick_seconds / 3600
        assert any(drain.progress.moved_bytes == drain.progress.planned_bytes for _, _, drain in said), (
            "what follows the data is looked at, too"
        )
        for at, hours, drain in said:
            assert (end - at) / 1.3 < hours < (end - at) * 1.6 + 6 * look, drain.progress
        begun = next(at for at, _, _ in said)
        assert compute_hours_taken(ended, run.store.journal(ended.id)) == pytest.approx(
            end - begun, abs=5 * look
        )


@pytest.mark.slow
def test_a_drain_that_goes_slower_than_planned_comes_nearer_to_what_is_left_by_its_pace_so_far() -> None:
    slow = Physics(stream_bytes_per_second=12e6, disk_bytes_per_second=12e6)
    policy, timelines = Policy(out_share_max=0.5), Timelines()
    with Run(replace(wide_spec(hosts=12, racks=0, pg_num=128), physics=slow), policy=policy) as run:
        run.tick()
        drain = run.drain("osd.0")
        said: list[tuple[float, float, float]] = []
        while (now := run.known(drain)).state is not S.VERIFIED:
            timelines.sample_running_drains(run.store.drains(), run.cluster.view(), run.cluster.now)
            measured, planned = (
                estimate_hours_left(now, timelines.list_samples(drain.id)),
                estimate_hours_left(now),
            )
            if measured is not None and planned is not None and 0.3 < share_moved(now) < 0.9:
                said.append((run.elapsed / 3600, measured, planned))
            run.tick()
        end = run.elapsed / 3600
        assert said
        assert all(planned < (end - at) / 1.5 for at, _, planned in said), "the plan knows of no slow disks"
        assert all(abs(end - at - hours) < abs(end - at - planned) for at, hours, planned in said)


def share_moved(drain: Drain) -> float:
    return drain.progress.moved_bytes / drain.progress.planned_bytes


def curve(*points: tuple[float, int, int, str]) -> list[DrainSample]:
    """Samples of (minute, bytes left, PGs in flight, what holds it)."""
    began = datetime(2026, 3, 1, tzinfo=UTC)
    return [
        DrainSample("d", began + timedelta(minutes=minute), left_, flying, None, (why,) if why else ())
        for minute, left_, flying, why in points
    ]


def halfway() -> Drain:
    with Run(wide_spec(hosts=12, racks=0)) as run:
        run.tick()
        drain = run.drain("osd.0")
        progress = Progress(planned_pgs=10, moved_pgs=5, planned_bytes=1000, moved_bytes=500)
        return replace(run.known(drain), state=S.DRAINING, progress=progress)


@pytest.mark.parametrize(
    ("points", "hours"),
    [
        ([(0, 1000, 1, ""), (30, 500, 1, "")], 1.0),
        ([(0, 1000, 1, ""), (30, 500, 1, "a guard"), (300, 500, 1, "")], 1.0),
        ([(0, 1000, 1, ""), (30, 500, 0, ""), (300, 500, 1, "")], 35 / 30),
        ([(0, 1000, 1, ""), (30, 900, 1, "")], None),
        ([(0, 1000, 1, ""), (4, 500, 1, "")], None),
        ([], None),
    ],
    ids=[
        "moving",
        "held does not count",
        "a pause counts little",
        "too little moved",
        "too short",
        "no curve",
    ],
)
def test_the_pace_so_far_leaves_out_when_nothing_could_move(
    points: list[tuple[float, int, int, str]], hours: float | None
) -> None:
    assert measure_pace(halfway(), curve(*points)) == (None if hours is None else pytest.approx(hours))


def test_nobody_knows_how_long_a_drain_still_takes_that_is_held_or_waits_for_a_person() -> None:
    with Run(wide_spec(hosts=12, racks=0)) as run:
        run.tick()
        drain = run.drain("osd.0")
        assert estimate_hours_left(run.known(drain)) is None, "it has not begun"
        run.until(drain, S.DRAINING)
        assert estimate_hours_left(run.known(drain)) is not None
        for state in (S.HOLDING, S.PAUSED, S.FAILED, S.CANCELLING, S.DRAINED, S.VERIFIED, S.CANCELLED):
            assert estimate_hours_left(replace(run.known(drain), state=state)) is None


def test_a_drain_that_was_cancelled_took_as_long_as_it_went_and_came_back() -> None:
    with Run(wide_spec(hosts=12, racks=0)) as run:
        run.tick()
        drain = run.drain("osd.0")
        never = run.drain("osd.1")
        run.controller.requests.cancel(never.id, "operator", run.cluster.now)
        run.until(drain, S.DRAINING)
        began = run.elapsed
        run.ticks(20)
        assert compute_hours_taken(run.known(drain), run.store.journal(drain.id)) is None, "it is not over"
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        ended = run.until(drain, S.CANCELLED)
        gone = compute_hours_taken(ended, run.store.journal(drain.id))
        assert gone == pytest.approx((run.elapsed - began) / 3600, abs=0.02)
        assert compute_hours_taken(run.until(never, S.CANCELLED), run.store.journal(never.id)) is None, (
            "it never began"
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("share", "intent"), [(0.3, Intent.REPLACE), (0.8, Intent.REMOVE), (1.0, Intent.REPLACE)]
)
def test_the_estimated_duration_of_a_cancel_matches_the_time_that_it_takes(
    share: float, intent: Intent
) -> None:
    policy = Policy(out_share_max=0.5)
    with Run(wide_spec(hosts=12, racks=0, pg_num=512, used=0.1), policy=policy) as run:
        run.tick()
        asked = run.controller.requests.propose("osd.0", "operator", "test", run.cluster.now, intent)
        drain = run.controller.requests.approve(asked.id, "operator", run.cluster.now)
        assert estimate_cancel_hours(run.known(drain), run.controller.view, policy) is None, (
            "nothing has moved"
        )
        run.until(drain, S.DRAINING)
        while (now := run.known(drain)).progress.moved_bytes < share * now.progress.planned_bytes:
            run.tick()
        said, began = estimate_cancel_hours(now, run.controller.view, policy), run.elapsed
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        came = (run.until(drain, S.CANCELLED), run.elapsed - began)[1] / 3600
        assert said == pytest.approx(came, rel=0.3)
        assert estimate_cancel_hours(run.known(drain), run.controller.view, policy) is None, "it is back"
