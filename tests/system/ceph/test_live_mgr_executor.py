"""The mgr executor in the real ceph-mgr: a service that may only read drains a real OSD through the executor."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from predrain.actions.cluster.cluster_port import (
    Balancer,
    ClusterUnreachable,
    Command,
    CrushReweight,
    PrimaryAffinity,
    RemoveUpmap,
    Reweight,
    SetFlag,
    SetOption,
    SetUpmap,
)
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.live_ceph import LiveCluster
from predrain.actions.cluster.rados_connection import Rados
from predrain.actions.core.claimed_settings import is_same_setting_value, key_of, read_setting_value, value_of
from predrain.actions.core.drain_policy import Policy
from predrain.data.clock import SystemClock
from predrain.data.ids import OsdId
from predrain.service.drains.mgr_executor import MgrExecutor, MgrExecutorCluster
from tests.deadlines import idle_seconds
from tests.system.ceph.mgr_application import MgrApplication
from tests.system.ceph.mgr_driver import Mgr, calm, the_mgr  # noqa: F401

HAND_KEY = "a-key-for-steps-of-more-than-32-letters"
HASTY = Policy(tick_seconds=1.0, out_share_max=0.5)


@pytest.fixture
def handed_application(mgr: Mgr, tmp_path: Path) -> Iterator[MgrApplication]:
    """Yield a service with a key that only reads, over the cluster itself, and with the module as its mgr executor."""
    mgr.cluster.client("client.looker", {"mon": "allow r", "mgr": "allow r"})
    channel = Rados(mgr.cluster.connection("client.looker"))
    houses: list[MgrApplication] = []
    hand = MgrExecutor(HAND_KEY, SystemClock())
    looking = LiveCluster(channel, SystemClock().now)
    acting = MgrExecutorCluster(looking, hand, lambda: houses[0].store.drains())
    application = MgrApplication(tmp_path / "state", acting, HASTY)
    houses.append(application)
    application.up().step()
    mgr.cluster.command("config-key set", key="mgr/predrain/executor_key", val=HAND_KEY)
    mgr.point(application.url, application.token)
    mgr.option("mode", "execute")
    mgr.wait(lambda: not hand.explain_absence(), "the module asks for steps")
    yield application
    application.close()
    channel.close()


def test_a_service_that_may_only_read_drains_an_osd_by_the_hand(
    mgr: Mgr, handed_application: MgrApplication
) -> None:
    cluster = mgr.cluster
    written = cluster.write("rep", objects=40, size=4096)
    cluster.wait_clean()
    (osd,) = [row for row in handed_application.call("GET", "osds")["items"] if row["osd"] == 3]
    assert osd["reweight"] == 1.0
    drain = handed_application.call("POST", "drains", {"target": "osd.3", "reason": "noisy"})
    handed_application.call("POST", f"drains/{drain['id']}/approve", **{"If-Match": drain["etag"]})

    def over() -> Any:
        handed_application.step()
        now = handed_application.call("GET", f"drains/{drain['id']}")
        time.sleep(0.5)
        return now if now["state"] in ("verified", "failed", "cancelled") else None

    until = idle_seconds() + 400
    while not (ended := over()):
        assert idle_seconds() < until, handed_application.call("GET", f"drains/{drain['id']}")
    journal = handed_application.call("GET", f"drains/{drain['id']}/journal")["items"]
    assert ended["state"] == "verified", journal[-6:]
    assert not any(3 in pg["up"] + pg["acting"] for pg in cluster.pgs())
    assert cluster.read_back("rep") == written
    cluster.command("osd reweight", id=3, weight=1.0)
    cluster.wait_clean()


def test_a_halt_in_the_cluster_stops_the_hand_and_the_service(
    mgr: Mgr, handed_application: MgrApplication
) -> None:
    cluster = handed_application.application.control.live.cluster
    assert isinstance(cluster, MgrExecutorCluster)
    cluster.view()
    mgr.cluster.command("config-key set", key="predrain/halt", val="by hand")
    mgr.wait(
        lambda: handed_application.call("GET", "halt")["halted"] == "in the cluster: by hand",
        "the service is halted",
    )
    with pytest.raises(ClusterUnreachable):
        cluster.apply(Reweight(OsdId(0), 0.9))
    assert mgr.cluster.json("osd dump")["osds"][0]["weight"] == 1.0
    mgr.text("unhalt")
    mgr.wait(lambda: not cluster.hand.explain_absence(), "the module asks for steps again")
    cluster.view()
    assert cluster.apply(Reweight(OsdId(0), 0.9)).ok
    cluster.view()
    assert cluster.apply(Reweight(OsdId(0), 1.0)).ok


@pytest.mark.release
def test_each_command_of_the_list_is_carried_out_and_seen_in_the_map(
    mgr: Mgr, handed_application: MgrApplication
) -> None:
    cluster = handed_application.application.control.live.cluster
    balancer = mgr.cluster.json("balancer status", to="mgr")["active"]
    mgr.cluster.command("balancer off", to="mgr")  # the balancer sets and removes upmap items, too
    mgr.cluster.wait_clean()  # an earlier test changed a weight: the upmap items below need PGs that no longer move
    view = cluster.view()
    pg = next(pg for pg in view.pgs.values() if len(set(pg.up)) == 2 and pg.id not in view.upmap_items)
    spare = next(OsdId(osd) for osd in range(4) if osd not in pg.up)
    for command in (
        SetUpmap(pg.id, ((pg.up[1], spare),)), RemoveUpmap(pg.id), Reweight(OsdId(1), 0.5), Reweight(OsdId(1), 1.0),
        CrushReweight(OsdId(1), 0.001), CrushReweight(OsdId(1), view.osds[OsdId(1)].crush_weight),
        PrimaryAffinity(OsdId(1), 0.5), PrimaryAffinity(OsdId(1), 1.0), SetFlag("norebalance", True),
        SetFlag("norebalance", False), SetOption("osd_max_backfills", "1"), SetOption("osd_max_backfills", None),
        Balancer(False), Balancer(True), Balancer(balancer),
    ):  # fmt: skip
        mgr.cluster.flush()
        cluster.view()
        answer = cluster.apply(command)
        assert answer.ok, (command, answer)
        assert mgr.wait(lambda command=command: _stands(cluster.view(), command), str(command))
    refused = cluster.apply(SetFlag("pause", True))
    assert not refused.ok
    assert "not on the list" in refused.text
    assert "pause" not in cluster.view().flags


def _stands(view: ClusterView, command: Command) -> bool:
    key = key_of(command)
    return is_same_setting_value(key, read_setting_value(view, key), value_of(command))
