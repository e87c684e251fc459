"""kill -9 between any two calls, with the store deleted at that moment as well: the cluster's copy alone leads to the
same end; and with the copy deleted, the store alone does.
"""

from __future__ import annotations

from typing import Literal

import pytest

from predrain.data.drain import DrainState
from tests.actions.fuse import Fuse, FusedCluster, FusedKeep, FusedStore, Killed
from tests.actions.run import whole
from tests.actions.test_killed import EACH, outcome, spec
from tests.actions.test_replication import Kept

S = DrainState
Lost = Literal["nothing", "store", "copy"]


def play(run: Kept, fuse: Fuse, cancel_at: int | None, lost: Lost) -> None:
    """One drain to its end, with a kill where the fuse says and what is lost with it."""
    kept = run.keep

    def start() -> None:
        run.keep = FusedKeep(kept, fuse)  # type: ignore[assignment]
        run.started(FusedCluster(run, fuse), FusedStore(run, fuse))

    def start_anew() -> None:
        run.keep = kept
        if lost == "copy":
            kept.texts.clear()
        if lost == "store":
            run.lose_the_store()
        else:
            run.started()

    run.tick()
    asked = run.drain("osd.0")
    start()
    end = S.VERIFIED if cancel_at is None else S.CANCELLED
    for tick in range(600):
        drain = run.store.drain(asked.id)
        if drain is not None and drain.state is end:
            return
        try:
            if tick == cancel_at:
                run.controller.requests.cancel(asked.id, "operator", run.cluster.now)
            run.tick()
        except Killed:
            start_anew()
            run.tick()
            drain = run.store.drain(asked.id)
            if (
                drain is None
            ):  # Lost with the store after its copy was taken away: the cluster still says how it ended.
                assert lost == "store"
                assert (kept.signed.read("ended") or "").split()[::2] == [asked.id, end.value]
                return
            if cancel_at is not None and tick >= cancel_at and drain.state not in (S.CANCELLING, S.CANCELLED):
                run.controller.requests.cancel(asked.id, "operator", run.cluster.now)
    raise AssertionError(f"{run.known(asked)}")


def kill_every(stride: int, cancel_at: int | None, lost: Lost) -> None:
    """One life for each `stride`th call, killed before it and after it."""
    with Kept(spec()) as run:
        never = Fuse(10**9, after=False)
        play(run, never, cancel_at, lost)
        undisturbed = outcome(run)
    assert never.calls > 40
    for at in range(1, never.calls + 1, stride):
        for after in (False, True):
            with Kept(spec()) as run:
                play(run, Fuse(at, after=after), cancel_at, lost)
                side = "after" if after else "before"
                assert outcome(run) == undisturbed, f"killed {side} call {at} of {never.calls}, {lost} lost"
                assert whole(run)


ENDS = pytest.mark.parametrize("cancel_at", [None, 12], ids=["to the end", "cancelled"])
LOSSES = pytest.mark.parametrize("lost", ["nothing", "store", "copy"])


@pytest.mark.slow
@ENDS
@LOSSES
def test_a_kill_now_and_then_leads_to_the_same_end(cancel_at: int | None, lost: Lost) -> None:
    kill_every(41, cancel_at, lost)


@pytest.mark.slow
@pytest.mark.long
@ENDS
@LOSSES
def test_a_kill_at_each_call_leads_to_the_same_end(cancel_at: int | None, lost: Lost) -> None:
    kill_every(EACH, cancel_at, lost)
