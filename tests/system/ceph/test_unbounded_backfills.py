"""Erasure-coded PGs where nothing bounds how many backfills run at once: one PG at a time, the weight last of all."""

from __future__ import annotations

import pytest

from predrain.actions.cluster.cluster_port import Reweight, SetUpmap
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.latency_observer import LatencyObserver
from predrain.actions.cluster.rados_connection import Rados
from predrain.actions.core.in_flight import list_watched_osds
from predrain.data.drain import DrainState
from tests.system.ceph.conftest import Start
from tests.system.ceph.driven import QUICK, Driven

SHORT_LOGS = "osd_min_pg_log_entries = 4\nosd_max_pg_log_entries = 8\nosd_pg_log_trim_min = 1\n"


def test_where_nothing_bounds_backfills_erasure_coded_pgs_leave_one_at_a_time(
    start: Start, release: str
) -> None:
    """Check the drain with Pacific's mClock, where 1000 backfills are in force with any setting."""
    if release != "pacific":
        pytest.skip("this release's mClock allows one backfill")
    cluster = start(scheduler="mclock_scheduler", conf=QUICK + SHORT_LOGS, size_gib=1)
    cluster.pool("ec", pg_num=8, k=2, m=1)
    cluster.pool("predrain", pg_num=1, size=3)
    written = cluster.write("ec", objects=50, size=65536)
    cluster.wait_clean()
    most = 0

    def look(view: ClusterView) -> None:
        nonlocal most
        most = max(most, sum(pg.up != pg.acting for pg in view.pgs.values()))

    reading = Rados(cluster.connection())  # only a key with `osd allow *` may read reservations
    with Driven(cluster) as driven:
        driven.port.live.senses = LatencyObserver(
            reading, "predrain", lambda: list_watched_osds(driven.store.drains())
        )
        drain = driven.asked("osd.0")
        driven.until(drain, DrainState.VERIFIED, seconds=400, each=look)
        said = "\n".join(line.decided for line in driven.store.journal(drain.id))
        steps = [type(command) for command in driven.port.sent if isinstance(command, SetUpmap | Reweight)]
    reading.close()
    assert "one PG at a time, for 1000 backfills at once are in force at osd." in said
    assert most == 1
    walked = steps.count(SetUpmap)
    assert steps == [SetUpmap] * walked + [Reweight] * (len(steps) - walked)
    assert cluster.read_back("ec") == written
