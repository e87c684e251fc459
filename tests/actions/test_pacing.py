"""Additive increase, multiplicative decrease, and what a drain may start."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actions.flight import allowance
from actions.mechanics.override import FULL, draws, rung_down, rung_up
from actions.mechanics.walk import pull_back
from actions.pacing import Tempo, pace, signal
from actions.space import room
from data.ids import OsdId, PgId
from tests.actions.made import POLICY, a_context, a_drain, a_plan, calm_view, changed_pg


@pytest.mark.parametrize(
    ("ratio", "tempo", "budget"),
    [
        (None, Tempo.BLIND, 1),
        (1.0, Tempo.GROW, 5),
        (1.15, Tempo.KEEP, 4),
        (1.3, Tempo.HOLD, 4),
        (1.7, Tempo.HALVE, 2),
        (2.5, Tempo.PULL_BACK, 2),
    ],
)
def test_the_budget_follows_the_latency(ratio: float | None, tempo: Tempo, budget: int) -> None:
    found = pace(4, 4, ratio, POLICY, urgent=False)
    assert (found.tempo, found.budget) == (tempo, budget)


def test_a_budget_that_was_not_used_does_not_grow() -> None:
    assert pace(4, 1, 1.0, POLICY, urgent=False).budget == 4


def test_an_urgent_disk_may_cost_clients_more() -> None:
    assert pace(4, 4, 1.25, POLICY, urgent=False).tempo is Tempo.HOLD
    assert pace(4, 4, 1.25, POLICY, urgent=True).tempo is Tempo.KEEP


@given(st.lists(st.one_of(st.none(), st.floats(0.5, 10.0)), max_size=60))
def test_the_budget_stays_between_one_and_the_limit(ratios: list[float | None]) -> None:
    budget = 1
    for ratio in ratios:
        budget = pace(budget, budget, ratio, POLICY, urgent=False).budget
        assert 1 <= budget <= POLICY.in_flight_max


def test_the_signal_is_the_worst_of_the_osds_at_work_and_none_without_data() -> None:
    view = replace(calm_view(), latency_ratio={OsdId(0): 1.1, OsdId(3): 1.9, OsdId(7): 5.0})
    assert signal(view, [OsdId(0), OsdId(3)]) == 1.9
    assert signal(view, [OsdId(11)]) is None


def test_pgs_of_ours_that_peer_are_taken_off_the_allowance() -> None:
    view = calm_view()
    busy = changed_pg(
        changed_pg(view, "1.0", states=frozenset({"peering"})), "1.1", states=frozenset({"peering"})
    )  # type: ignore[arg-type]
    drain = a_drain(ours={"upmap/1.0": "0>3", "upmap/1.1": "0>3"})
    context = a_context(busy, drain)
    left = allowance(context, POLICY, room(context.survey, POLICY))
    assert left.peering == 1
    assert left.starts(budget=8, mine=2) == 1
    assert left.starts(budget=2, mine=2) == 0


def test_what_waits_for_backfill_is_pinned_back_to_where_its_data_is() -> None:
    view = calm_view()
    drain = a_drain()
    drain = replace(drain, plan=a_plan(view, drain))
    assert drain.plan is not None
    move = drain.plan.moves[0]
    pg = view.pgs[move.pg]
    sent = tuple(move.target if osd == 0 else osd for osd in pg.up)
    states = frozenset({"active", "remapped", "backfill_wait"})
    waiting = replace(
        changed_pg(view, move.pg, up=sent, states=states), upmap_items={move.pg: ((0, int(move.target)),)}
    )
    drain = replace(drain, ours={f"upmap/{move.pg}": f"0>{move.target}"})
    context = a_context(waiting, drain)
    batch = pull_back(waiting, drain, context, allowance(context, POLICY, room(context.survey, POLICY)))
    assert [type(command).__name__ for command in batch.commands] == ["RemoveUpmap"]
    assert batch.pgs == {move.pg}


DRAWS = st.dictionaries(
    st.integers(0, 200).map(lambda n: PgId(f"1.{n:x}")), st.integers(0, FULL - 1), max_size=60
)


@given(DRAWS, st.integers(1, 8))
def test_rungs_down_turn_away_every_pg_once_and_few_at_a_time(drawn: dict[PgId, int], allowed: int) -> None:
    weight, rungs = 1.0, 0
    while weight > 0.0:
        lower = rung_down(drawn, weight, 0.0, allowed)
        assert lower < weight
        turned = [d for d in drawn.values() if round(lower * FULL) <= d < round(weight * FULL)]
        assert len(turned) <= allowed or len(set(turned)) < len(turned)
        weight, rungs = lower, rungs + 1
    assert rungs <= len(drawn) // allowed + 2


@given(DRAWS, st.integers(1, 8))
def test_rungs_up_take_back_few_at_a_time_and_arrive(drawn: dict[PgId, int], allowed: int) -> None:
    weight = 0.0
    while weight < 1.0:
        higher = rung_up(drawn, weight, 1.0, allowed)
        assert higher > weight
        weight = higher


def test_a_pg_leaves_the_osd_exactly_when_its_draw_says_so() -> None:
    from actions.plan import placed

    view = calm_view()
    on_it = [pg.id for pg in view.pgs.values() if 0 in pg.up]
    drawn = draws(view, OsdId(0), on_it)
    for weight in (0.9, 0.5, 0.1):
        after = placed(view, (), on_it, weights={OsdId(0): weight})
        assert {pg for pg in on_it if 0 in after[pg]} == {
            pg for pg, d in drawn.items() if d < round(weight * FULL)
        }
