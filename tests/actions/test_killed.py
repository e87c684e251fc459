"""kill -9 between any two calls of store and cluster: the next process, from the store alone, ends
where it would have.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from predrain.actions.cluster.cluster_port import SetUpmap
from predrain.actions.core.drain_policy import Policy
from predrain.actions.simulator.cluster_spec import Physics
from predrain.data.drain import DrainState
from predrain.data.ids import PgId
from tests.actions.fuse import Fuse, FusedCluster, FusedStore, Killed
from tests.actions.made import ec_spec, wide_spec
from tests.actions.run import Run, map_of, whole

S = DrainState


def spec() -> Any:
    """With a balancer that is on and asleep: what it moves afterwards depends on when it woke, not on the engine."""
    return replace(
        wide_spec(hosts=5, per_host=2, racks=0, pg_num=16, used=0.3),
        settings={"osd/osd_max_backfills": "8"},
        balancer=True,
        physics=Physics(balancer_seconds=1e9),
    )


def play(run: Run, fuse: Fuse | None, cancel_at: int | None) -> DrainState:
    """One drain to its end, with a kill where the fuse says; a cancel by a person after `cancel_at` ticks."""

    def start() -> None:
        if fuse is None or fuse.calls >= fuse.at:
            run.started()
        else:
            run.started(FusedCluster(run, fuse), FusedStore(run, fuse))  # type: ignore[arg-type]

    run.tick()
    asked = run.drain("osd.0")
    start()
    end = S.VERIFIED if cancel_at is None else S.CANCELLED
    for tick in range(600):
        state = run.known(asked).state
        if state is end:
            return state
        try:
            if cancel_at is not None and tick >= cancel_at and state not in (S.CANCELLING, S.CANCELLED):
                run.started()
                run.controller.requests.cancel(asked.id, "operator", run.cluster.now)
                start()
            run.tick()
        except Killed:
            run.started()
    raise AssertionError(f"{run.known(asked)}")


def outcome(run: Run) -> dict[str, object]:
    run.cluster.advance(3600)
    return dict(map_of(run))


def calls_of(cancel_at: int | None) -> int:
    """Return the number of commands and store writes that an undisturbed drain makes."""
    with Run(spec()) as run:
        fuse = Fuse(10**9, after=False)
        play(run, fuse, cancel_at)
        return fuse.calls


EACH = int(os.environ.get("PREDRAIN_KILL_STRIDE") or 3)
"""The calls are killed at this stride: at each call in `make test-nightly`, and at each third in `make test-all`."""
ENDS = pytest.mark.parametrize(
    "cancel_at", [None, 12, 30], ids=["to the end", "cancelled early", "cancelled late"]
)


@pytest.mark.slow
@ENDS
def test_a_kill_now_and_then_leads_to_the_same_end(cancel_at: int | None) -> None:
    kill_every(17, cancel_at)


@pytest.mark.slow
@pytest.mark.long
@ENDS
def test_a_kill_at_each_call_leads_to_the_same_end(cancel_at: int | None) -> None:
    kill_every(EACH, cancel_at)


def kill_every(stride: int, cancel_at: int | None) -> None:
    """Play a drain for each `stride`th call with a kill before it, and another with a kill after it. Check that each
    ends like an undisturbed drain.
    """
    with Run(spec()) as run:
        play(run, None, cancel_at)
        undisturbed = outcome(run)
    calls = calls_of(cancel_at)
    assert calls > 20
    for at in range(1, calls + 1, stride):
        for after in (False, True):
            with Run(spec()) as run:
                play(run, Fuse(at, after=after), cancel_at)
                assert outcome(run) == undisturbed, (
                    f"killed {'after' if after else 'before'} call {at} of {calls}"
                )
                assert whole(run)


@pytest.mark.slow
def test_a_pg_that_a_dead_process_set_moving_by_an_override_still_counts_against_the_limit() -> None:
    """Without osd.12, CRUSH makes two shards of this PG change places. No upmap item keeps them in place, and no plan
    names the PG.
    """
    pg, slow = PgId("1.3b"), Physics(latency_per_stream=0.01, stream_bytes_per_second=4e6)
    spec = replace(ec_spec(hosts=7, per_host=2, k=3, m=2, pg_num=64), physics=slow)
    with Run(spec, policy=Policy(out_share_max=0.5, in_flight_max=1)) as run:
        run.cluster.apply(SetUpmap(pg, ((12, 13),)))
        run.cluster.advance(36_000)
        run.drain("osd.12")
        while not moves(run, pg):
            run.tick()
        run.started()
        run.drain("osd.8")
        upmaps = len(run.cluster.view().upmap_items)
        while len(run.cluster.view().upmap_items) <= upmaps:
            run.tick()
        assert not moves(run, pg)


def moves(run: Run, pg: PgId) -> bool:
    """Return whether a shard of the PG is not yet where the map wants it."""
    return bool(run.cluster.life.pgs[run.cluster.osdmap.index[pg]].list_missing())
