"""An OSD that is down and in comes back: a plan does not take its absence for a missing failure domain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from predrain.actions.cluster.cluster_port import CrushReweight
from predrain.actions.simulator.cluster_spec import ClusterSpec
from predrain.data.drain import Drain, Mechanic
from predrain.data.drain import DrainState as S
from predrain.data.ids import OsdId
from predrain.data.setting import OsdCrushWeight
from tests.actions.made import ec_spec, wide_spec
from tests.actions.run import Run

SUSPECT, DOWN = OsdId(0), OsdId(4)


def propose_beside_a_down_osd(run: Run, seconds: float = 120.0) -> Drain:
    run.ticks(2)
    run.cluster.flap(DOWN, 1, seconds)
    run.tick()
    return run.controller.requests.propose(f"osd.{SUSPECT}", "operator", "test", run.cluster.now)


@pytest.mark.parametrize("spec", [wide_spec(hosts=4, racks=0), wide_spec(hosts=6, racks=0), ec_spec()])
def test_a_plan_beside_a_down_osd_walks_by_upmap_and_names_the_pgs_that_lack_a_member(
    spec: ClusterSpec,
) -> None:
    with Run(spec) as run:
        plan = propose_beside_a_down_osd(run).plan
        assert plan is not None
        assert (plan.mechanic, plan.refusals) == (Mechanic.UPMAP_WALK, ())
        assert "not planned before every OSD is up or out" in plan.why
        view = run.cluster.view()
        planned = {move.pg for move in plan.moves}
        on_it = {pg.id: pg for pg in view.pgs.values() if SUSPECT in pg.up}
        lacking = {id_ for id_, pg in on_it.items() if len(set(pg.up) & view.osds.keys()) < 3}
        assert lacking
        assert planned == on_it.keys() - lacking
        assert DOWN not in {move.target for move in plan.moves}


@pytest.mark.slow
def test_the_pgs_that_lacked_a_member_are_planned_and_moved_once_the_osd_is_back() -> None:
    with Run(wide_spec(hosts=6, racks=0)) as run:
        drain = propose_beside_a_down_osd(run)
        run.controller.requests.approve(drain.id, "operator", run.cluster.now)
        run.until(drain, S.VERIFIED)
        assert not [pg for pg in run.cluster.view().pgs.values() if SUSPECT in pg.up]
        assert not [command for command in run.watched.commands if isinstance(command, CrushReweight)]


@pytest.mark.slow
def test_a_crush_weight_that_the_plan_before_lowered_is_given_back_once_the_disk_is_empty() -> None:
    with Run(wide_spec(hosts=6, racks=0)) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        found = run.cluster.view().osds[SUSPECT].crush_weight
        lower_by_an_earlier_plan(run, drain, found * 0.9)
        run.until(drain, S.VERIFIED)
        osd = run.cluster.view().osds[SUSPECT]
        assert osd.reweight == 0.0
        assert osd.crush_weight == pytest.approx(found, abs=1 / 65536)


def lower_by_an_earlier_plan(run: Run, drain: Drain, weight: float) -> None:
    """Leave the CRUSH weight as a plan by CRUSH weight leaves it, which claimed it before it was lowered."""
    known = run.known(drain)
    key = OsdCrushWeight(SUSPECT)
    command = CrushReweight(SUSPECT, weight)
    claimed = replace(known, ours={**known.ours, key: repr(weight)}, revision=known.revision + 1)
    run.store.save_drain(claimed)
    run.cluster.apply(command)
