"""The OSDs that serve a PG continue to serve it while its new member is filled: the mon gets `pg-temp` together with
the upmap item or the weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest

from predrain.actions.cluster.channel import CommandChannel, DaemonReply
from predrain.actions.cluster.cluster_port import CrushReweight, RemoveUpmap, Reweight, SetUpmap
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.live_ceph import LiveCluster
from predrain.actions.core.capacity import compute_osd_capacity
from predrain.actions.core.in_flight import compute_allowance
from predrain.actions.crush.crush_map import ITEM_NONE
from predrain.actions.mechanics import crush_weight_ladder, override_reweight
from predrain.actions.mechanics.drain_steps import build_upmap_steps
from predrain.actions.mechanics.step_batch import choose_pg_temp_members, in_turn
from predrain.actions.simulator import SimulatedCluster
from predrain.data.ids import OsdId, PgId
from tests.actions.made import (
    NOW,
    POLICY,
    a_context,
    a_drain,
    a_plan,
    calm_view,
    changed_osd,
    changed_pg,
    ec_spec,
    tiny_spec,
)


def test_a_walks_pin_names_who_serves_now() -> None:
    view, drain = calm_view(), a_drain()
    drain = replace(drain, plan=a_plan(view, drain))
    context = a_context(view, drain)
    batch = build_upmap_steps(
        view,
        drain,
        OsdId(0),
        context,
        compute_allowance(context, POLICY, compute_osd_capacity(context.survey, POLICY)),
        3,
    )
    upmaps = [command for command in batch.commands if isinstance(command, SetUpmap)]
    assert len(upmaps) == len(batch.commands) == 3
    assert all(set(pin.acting) == set(view.pgs[pin.pg].acting) for pin in upmaps)


@pytest.mark.parametrize(
    ("up", "told"),
    [
        ((9, 2, 3), (1, 2, 3)),
        ((1, 9, 3), (1, 3, 2)),
        ((1, 2, 9), (1, 2, 3)),
        ((3, 9, 1), (1, 3, 2)),
        ((2, 3, 9), (2, 3, 1)),
        ((1, 9, 8), (1, 2, 3)),
        ((9, 8, 7), (1, 2, 3)),
        ((), (1, 2, 3)),
    ],
)
def test_members_that_serve_on_are_named_in_the_order_in_which_a_primary_would_choose_them(
    up: tuple[int, ...], told: tuple[int, ...]
) -> None:
    """In another order, the primary makes the mon correct it, which costs a third interval (Pacific, with the second of
    three members moved).
    """
    assert in_turn((1, 2, 3), up) == told


PG = PgId("1.0")


def test_a_ladder_names_who_serves_each_pg_that_its_rung_moves() -> None:
    view = calm_view()
    context = a_context(view, a_drain())
    for rung in (
        lambda allowed: override_reweight.build_override_step(view, OsdId(0), allowed, 3),
        lambda allowed: crush_weight_ladder.build_weight_step(view, OsdId(0), 0.0, allowed, 3, idle=True),
    ):
        batch = rung(compute_allowance(context, POLICY, compute_osd_capacity(context.survey, POLICY)))
        (command,) = batch.commands
        assert isinstance(command, Reweight | CrushReweight)
        assert batch.pgs
        assert {pg for pg, _ in command.acting} == batch.pgs
        assert all(set(members) == set(view.pgs[pg].acting) for pg, members in command.acting)


def test_shards_that_a_ladder_moves_are_not_named_to_a_release_that_may_reorder_them() -> None:
    view = SimulatedCluster(ec_spec(), 1).view()
    for release, told in (("reef", True), ("tentacle", False)):
        of_release = replace(view, release=release)
        context = a_context(of_release, a_drain())
        allowed = compute_allowance(context, POLICY, compute_osd_capacity(context.survey, POLICY))
        (command,) = override_reweight.build_override_step(of_release, OsdId(0), allowed, 3).commands
        assert isinstance(command, Reweight)
        shards = {pg for pg, _ in command.acting if of_release.pools[of_release.pgs[pg].pool].erasure}
        assert bool(shards) is told


def _short(view: ClusterView) -> ClusterView:
    members = (*view.pgs[PG].acting[:-1], ITEM_NONE)
    return changed_pg(view, PG, up=members[:-1], acting=members[:-1])


@pytest.mark.parametrize(
    "spoiled",
    [
        lambda view: changed_pg(view, PG, acting=tuple(reversed(view.pgs[PG].acting))),
        lambda view: changed_osd(view, view.pgs[PG].acting[-1], up=False),
        _short,
    ],
    ids=["served by others than up", "a member is down", "a member is missing"],
)
def test_a_pg_that_is_not_at_rest_chooses_who_serves_it_by_itself(
    spoiled: Callable[[ClusterView], ClusterView],
) -> None:
    view = calm_view()
    assert choose_pg_temp_members(view, view.pgs[PG], view.pgs[PG].up) == view.pgs[PG].acting
    ill = spoiled(view)
    assert choose_pg_temp_members(ill, ill.pgs[PG], view.pgs[PG].up) == ()


def test_shards_are_not_named_to_a_release_that_may_reorder_them() -> None:
    """Tentacle, optimised EC pool: pg-temp [2, 1, 3] became acting [2, 3, 1]."""
    view = SimulatedCluster(ec_spec(), 1).view()
    shard = next(pg for pg in view.pgs.values() if view.pools[pg.pool].erasure)
    going = (ITEM_NONE, *shard.up[1:])
    assert choose_pg_temp_members(replace(view, release="reef"), shard, going) == shard.acting
    assert choose_pg_temp_members(replace(view, release="tentacle"), shard, going) == ()
    assert choose_pg_temp_members(replace(view, release="umbrella"), shard, going) == ()


@pytest.mark.parametrize("kind", [Reweight, CrushReweight])
def test_pgs_that_a_weight_moves_peer_for_one_round_of_the_mon_where_it_is_told_who_serves_them(
    kind: type[Reweight | CrushReweight],
) -> None:
    worst = {}
    for told in (False, True):
        cluster = SimulatedCluster(tiny_spec(), 1)
        cluster.take_client_load()
        view = cluster.view()
        context = a_context(view, a_drain())
        allowed = compute_allowance(context, POLICY, compute_osd_capacity(context.survey, POLICY))
        (command,) = (
            override_reweight.build_override_step(view, OsdId(0), allowed, 3).commands
            if kind is Reweight
            else crush_weight_ladder.build_weight_step(view, OsdId(0), 0.0, allowed, 3, idle=True).commands
        )
        assert isinstance(command, kind)
        cluster.apply(command if told else replace(command, acting=()))
        cluster.advance(3)
        worst[told] = cluster.take_client_load().worst_ms
    assert worst[True] <= 1100 < worst[False]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_pg_whose_servers_are_told_beforehand_peers_for_one_round_of_the_mon_not_two(place: int) -> None:
    cluster = SimulatedCluster(tiny_spec(), 1)
    view = cluster.view()
    worst = {}
    for told in (False, True):
        cluster = SimulatedCluster(tiny_spec(), 1)
        cluster.take_client_load()
        for pg in list(view.pgs.values())[:12]:
            hosts = {view.osds[OsdId(osd)].host for osd in pg.up}
            target = next(osd for osd in view.osds.values() if osd.host not in hosts)
            up = [int(target.id) if osd == pg.up[place] else osd for osd in pg.up]
            told_to = in_turn(pg.acting, up) if told else ()
            cluster.apply(SetUpmap(pg.id, ((pg.up[place], int(target.id)),), told_to))
            cluster.advance(3)
        worst[told] = cluster.take_client_load().worst_ms
    assert worst[True] <= 1100 < worst[False]


def test_an_old_acting_set_named_too_late_moves_nothing() -> None:
    """A command that arrives after the upmap item of its PG is gone leaves the PG on its `up`."""
    cluster = SimulatedCluster(tiny_spec(), 1)
    pg = cluster.view().pgs[PG]
    cluster.apply(RemoveUpmap(PG, pg.acting))
    cluster.advance(30)
    after = cluster.view().pgs[PG]
    assert (after.up, after.acting, after.states) == (pg.up, pg.acting, pg.states)


class Mon:
    """A mon that refuses some commands and answers the others."""

    def __init__(self, *refuses: str) -> None:
        self.refuses, self.together = refuses, list[tuple[str, ...]]()

    def ask(self, to: str, prefix: str, *_: object, **__: object) -> DaemonReply:
        del to
        return DaemonReply(0, b'{"epoch": 41}', "") if prefix == "osd stat" else self._reply(prefix)

    def ask_all(self, asked: tuple[tuple[str, str, object], ...]) -> tuple[DaemonReply, ...]:
        self.together.append(tuple(prefix for _, prefix, _ in asked))
        return tuple(self._reply(prefix) for _, prefix, _ in asked)

    def _reply(self, prefix: str) -> DaemonReply:
        return (
            DaemonReply(-13, b"", "access denied")
            if prefix in self.refuses
            else DaemonReply(0, b"", f"{prefix} done")
        )


PIN = SetUpmap(PG, ((0, 3),), (0, 1, 2))


def test_pg_temp_and_its_pin_go_out_together() -> None:
    mon = Mon()
    answer = LiveCluster(cast("CommandChannel", mon), lambda: NOW).apply(PIN)
    assert mon.together == [("osd pg-temp", "osd pg-upmap-items")]
    assert (answer.ok, answer.epoch) == (True, 41)


def test_a_weight_goes_out_with_every_pg_temp_of_its_rung() -> None:
    mon = Mon()
    rung = Reweight(OsdId(0), 0.5, ((PG, (0, 1, 2)), (PgId("1.1"), (0, 3, 4))))
    assert LiveCluster(cast("CommandChannel", mon), lambda: NOW).apply(rung).ok
    assert mon.together == [("osd pg-temp", "osd pg-temp", "osd reweight")]


def test_a_key_that_may_not_set_pg_temp_pins_all_the_same_and_says_so() -> None:
    answer = LiveCluster(cast("CommandChannel", Mon("osd pg-temp")), lambda: NOW).apply(PIN)
    assert answer.ok
    assert "access denied" in answer.text


def test_a_refused_pin_is_refused_whatever_became_of_pg_temp() -> None:
    answer = LiveCluster(cast("CommandChannel", Mon("osd pg-upmap-items")), lambda: NOW).apply(PIN)
    assert not answer.ok
