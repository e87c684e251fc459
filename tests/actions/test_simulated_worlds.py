"""The named clusters: their shape, and that months on the largest cost seconds."""

from __future__ import annotations

import statistics
from collections import Counter

import pytest

from predrain.actions.cluster.cluster_port import Reweight, SetUpmap
from predrain.actions.crush.pg_placement import place_pgs
from predrain.actions.simulator import SimulatedCluster
from predrain.actions.simulator.worlds import WORLDS, UnknownWorld, build_world
from predrain.data.ids import OsdId

DAY = 86_400.0


@pytest.mark.slow
def test_cisco_is_the_cluster_of_the_talk() -> None:
    """450 OSDs, 45 hosts, 3 racks; 47.2 to 83.5 % full, mean 69.6, standard deviation 6.5."""
    spec = build_world("cisco", 1)
    truth = SimulatedCluster(spec, 1).truth()
    full = [truth.used_bytes[osd.id] / osd.size_bytes for osd in spec.osds]
    assert len(spec.osds) == 450
    assert set(Counter(osd.host for osd in spec.osds).values()) == {10}
    assert set(Counter(osd.rack for osd in spec.osds).values()) == {150}
    assert min(full) > 0.47
    assert max(full) < 0.835
    assert statistics.fmean(full) == pytest.approx(0.69, abs=0.01)
    assert statistics.stdev(full) == pytest.approx(0.065, abs=0.006)


SHAPES = {
    "cisco": (450, 45, 16_384),
    "cisco-18tb": (450, 45, 16_384),
    "echo": (6_000, 300, 65_536),
    "cnaf-sdds": (291, 10, 7_680),
    "cnaf-t1": (312, 12, 5_632),
    "osg": (168, 14, 2_304),
}
QUICK = sorted(WORLDS.keys() - {"echo"})
ALL = [*QUICK, pytest.param("echo", marks=pytest.mark.slow)]


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_the_clusters_that_started_this_have_the_shape_that_was_told(name: str) -> None:
    spec = build_world(name, 1)
    shape = len(spec.osds), len({osd.host for osd in spec.osds}), sum(p.pool.pg_num for p in spec.pools)
    assert shape == SHAPES[name]


def test_the_flash_of_cnaf_holds_the_databases_of_a_dozen_disks_of_one_host() -> None:
    spec = build_world("cnaf-sdds", 1)
    under: dict[str, list[str]] = {}
    for osd in spec.osds:
        for flash in osd.shared_devices:
            under.setdefault(flash, []).append(osd.host)
    assert set(Counter(len(hosts) for hosts in under.values())) == {12, 21, 20}
    assert all(len(set(hosts)) == 1 for hosts in under.values())


@pytest.mark.slow
def test_a_pool_of_one_device_class_stays_on_that_class() -> None:
    view = SimulatedCluster(build_world("cnaf-sdds", 1), 1).view()
    classes = {
        (view.pools[pg.pool].name, view.osds[OsdId(osd)].device_class)
        for pg in view.pgs.values()
        for osd in pg.up
    }
    assert classes == {("volumes", "hdd"), ("images", "hdd"), ("archive", "hdd"), ("fast", "ssd")}


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_every_world_starts_whole_and_healthy(name: str) -> None:
    cluster = SimulatedCluster(build_world(name, 2), 2)
    view = cluster.view()
    assert view.health == "HEALTH_OK"
    assert all(pg.copies == pg.pool.size for pg in cluster.truth().pgs.values())
    hosts = {osd.id: osd.host for osd in view.osds.values()}
    assert all(len({hosts[OsdId(osd)] for osd in pg.up}) == len(pg.up) for pg in view.pgs.values())


def test_an_unknown_world_is_refused_with_the_names_of_those_there_are() -> None:
    with pytest.raises(UnknownWorld, match="cisco, cisco-18tb, echo"):
        build_world("atlantis", 1)


@pytest.mark.slow
def test_a_view_of_16384_pgs_shares_what_did_not_change() -> None:
    cluster = SimulatedCluster(build_world("cisco", 1), 1)
    before = cluster.view()
    cluster.apply(Reweight(OsdId(3), 0.0))
    cluster.advance(10)
    after = cluster.view()
    changed = {pg for pg in after.pgs if after.pgs[pg] is not before.pgs[pg]}
    assert changed == {pg.id for pg in before.pgs.values() if 3 in pg.up}


@pytest.mark.slow
def test_120_days_with_twenty_deaths_and_twenty_drains_end_whole() -> None:
    cluster = SimulatedCluster(build_world("cisco", 1), 1)
    for turn in range(20):
        dying, suspect = OsdId(20 * turn + 3), OsdId(20 * turn + 11)
        cluster.fail_osd(dying)
        cluster.advance(2 * DAY)
        cluster.replace(dying)
        cluster.advance(DAY)
        view = cluster.view()
        weights = {osd.id: osd.reweight for osd in view.osds.values()}
        mine = [pg for pg in view.pgs.values() if suspect in pg.up and pg.id not in view.upmap_items]
        final = place_pgs(view.crush, view.pools, {**weights, suspect: 0.0}, {}, only=[pg.id for pg in mine])
        for first in range(0, len(mine), 3):
            for pg in mine[first : first + 3]:
                gained = next(osd for osd in final[pg.id] if osd not in pg.up)
                cluster.apply(SetUpmap(pg.id, ((suspect, gained),)))
            cluster.advance(1200)
        cluster.apply(Reweight(suspect, 0.0))
        cluster.advance(DAY)
        assert cluster.truth().used_bytes[suspect] == 0
        cluster.replace(suspect)
        cluster.advance(DAY)
    assert cluster.view().health == "HEALTH_OK"
    assert not cluster.truth().lost
