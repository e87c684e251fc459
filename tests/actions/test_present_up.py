"""A step is judged against where the map sends each PG now, which a PG may not have reported yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from actions.cluster.port import CrushReweight, Reweight
from actions.cluster.view import ClusterView
from actions.flight import Allowance, allowance
from actions.foresight import placed, weighed
from actions.mechanics import override, retire, weight
from actions.mechanics.batch import Batch
from actions.space import room
from data.drain import Intent
from data.ids import OsdId
from tests.actions.made import POLICY, a_context, a_drain, a_plan, calm_view, changed_osd

OSD = OsdId(0)
OTHER = 5


@pytest.fixture(name="unreported")
def _unreported() -> ClusterView:
    """A person has just lowered the override of an OSD: the map sends its PGs elsewhere, and none has reported."""
    view = changed_osd(calm_view(), OTHER, reweight=0.5)
    moved = [pg for pg, up in placed(view).items() if up != view.pgs[pg].up]
    assert len(moved) > POLICY.peering_max
    return view


def _allow(view: ClusterView) -> Allowance:
    context = a_context(view, a_drain())
    return allowance(context, POLICY, room(context.survey, POLICY))


@pytest.mark.parametrize(
    "rung",
    [
        lambda view: override.next_rung(view, OSD, _allow(view), 3),
        lambda view: weight.next_rung(view, OSD, 0.0, _allow(view), 3, idle=True),
    ],
    ids=["override", "weight"],
)
def test_a_rung_counts_only_the_pgs_that_its_own_command_changes(
    unreported: ClusterView, rung: Callable[[ClusterView], Batch]
) -> None:
    batch = rung(unreported)
    (command,) = batch.commands
    now = placed(unreported)
    assert isinstance(command, Reweight | CrushReweight)
    if isinstance(command, Reweight):
        after = placed(unreported, weights={OSD: command.weight})
    else:
        after = placed(unreported, crush=weighed(unreported, {OSD: command.weight}))
    assert batch.pgs == {pg for pg in now if after[pg] != now[pg]}
    assert 0 < len(batch.pgs) <= 3


def test_a_removal_pins_no_pg_back_that_a_person_has_just_sent_on(unreported: ClusterView) -> None:
    view = changed_osd(unreported, OSD, reweight=0.0)
    drain = a_drain(intent=Intent.REMOVE)
    drain = replace(drain, plan=a_plan(calm_view(), drain))
    batch = retire.next_rung(view, drain, OSD, a_context(view, drain), _allow(view))
    now = placed(view)
    sent_on = {pg for pg in now if now[pg] != view.pgs[pg].up}
    lowest = placed(view, crush=weighed(view, {OSD: 0.0}))
    assert batch.pgs
    assert batch.pgs <= {pg for pg in now if lowest[pg] != now[pg]}
    assert sent_on - batch.pgs
