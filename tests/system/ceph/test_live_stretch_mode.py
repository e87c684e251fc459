"""Stretch mode on a real cluster: a drain stays within its site, and without a site nothing is drained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from predrain.actions.cluster.cluster_view import ClusterView, StretchMode
from predrain.actions.placement.what_if import compute_up_sets
from predrain.data.drain import DrainState, Mechanic
from tests.actions.make_crush_goldens import map_pgs
from tests.system.ceph.conftest import Start
from tests.system.ceph.driven import QUICK, Driven
from tests.system.ceph.minicluster import MiniCluster
from tests.system.ceph.stretch import (
    bring_site_back,
    lose_site,
    site_of,
    stretch_cluster,
    stretch_mode,
    wait_for,
)


@pytest.fixture(scope="module")
def stretched(start: Start) -> MiniCluster:
    cluster = start(hosts=6, size_gib=2, conf=QUICK)
    stretch_cluster(cluster, pg_num=8)
    return cluster


@pytest.fixture(scope="module")
def drive(stretched: MiniCluster) -> Iterator[Driven]:
    with Driven(stretched) as driven:
        yield driven


def check_sites(view: ClusterView) -> None:
    """Every PG has two copies at each site, where it is to be and where it is served."""
    for pg in view.pgs.values():
        for members in (pg.up, pg.acting):
            assert Counter(map(site_of, members)) == {"dc1": 2, "dc2": 2}, pg


@pytest.mark.timeout(1200)
def test_a_drain_keeps_two_copies_at_each_site_and_without_a_site_every_drain_is_held(
    stretched: MiniCluster, drive: Driven
) -> None:
    view = drive.view()
    assert view.stretch_mode is StretchMode.HEALTHY
    assert compute_up_sets(view) == map_pgs(stretched)
    drain = drive.asked("osd.0")
    assert drain.plan is not None
    assert drain.plan.mechanic is Mechanic.UPMAP_WALK
    drain = drive.until(drain, DrainState.VERIFIED, each=check_sites)
    assert all(0 not in pg.acting for pg in drive.view().pgs.values())
    drive.controller.requests.cancel(drain.id, "operator", datetime.now(UTC))
    drive.until(drain, DrainState.CANCELLED, each=check_sites)
    assert map_pgs(stretched) == compute_up_sets(view)

    lose_site(stretched)
    now = datetime.now(UTC)
    drive.controller.tick(now, {})
    held = drive.controller.requests.propose("osd.2", "operator", "test", now)
    drive.controller.requests.approve(held.id, "operator", now)
    sent = len(drive.port.sent)
    for _ in range(5):
        drive.controller.tick(datetime.now(UTC), {})
    held = drive.controller.requests.get_drain(held.id)
    assert held.state is DrainState.APPROVED
    assert any("degraded stretch mode" in sentence for sentence in held.held_by)
    assert drive.port.sent[sent:] == []

    bring_site_back(stretched)
    wait_for(stretched, StretchMode.HEALTHY)
    assert stretch_mode(stretched) is drive.view().stretch_mode
    drive.until(held, DrainState.DRAINING)
