"""Weight-sets on a real cluster: placement by them, a drain that leaves them, and what a CRUSH weight does to them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from predrain.actions.placement.what_if import apply_crush_weights, compute_up_sets
from predrain.data.drain import DrainState, Intent, Mechanic
from predrain.data.ids import OsdId
from predrain.data.plan_refusal import PlanRefusalKind
from tests.actions.make_crush_goldens import add_weight_sets, map_pgs
from tests.system.ceph.conftest import Start
from tests.system.ceph.driven import QUICK, Driven
from tests.system.ceph.minicluster import MiniCluster

OSDS = [OsdId(osd) for osd in range(5)]


@pytest.fixture(scope="module")
def weighted(start: Start) -> MiniCluster:
    cluster = start(hosts=5, size_gib=2, conf=QUICK)
    add_weight_sets(cluster)
    return cluster


@pytest.fixture(scope="module")
def drive(weighted: MiniCluster) -> Iterator[Driven]:
    with Driven(weighted) as driven:
        yield driven


def test_pgs_are_placed_by_the_weight_set_of_their_pool_as_osdmaptool_places_them(
    weighted: MiniCluster, drive: Driven
) -> None:
    view = drive.view()
    assert len(view.crush.choose_args) == 2
    assert compute_up_sets(view) == map_pgs(weighted)


@pytest.mark.parametrize("osd", OSDS)
def test_the_map_with_an_osd_out(weighted: MiniCluster, drive: Driven, osd: OsdId) -> None:
    assert compute_up_sets(drive.view(), (osd,)) == map_pgs(weighted, "--mark-out", str(osd))


@pytest.mark.parametrize("osd", OSDS)
def test_the_map_with_an_osd_at_crush_weight_0(weighted: MiniCluster, drive: Driven, osd: OsdId) -> None:
    view = drive.view()
    adjusted = map_pgs(weighted, "--adjust-crush-weight", f"{osd}:0")
    assert compute_up_sets(view, (), crush=apply_crush_weights(view, {osd: 0.0})) == adjusted


def test_a_removal_is_refused_by_name(drive: Driven) -> None:
    now = datetime.now(UTC)
    drive.controller.tick(now, {})
    drain = drive.controller.requests.propose("osd.1", "operator", "test", now, Intent.REMOVE)
    assert drain.plan is not None
    assert [one.kind for one in drain.plan.refusals] == [PlanRefusalKind.REMOVAL_WITH_WEIGHT_SETS]
    drive.controller.requests.cancel(drain.id, "operator", now)
    drive.until(drain, DrainState.CANCELLED)


def test_a_drain_walks_by_upmap_and_its_cancel_leaves_the_map_as_it_was(
    weighted: MiniCluster, drive: Driven
) -> None:
    before, home = drive.view(), map_pgs(weighted)
    drain = drive.asked("osd.1")
    assert drain.plan is not None
    assert drain.plan.mechanic is Mechanic.UPMAP_WALK
    drain = drive.until(drain, DrainState.VERIFIED)
    emptied = drive.view()
    assert all(1 not in pg.acting for pg in emptied.pgs.values())
    assert emptied.crush == before.crush
    drive.controller.requests.cancel(drain.id, "operator", emptied.as_of)
    drive.until(drain, DrainState.CANCELLED)
    after = drive.view()
    assert after.crush == before.crush
    assert after.upmap_items == before.upmap_items
    assert map_pgs(weighted) == home


def test_a_crush_weight_changes_weight_sets_as_it_is_computed(weighted: MiniCluster, drive: Driven) -> None:
    before = drive.view()
    for osd, weight in ((OsdId(1), 0.001953125), (OsdId(1), before.osds[OsdId(1)].crush_weight)):
        view = drive.view()
        weighted.command("osd crush reweight", name=f"osd.{osd}", weight=weight)
        assert drive.view().crush == apply_crush_weights(view, {osd: weight})
    assert drive.view().crush != before.crush
