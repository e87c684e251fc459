"""When a drain pays, and how long its evidence must last."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.actions.core.drain_cost import (
    COST_MAX,
    BadChance,
    BadCost,
    ChanceCurve,
    DeathCosts,
    DiskAtRisk,
    ShardGroup,
    weigh_drain,
)

TB = 10**12
PACE = 40e6
"""40 MB/s, 3.456 TB a day."""


def disk(within_30d: float = 0.12, size: int = 4 * TB, **changes: object) -> DiskAtRisk:
    """A disk with a steady risk at 40 MB/s."""
    return replace(DiskAtRisk(ChanceCurve.of_month(within_30d), size, PACE), **changes)  # type: ignore[arg-type]


CHANCES = st.floats(0, 1)
CURVES = st.lists(CHANCES, min_size=3, max_size=3).map(lambda chances: ChanceCurve(*sorted(chances)))
FAILURE = st.floats(1, COST_MAX)
GROUPS = st.lists(st.builds(ShardGroup, st.integers(0, 4 * TB), st.integers(-2, 2), CHANCES), max_size=4).map(
    tuple
)
DISKS = st.builds(
    DiskAtRisk,
    chances=CURVES,
    bytes=st.integers(0, 30 * TB),
    bytes_per_second=st.floats(1e6, 1e9),
    costs=st.builds(DeathCosts, FAILURE, FAILURE),
    groups=GROUPS,
    bytes_ahead=st.integers(0, 30 * TB),
)


def starts_no_later(worse: DiskAtRisk, than: DiskAtRisk) -> None:
    """A drain of `worse` pays wherever one of `than` does, waiting costs no less, and it needs no longer evidence."""
    left, right = weigh_drain(worse), weigh_drain(than)
    assert left.waiting >= right.waiting * (1 - 1e-9)
    assert left.pays or not right.pays or math.isclose(right.waiting, right.moving, rel_tol=1e-9)
    if left.pays and right.pays:
        assert left.confirmation_hours <= right.confirmation_hours * (1 + 1e-6) + 1e-9


def test_a_drain_pays_once_waiting_costs_more_than_moving() -> None:
    assert not weigh_drain(disk(0.08)).pays
    assert weigh_drain(disk(0.12)).pays


def test_the_decision_is_said_in_one_sentence() -> None:
    told = weigh_drain(disk(0.2, 14 * 2**40)).sentence
    assert told == "Moving 14 TiB now costs 14; waiting costs 32."


@pytest.mark.parametrize(
    ("size", "told"),
    [
        (300, "Moving 300 bytes now costs 300; waiting costs 300."),
        (2_760_000_000_000, "Moving 2.5 TiB now costs 2.5; waiting costs 2.5."),
        (50 * 2**30, "Moving 50 GiB now costs 50; waiting costs 50."),
    ],
)
def test_the_sentence_takes_the_unit_that_the_bytes_have(size: int, told: str) -> None:
    cost = replace(weigh_drain(disk(size=size)), waiting=float(size))
    assert cost.sentence == told


def test_a_disk_of_20_tb_starts_earlier_than_one_of_4_tb() -> None:
    assert weigh_drain(disk(size=20 * TB)).drain_days == pytest.approx(5.8, abs=0.1)
    at = 0.09
    assert not weigh_drain(disk(at, 4 * TB)).pays
    assert weigh_drain(disk(at, 20 * TB)).pays


def test_drains_ahead_in_the_budget_make_a_disk_start_earlier() -> None:
    assert not weigh_drain(disk(0.09)).pays
    assert weigh_drain(disk(0.09, bytes_ahead=20 * TB)).pays


def test_a_disk_whose_death_stops_its_pgs_is_drained_at_a_tenth_of_the_chance() -> None:
    bare = (ShardGroup(4 * TB, spare=-1),)
    assert not weigh_drain(disk(0.011)).pays
    assert weigh_drain(disk(0.011, groups=bare)).pays


def test_pgs_that_fall_to_min_size_weigh_as_much_as_their_other_members_are_failing() -> None:
    well, ill = (ShardGroup(4 * TB, spare=0, others_chance=chance) for chance in (0.0005, 0.12))
    assert not weigh_drain(disk(0.06, groups=(well,))).pays
    assert weigh_drain(disk(0.06, groups=(ill,))).pays


def test_evidence_at_the_edge_must_last_about_a_day_and_strong_evidence_minutes() -> None:
    edge = weigh_drain(disk(0.1, 100 * 10**9))
    assert edge.confirmation_hours == pytest.approx(24, rel=0.1)
    assert weigh_drain(disk(0.999)).confirmation_hours < 1
    assert weigh_drain(disk(1.0)).confirmation_hours == pytest.approx(5 / 60)


@given(DISKS)
def test_a_disk_without_bytes_never_starts(any_disk: DiskAtRisk) -> None:
    assert not weigh_drain(replace(any_disk, bytes=0)).pays


@given(DISKS, st.tuples(CHANCES, CHANCES, CHANCES))
def test_a_higher_chance_never_starts_later(any_disk: DiskAtRisk, more: tuple[float, float, float]) -> None:
    was = any_disk.chances
    raised = [
        max(old, new)
        for old, new in zip((was.within_7d, was.within_14d, was.within_30d), sorted(more), strict=True)
    ]
    starts_no_later(replace(any_disk, chances=ChanceCurve(*raised)), any_disk)


@given(DISKS, FAILURE)
def test_a_dearer_failure_never_starts_later(any_disk: DiskAtRisk, dearer: float) -> None:
    most = max(any_disk.costs.failure_cost, dearer)
    starts_no_later(replace(any_disk, costs=replace(any_disk.costs, failure_cost=most)), any_disk)


@given(DISKS, FAILURE)
def test_a_dearer_loss_never_starts_later(any_disk: DiskAtRisk, dearer: float) -> None:
    most = max(any_disk.costs.loss_cost, dearer)
    starts_no_later(replace(any_disk, costs=replace(any_disk.costs, loss_cost=most)), any_disk)


@given(DISKS, st.floats(0.01, 1))
def test_a_slower_drain_never_starts_later(any_disk: DiskAtRisk, slower: float) -> None:
    starts_no_later(replace(any_disk, bytes_per_second=any_disk.bytes_per_second * slower), any_disk)


@given(DISKS, st.integers(0, 30 * TB))
def test_a_longer_queue_never_starts_later(any_disk: DiskAtRisk, more: int) -> None:
    starts_no_later(replace(any_disk, bytes_ahead=any_disk.bytes_ahead + more), any_disk)


@given(DISKS, st.integers(1, 3))
def test_fewer_copies_never_start_later(any_disk: DiskAtRisk, fewer: int) -> None:
    groups = tuple(replace(group, spare=group.spare - fewer) for group in any_disk.groups)
    starts_no_later(replace(any_disk, groups=groups), any_disk)


@given(DISKS, CHANCES)
def test_other_disks_that_fail_never_make_it_start_later(any_disk: DiskAtRisk, chance: float) -> None:
    groups = tuple(replace(one, others_chance=max(one.others_chance, chance)) for one in any_disk.groups)
    starts_no_later(replace(any_disk, groups=groups), any_disk)


@given(CURVES, st.floats(0, 365), st.floats(0, 365))
def test_a_chance_to_fail_only_grows_with_time(curve: ChanceCurve, one: float, other: float) -> None:
    assert curve.chance_within(min(one, other)) <= curve.chance_within(max(one, other)) + 1e-12


@given(CURVES)
def test_a_curve_goes_through_the_chances_that_were_forecast(curve: ChanceCurve) -> None:
    for days, chance in ((7, curve.within_7d), (14, curve.within_14d), (30, curve.within_30d)):
        assert curve.chance_within(days) == pytest.approx(chance, abs=1e-6)


@given(DISKS)
def test_no_evidence_is_ever_taken_on_less_than_five_minutes(any_disk: DiskAtRisk) -> None:
    assert weigh_drain(any_disk).confirmation_hours >= 5 / 60


@pytest.mark.parametrize("name", ["failure_cost", "loss_cost"])
@pytest.mark.parametrize("cost", [0.0, -3.0, 0.5, math.nan, math.inf, 1e9])
def test_a_cost_that_cannot_be_weighed_is_refused_with_the_cure(name: str, cost: float) -> None:
    with pytest.raises(BadCost, match=rf"{name} is .*[Ss]et .*1 to 300"):
        DeathCosts(**{name: cost})


@pytest.mark.parametrize(
    "chances", [(0.3, 0.2, 0.4), (-0.1, 0.2, 0.3), (0.1, 0.2, 1.2), (math.nan, 0.2, 0.3)]
)
def test_chances_that_are_none_are_refused(chances: tuple[float, float, float]) -> None:
    with pytest.raises(BadChance):
        ChanceCurve(*chances)


def test_a_pace_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="pace"):
        disk(bytes_per_second=0.0)
