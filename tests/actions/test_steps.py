"""What a step waits for: each PG for the command that changed it, not for those that came after."""

from __future__ import annotations

from actions.cluster.port import CrushReweight, SetFlag, SetUpmap
from actions.steps import Step
from data.ids import OsdId, PgId
from tests.actions.made import a_drain

ONE, TWO = PgId("1.0"), PgId("1.1")
STEP = Step(a_drain(), (), "", "", frozenset({ONE, TWO}))


def test_a_pin_changes_its_own_pg_a_weight_all_of_the_step_and_a_flag_none() -> None:
    assert STEP.remapped_by(SetUpmap(ONE, ((1, 2),))) == {ONE}
    assert STEP.remapped_by(CrushReweight(OsdId(0), 0.5)) == {ONE, TWO}
    assert STEP.remapped_by(SetFlag("norebalance", on=False)) == frozenset()
    assert STEP.remapped_by(SetUpmap(PgId("1.2"), ((1, 2),))) == frozenset()
