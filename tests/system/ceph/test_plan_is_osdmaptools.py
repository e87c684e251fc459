"""The final map of a plan is what the release's own osdmaptool makes of the live map."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import pytest

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.crush.crush_map import ITEM_NONE
from predrain.actions.placement.failure_domains import pairs_for
from predrain.actions.placement.what_if import apply_crush_weights, compute_up_sets
from predrain.data.ids import OsdId, PgId
from tests.deadlines import idle_seconds
from tests.system.ceph.conftest import Start
from tests.system.ceph.driven import QUICK, Driven
from tests.system.ceph.minicluster import MiniCluster

OSDS = [OsdId(osd) for osd in range(6)]


@pytest.fixture(scope="module")
def mixed(start: Start) -> MiniCluster:
    """Two classes, replicated and erasure-coded pools, an override, CRUSH weights, affinities and upmaps."""
    cluster = start(hosts=3, per_host=2, size_gib=2, conf=QUICK)
    for osd in OSDS:
        cluster.command("osd crush rm-device-class", ids=[f"osd.{osd}"])
        cluster.command(
            "osd crush set-device-class", **{"class": "ssd" if osd % 2 else "hdd"}, ids=[f"osd.{osd}"]
        )
    cluster.command("osd set-require-min-compat-client", version="luminous")
    cluster.pool("rep", pg_num=32, size=3)
    cluster.pool("two", pg_num=16, size=2)
    cluster.pool("ec", pg_num=16, k=2, m=1)
    cluster.command(
        "osd crush rule create-replicated", name="flash", root="default", type="host", **{"class": "ssd"}
    )
    cluster.command("osd pool set", pool="two", var="crush_rule", val="flash")
    cluster.command("osd reweight", id=3, weight=0.7)
    cluster.command("osd crush reweight", name="osd.4", weight=0.0013)
    cluster.command("osd primary-affinity", id=2, weight=0.4)
    cluster.wait_clean()
    with Driven(cluster) as drive:
        view = drive.view()
    sibling = {osd: osd ^ 1 for osd in OSDS}
    rep = next(pool.id for pool in view.pools.values() if pool.name == "rep")
    for pg in [pg for pg in view.pgs.values() if pg.pool == rep][:6]:
        cluster.command("osd pg-upmap-items", pgid=pg.id, id=[pg.up[0], sibling[OsdId(pg.up[0])]])
    cluster.wait_clean()
    return cluster


@pytest.fixture(scope="module")
def drive(mixed: MiniCluster) -> Iterator[Driven]:
    with Driven(mixed) as driven:
        yield driven


def told(cluster: MiniCluster, *options: str) -> dict[PgId, tuple[int, ...]]:
    """`up` of every PG, from osdmaptool on the map as it is now."""
    (cluster.folder / "osdmap").write_bytes(cluster.command("osd getmap"))
    text = cluster.run("osdmaptool", str(cluster.inside / "osdmap"), *options, "--test-map-pgs-dump").decode()
    rows = (line.split("\t") for line in text.splitlines())
    return {PgId(row[0]): tuple(json.loads(row[1])) for row in rows if len(row) == 3 and "[" in row[1]}


def until(drive: Driven, reached: Callable[[ClusterView], bool], seconds: float = 60) -> ClusterView:
    """Return the first view for which `reached` is true.

    The view is read again and again, since the mgr reports a PG's new place only when the PG has peered.
    """
    end = idle_seconds() + seconds
    while not reached(view := drive.view()):
        assert idle_seconds() < end, {pg.id: pg.up for pg in view.pgs.values()}
        time.sleep(0.5)
    return view


def test_the_map_as_it_is(mixed: MiniCluster, drive: Driven) -> None:
    view = drive.view()
    assert len(view.upmap_items) == 6
    assert compute_up_sets(view) == told(mixed)
    until(drive, lambda view: {pg.id: pg.up for pg in view.pgs.values()} == compute_up_sets(view))


@pytest.mark.parametrize("osd", OSDS)
def test_the_map_with_an_osd_out(mixed: MiniCluster, drive: Driven, osd: OsdId) -> None:
    final = compute_up_sets(drive.view(), (osd,))
    assert final == told(mixed, "--mark-out", str(osd))
    assert all(osd not in up for up in final.values())


@pytest.mark.parametrize("osd", OSDS)
def test_the_map_with_an_osd_at_crush_weight_0(mixed: MiniCluster, drive: Driven, osd: OsdId) -> None:
    view = drive.view()
    final = compute_up_sets(view, (), crush=apply_crush_weights(view, {osd: 0.0}))
    assert final == told(mixed, "--adjust-crush-weight", f"{osd}:0")
    assert any(ITEM_NONE in up or len(up) < 3 for up in final.values()) or all(
        osd not in up for up in final.values()
    )


def test_a_shard_that_takes_another_ones_place_when_the_pairs_come_in_turn(
    mixed: MiniCluster, drive: Driven
) -> None:
    view = drive.view()
    ec = next(pool.id for pool in view.pools.values() if pool.name == "ec")
    pg = next(pg for pg in view.pgs.values() if pg.pool == ec and pg.id not in view.upmap_items)
    first, second, third = pg.up
    want = (second, first ^ 1, third)
    pairs = pairs_for(compute_up_sets(view, (), [pg.id], with_upmaps=False)[pg.id], want, (), ordered=True)
    assert pairs == ((second, first ^ 1), (first, second))
    mixed.command("osd pg-upmap-items", pgid=pg.id, id=[osd for pair in pairs for osd in pair])
    mapped = until(drive, lambda view: view.pgs[pg.id].up == want)
    mixed.wait_clean()
    assert compute_up_sets(mapped) == told(mixed)
    mixed.command("osd rm-pg-upmap-items", pgid=pg.id)
    mixed.wait_clean()
