"""Quarantine on a real cluster: leaders change as computed, a few at a time; no data moves; all is restored exactly."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

from predrain.actions.cluster.cluster_port import PrimaryAffinity
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.mechanics.primary_affinity import compute_pg_primaries, find_primary_pgs
from predrain.data.drain import DrainState, Intent, Mechanic
from predrain.data.ids import OsdId, PgId
from tests.deadlines import idle_seconds
from tests.system.ceph.conftest import Start
from tests.system.ceph.driven import POLICY, QUICK, Driven, places
from tests.system.ceph.minicluster import MiniCluster


def primaries(cluster: MiniCluster) -> dict[PgId, int]:
    """Return the primary of each PG, as the PG's own report names it."""
    return {PgId(pg["pgid"]): int(pg["up_primary"]) for pg in cluster.pgs()}


def test_a_slow_osd_leads_nothing_while_quarantined_and_all_as_before_after(start: Start) -> None:
    cluster = start(size_gib=2, conf=QUICK)
    cluster.pool("rep", pg_num=32, size=3)
    cluster.pool("ec", pg_num=16, k=2, m=1)
    written = {pool: cluster.write(pool, objects=40, size=65536) for pool in ("rep", "ec")}
    cluster.wait_clean()
    cluster.flush()
    with Driven(cluster) as drive:
        _leaders_are_computed_as_the_cluster_has_them(cluster, drive)
        view, before = drive.view(), primaries(cluster)
        held, weights = places(view), _weights(view)
        slow = OsdId(Counter(before.values()).most_common(1)[0][0])
        leading = find_primary_pgs(view, slow)
        assert leading == {pg for pg, osd in before.items() if osd == slow}
        assert {view.pools[view.pgs[pg].pool].name for pg in leading} >= {"rep", "ec"}
        drain = drive.asked(f"osd.{slow}", Intent.QUARANTINE)
        assert drain.plan is not None
        assert drain.plan.mechanic is Mechanic.PRIMARY_AFFINITY
        assert set(drain.plan.affected_pgs) == leading
        seen = [before]

        def watch(_: ClusterView) -> None:
            seen.append(primaries(cluster))

        _tick_until_it_leads_nothing(drive, slow, watch)
        cluster.flush()
        seen.append(primaries(cluster))
        assert slow not in seen[-1].values()
        assert {pg for pg in before if seen[-1][pg] != before[pg]} == leading
        drive.controller.requests.cancel(drain.id, "operator", datetime.now(UTC))
        drive.until(drain, DrainState.CANCELLED, each=watch)
        cluster.flush()
        after = drive.view()
        assert primaries(cluster) == before
        assert places(after) == held
        assert _weights(after) == weights
        steps = [sum(old[pg] != new[pg] for pg in old) for old, new in itertools.pairwise(seen)]
        sent = [command for command in drive.port.sent if isinstance(command, PrimaryAffinity)]
        assert len(sent) == len(drive.port.sent)
        assert max(steps) <= POLICY.peering_max
        print(
            f"{len(leading)} PGs led by osd.{slow}, {len(sent)} steps there and back, at most {max(steps)} PGs each"
        )
    assert {pool: cluster.read_back(pool) for pool in written} == written


def _leaders_are_computed_as_the_cluster_has_them(cluster: MiniCluster, drive: Driven) -> None:
    for one, other in ((0.5, 1.0), (0.25, 0.7), (0.0, 0.0), (1.0, 1.0)):
        drive.port.live.apply(PrimaryAffinity(OsdId(0), one))
        drive.port.live.apply(PrimaryAffinity(OsdId(2), other))
        cluster.wait_clean()
        cluster.flush()
        view = drive.view()
        assert compute_pg_primaries(view, list(view.pgs), {}) == primaries(cluster), f"at {one}, {other}"


def _tick_until_it_leads_nothing(drive: Driven, slow: OsdId, watch: Callable[[ClusterView], None]) -> None:
    end = idle_seconds() + 300
    while True:
        report = drive.controller.tick(datetime.now(UTC), {})
        assert report.view is not None
        watch(report.view)
        if report.view.osds[slow].primary_affinity == 0.0 and not find_primary_pgs(report.view, slow):
            return
        assert idle_seconds() < end, [d.held_by for d in drive.store.drains()]
        time.sleep(POLICY.tick_seconds)


def _weights(view: ClusterView) -> dict[OsdId, tuple[float, float, float]]:
    return {osd.id: (osd.reweight, osd.crush_weight, osd.primary_affinity) for osd in view.osds.values()}
