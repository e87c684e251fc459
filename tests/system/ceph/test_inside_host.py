"""Erasure code 3+1 over exactly four hosts, for real: no host can go, a disk drains onto its sibling."""

from __future__ import annotations

import pytest

from predrain.data.drain import DrainState
from predrain.data.ids import OsdId
from predrain.data.plan_refusal import PlanRefusalKind
from tests.system.ceph.conftest import Start
from tests.system.ceph.driven import QUICK, Driven, places
from tests.system.ceph.minicluster import MiniCluster

VICTIM, SIBLING = OsdId(2), OsdId(3)


@pytest.fixture(scope="module")
def narrow(start: Start) -> tuple[MiniCluster, dict[str, str]]:
    """Four hosts of two OSDs, but for the last, which has one."""
    cluster = start(hosts=4, per_host=2, size_gib=2, conf=QUICK)
    cluster.command("osd crush reweight", name="osd.7", weight=0.0)
    cluster.pool("ec", pg_num=16, k=3, m=1)
    written = cluster.write("ec", objects=60, size=65536)
    cluster.wait_clean()
    return cluster, written


def test_the_lone_disk_of_a_host_is_refused_with_the_reason(
    narrow: tuple[MiniCluster, dict[str, str]],
) -> None:
    with Driven(narrow[0]) as drive:
        plan = drive.proposed("osd.6").plan
        assert plan is not None
        assert [refusal.kind for refusal in plan.refusals] == [PlanRefusalKind.ZERO_WITHOUT_PLACE]
        assert "no spare failure domain" in plan.why


def test_a_disk_with_a_sibling_drains_inside_its_host(narrow: tuple[MiniCluster, dict[str, str]]) -> None:
    """Where the weight makes CRUSH try once more, which the pool's number decides, a few shards move elsewhere too."""
    cluster, written = narrow
    with Driven(cluster) as drive:
        before = drive.view()
        drain = drive.asked(f"osd.{VICTIM}")
        assert drain.plan is not None
        planned = {(move.pg, move.target) for move in drain.plan.moves}
        assert sum(target == SIBLING for _, target in planned) > len(planned) / 2
        drive.until(drain, DrainState.VERIFIED)
        cluster.flush()
        after = drive.view()
        assert not any(VICTIM in (*pg.up, *pg.acting) for pg in after.pgs.values())
        hosts = [
            {after.osds[OsdId(osd)].host for osd in pg.acting}
            for pg in after.pgs.values()
            if len(pg.acting) == 4
        ]
        assert hosts
        assert all(len(names) == 4 for names in hosts)
        came = {pg: members - places(before)[pg] for pg, members in places(after).items()}
        assert {(pg, osd) for pg, members in came.items() for osd in members} == planned
        travelled = sum(before.pgs[pg].shard_bytes * len(members) for pg, members in came.items())
        print(
            f"{sum(map(bool, came.values()))} PGs, {travelled / 2**20:.1f} MiB, planned {drain.plan.bytes / 2**20:.1f}"
        )
        assert abs(drain.plan.bytes - travelled) <= 0.1 * travelled
    assert cluster.read_back("ec") == written
