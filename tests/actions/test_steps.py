"""The reports that a step waits for: each PG must report after the command that changed it, not after later ones."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from predrain.actions.cluster.cluster_port import CrushReweight, SetFlag, SetUpmap
from predrain.actions.core.decision_answers import Step
from predrain.actions.placement.failure_domains import find_failure_domains
from predrain.data.ids import OsdId, PgId
from tests.actions.made import NOW, POLICY, a_drain, calm_view, settled_memory

ONE, TWO = PgId("1.0"), PgId("1.1")
STEP = Step(a_drain(), (), "", "", frozenset({ONE, TWO}))


def test_a_pin_changes_its_own_pg_a_weight_all_of_the_step_and_a_flag_none() -> None:
    assert STEP.remapped_by(SetUpmap(ONE, ((1, 2),))) == {ONE}
    assert STEP.remapped_by(CrushReweight(OsdId(0), 0.5)) == {ONE, TWO}
    assert STEP.remapped_by(SetFlag("norebalance", on=False)) == frozenset()
    assert STEP.remapped_by(SetUpmap(PgId("1.2"), ((1, 2),))) == frozenset()


def test_a_pg_must_report_where_the_map_sends_it_and_nothing_that_changes_no_placement() -> None:
    view, later = replace(calm_view(), epoch=50), NOW + timedelta(minutes=1)
    pg = next(iter(view.pgs.values()))
    source = pg.up[0]
    target = next(iter(find_failure_domains(view.crush, view.pools[pg.pool]).list_substitutes(pg.up, source)))
    sent = settled_memory(view).after_command({pg.id: 50}, (), NOW, POLICY)
    dropped = replace(view, as_of=later, upmap_items={})
    idle = replace(view, as_of=later, upmap_items={pg.id: ((999, target),)})
    kept = replace(view, as_of=later, upmap_items={pg.id: ((source, target),)})
    older = replace(dropped, epoch=49)
    assert not sent.after_poll(replace(dropped, as_of=NOW), NOW, POLICY).is_settled(dropped)
    assert not sent.after_poll(older, later, POLICY).is_settled(older)
    assert sent.after_poll(dropped, later, POLICY).is_settled(dropped)
    assert sent.after_poll(idle, later, POLICY).is_settled(idle)
    assert not sent.after_poll(kept, later, POLICY).is_settled(kept)


def test_a_pg_that_has_not_reported_holds_the_steps_on_it_and_no_others() -> None:
    view = calm_view()
    one, two = list(view.pgs)[:2]
    memory = replace(settled_memory(view), changed={one: 50})
    assert not memory.is_settled(view)
    assert not memory.is_settled(view, {one})
    assert memory.is_settled(view, {two})
