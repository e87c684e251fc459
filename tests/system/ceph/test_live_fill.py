"""An OSD is drained, destroyed, made again in the same slot, and filled again, on a real cluster."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime

from predrain.data.drain import DrainState, Intent
from tests.system.ceph.conftest import Start
from tests.system.ceph.driven import QUICK, Driven, places
from tests.system.ceph.minicluster import MiniCluster

S = DrainState
SLOT = 2


def swapped(cluster: MiniCluster, osd: int) -> None:
    """A new store under the same id, as a new disk in the slot has; `noin` keeps it from being taken in at once."""
    cluster.command("osd add-noin", ids=[f"osd.{osd}"])
    cluster.kill(f"osd.{osd}")
    cluster.command("osd down", ids=[str(osd)])
    cluster.run("ceph", *cluster._conf, "osd", "destroy", f"osd.{osd}", "--yes-i-really-mean-it")
    shutil.rmtree(cluster.folder / "osd" / str(osd))
    maker = cluster._make_osd(osd)
    _, said = maker.communicate()
    assert maker.returncode == 0, said.decode()
    cluster.spawn(f"osd.{osd}")
    cluster.wait(lambda: osd in cluster.osds(), 60, f"osd.{osd} up")


def test_a_new_disk_in_the_slot_gets_its_share_back_a_few_pgs_at_a_time(start: Start) -> None:
    cluster = start(hosts=4, per_host=1, conf=QUICK)
    cluster.command("osd set-require-min-compat-client", version="luminous")
    cluster.pool("rep", pg_num=16, size=3)
    written = cluster.write("rep", objects=100)
    cluster.wait_clean()
    with Driven(cluster) as driven:
        before = places(driven.view())
        drained = driven.until(driven.asked(f"osd.{SLOT}"), S.VERIFIED)
        driven.controller.requests.hand_over(drained.id, "operator", datetime.now(UTC))
        swapped(cluster, SLOT)
        cluster.wait_clean()
        assert driven.view().osds[SLOT].reweight == 0.0
        fill = driven.asked(f"osd.{SLOT}", Intent.FILL)
        assert fill.plan is not None
        peering: list[int] = []
        driven.until(
            fill,
            S.VERIFIED,
            each=lambda view: peering.append(sum("active" not in pg.states for pg in view.pgs.values())),
        )
        cluster.wait_clean()
        assert driven.view().osds[SLOT].reweight == 1.0
        assert places(driven.view()) == before
        assert max(peering) <= driven.policy.peering_max
    assert cluster.read_back("rep") == written
