"""A disk that goes for good, on a real cluster: drained, its CRUSH weight taken away, and not a byte more moved."""

from __future__ import annotations

import pytest

from predrain.data.drain import DrainState, Intent
from predrain.data.ids import OsdId
from tests.system.ceph.conftest import Start
from tests.system.ceph.driven import QUICK, Driven, places

VICTIM = OsdId(1)


@pytest.mark.release
def test_a_removed_disk_ends_at_crush_weight_0_and_only_its_own_data_has_moved(start: Start) -> None:
    cluster = start(hosts=6, size_gib=2, conf=QUICK)
    cluster.pool("rep", pg_num=16, size=3)
    cluster.pool("ec", pg_num=8, k=2, m=1)
    written = {pool: cluster.write(pool, objects=60, size=65536) for pool in ("rep", "ec")}
    cluster.wait_clean()
    with Driven(cluster) as drive:
        before = drive.view()
        held = places(before)
        mine = {pg for pg, members in held.items() if VICTIM in members}
        drain = drive.asked(f"osd.{VICTIM}", Intent.REMOVE)
        assert drain.plan is not None
        assert set(drain.plan.affected_pgs)
        degraded: list[str] = []

        def watch(view: object) -> None:
            degraded.extend(pg.id for pg in drive.controller.view.pgs.values() if "undersized" in pg.states)  # type: ignore[union-attr]

        drive.until(drain, DrainState.VERIFIED, seconds=560, each=watch)
        cluster.flush()
        after = drive.view()
        moved = {pg for pg, members in places(after).items() if members != held[pg]}
        assert after.osds[VICTIM].crush_weight == 0
        assert after.osds[VICTIM].reweight == 0
        assert after.flags & {"norebalance", "nobackfill"} == frozenset()
        assert moved == mine
        assert degraded == []
        travelled = sum(
            before.pgs[pg].shard_bytes * len(members - held[pg]) for pg, members in places(after).items()
        )
        assert abs(drain.plan.bytes - travelled) <= 0.1 * travelled
        print(f"{len(mine)} PGs, {travelled / 2**20:.1f} MiB moved, {len(after.upmap_items)} pins stay")
    assert {pool: cluster.read_back(pool) for pool in written} == written
