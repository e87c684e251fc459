"""The survey of PGs: what counts as at rest and as whole."""

from __future__ import annotations

from predrain.actions.core.pg_survey import survey_pgs
from predrain.actions.guards.safety_guards import refuse_short
from predrain.data.ids import OsdId
from tests.actions.made import a_context, calm_view, changed_osd


def test_a_pg_of_an_osd_that_is_down_lacks_a_copy_before_it_has_reported_that() -> None:
    view = changed_osd(calm_view(), 0, up=False)
    served = {pg.id for pg in view.pgs.values() if OsdId(0) in pg.acting}
    survey = survey_pgs(view)
    assert served
    assert served == survey.unclean.keys()
    assert not [pg for pg in served if survey.is_whole(view.pgs[pg])]
    assert refuse_short(served, a_context(view)) is not None


def test_a_survey_that_follows_another_one_sees_an_osd_go_down_and_come_up() -> None:
    calm = calm_view()
    down = changed_osd(calm, 0, up=False)
    first = survey_pgs(calm)
    second = survey_pgs(down, first)
    third = survey_pgs(calm, second)
    assert second == survey_pgs(down)
    assert (len(second.unclean) > 0, third.unclean) == (True, {})
