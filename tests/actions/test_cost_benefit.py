"""The worth of a replay: worlds of a few drives, with each figure computed by hand.

A drain moves 40 MB/s: 3.456 TB a day. With a reading a day, which most of these worlds have, a drain that pays begins
on the second day on which it does.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from predrain.actions.core.drain_policy import Mode, Policy
from predrain.actions.cost_benefit import (
    HERE,
    CostBenefit,
    DailyForecasts,
    DriveFates,
    DriveLayout,
    NoForecastToReplay,
    Notch,
    compare_failure_costs,
    format_cost_table,
    laid_out,
    replay_forecast_days,
    worth_of,
)
from predrain.actions.guards import Refuse

A_DAY = 3_456_000_000_000
"""Bytes that a drain moves in a day."""
NOTCH = Notch(warning=0.02, bad=0.1)
DAYS = 60
POLICY = Policy(drains_per_rack=4, out_share_max=1.0)


def fates(*lives: tuple[int, bool], end: int = DAYS) -> DriveFates:
    """Drives in service from day 0, by (last day, died), and one more that lives on: it takes what is moved."""
    lives = (*lives, (end, False))
    return DriveFates(
        np.array([f"ACME_D{place}" for place in range(len(lives))], dtype=object),
        np.array(["D"] * len(lives), dtype=object),
        np.zeros(len(lives), dtype=np.int64),
        np.array([last for last, _ in lives], dtype=np.int64),
        np.array([died for _, died in lives], dtype=bool),
        end,
    )


def bad_on(*days: range, of: int = DAYS) -> DailyForecasts:
    """p_fail_30d of 0.5 on these days of each drive, 0.001 else, and for the one more."""
    p = np.full((len(days) + 1, of), 0.001, dtype=np.float32)
    for place, bad in enumerate(days):
        p[place, bad.start : bad.stop] = 0.5
    return DailyForecasts(0, p)


def standing(drives: int, *, used: int = A_DAY, drives_a_host: int = 1) -> DriveLayout:
    """One cluster in one rack; drives fill hosts in their order, the one more has its own. All are a tenth full."""
    host = np.append(np.arange(drives, dtype=np.int64) // drives_a_host, drives)
    none = np.zeros(drives + 1, dtype=np.int64)
    return DriveLayout(none, none, host, none + used, none + 10 * used)


def judged(
    forecasts: DailyForecasts, lives: DriveFates, layout: DriveLayout | None = None, policy: Policy = POLICY
) -> CostBenefit:
    """Return the worth of a replay with the thresholds `NOTCH` and few resamples."""
    where = standing(len(lives.last) - 1) if layout is None else layout
    return worth_of(forecasts, lives, where, policy, NOTCH, resamples=20, reading_hours=24)


def test_a_drive_that_is_bad_long_enough_before_it_dies_is_saved_whole() -> None:
    worth = judged(bad_on(range(5, 15)), fates((15, True)))
    assert (worth.failures, worth.failing_bytes, worth.safe_bytes) == (1, A_DAY, A_DAY)
    assert (worth.drains, worth.in_time, worth.saved_whole, worth.cut_short) == (1, 1, 1, 0)
    assert worth.migration_rate.value == 1.0
    assert worth.lead_days == (9.0, 9.0, 9.0)  # proposed on day 6, dead on day 15


def test_a_drive_that_dies_half_drained_counts_the_part_that_was_moved() -> None:
    worth = judged(bad_on(range(5, 15)), fates((7, True)), standing(1, used=2 * A_DAY))
    assert worth.safe_bytes == A_DAY
    assert worth.migration_rate.value == 0.5
    assert (worth.drains, worth.in_time, worth.saved_whole, worth.cut_short) == (1, 1, 0, 1)


def test_a_drive_that_turns_bad_a_day_before_it_dies_is_not_believed_in_time() -> None:
    worth = judged(bad_on(range(14, 15)), fates((15, True)))
    assert (worth.safe_bytes, worth.drains) == (0, 0)
    assert worth.failing_refused == {"trust": 1}


def test_a_drive_on_which_nothing_was_forecast_is_a_failure_that_was_not_saved() -> None:
    unknown = DailyForecasts(0, np.full((2, DAYS), np.nan, dtype=np.float32))
    worth = judged(unknown, fates((20, True)))
    assert (worth.failures, worth.failing_bytes, worth.safe_bytes, worth.drains) == (1, A_DAY, 0, 0)


@pytest.mark.parametrize(
    ("last", "died", "verdict"),
    [
        (37, True, "for_nothing"),  # empty on day 7, dead 30 days later
        (36, True, "in_time"),
        (60, False, "for_nothing"),
        (37, False, "for_nothing"),  # taken away alive, but only after the horizon
        (36, False, "undecided"),
    ],
)
def test_a_drain_is_for_nothing_when_its_drive_lives_on_for_thirty_days(
    last: int, died: bool, verdict: str
) -> None:
    worth = judged(bad_on(range(5, 60)), fates((last, died)))
    counts = {name: getattr(worth, name) for name in ("in_time", "for_nothing", "undecided")}
    assert counts == {"in_time": 0, "for_nothing": 0, "undecided": 0, verdict: 1}
    assert worth.nothing_bytes == (A_DAY if verdict == "for_nothing" else 0)
    assert worth.died_later == (died and verdict == "for_nothing")


def test_a_drain_near_the_end_of_the_data_is_undecided() -> None:
    worth = judged(bad_on(range(40, 60), range(40, 60)), fates((60, False), (50, True)))
    assert (worth.drains, worth.undecided, worth.for_nothing, worth.in_time) == (2, 1, 0, 1)
    assert worth.precision.value is None  # the death alone would flatter


def test_the_mismigration_rate_is_bytes_for_nothing_a_byte_and_thirty_days() -> None:
    worth = judged(bad_on(range(5, 60)), fates((60, False)))
    # Days 0 to 30 are followed by a whole horizon. One drive's bytes of two, in 31 days.
    assert worth.mismigration_rate.value == pytest.approx(0.5 * 30 / 31)


def test_the_budget_makes_the_second_drive_of_a_host_wait_for_the_first() -> None:
    lives = fates((60, False), (60, False))
    layout = standing(2, used=2 * A_DAY, drives_a_host=2)
    done = replay_forecast_days(
        bad_on(range(5, 60), range(5, 60)), lives, layout, POLICY, NOTCH, reading_hours=24
    )
    first, second = sorted(done.drains, key=lambda drain: drain.ended)
    assert first.begun == 6.0
    assert first.ended == pytest.approx(8.0)
    assert second.ended == pytest.approx(10.0)
    assert done.refused["budget"]


def test_the_riskier_of_two_drives_goes_first() -> None:
    lives = fates((60, False), (60, False))
    bad = bad_on(range(5, 60), range(5, 60))
    bad.p_fail_30d[1, 5:] = 0.9
    done = replay_forecast_days(
        bad, lives, standing(2, used=2 * A_DAY, drives_a_host=2), POLICY, NOTCH, reading_hours=24
    )
    assert {drain.drive: round(drain.ended, 6) for drain in done.drains} == {1: 8.0, 0: 10.0}


def test_a_drain_stands_still_while_a_guard_holds_it() -> None:
    half_full = replace(standing(2, used=4 * A_DAY), size_bytes=np.full(3, 8 * A_DAY))
    lives = fates((60, False), (7, True))
    done = replay_forecast_days(
        bad_on(range(5, 60), range(0)), lives, half_full, POLICY, NOTCH, reading_hours=24
    )
    assert done.drains[0].begun == 6.0
    assert done.drains[0].ended == pytest.approx(17.0)  # no room from day 7, when the other dies, to day 14


def test_drives_of_two_hosts_are_drained_at_once() -> None:
    lives = fates((60, False), (60, False))
    done = replay_forecast_days(
        bad_on(range(5, 60), range(5, 60)), lives, standing(2), POLICY, NOTCH, reading_hours=24
    )
    assert [drain.ended for drain in done.drains] == [pytest.approx(7.0), pytest.approx(7.0)]


def test_drains_share_what_may_be_in_flight() -> None:
    lives = fates((60, False), (60, False))
    one = replace(POLICY, in_flight_max=1)
    done = replay_forecast_days(
        bad_on(range(5, 60), range(5, 60)), lives, standing(2), one, NOTCH, reading_hours=24
    )
    assert [drain.ended for drain in done.drains] == [pytest.approx(8.0), pytest.approx(8.0)]


def test_bytes_move_only_while_the_window_is_open() -> None:
    nightly = replace(POLICY, window=(22, 6))
    worth = judged(bad_on(range(5, 60)), fates((8, True)), standing(1, used=A_DAY), nightly)
    assert worth.safe_bytes == pytest.approx(A_DAY * 2 * 8 / 24)  # nights of day 6 and 7


def test_a_budget_of_no_drain_at_all_moves_nothing() -> None:
    worth = judged(bad_on(range(5, 15)), fates((15, True)), policy=replace(POLICY, drains_per_cluster=0))
    assert (worth.moved_bytes, worth.drains) == (0, 0)
    assert worth.failing_refused == {"budget": 1, "trust": 1}


def test_a_guard_of_the_engine_that_refuses_stops_the_replay_too(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse = (Refuse("test", "Refused for a test."),)
    monkeypatch.setattr("predrain.actions.engine.decision.list_refusals", lambda *_: refuse)
    worth = judged(bad_on(range(5, 15)), fates((15, True)))
    assert (worth.moved_bytes, worth.refused["test"]) == (0, 1)


def test_nothing_moves_in_mode_observe_and_in_mode_propose_a_person_approves() -> None:
    for mode, drains in ((Mode.OBSERVE, 0), (Mode.PROPOSE, 1), (Mode.ACT, 1)):
        worth = judged(bad_on(range(5, 15)), fates((15, True)), policy=replace(POLICY, mode=mode))
        assert worth.drains == drains


def test_when_many_drives_of_a_model_turn_bad_in_a_week_the_forecast_is_doubted() -> None:
    lives = fates(*[(60, False)] * 20)
    done = replay_forecast_days(
        bad_on(*[range(5, 60)] * 20), lives, standing(20), POLICY, NOTCH, reading_hours=24
    )
    assert len(done.refused["mass-suspicion"]) == 20
    assert min(drain.proposed for drain in done.drains) == 12.0  # bad since day 5, seven days ago


def test_a_proposal_that_waits_is_withdrawn_when_its_drive_is_no_longer_bad() -> None:
    lives = fates((60, False), (60, False))
    layout = standing(2, used=20 * A_DAY, drives_a_host=2)
    done = replay_forecast_days(
        bad_on(range(5, 60), range(6, 12)), lives, layout, POLICY, NOTCH, reading_hours=24
    )
    assert [drain.drive for drain in done.drains] == [0]


def test_a_drained_drive_is_drained_once_whatever_is_forecast_of_it_later() -> None:
    worth = judged(bad_on(range(5, 60)), fates((60, False)))
    assert (worth.drains, worth.moved_bytes) == (1, A_DAY)


def test_a_drive_that_comes_later_is_drained_when_its_turn_is() -> None:
    late = replace(fates((30, True)), first=np.array([10, 0], dtype=np.int64))
    done = replay_forecast_days(bad_on(range(5, 60)), late, standing(1), POLICY, NOTCH, reading_hours=24)
    assert [drain.proposed for drain in done.drains] == [11.0]


def test_a_drive_that_is_taken_away_alive_while_it_is_drained_stops_there() -> None:
    done = replay_forecast_days(
        bad_on(range(5, 60)), fates((7, False)), standing(1, used=9 * A_DAY), POLICY, NOTCH, reading_hours=24
    )
    assert [(drain.ended, drain.whole) for drain in done.drains] == [(8.0, False)]
    assert done.drains[0].moved_bytes == 2 * A_DAY


def test_dead_drives_count_as_out_until_they_are_replaced() -> None:
    strict = replace(POLICY, out_share_max=0.0)
    lives = fates((8, True), (60, False))
    done = replay_forecast_days(
        bad_on(range(0), range(7, 60)), lives, standing(2), strict, NOTCH, reading_hours=24
    )
    assert [drain.begun for drain in done.drains] == [15.0]  # dead on day 8, replaced a week later


def test_an_outlook_that_stops_coming_is_soon_too_old_to_act_on() -> None:
    forecasts = bad_on(range(5, 60))
    forecasts.p_fail_30d[0, 6:] = np.nan
    assert judged(forecasts, fates((15, True))).drains == 0


def test_a_weekly_score_stands_until_the_next_one_and_no_longer() -> None:
    drive, day = np.array([0, 0]), np.array([10, 24])
    spread = DailyForecasts.from_rows(drive, day, np.array([0.2, np.nan]), drives=1, every=7)
    known = ~np.isnan(spread.p_fail_30d[0])
    assert (spread.first, spread.days) == (10, 21)
    assert known.tolist() == [True] * 7 + [False] * 14


def test_scores_without_rows_are_refused_with_the_cure() -> None:
    none = np.empty(0, dtype=np.int64)
    with pytest.raises(NoForecastToReplay, match="predrain score"):
        DailyForecasts.from_rows(none, none, np.empty(0), drives=1, every=1)


def test_hosts_of_a_made_layout_hold_one_model_and_the_seed_says_which() -> None:
    models = np.array(["A"] * 90 + ["B"] * 90, dtype=object)
    layout = laid_out(models, np.full(180, 10**12), seed=3, hosts_a_rack=2, racks_a_cluster=1)
    assert all(len(set(models[layout.host == host])) == 1 for host in range(4))
    assert [int((layout.host == host).sum()) for host in range(4)] == [45] * 4
    assert all(len(set(layout.rack[layout.host == host])) == 1 for host in range(4))
    assert len(set(layout.cluster)) == 2
    same = laid_out(models, np.full(180, 10**12), seed=3, hosts_a_rack=2, racks_a_cluster=1)
    other = laid_out(models, np.full(180, 10**12), seed=4, hosts_a_rack=2, racks_a_cluster=1)
    assert np.array_equal(layout.host, same.host)
    assert not np.array_equal(layout.host, other.host)


def test_clusters_do_not_share_a_budget() -> None:
    lives = fates(*[(60, False)] * 3)
    bad = bad_on(range(5, 60), range(5, 60), range(0))
    one = replace(POLICY, drains_per_cluster=1)
    together = replay_forecast_days(bad, lives, standing(3), one, NOTCH, reading_hours=24)
    apart = replay_forecast_days(
        bad, lives, replace(standing(3), cluster=np.array([0, 1, 0, 1])), one, NOTCH, reading_hours=24
    )
    assert sorted(drain.ended for drain in together.drains) == [pytest.approx(7.0), pytest.approx(8.0)]
    assert sorted(drain.ended for drain in apart.drains) == [pytest.approx(7.0), pytest.approx(7.0)]


def test_strong_evidence_is_confirmed_by_the_readings_of_the_same_day() -> None:
    done = replay_forecast_days(bad_on(range(5, 60)), fates((60, False)), standing(1), POLICY, NOTCH)
    assert [drain.begun for drain in done.drains] == [pytest.approx(5 + 4 / 24)]


def test_a_drive_whose_drain_does_not_pay_is_not_drained_though_it_is_bad() -> None:
    weak = bad_on(range(5, 60))
    weak.p_fail_30d[0, 5:] = 0.15
    assert judged(weak, fates((60, False))).drains == 1
    assert judged(weak, fates((60, False)), policy=replace(POLICY, failure_cost=5)).drains == 0


def test_the_saved_cost_is_the_cost_of_the_rebuilds_that_were_avoided_less_the_moves() -> None:
    lives = fates((15, True), (60, False))
    worth = judged(bad_on(range(5, 15), range(5, 60)), lives, standing(2))
    assert worth.cost_saved.value == pytest.approx((10 - 2) / 10)


def test_drives_of_hosts_that_differ_in_cost_are_drained_from_different_chances() -> None:
    weak = bad_on(range(5, 60), range(5, 60))
    weak.p_fail_30d[:2, 5:] = 0.15
    two = replace(POLICY, failure_cost_overrides=(("host:host-0", 3.0), ("host:host-1", 30.0)))
    done = replay_forecast_days(weak, fates((60, False), (60, False)), standing(2), two, NOTCH)
    assert [drain.drive for drain in done.drains] == [1]


def test_the_ladder_tells_other_costs_beside_the_one_that_is_set() -> None:
    p = bad_on(range(5, 15), *[range(0)] * 29)
    p.p_fail_30d[1:] = np.linspace(0.001, 0.05, 30, dtype=np.float32)[:, None]
    lives = fates((15, True), *[(90, False)] * 29, end=90)
    quiet = replace(POLICY, mass_suspicion_min=31, mass_suspicion_window=timedelta(days=1))
    cost_rows = compare_failure_costs(p, lives, standing(30), quiet, NOTCH, resamples=20)
    told = format_cost_table(cost_rows)
    by_name = {cost_row.name: cost_row for cost_row in cost_rows}
    assert [cost_row.failure_cost for cost_row in cost_rows] == [2.5, 5.0, 10.0, 20.0, 40.0]
    assert by_name[f"failure_cost {HERE}"].worth.for_nothing == 0
    assert by_name[f"failure_cost {HERE}"].worth.cost_saved.value == pytest.approx(0.9)
    assert by_name["failure_cost x 4"].worth.for_nothing == 16
    assert len(told.splitlines()) == 2 + 1 + len(cost_rows)
    assert "90.0 %" in told
