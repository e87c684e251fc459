"""Reservations that hosts tell of: a drain by predrain's own key, which may not ask OSDs, moves PGs side by side."""

from __future__ import annotations

import json
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from predrain.actions.cluster.cluster_port import SetUpmap
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.latency_observer import LatencyObserver
from predrain.actions.core.in_flight import list_watched_osds
from predrain.data.drain import DrainState
from predrain.data.ids import HostName, OsdId
from predrain.data.latency_windows import LatencySummary, LatencyWindows
from tests.system.ceph.conftest import Start
from tests.system.ceph.driven import QUICK, Driven
from tests.system.ceph.minicluster import MiniCluster

S = DrainState
WINDOW = timedelta(seconds=1)


def asked(path: Path, prefix: str) -> dict[str, Any]:
    """A daemon's answer at its admin socket."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(10)
        link.connect(str(path))
        link.sendall(json.dumps({"prefix": prefix, "format": "json"}).encode() + b"\0")
        said = link.makefile("rb")
        answer: dict[str, Any] = json.loads(said.read(int.from_bytes(said.read(4), "big")))
    return answer


def tell(cluster: MiniCluster, driven: Driven) -> None:
    """Store what each OSD's host would report of the last second."""
    begin = datetime.now(UTC) - WINDOW
    for osd in cluster.osds():
        most = asked(cluster.folder / "run" / f"osd.{osd}.asok", "dump_recovery_reservations")[
            "local_reservations"
        ]["max_allowed"]
        driven.store.add_latency(
            LatencyWindows.from_summaries(
                [
                    LatencySummary(
                        OsdId(osd), HostName("h"), begin, WINDOW.total_seconds(), 0, backfills_max=most
                    )
                ]
            )
        )


@pytest.mark.release
def test_with_what_hosts_tell_a_key_that_may_not_ask_moves_more_than_one_pg_at_a_time(start: Start) -> None:
    cluster = start(scheduler="wpq", conf=QUICK, size_gib=1)
    cluster.pool("rep", pg_num=32, size=2)
    cluster.pool("predrain", pg_num=1, size=3)
    written = cluster.write("rep", objects=300)
    cluster.wait_clean()

    def under_way(view: ClusterView) -> int:
        """PGs that were sent and still are on osd.0."""
        sent = {command.pg for command in driven.port.sent if isinstance(command, SetUpmap)}
        return sum(OsdId(0) in view.pgs[pg].acting for pg in sent)

    with Driven(cluster) as driven:
        driven.port.live.senses = LatencyObserver(
            driven.channel,
            "predrain",
            lambda: list_watched_osds(driven.store.drains()),
            driven.store.read_latency_summaries,
        )
        drain = driven.asked("osd.0")
        driven.until(drain, S.DRAINING)
        alone = [under_way(driven.view()) for _ in range(10) if driven.controller.tick(datetime.now(UTC), {})]
        assert "one PG at a time, for the reservations of osd." in "\n".join(
            line.decided for line in driven.store.journal(drain.id)
        )
        told: list[int] = []

        def look(view: ClusterView) -> None:
            told.append(under_way(view))
            tell(cluster, driven)

        driven.until(drain, S.VERIFIED, each=look)
    assert max(alone) <= 1
    assert max(told) > 1
    assert cluster.read_back("rep") == written
