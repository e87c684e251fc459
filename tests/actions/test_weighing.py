"""How a cluster's disks are weighed: what is on them, what their PGs have left, and what stands before them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.controller.disk_evidence import PaceMeter
from predrain.actions.core.cost_assessment import find_disks_at_risk, weigh_one, with_weighed_disks
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.forecast_confirmation import WeighedDisk
from predrain.data.drain import Drain, DrainState, JournalEntry, JournalEvent, Progress
from predrain.data.outlook import Status
from predrain.data.store.sqlite_store import MEMORY, SqliteStore
from tests.actions.made import NOW, POLICY, a_context, a_drain, bad_outlook, calm_view, changed_osd, device

CHANCES = {"p_fail_7d": 0.01, "p_fail_14d": 0.02, "p_fail_30d": 0.05}


def weighed(view: ClusterView, policy: Policy = POLICY, *drains: Drain, **context: object) -> WeighedDisk:
    """The disk of osd.0, with a chance of 5 % within 30 days."""
    outlooks = {device(0): bad_outlook(0, **CHANCES)}
    found = weigh_one(view, device(0), policy, a_context(view, *drains, **{"outlooks": outlooks, **context}))
    assert found is not None
    return found


def pools(view: ClusterView, **changes: object) -> ClusterView:
    """The view with every pool otherwise."""
    return replace(view, pools={id_: replace(pool, **changes) for id_, pool in view.pools.items()})  # type: ignore[arg-type]


def test_the_bytes_that_would_be_moved_are_the_bytes_that_the_disk_holds() -> None:
    view = changed_osd(calm_view(), 0, used_bytes=7 * 10**10)
    assert weighed(view).cost.moving == 7 * 10**10


def test_pgs_that_would_stop_serving_weigh_more_than_pgs_that_keep_a_copy_to_spare() -> None:
    view = calm_view()
    spare, bare = (weighed(pools(view, min_size=least)).cost.waiting for least in (1, 3))
    assert bare == pytest.approx(spare * (10 + 100) / 10)


def test_another_disk_that_is_failing_under_the_same_pgs_makes_waiting_dearer() -> None:
    view = calm_view()
    beside = {device(osd): bad_outlook(osd) for osd in range(1, 12)}
    alone = weighed(view).cost.waiting
    together = weighed(view, outlooks={**beside, device(0): bad_outlook(0, **CHANCES)}).cost.waiting
    assert together > 1.5 * alone


@pytest.mark.parametrize(("osds_of_disk", "counts"), [(1, False), (2, True)])
def test_other_failing_disks_count_where_the_death_leaves_a_pg_with_exactly_min_size_members(
    osds_of_disk: int, counts: bool
) -> None:
    """The pool keeps three copies and serves with one: two OSDs on the disk leave it that one."""
    view = pools(calm_view(), min_size=1)
    first, second, _ = next(pg.acting for pg in view.pgs.values() if 0 in pg.acting)
    partner = first if second == 0 else second
    if osds_of_disk == 2:
        view = changed_osd(view, partner, device=device(0))
    beside = {device(osd): bad_outlook(osd) for osd in range(1, 12) if osd != partner}
    alone = weighed(view).cost.waiting
    together = weighed(view, outlooks={**beside, device(0): bad_outlook(0, **CHANCES)}).cost.waiting
    assert (together > alone) is counts


@pytest.mark.parametrize(("least", "is_same"), [(1, True), (2, False)])
def test_a_disk_is_assessed_anew_for_the_forecast_of_another_disk_only_where_that_forecast_can_count(
    least: int, is_same: bool
) -> None:
    view = pools(calm_view(), min_size=least)
    own = {device(0): bad_outlook(0, **CHANCES)}
    beside = {device(osd): bad_outlook(osd) for osd in range(1, 12)}
    before, after = (
        find_disks_at_risk(view, POLICY, a_context(view, outlooks={**others, **own}))[device(0)]
        for others in ({}, beside)
    )
    assert (after is before) is is_same


def test_a_copy_that_is_missing_for_the_moment_makes_no_disk_worth_a_drain() -> None:
    view = calm_view()
    down = changed_osd(view, 5, up=False)
    assert weighed(down).cost.waiting == pytest.approx(weighed(view).cost.waiting)


def test_the_cost_of_a_pool_counts_for_the_bytes_of_its_pgs() -> None:
    view = calm_view()
    name = next(iter(view.pools.values())).name
    dear = replace(POLICY, failure_cost_overrides=((f"pool:{name}", 30.0),))
    assert weighed(view, dear).cost.waiting > 2.5 * weighed(view).cost.waiting


@pytest.mark.parametrize("place", ["host:stor-01", "class:hdd"])
def test_the_cost_of_a_host_or_class_counts_for_its_disks(place: str) -> None:
    view = calm_view()
    own = view.osds[next(iter(view.osds))]
    view = changed_osd(view, 0, device_class="hdd")
    name = f"host:{own.host}" if place.startswith("host") else place
    dear = replace(POLICY, failure_cost_overrides=((name, 30.0),))
    assert weighed(view, dear).cost.pays
    assert not weighed(view).cost.pays


def test_a_drain_that_fills_the_budget_of_its_host_is_waited_for() -> None:
    view = calm_view()
    neighbour = next(osd.id for osd in view.osds.values() if osd.host == view.osds[0].host and osd.id != 0)
    other = replace(a_drain(neighbour), progress=Progress(planned_bytes=10**13, moved_bytes=10**12))
    busy, free = weighed(view, POLICY, other).cost, weighed(view).cost
    assert busy.drain_days - free.drain_days == pytest.approx(9 * 10**12 / 40e6 / 86_400)
    roomy = replace(POLICY, drains_per_host=2)
    assert weighed(view, roomy, other).cost.drain_days == free.drain_days


def test_the_pace_that_was_measured_here_counts_before_the_one_that_is_set() -> None:
    view = calm_view()
    fast, slow = (weighed(view, bytes_per_second=pace).cost.drain_days for pace in (80e6, 20e6))
    assert slow == pytest.approx(4 * fast)
    nightly = replace(POLICY, window=(22, 4))
    assert weighed(view, nightly).cost.drain_days == pytest.approx(4 * weighed(view).cost.drain_days)


def test_a_disk_whose_bytes_are_not_known_is_not_weighed() -> None:
    view = changed_osd(calm_view(), 0, used_bytes=None)
    context = a_context(view, outlooks={device(0): bad_outlook(0)})
    assert weigh_one(view, device(0), POLICY, context) is None


def test_bad_disks_and_those_whose_drain_could_pay_are_weighed_and_no_others() -> None:
    view = calm_view()
    told = {
        device(0): bad_outlook(0),
        device(1): bad_outlook(1, status=Status.GOOD, p_fail_7d=0.0, p_fail_14d=0.0, p_fail_30d=0.001),
        device(2): bad_outlook(2, status=Status.WARNING),
        device(3): bad_outlook(3, status=Status.UNKNOWN),
        device(4): bad_outlook(4, p_fail_7d=None, p_fail_14d=None, p_fail_30d=None),
    }
    context = with_weighed_disks(view, POLICY, a_context(view, outlooks=told))
    assert context.weighed.keys() == {device(0), device(2)}


def ended(store: SqliteStore, number: int, hours: float, size: int = 10**12) -> Drain:
    """A drain that moved so many bytes in so many hours."""
    drain = a_drain(number, DrainState.VERIFIED, created_at=NOW + timedelta(days=number))
    store.add_journal([JournalEntry(drain.id, NOW, "", "begin: walk", event=JournalEvent.BEGUN)])
    store.add_journal(
        [
            JournalEntry(
                drain.id, NOW + timedelta(hours=hours), "", "verified: all", event=JournalEvent.COUNTED
            )
        ]
    )
    return replace(drain, progress=Progress(planned_bytes=size, moved_bytes=size))


def test_the_pace_is_the_median_of_the_last_drains_that_moved_enough_to_tell() -> None:
    store = SqliteStore(MEMORY)
    drains = [ended(store, number, hours) for number, hours in enumerate((1000, 10, 20, 10, 5, 10))]
    tiny = ended(store, 9, 0.001, size=10**6)
    assert PaceMeter().measure_pace([*drains, tiny], store) == pytest.approx(10**12 / 36_000)
    assert PaceMeter().measure_pace([tiny], store) is None
    store.close()
