"""What a step waits for: each PG for the command that changed it, not for those that came after."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from actions.cluster.port import CrushReweight, SetFlag, SetUpmap
from actions.steps import Step
from data.ids import OsdId, PgId
from tests.actions.made import NOW, POLICY, a_drain, calm_view, settled_memory

ONE, TWO = PgId("1.0"), PgId("1.1")
STEP = Step(a_drain(), (), "", "", frozenset({ONE, TWO}))


def test_a_pin_changes_its_own_pg_a_weight_all_of_the_step_and_a_flag_none() -> None:
    assert STEP.remapped_by(SetUpmap(ONE, ((1, 2),))) == {ONE}
    assert STEP.remapped_by(CrushReweight(OsdId(0), 0.5)) == {ONE, TWO}
    assert STEP.remapped_by(SetFlag("norebalance", on=False)) == frozenset()
    assert STEP.remapped_by(SetUpmap(PgId("1.2"), ((1, 2),))) == frozenset()


def test_a_pg_must_report_what_the_map_shows_and_nothing_that_the_mon_did_not_keep() -> None:
    view, later = calm_view(), NOW + timedelta(minutes=1)
    pg = next(iter(view.pgs))
    sent = settled_memory(view).writing(SetUpmap(pg, ((0, 4),)), frozenset({pg}), 50, NOW, POLICY)
    dropped = replace(view, as_of=later, upmap_items={})
    kept = replace(view, as_of=later, upmap_items={pg: ((0, 4),)})
    assert not sent.looked(replace(dropped, as_of=NOW), NOW, POLICY).settled(dropped)
    assert sent.looked(dropped, later, POLICY).settled(dropped)
    assert not sent.looked(kept, later, POLICY).settled(kept)
