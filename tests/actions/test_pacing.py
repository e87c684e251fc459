"""Additive increase, multiplicative decrease, and what a drain may start."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.actions.cluster.cluster_port import Reweight
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.capacity import compute_osd_capacity
from predrain.actions.core.claimed_settings import claim_settings
from predrain.actions.core.in_flight import compute_allowance
from predrain.actions.core.pacing import (
    Pace,
    Tempo,
    compute_latency_signal,
    compute_pace,
    find_look_seconds,
    find_worst_latency,
    latency_seen,
)
from predrain.actions.core.situation import SentMemory
from predrain.actions.engine.progress import pace_drain
from predrain.actions.mechanics.drain_steps import pull_back
from predrain.actions.mechanics.override_reweight import (
    FULL,
    choose_higher_weight,
    choose_lower_weight,
    compute_override_draws,
)
from predrain.data.ids import OsdId, PgId
from tests.actions.made import NOW, POLICY, a_context, a_drain, a_plan, calm_view, changed_pg
from tests.settings_by_text import by_setting


def asked_twice(budget: int, in_flight: int, ratio: float | None, *, urgent: bool = False) -> Pace:
    """Return the pace after two polls with the same latency."""
    once = compute_pace(budget, in_flight, ratio, POLICY, urgent=urgent)
    return compute_pace(once.budget, in_flight, ratio, POLICY, urgent=urgent, before=once.asked.value)


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
    found = asked_twice(4, 4, ratio)
    assert (found.tempo, found.budget) == (tempo, budget)


@pytest.mark.parametrize("ratio", [1.7, 2.5, 100.0])
def test_a_single_bad_look_starts_nothing_and_cuts_nothing(ratio: float) -> None:
    found = compute_pace(4, 4, ratio, POLICY, urgent=False, before=Tempo.GROW.value)
    assert (found.tempo, found.budget, found.is_on_hold) == (Tempo.HOLD, 4, True)


def test_a_single_calm_look_does_not_grow_the_budget() -> None:
    assert compute_pace(4, 4, 1.0, POLICY, urgent=False, before=Tempo.KEEP.value).budget == 4


def test_a_cut_is_not_repeated_before_the_pgs_of_the_old_budget_have_arrived() -> None:
    cut = asked_twice(8, 8, 1.7)
    assert cut.budget == 4
    still = compute_pace(4, 7, 1.7, POLICY, urgent=False, before=cut.asked.value)
    assert (still.budget, still.is_on_hold) == (4, True)
    assert compute_pace(4, 4, 1.7, POLICY, urgent=False, before=still.asked.value).budget == 2


def test_noise_around_a_steady_latency_does_not_make_the_budget_flap() -> None:
    """One poll in 20 is an outlier by 2x either way, and the others vary by 4 %. The polls are those of one hour,
    around a ratio of 1.15.
    """
    chance, budget, before, changes = Random(7), 4, "", 0
    for _ in range(360):
        outlier = chance.random() < 0.05
        ratio = 1.15 * (chance.choice((0.5, 2.0)) if outlier else chance.gauss(1, 0.04))
        found = compute_pace(budget, budget, ratio, POLICY, urgent=False, before=before)
        changes += found.budget < budget
        budget, before = found.budget, found.asked.value
    assert changes <= 2
    assert budget >= 4


def test_a_budget_that_was_not_used_does_not_grow() -> None:
    assert asked_twice(4, 1, 1.0).budget == 4


def test_a_budget_whose_pgs_arrived_before_one_looked_was_used() -> None:
    before = Tempo.GROW.value
    assert compute_pace(2, 0, 1.0, POLICY, urgent=False, before=before, started=2).budget == 3
    assert compute_pace(2, 0, 1.0, POLICY, urgent=False, before=before, started=1).budget == 2


def test_an_urgent_disk_may_cost_clients_more() -> None:
    assert asked_twice(4, 4, 1.25).tempo is Tempo.HOLD
    assert asked_twice(4, 4, 1.25, urgent=True).tempo is Tempo.KEEP


@given(st.lists(st.one_of(st.none(), st.floats(0.5, 10.0)), max_size=60), st.booleans())
def test_the_budget_stays_between_one_and_the_limit(ratios: list[float | None], loose: bool) -> None:
    budget, before = 1, ""
    for ratio in ratios:
        found = compute_pace(
            budget, budget, ratio, POLICY, urgent=False, before=before, why_one="loose" if loose else ""
        )
        budget, before = found.budget, found.asked.value
        assert 1 <= budget <= (1 if loose else POLICY.in_flight_max)


def test_a_look_in_between_changes_no_budget_and_starts_nothing_while_clients_wait() -> None:
    grows = compute_pace(2, 2, 1.0, POLICY, urgent=False, before=Tempo.GROW)
    assert (grows.budget, grows.is_on_hold) == (3, False)
    between = compute_pace(2, 2, 1.0, POLICY, urgent=False, before=Tempo.GROW, due=False)
    assert (between.budget, between.is_on_hold, between.asked) == (2, False, Tempo.GROW)
    waiting = compute_pace(4, 2, 9.0, POLICY, urgent=False, before=Tempo.PULL_BACK, due=False)
    assert (waiting.budget, waiting.is_on_hold, waiting.tempo) == (4, True, Tempo.HOLD)


def test_a_budget_is_due_once_a_tick_however_often_one_looks() -> None:
    memory = SentMemory(NOW).note_decisions({}, {"a": NOW})
    assert memory.is_pace_due("another", NOW, POLICY)
    assert not memory.is_pace_due("a", NOW + timedelta(seconds=POLICY.tick_seconds - 1), POLICY)
    assert memory.is_pace_due("a", NOW + timedelta(seconds=POLICY.tick_seconds), POLICY)
    assert memory.is_pace_due("a", NOW - timedelta(hours=1), POLICY)  # the clock was set back


@pytest.mark.parametrize(
    ("since_step", "took", "seconds"),
    [
        (None, 0.1, POLICY.tick_seconds),
        (0.0, 0.1, 2.0),
        (30.0, 0.5, 5.0),
        (30.0, 4.0, POLICY.tick_seconds),
        (61.0, 0.1, POLICY.tick_seconds),
    ],
)
def test_after_a_step_one_looks_sooner_as_long_as_looks_take_a_tenth_of_the_time(
    since_step: float | None, took: float, seconds: float
) -> None:
    stepped_at = None if since_step is None else NOW - timedelta(seconds=since_step)
    assert find_look_seconds(POLICY, took, stepped_at, NOW) == seconds


def test_the_signal_is_the_worst_of_the_plans_osds() -> None:
    view = replace(calm_view(), latency_ratio={OsdId(0): 1.1, OsdId(3): 1.9, OsdId(7): 5.0})
    plan = [OsdId(0), OsdId(3), OsdId(11)]
    assert compute_latency_signal(view, plan, busy=[OsdId(0)]) == 1.9
    assert find_worst_latency(view, plan) == (3, 1.9)


def test_there_is_no_signal_while_the_osds_that_move_data_have_none() -> None:
    view = replace(calm_view(), latency_ratio={OsdId(3): 1.0})
    assert compute_latency_signal(view, [OsdId(0), OsdId(3)], busy=[OsdId(0)]) is None


def test_a_slow_target_to_which_nothing_moves_yet_holds_the_drain() -> None:
    view = calm_view()
    drain = a_drain()
    drain = replace(drain, plan=a_plan(view, drain))
    assert drain.plan is not None
    last = drain.plan.moves[-1].target
    ratios = dict.fromkeys(view.osds, 1.0) | {last: 1.4}
    slow = replace(view, latency_ratio=ratios)
    _, now, flying = pace_drain(slow, drain, POLICY, a_context(slow, drain))
    assert (now.ratio, now.is_on_hold, flying) == (1.4, True, ())


def test_nothing_starts_while_a_pg_of_ours_peers() -> None:
    view = calm_view()
    busy = changed_pg(view, PgId("1.0"), states=frozenset({"peering"}))
    drain = a_drain(ours=by_setting({"upmap/1.0": "0>3"}))
    context = a_context(busy, drain)
    assert (
        compute_allowance(
            context, POLICY, compute_osd_capacity(context.survey, POLICY)
        ).count_possible_starts(budget=8, mine=1)
        == 0
    )
    rest = a_context(view, drain)
    assert (
        compute_allowance(rest, POLICY, compute_osd_capacity(rest.survey, POLICY)).count_possible_starts(
            budget=8, mine=1
        )
        == 3
    )


def test_a_pg_that_our_override_moves_though_no_plan_names_it_is_on_its_way_until_it_is_at_rest() -> None:
    """An override can make two shards of a PG on other disks change places. No upmap item keeps them in place."""
    before, pg = calm_view(), PgId("1.0")
    swapped = (*before.pgs[pg].up[1::-1], *before.pgs[pg].up[2:])
    moves = changed_pg(before, pg, up=swapped, states=frozenset({"active", "remapped", "backfilling"}))
    drain = claim_settings(a_drain(), before, [Reweight(OsdId(0), 0.0)], [pg])

    def left(view: ClusterView) -> int:
        context = a_context(view, drain, memory=SentMemory.for_new_process(view, NOW, POLICY))
        return compute_allowance(context, POLICY, compute_osd_capacity(context.survey, POLICY)).flights

    assert left(moves) == POLICY.in_flight_max - 1
    assert left(before) == POLICY.in_flight_max


def test_the_journal_names_the_worst_ratio_and_the_slowest_single_operation() -> None:
    view = replace(
        calm_view(),
        latency_ratio={OsdId(0): 1.1, OsdId(3): 1.34},
        slowest_ms={OsdId(3): 40.0, OsdId(1): 213.4},
    )
    seen = latency_seen(view, [OsdId(0), OsdId(1), OsdId(3)])
    assert seen == ", latency 1.34x at osd.3, slowest probe 213 ms at osd.1"
    assert latency_seen(calm_view(), []) == ""


def test_a_pg_that_waits_for_backfill_is_mapped_back_to_where_its_data_is() -> None:
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
    drain = replace(drain, ours=by_setting({f"upmap/{move.pg}": f"0>{move.target}"}))
    context = a_context(waiting, drain)
    batch = pull_back(
        waiting,
        drain,
        context,
        compute_allowance(context, POLICY, compute_osd_capacity(context.survey, POLICY)),
    )
    assert [type(command).__name__ for command in batch.commands] == ["RemoveUpmap"]
    assert batch.pgs == {move.pg}


DRAWS = st.dictionaries(
    st.integers(0, 200).map(lambda n: PgId(f"1.{n:x}")), st.integers(0, FULL - 1), max_size=60
)


@given(DRAWS, st.integers(1, 8))
def test_rungs_down_turn_away_every_pg_once_and_few_at_a_time(drawn: dict[PgId, int], allowed: int) -> None:
    weight, rungs = 1.0, 0
    while weight > 0.0:
        lower = choose_lower_weight(drawn, weight, 0.0, allowed)
        assert lower < weight
        turned = [d for d in drawn.values() if round(lower * FULL) <= d < round(weight * FULL)]
        assert len(turned) <= allowed or len(set(turned)) < len(turned)
        weight, rungs = lower, rungs + 1
    assert rungs <= len(drawn) // allowed + 2


@given(DRAWS, st.integers(1, 8))
def test_rungs_up_take_back_few_at_a_time_and_arrive(drawn: dict[PgId, int], allowed: int) -> None:
    weight = 0.0
    while weight < 1.0:
        higher = choose_higher_weight(drawn, weight, 1.0, allowed)
        assert higher > weight
        weight = higher


def test_a_pg_leaves_the_osd_exactly_when_its_draw_says_so() -> None:
    from predrain.actions.placement.what_if import compute_up_sets

    view = calm_view()
    on_it = [pg.id for pg in view.pgs.values() if 0 in pg.up]
    drawn = compute_override_draws(view, OsdId(0), on_it)
    for weight in (0.9, 0.5, 0.1):
        after = compute_up_sets(view, (), on_it, weights={OsdId(0): weight})
        assert {pg for pg in on_it if 0 in after[pg]} == {
            pg for pg, d in drawn.items() if d < round(weight * FULL)
        }
