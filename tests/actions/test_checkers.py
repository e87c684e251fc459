"""The checkers that judge the engine find each unsafe command, and let safe ones pass."""

from __future__ import annotations

from dataclasses import replace

import pytest

from predrain.actions.cluster.cluster_port import Command, PrimaryAffinity, SetUpmap
from predrain.actions.core.drain_policy import Policy
from predrain.actions.placement.failure_domains import find_failure_domains
from predrain.actions.simulator import SimulatedCluster
from predrain.actions.simulator.cluster_spec import ClusterSpec
from predrain.data.ids import OsdId
from tests.actions.checkers import UnsafeStep, Watched
from tests.actions.made import full_spec, wide_spec

POLICY = Policy(in_flight_max=2, peering_max=9)


def watch(policy: Policy = POLICY, spec: ClusterSpec | None = None, *, halted: bool = False) -> Watched:
    """A watched cluster of 6 hosts that has just been looked at."""
    cluster = SimulatedCluster(spec or wide_spec(hosts=6, racks=0), 1)
    watched = Watched(cluster, policy, lambda: halted, lambda: ())
    cluster.advance(10)
    watched.view()
    return watched


def move_pgs(watched: Watched, count: int) -> list[SetUpmap]:
    """Upmaps that send one copy of each of `count` PGs to an OSD on another host."""
    view = watched.cluster.view()
    moves = []
    for pg in sorted(view.pgs.values(), key=lambda pg: pg.id):
        region = find_failure_domains(view.crush, view.pools[pg.pool])
        if targets := sorted(region.list_substitutes(pg.up, pg.up[-1])):
            moves.append(SetUpmap(pg.id, ((pg.up[-1], targets[0]),)))
    return moves[:count]


def send_all(watched: Watched, commands: list[SetUpmap]) -> None:
    for command in commands:
        watched.apply(command)


def test_as_many_pgs_as_the_policy_allows_may_be_on_their_way() -> None:
    watched = watch()
    send_all(watched, move_pgs(watched, 2))
    watched.check_between()


def test_one_more_pg_on_its_way_is_unsafe() -> None:
    watched = watch()
    with pytest.raises(UnsafeStep, match="3 PGs on their way by us, limit 2"):
        send_all(watched, move_pgs(watched, 3))


def test_a_primary_may_change_while_more_pgs_than_allowed_are_on_their_way_by_a_step_that_was_cut_short() -> (
    None
):
    watched = watch(replace(POLICY, in_flight_max=9))
    moves = move_pgs(watched, 4)
    send_all(watched, moves)
    watched.cut_short()
    watched.check_between()
    watched.policy = POLICY
    primary = watched.cluster.life.truth[moves[0].pg].up[0]
    watched.view()
    watched.apply(PrimaryAffinity(OsdId(primary), 0.0))
    watched.check_between()


def test_a_pg_sent_beyond_the_limit_after_a_step_that_was_cut_short_is_unsafe() -> None:
    watched = watch(replace(POLICY, in_flight_max=9))
    moves = move_pgs(watched, 5)
    send_all(watched, moves[:4])
    watched.cut_short()
    watched.check_between()
    watched.policy = POLICY
    watched.view()
    with pytest.raises(UnsafeStep, match="5 PGs on their way by us, limit 2"):
        watched.apply(moves[4])


def test_more_pgs_that_peer_than_the_policy_allows_are_unsafe() -> None:
    watched = watch(Policy(in_flight_max=9, peering_max=2))
    with pytest.raises(UnsafeStep, match="3 PGs peer, limit 2"):
        send_all(watched, move_pgs(watched, 3))


def test_two_copies_on_one_host_are_unsafe() -> None:
    watched = watch()
    view = watched.cluster.view()
    pg = min(view.pgs.values(), key=lambda pg: pg.id)
    host = view.osds[OsdId(pg.up[0])].host
    (beside,) = (osd.id for osd in view.osds.values() if osd.host == host and osd.id != pg.up[0])
    with pytest.raises(UnsafeStep, match="which survives fewer losses"):
        watched.apply(SetUpmap(pg.id, ((pg.up[-1], beside),)))


def test_a_copy_that_does_not_fit_is_unsafe() -> None:
    watched = watch(spec=full_spec(hosts=6, per_host=2, pg_num=64, used=0.83, most=0.84))
    with pytest.raises(UnsafeStep, match=r"would be .* full, and that is over its limit"):
        send_all(watched, move_pgs(watched, 2))


def test_a_command_under_a_halt_is_unsafe() -> None:
    command: Command = SetUpmap(move_pgs(watch(), 1)[0].pg, ())
    with pytest.raises(UnsafeStep, match="while everything is halted"):
        watch(halted=True).apply(command)
