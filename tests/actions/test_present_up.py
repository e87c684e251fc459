"""A step is judged against where the map sends each PG now, which a PG may not have reported yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from predrain.actions.cluster.cluster_port import CrushReweight, RemoveUpmap, Reweight
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.capacity import compute_osd_capacity
from predrain.actions.core.in_flight import Allowance, compute_allowance
from predrain.actions.mechanics import crush_removal, crush_weight_ladder, override_reweight
from predrain.actions.mechanics.step_batch import CommandBatch
from predrain.actions.placement.failure_domains import find_failure_domains
from predrain.actions.placement.what_if import apply_crush_weights, compute_up_sets
from predrain.data.drain import Intent
from predrain.data.ids import OsdId
from tests.actions.made import POLICY, a_context, a_drain, a_plan, calm_view, changed_osd

OSD = OsdId(0)
OTHER = 5


@pytest.fixture(name="unreported")
def _unreported() -> ClusterView:
    """A person has just lowered the override of an OSD: the map sends its PGs elsewhere, and none has reported."""
    view = changed_osd(calm_view(), OTHER, reweight=0.5)
    moved = [pg for pg, up in compute_up_sets(view).items() if up != view.pgs[pg].up]
    assert len(moved) > POLICY.peering_max
    return view


def _allow(view: ClusterView) -> Allowance:
    context = a_context(view, a_drain())
    return compute_allowance(context, POLICY, compute_osd_capacity(context.survey, POLICY))


@pytest.mark.parametrize(
    "rung",
    [
        lambda view: override_reweight.build_override_step(view, OSD, _allow(view), 3),
        lambda view: crush_weight_ladder.build_weight_step(view, OSD, 0.0, _allow(view), 3, idle=True),
    ],
    ids=["override", "weight"],
)
def test_a_rung_counts_only_the_pgs_that_its_own_command_changes(
    unreported: ClusterView, rung: Callable[[ClusterView], CommandBatch]
) -> None:
    batch = rung(unreported)
    (command,) = batch.commands
    now = compute_up_sets(unreported)
    assert isinstance(command, Reweight | CrushReweight)
    if isinstance(command, Reweight):
        after = compute_up_sets(unreported, weights={OSD: command.weight})
    else:
        after = compute_up_sets(unreported, crush=apply_crush_weights(unreported, {OSD: command.weight}))
    assert batch.pgs == {pg for pg in now if after[pg] != now[pg]}
    assert 0 < len(batch.pgs) <= 3


def test_a_removal_pins_no_pg_back_that_a_person_has_just_sent_on(unreported: ClusterView) -> None:
    view = changed_osd(unreported, OSD, reweight=0.0)
    drain = a_drain(intent=Intent.REMOVE)
    drain = replace(drain, plan=a_plan(calm_view(), drain))
    batch = crush_removal.build_removal_step(view, drain, OSD, a_context(view, drain), _allow(view))
    now = compute_up_sets(view)
    sent_on = {pg for pg in now if now[pg] != view.pgs[pg].up}
    lowest = compute_up_sets(view, crush=apply_crush_weights(view, {OSD: 0.0}))
    assert batch.pgs
    assert batch.pgs <= {pg for pg in now if lowest[pg] != now[pg]}
    assert sent_on - batch.pgs


def test_upmaps_to_an_osd_go_a_few_at_a_time_before_its_override_reaches_zero() -> None:
    """The mon drops every upmap to an OSD that is out, at once, however the PGs draw."""
    view = changed_osd(calm_view(), OSD, reweight=1 / override_reweight.FULL)
    regions = find_failure_domains(view.crush, view.pools[1])
    sent = {
        pg.id: ((pg.up[0], int(OSD)),)
        for pg in view.pgs.values()
        if OSD not in pg.up and OSD in regions.list_substitutes(pg.up, pg.up[0])
    }
    view = replace(view, upmap_items=dict(list(sent.items())[:8]))
    view = replace(
        view, pgs={id_: replace(view.pgs[id_], up=up, acting=up) for id_, up in compute_up_sets(view).items()}
    )
    assert sum(OSD in pg.up for pg in view.pgs.values()) >= 8
    seen: list[int] = []
    while view.osds[OSD].reweight > 0:
        batch = override_reweight.build_override_step(view, OSD, _allow(view), 3)
        before = compute_up_sets(view)
        for command in batch.commands:
            if isinstance(command, RemoveUpmap):
                view = replace(
                    view,
                    upmap_items={pg: pairs for pg, pairs in view.upmap_items.items() if pg != command.pg},
                )
            else:
                assert isinstance(command, Reweight)
                view = changed_osd(view, OSD, reweight=command.weight)
        after = compute_up_sets(view)
        assert batch.pgs == {pg for pg in after if after[pg] != before[pg]}
        view = replace(view, pgs={id_: replace(view.pgs[id_], up=up, acting=up) for id_, up in after.items()})
        seen.append(len(batch.pgs))
    assert max(seen) <= 3
    assert sum(seen) >= 8
