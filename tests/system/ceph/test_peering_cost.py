"""The cost of moving a PG for the operations on it: with an upmap item and `osd pg-temp` beside it, the PG peers once
less than with an upmap item alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from predrain.actions.cluster.cluster_port import RemoveUpmap, Reweight, SetUpmap
from predrain.actions.cluster.live_ceph import LiveCluster
from predrain.actions.cluster.rados_connection import Rados
from predrain.actions.core.capacity import compute_osd_capacity
from predrain.actions.core.in_flight import compute_allowance
from predrain.actions.mechanics import override_reweight
from predrain.data.ids import OsdId, PgId
from tests.actions.made import POLICY, a_context, a_drain
from tests.bench.curves.load import Clients
from tests.bench.curves.peering import SHORT_LOGS, Cost, count_intervals, laboratory, move, untouched
from tests.system.ceph.conftest import Start
from tests.system.ceph.minicluster import MiniCluster


@pytest.fixture(scope="module")
def cluster(start: Start) -> MiniCluster:
    """Five hosts: PGs of three copies have two OSDs to go to."""
    return start(hosts=5, size_gib=3, conf=SHORT_LOGS)


@pytest.fixture(scope="module")
def clients(cluster: MiniCluster) -> Iterator[Clients]:
    """Operations on every PG."""
    working = laboratory(cluster)
    yield working
    working.close()


@pytest.fixture(scope="module")
def live(cluster: MiniCluster) -> Iterator[LiveCluster]:
    """predrain's own way in."""
    channel = Rados(cluster.connection())
    yield LiveCluster(channel, lambda: datetime.now(UTC))
    channel.close()


def moved(cluster: MiniCluster, live: LiveCluster, clients: Clients, *, told: bool) -> list[Cost]:
    """A PG whose leader moves, one whose second member does, and one whose last one does."""
    return [
        move(cluster, live, clients, untouched(cluster)[0], member=member, told=told) for member in range(3)
    ]


def test_a_pin_alone_peers_three_times_and_one_with_pg_temp_twice_for_half_the_wait(
    cluster: MiniCluster, live: LiveCluster, clients: Clients
) -> None:
    alone = moved(cluster, live, clients, told=False)
    told = moved(cluster, live, clients, told=True)
    assert [cost.intervals for cost in alone] == [3, 3, 3]
    assert [cost.intervals for cost in told] == [2, 2, 2]
    assert max(cost.worst_ms for cost in told) < min(cost.worst_ms for cost in alone)
    assert all(cost.served for cost in (*alone, *told))


def seen(cluster: MiniCluster, pg: str) -> dict[str, Any]:
    """The PG now, with what the map holds of it."""
    cluster.flush()
    found = next(each for each in cluster.pgs() if each["pgid"] == pg)
    dump = cluster.json("osd dump")
    marks = {key: [item for item in dump[key] if item["pgid"] == pg] for key in ("pg_temp", "pg_upmap_items")}
    return {"up": found["up"], "acting": found["acting"], "state": found["state"], **marks}


def test_an_acting_set_told_without_its_pin_or_long_after_it_leaves_nothing_behind(
    cluster: MiniCluster, live: LiveCluster, clients: Clients
) -> None:
    """The controller may die between any two lines, and any command may be late."""
    del clients
    pg = untouched(cluster)[0]
    name, up = pg["pgid"], pg["up"]
    cluster.command("osd pg-temp", pgid=name, id=up)
    cluster.wait(lambda: not seen(cluster, name)["pg_temp"], 30, "it is dropped")
    found = seen(cluster, name)
    assert (found["up"], found["acting"], found["pg_upmap_items"]) == (up, up, [])
    target = next(osd for osd in cluster.osds() if osd not in up)
    assert live.apply(SetUpmap(PgId(name), ((up[2], target),), tuple(up))).ok
    cluster.wait(lambda: seen(cluster, name)["acting"] == [*up[:2], target], 120, "it has moved")
    cluster.command("osd pg-temp", pgid=name, id=up)
    settled = {"up": [*up[:2], target], "acting": [*up[:2], target], "state": "active+clean", "pg_temp": []}
    cluster.wait(lambda: settled.items() <= seen(cluster, name).items(), 60, "the late one is undone")


def test_a_pin_taken_back_at_once_leaves_the_pg_where_it_was(
    cluster: MiniCluster, live: LiveCluster, clients: Clients
) -> None:
    del clients
    pg = untouched(cluster)[0]
    name, up = pg["pgid"], pg["up"]
    target = next(osd for osd in cluster.osds() if osd not in up)
    assert live.apply(SetUpmap(PgId(name), ((up[2], target),), tuple(up))).ok
    assert live.apply(RemoveUpmap(PgId(name))).ok
    back = {"up": up, "acting": up, "state": "active+clean", "pg_temp": [], "pg_upmap_items": []}
    cluster.wait(lambda: back.items() <= seen(cluster, name).items(), 60, "it is back")


def climb(cluster: MiniCluster, live: LiveCluster, osd: int, *, told: bool) -> list[int]:
    """Send one reweight step of an OSD that moves up to two PGs; return how often each of these PGs peered."""
    cluster.wait_clean()
    view = live.view()
    context = a_context(view, a_drain(osd))
    allowed = compute_allowance(context, POLICY, compute_osd_capacity(context.survey, POLICY))
    batch = override_reweight.build_override_step(view, OsdId(osd), allowed, 2)
    (rung,) = batch.commands
    assert isinstance(rung, Reweight)
    assert {pg for pg, _ in rung.acting} == batch.pgs
    before = {pg: count_intervals(cluster, pg) for pg in batch.pgs}
    assert live.apply(rung if told else replace(rung, acting=())).ok

    def arrived() -> bool:
        found = {pg["pgid"]: pg for pg in cluster.pgs()}
        return all(
            osd not in found[pg]["acting"]
            and found[pg]["up"] == found[pg]["acting"]
            and found[pg]["state"] == "active+clean"
            for pg in batch.pgs
        )

    cluster.wait(arrived, 120, "the rung's PGs have moved")
    return [
        max(count - before[pg].get(file, 0) for file, count in count_intervals(cluster, pg).items())
        for pg in batch.pgs
    ]


def test_a_rung_of_a_ladder_peers_its_pgs_twice_where_the_mon_is_told_who_serves_them(
    cluster: MiniCluster, live: LiveCluster, clients: Clients
) -> None:
    del clients
    assert set(climb(cluster, live, 1, told=False)) == {3}
    assert set(climb(cluster, live, 2, told=True)) == {2}
