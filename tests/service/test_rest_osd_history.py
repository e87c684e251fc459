"""The history of a disk that is under one OSD has the OSD's latencies beside those of its peers."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from predrain.data.ids import HostName, OsdId
from predrain.data.latency_windows import LatencySummary, LatencyWindows
from tests.service.conftest import Site
from tests.service.test_drains import World, site, world  # noqa: F401  (fixtures of a service over a cluster)


def test_the_history_of_a_disk_compares_its_osd_with_the_osds_of_its_host(world: World, site: Site) -> None:  # noqa: F811
    begin = world.application.clock.now() - timedelta(minutes=10)
    own = LatencySummary(OsdId(0), HostName("h"), begin, 60.0, 100, commit_ms_p50=9.0, slow_ops=2)
    peers = [replace(own, osd=OsdId(number), commit_ms_p50=3.0, slow_ops=0) for number in (1, 2)]
    world.application.store.add_latency(LatencyWindows.from_summaries([own, *peers]))
    history = site.client.get("/api/v1/devices/ST4000DM000_A/history?days=7").json()
    series = {one["name"]: [value for _, value in one["points"]] for one in history["series"]}
    assert series == {"commit_ms": [9.0], "latency_ratio": [3.0], "slow_minutes": [1.0], "slow_ops": [2.0]}
    assert history["slow_ratio"] == 1.5
