"""The way back where not all can be put back: what is left out is said, and the cancel ends."""

from __future__ import annotations

import pytest

from predrain.actions.cluster.cluster_port import Command, CommandResult, RemoveUpmap, SetUpmap
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.claimed_settings import Pairs
from predrain.actions.core.drain_policy import Policy
from predrain.actions.placement.failure_domains import pairs_for
from predrain.actions.placement.what_if import compute_up_sets
from predrain.actions.simulator import SimulatedCluster
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import OsdId, PgId
from tests.actions.made import wide_spec
from tests.actions.run import Run, map_of, whole

S = DrainState
SPEC = wide_spec(hosts=8, per_host=2, racks=4, pg_num=64, used=0.3)
GONE = "osd.0 is not in the map any more"


def pinned_by_the_operator(run: Run) -> tuple[PgId, Pairs]:
    """A PG of osd.0 whose two other members an operator has sent to other hosts, and how. With the first of the targets
    purged, CRUSH still chooses the same three.
    """
    view = run.cluster.view()
    hosts = {osd.id: osd.host for osd in view.osds.values()}
    for pg in (pg for pg in view.pgs.values() if pg.up[0] == 0):
        used = {hosts[OsdId(osd)] for osd in pg.up}
        first, second = [osd for osd, host in hosts.items() if host not in used and osd % 2][:2]
        without = SimulatedCluster(SPEC, 1)
        without.purge(first)
        if without.osdmap.compute_up_set(without.osdmap.index[pg.id]) == pg.up:
            pairs = ((pg.up[1], int(first)), (pg.up[2], int(second)))
            assert run.cluster.apply(SetUpmap(pg.id, pairs)).ok
            run.cluster.advance(3600)
            return pg.id, pairs
    raise AssertionError("no such PG")


def moved_on(run: Run, pg: PgId) -> Drain:
    """A drain of osd.0 that has sent the PG elsewhere."""
    drain = run.drain("osd.0")
    for _ in range(500):
        run.tick()
        if (0 not in run.cluster.truth().pgs[pg].up) and whole(run):
            return drain
    raise AssertionError(run.transcript(drain))


def test_a_cancel_leaves_out_the_saved_pin_of_a_purged_osd_says_so_and_ends() -> None:
    with Run(SPEC) as run:
        pg, (lost, kept) = pinned_by_the_operator(run)
        drain = moved_on(run, pg)
        run.cluster.purge(OsdId(lost[1]))
        run.cluster.advance(3600)
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        ended = run.until(drain, S.CANCELLED, S.FAILED)
        assert ended.state is S.CANCELLED
        assert f"without {lost[0]}>{lost[1]} of PG {pg}, for such an OSD is not in the map" in ended.ended_why
        assert ended.ended_why in run.transcript(drain)
        assert run.cluster.view().upmap_items == {pg: (kept,)}
        assert 0 in run.cluster.truth().pgs[pg].up
        assert whole(run)


def test_a_cancel_of_a_purged_osds_drain_says_what_is_not_given_back_and_ends() -> None:
    with Run(SPEC) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        run.ticks(6)
        run.cluster.purge(OsdId(0))
        run.ticks(3)
        assert any(GONE in sentence for sentence in run.known(drain).held_by)
        run.cluster.advance(7200)
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        ended = run.until(drain, S.CANCELLED, S.FAILED)
        assert ended.state is S.CANCELLED
        assert "not in the map any more: osd.0/reweight, osd.0/crush_weight" in run.transcript(drain)
        assert whole(run)


class Refuses:
    """The cluster of a run, whose mon refuses every command about one PG."""

    def __init__(self, run: Run, pg: PgId) -> None:
        self.run, self.pg = run, pg

    def view(self) -> ClusterView:
        return self.run.watched.view()

    def apply(self, command: Command) -> CommandResult:
        if isinstance(command, SetUpmap | RemoveUpmap) and command.pg == self.pg:
            return CommandResult(ok=False, text="Error EINVAL: not today")
        return self.run.watched.apply(command)


def test_a_cancel_that_people_let_go_on_gives_up_the_pin_that_the_mon_refuses_again_and_again() -> None:
    with Run(SPEC) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        while not (upmaps := run.cluster.view().upmap_items):
            run.tick()
        pg = next(iter(upmaps))
        run.started(Refuses(run, pg))
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        for _ in range(2):
            broken = run.until(drain, S.FAILED)
            assert "not today" in broken.ended_why
            run.ticks(5)
            run.controller.requests.resume(drain.id, "operator", run.cluster.now)
        run.until(drain, S.CANCELLED)
        assert f"left out, the mon does not take it: upmap/{pg}" in run.transcript(drain)
        assert set(run.cluster.view().upmap_items) == {pg}


@pytest.mark.slow
@pytest.mark.parametrize("first", ["osd.0", "the next"])
def test_two_drains_that_sent_one_pg_on_in_turn_bring_it_back_when_both_are_cancelled(first: str) -> None:
    with Run(SPEC, policy=Policy(out_share_max=0.5, drains_per_rack=9)) as run:
        run.tick()
        before = map_of(run)
        one = run.drain("osd.0")
        while not (upmaps := run.cluster.view().upmap_items) or not whole(run):
            run.tick()
        pg, ((_, target),) = next(item for item in upmaps.items() if len(item[1]) == 1)
        run.controller.requests.pause(one.id, "operator", run.cluster.now)
        two = run.drain(f"osd.{target}")
        for _ in range(500):
            if target not in run.cluster.truth().pgs[pg].up:
                break
            run.tick()
        assert target not in run.cluster.truth().pgs[pg].up
        for drain in (one, two) if first == "osd.0" else (two, one):
            run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        for drain in (one, two):
            assert "others" not in run.until(drain, S.CANCELLED).ended_why
        run.ticks(20)
        assert map_of(run) == before


def led_away_from(run: Run, osd: int) -> dict[PgId, Pairs]:
    """Set upmap items as a balancer leaves them, and return them. Each maps a PG that CRUSH gives to the OSD to its
    place without the OSD.
    """
    view = run.cluster.view()
    gone = compute_up_sets(view, (OsdId(osd),), with_upmaps=False)
    led: dict[PgId, Pairs] = {}
    for pg in (pg for pg in view.pgs.values() if osd in pg.up):
        pairs = pairs_for(pg.up, gone[pg.id], (), ordered=False)
        if pairs is not None and len(pairs) == 1:
            assert run.cluster.apply(SetUpmap(pg.id, pairs)).ok
            led[pg.id] = pairs
    run.cluster.advance(36_000)
    assert whole(run)
    return led


@pytest.mark.slow
def test_pins_that_the_mon_takes_away_with_the_last_override_come_back_and_their_pgs_a_few_at_a_time() -> (
    None
):
    with Run(SPEC) as run:
        led = led_away_from(run, 0)
        assert len(led) > run.policy.in_flight_max
        before = map_of(run)
        drain = run.drain("osd.0")
        run.until(drain, S.VERIFIED)
        run.cluster.advance(60)
        assert not led.keys() & run.cluster.view().upmap_items.keys()
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        run.until(drain, S.CANCELLED)
        run.ticks(20)
        assert map_of(run) == before


def test_a_cancelled_removal_gives_the_crush_weight_back_also_where_the_disk_has_died() -> None:
    osd = OsdId(0)
    with Run(SPEC) as run:
        run.tick()
        found = run.cluster.view().osds[osd].crush_weight
        drain = run.controller.requests.propose("osd.0", "operator", "test", run.cluster.now, Intent.REMOVE)
        run.controller.requests.approve(drain.id, "operator", run.cluster.now)
        while run.cluster.view().osds[osd].crush_weight == found:
            run.tick()
        run.cluster.fail_osd(osd)
        for _ in range(150):
            run.tick()
        assert run.cluster.view().osds[osd].reweight == 0.0
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        for _ in range(60):
            run.tick()
        assert run.cluster.view().osds[osd].crush_weight == found
        held = run.known(drain)
        assert held.state is S.CANCELLING
        assert "start it, or remove it from the map" in held.held_by[0]
        run.cluster.purge(osd)
        assert run.until(drain, S.CANCELLED).state is S.CANCELLED
