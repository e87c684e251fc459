"""An OSD that a drain knows is purged: that drain says so and is held, and every other goes on."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from predrain.actions.cluster.cluster_port import Command, CrushReweight, PrimaryAffinity, Reweight, SetUpmap
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.decision_answers import Step
from predrain.actions.core.drain_policy import Mode, Policy
from predrain.actions.engine.decision import decide_drain_steps
from predrain.actions.simulator import SimulatedCluster
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import DeviceId, OsdId
from tests.actions.made import NOW, a_context, a_drain, a_plan, changed_osd, tiny_spec, wide_spec
from tests.actions.run import Run, whole
from tests.settings_by_text import by_setting

S = DrainState
SPEC = wide_spec(hosts=8, per_host=2, racks=4, pg_num=64, used=0.3)
LAX = Policy(Mode.ACT, out_share_max=1.0, drains_per_host=9, drains_per_rack=9, drains_per_cluster=9)
GONE = "osd.0 is not in the map any more"


FLASH = DeviceId("INTEL SSDPE 2KX_S 1")
"""Under osd.0 and osd.1."""


@cache
def seen(gone: frozenset[int] = frozenset(), *, settled: bool = True) -> ClusterView:
    """The tiny cluster after OSDs were purged, or with statistics that still name them."""
    cluster = SimulatedCluster(tiny_spec(), 1)
    before = cluster.view()
    for osd in sorted(gone):
        cluster.purge(OsdId(osd))
        cluster.advance(7200)
    view = replace(cluster.view(), as_of=NOW)
    for osd in {0, 1} - gone:
        view = changed_osd(view, osd, shared_devices=(FLASH,))
    return view if settled else replace(view, pgs=before.pgs, upmap_items=before.upmap_items)


@cache
def under_way(intent: Intent, osds: tuple[int, ...]) -> Drain:
    """A drain that has set all that one can set."""
    view = seen()
    drain = a_drain(osds[0], intent=intent, osds=tuple(OsdId(osd) for osd in osds), spare_reads=True)
    names = [f"osd.{osd}/{what}" for osd in osds for what in ("reweight", "crush_weight", "affinity")]
    pg = next(pg for pg in view.pgs.values() if osds[0] == pg.up[0])
    target = next(osd for osd in view.osds if osd not in pg.up)
    return replace(
        drain,
        device=FLASH,
        plan=a_plan(view, drain),
        saved=by_setting(dict.fromkeys(names, "1.0") | {f"upmap/{pg.id}": f"{pg.up[1]}>{osds[0]}"}),
        ours=by_setting(dict.fromkeys(names, "0.5") | {f"upmap/{pg.id}": f"{osds[0]}>{target}"}),
    )


GONE_OF = [((0,), {0}), ((0, 1), {0}), ((0, 1), {1}), ((0,), {5, 8})]
"""OSDs of a drain, and those that are purged."""


@pytest.mark.parametrize("state", DrainState)
@pytest.mark.parametrize("intent", Intent)
@pytest.mark.parametrize("settled", [True, False])
def test_no_osd_that_is_gone_ends_a_look_or_is_sent_a_command(
    state: S, intent: Intent, settled: bool
) -> None:
    for osds, gone in GONE_OF:
        view = seen(frozenset(gone), settled=settled)
        drain = under_way(intent, osds)
        resume_to = S.DRAINING if state in (S.PAUSED, S.FAILED) else None
        for plan in (drain.plan, None):
            asked = replace(drain, state=state, plan=plan, resume_to=resume_to)
            answers = decide_drain_steps(view, LAX, a_context(view, asked)).answers
            steps = [answer for answer in answers if isinstance(answer, Step)]
            named = {osd for step in steps for command in step.commands for osd in named_by(command)}
            assert gone.isdisjoint(named)


def named_by(command: Command) -> frozenset[int]:
    """OSDs that must be in the map, or the mon refuses the command."""
    match command:
        case SetUpmap(pairs=pairs):
            return frozenset(osd for pair in pairs for osd in pair)
        case Reweight(osd=osd) | CrushReweight(osd=osd) | PrimaryAffinity(osd=osd):
            return frozenset({osd})
        case _:
            return frozenset()


@pytest.mark.slow
@pytest.mark.parametrize("intent", [Intent.REPLACE, Intent.REMOVE])
def test_a_drain_whose_osd_is_purged_before_it_begins_is_held_with_the_reason_and_another_ends(
    intent: Intent,
) -> None:
    with Run(SPEC) as run:
        run.tick()
        held = run.controller.requests.propose("osd.0", "operator", "test", run.cluster.now, intent)
        run.controller.requests.approve(held.id, "operator", run.cluster.now)
        run.cluster.purge(OsdId(0))
        while not whole(run):
            run.tick()
        run.until(run.drain("osd.11"), S.VERIFIED)
        assert run.known(held).state is S.APPROVED
        assert any(GONE in sentence for sentence in run.known(held).held_by)
