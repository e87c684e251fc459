"""A disk too sick to be read: it becomes the primary of no PG first, a few at a time, and only then its data leaves."""

from __future__ import annotations

from predrain.actions.cluster.cluster_port import PrimaryAffinity, SetUpmap
from predrain.actions.mechanics.primary_affinity import find_primary_pgs
from predrain.data.drain import Drain, DrainState, Mechanic
from predrain.data.ids import OsdId
from tests.actions.made import wide_spec
from tests.actions.run import Run, empty, map_of, whole

S = DrainState
SPEC = wide_spec(hosts=6, per_host=2, racks=3, pg_num=64, used=0.3)


def spared(run: Run) -> Drain:
    run.tick()
    drain = run.controller.requests.propose(
        "osd.0", "operator", "it stalls", run.cluster.now, spare_reads=True
    )
    return run.controller.requests.approve(drain.id, "operator", run.cluster.now)


def test_the_lead_goes_first_in_rungs_within_the_peering_budget_and_then_the_data() -> None:
    with Run(SPEC) as run:
        drain = spared(run)
        assert drain.plan is not None
        assert drain.plan.mechanic is Mechanic.REBUILD
        led_before = len(find_primary_pgs(run.cluster.view(), OsdId(0)))
        run.until(drain, S.VERIFIED)
        sent = run.watched.commands
        rungs = [at for at, command in enumerate(sent) if isinstance(command, PrimaryAffinity)]
        upmaps = [at for at, command in enumerate(sent) if isinstance(command, SetUpmap)]
        assert len(rungs) >= led_before / run.policy.peering_max
        assert sent[rungs[0]] != PrimaryAffinity(OsdId(0), 0.0)
        before_pins = [at for at in rungs if at < upmaps[0]]
        assert sent[before_pins[-1]] == PrimaryAffinity(OsdId(0), 0.0)
        assert whole(run)
        assert empty(run, 0)


def test_a_cancel_gives_the_lead_back() -> None:
    with Run(SPEC) as run:
        before = map_of(run)
        drain = spared(run)
        run.until(drain, S.DRAINING)
        run.ticks(14)
        assert run.cluster.view().osds[OsdId(0)].primary_affinity == 0.0
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        run.until(drain, S.CANCELLED)
        run.ticks(20)
        assert map_of(run) == before
