"""The simulated cluster does what real ones were seen to do; each line of the record has a test here."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from predrain.actions.cluster.cluster_port import (
    Balancer,
    Command,
    CrushReweight,
    PrimaryAffinity,
    RemoveUpmap,
    Reweight,
    SetFlag,
    SetOption,
    SetUpmap,
)
from predrain.actions.cluster.cluster_view import ClusterView, Pg
from predrain.actions.crush.crush_map import ITEM_NONE
from predrain.actions.crush.pg_placement import place_pgs
from predrain.actions.simulator import SimulatedCluster
from predrain.actions.simulator.worlds import build_world
from predrain.data.ids import OsdId, PgId

HOUR = 3600.0
SUSPECT = OsdId(0)


def simulated(name: str = "tiny", seed: int = 7) -> SimulatedCluster:
    return SimulatedCluster(build_world(name, seed), seed)


def done(cluster: SimulatedCluster, command: Command) -> None:
    answer = cluster.apply(command)
    assert answer.ok, answer.text


def words(view: ClusterView) -> Counter[str]:
    return Counter(word for pg in view.pgs.values() for word in pg.states)


def on(view: ClusterView, osd: OsdId) -> list[Pg]:
    return [pg for pg in view.pgs.values() if osd in pg.up]


def walk_target(view: ClusterView, pg: Pg) -> tuple[int, int]:
    """(from, to): the suspect's shard to an OSD of the host that the PG does not use."""
    used = {view.osds[OsdId(osd)].host for osd in pg.up if osd != SUSPECT}
    return SUSPECT, next(int(o.id) for o in view.osds.values() if o.host not in used and o.id != SUSPECT)


def drained_by_walk(cluster: SimulatedCluster, at_once: int = 3) -> None:
    """Drain the suspect: compute the final map with reweight 0, map the suspect's PGs by upmap items to their places in
    it a few at a time, and set reweight 0 last.
    """
    view = cluster.view()
    weights = {osd.id: osd.reweight for osd in view.osds.values()}
    final = place_pgs(view.crush, view.pools, {**weights, SUSPECT: 0.0}, {})
    moves = on(view, SUSPECT)
    for first in range(0, len(moves), at_once):
        for pg in moves[first : first + at_once]:
            gained = next(osd for osd in final[pg.id] if osd not in pg.up)
            done(cluster, SetUpmap(pg.id, ((SUSPECT, gained),)))
        cluster.advance(HOUR)
    done(cluster, Reweight(SUSPECT, 0.0))
    cluster.advance(60)


def test_a_new_cluster_is_up_in_clean_and_healthy() -> None:
    view = simulated().view()
    assert view.health == "HEALTH_OK"
    assert words(view) == {"active": 64, "clean": 64}
    assert all(pg.up == pg.acting for pg in view.pgs.values())


def test_the_same_seed_gives_the_same_history() -> None:
    def history() -> list[object]:
        cluster = simulated(seed=3)
        seen: list[object] = []
        cluster.fail_osd(SUSPECT)
        for _ in range(40):
            cluster.advance(60)
            view = cluster.view()
            seen.append((view.epoch, view.health, tuple(view.pgs.values()), cluster.take_client_load()))
        return seen

    assert history() == history()


def test_the_views_mapping_is_what_placement_computes_from_the_view() -> None:
    cluster = simulated()
    done(cluster, Reweight(OsdId(4), 0.6))
    done(cluster, PrimaryAffinity(OsdId(5), 0.5))
    cluster.advance(HOUR)
    view = cluster.view()
    weights = {osd.id: osd.reweight for osd in view.osds.values()}
    affinities = {osd.id: osd.primary_affinity for osd in view.osds.values()}
    computed = place_pgs(view.crush, view.pools, weights, view.upmap_items, affinities=affinities)
    assert computed == {pg.id: pg.up for pg in view.pgs.values()}


def test_an_osd_that_is_marked_out_drains_and_its_old_copies_serve_until_then() -> None:
    cluster = simulated()
    done(cluster, Reweight(SUSPECT, 0.0))
    cluster.advance(10)
    view = cluster.view()
    moving = [pg for pg in view.pgs.values() if "remapped" in pg.states]
    assert moving
    assert all(SUSPECT in pg.acting and SUSPECT not in pg.up for pg in moving)
    assert not words(view)["degraded"]
    assert all(pg.copies == 3 for pg in cluster.truth().pgs.values())
    cluster.advance(24 * HOUR)
    assert words(cluster.view()) == {"active": 64, "clean": 64}
    assert cluster.truth().used_bytes[SUSPECT] == 0


def test_a_walk_by_upmap_drains_without_losing_a_copy_and_the_last_step_moves_nothing() -> None:
    cluster = simulated()
    held = cluster.truth().used_bytes[SUSPECT]
    drained_by_walk(cluster)
    assert cluster.truth().used_bytes[SUSPECT] == 0
    assert cluster.moved_bytes == pytest.approx(held, rel=1e-6)
    assert cluster.recovered_bytes == 0
    view = cluster.view()
    assert words(view) == {"active": 64, "clean": 64}
    assert not any(source == SUSPECT for pairs in view.upmap_items.values() for source, _ in pairs)


def test_pins_onto_an_osd_are_dropped_when_its_reweight_becomes_zero() -> None:
    cluster = simulated()
    pg = on(cluster.view(), SUSPECT)[0]
    source, target = walk_target(cluster.view(), pg)
    done(cluster, SetUpmap(pg.id, ((source, target),)))
    cluster.advance(HOUR)
    assert pg.id in cluster.view().upmap_items
    done(cluster, Reweight(OsdId(target), 0.0))
    cluster.advance(3)
    assert pg.id not in cluster.view().upmap_items


def test_a_pin_onto_an_osd_at_crush_weight_zero_is_answered_set_and_is_gone_two_seconds_later() -> None:
    cluster = simulated()
    pg = on(cluster.view(), SUSPECT)[0]
    source, target = walk_target(cluster.view(), pg)
    done(cluster, CrushReweight(OsdId(target), 0.0))
    cluster.advance(HOUR)
    answer = cluster.apply(SetUpmap(pg.id, ((source, target),)))
    assert answer.ok
    assert answer.text.startswith("set ")
    cluster.advance(2.5)
    assert pg.id not in cluster.view().upmap_items


def test_a_pin_lives_while_its_target_is_down_or_partly_reweighted() -> None:
    cluster = simulated()
    pg = on(cluster.view(), SUSPECT)[0]
    source, target = walk_target(cluster.view(), pg)
    done(cluster, SetUpmap(pg.id, ((source, target),)))
    done(cluster, Reweight(OsdId(target), 0.001))
    cluster.stop_osd(OsdId(target))
    cluster.advance(60)
    assert cluster.view().upmap_items[pg.id] == ((source, target),)


def test_the_balancer_refills_an_osd_that_is_partly_reweighted() -> None:
    cluster = simulated()
    done(cluster, Reweight(SUSPECT, 0.3))
    cluster.advance(24 * HOUR)
    before = len(on(cluster.view(), SUSPECT))
    done(cluster, Balancer(True))
    cluster.advance(2 * HOUR)
    assert len(on(cluster.view(), SUSPECT)) > before
    assert cluster.view().balancer_active


def test_an_erasure_code_without_a_spare_host_never_drains_and_stays_healthy_in_words() -> None:
    """All PGs have a hole in `up`, none in `acting`; some serve two shards from one OSD (ceph.md d)."""
    cluster = simulated("ec_no_spare")
    done(cluster, Reweight(SUSPECT, 0.0))
    cluster.advance(24 * HOUR)
    view = cluster.view()
    assert all(ITEM_NONE in pg.up and ITEM_NONE not in pg.acting for pg in view.pgs.values())
    assert {frozenset(pg.states) for pg in view.pgs.values()} == {frozenset({"active", "clean", "remapped"})}
    assert view.health == "HEALTH_OK"
    doubled = [pg for pg in view.pgs.values() if len(set(pg.acting)) < len(pg.acting)]
    kept = [pg for pg in view.pgs.values() if SUSPECT in pg.acting]
    assert doubled
    assert kept
    assert len(doubled) + len(kept) == 16
    assert all(cluster.truth().pgs[pg.id].copies == 3 for pg in doubled)


def test_an_erasure_code_with_two_osds_a_host_drains_onto_the_sibling() -> None:
    cluster = simulated("ec_two_a_host")
    held = cluster.truth().used_bytes[SUSPECT]
    sibling = cluster.truth().used_bytes[OsdId(1)]
    done(cluster, Reweight(SUSPECT, 0.0))
    cluster.advance(24 * HOUR)
    assert cluster.truth().used_bytes[SUSPECT] == 0
    assert cluster.truth().used_bytes[OsdId(1)] == pytest.approx(sibling + held, rel=0.02)


def test_full_targets_hold_a_backfill_as_toofull_and_nothing_is_overfilled() -> None:
    spec = build_world("tiny", 7)
    pools = tuple(replace(pool, shard_bytes=int(1.7 * pool.shard_bytes)) for pool in spec.pools)
    cluster = SimulatedCluster(replace(spec, pools=pools), 7)
    for osd in (0, 1):
        done(cluster, Reweight(OsdId(osd), 0.0))
    cluster.advance(48 * HOUR)
    assert words(cluster.view())["backfill_toofull"] > 0
    truth = cluster.truth()
    started = SimulatedCluster(replace(spec, pools=pools), 7).truth().used_bytes
    assert all(
        truth.used_bytes[osd] <= max(0.90 * truth.size_bytes[osd], started[osd]) for osd in truth.used_bytes
    )


def test_no_osd_serves_more_backfills_than_its_reservations_allow() -> None:
    cluster = simulated()
    done(cluster, Reweight(SUSPECT, 0.0))
    for _ in range(50):
        cluster.advance(30)
        view = cluster.view()
        local: Counter[int] = Counter()
        remote: Counter[int] = Counter()
        for pg in view.pgs.values():
            if "backfilling" in pg.states:
                local[pg.acting[0]] += 1
                remote.update(set(pg.up) - set(pg.acting))
        assert max(local.values(), default=0) <= 2  # a report may be one backfill old
        assert max(remote.values(), default=0) <= 2


def test_more_backfills_allowed_drain_sooner() -> None:
    def seconds(backfills: str) -> float:
        cluster = simulated()
        done(cluster, SetOption("osd_max_backfills", backfills))
        done(cluster, Reweight(SUSPECT, 0.0))
        began = cluster.now
        while cluster.truth().used_bytes[SUSPECT]:
            cluster.advance(10)
        return (cluster.now - began).total_seconds()

    assert seconds("4") < seconds("1")


def test_mclock_ignores_throttles_until_the_override_is_set_first() -> None:
    cluster = SimulatedCluster(replace(build_world("tiny", 7), scheduler="mclock"), 7)
    done(cluster, SetOption("osd_max_backfills", "6"))
    assert "osd/osd_max_backfills" not in cluster.view().settings
    done(cluster, SetOption("osd_mclock_override_recovery_settings", "true"))
    done(cluster, SetOption("osd_max_backfills", "6"))
    assert cluster.view().settings["osd/osd_max_backfills"] == "6"


@pytest.mark.parametrize("flag", ["nobackfill", "norebalance"])
def test_a_flag_holds_what_moves_and_lets_it_go_on_from_where_it_was(flag: str) -> None:
    cluster = simulated()
    done(cluster, Reweight(SUSPECT, 0.0))
    cluster.advance(20)
    done(cluster, SetFlag(flag, True))
    moved = cluster.moved_bytes
    assert moved > 0
    cluster.advance(HOUR)
    assert cluster.moved_bytes == moved
    assert cluster.backfills == 0
    done(cluster, SetFlag(flag, False))
    cluster.advance(24 * HOUR)
    assert cluster.truth().used_bytes[SUSPECT] == 0
    assert flag not in cluster.view().flags


def test_a_pin_taken_back_before_it_moved_costs_nothing() -> None:
    cluster = simulated()
    done(cluster, SetFlag("nobackfill", True))
    pg = on(cluster.view(), SUSPECT)[0]
    done(cluster, SetUpmap(pg.id, (walk_target(cluster.view(), pg),)))
    cluster.advance(30)
    assert "backfill_wait" in cluster.view().pgs[pg.id].states
    done(cluster, RemoveUpmap(pg.id))
    cluster.advance(30)
    after = cluster.view().pgs[pg.id]
    assert (after.up, after.acting, after.states) == (pg.up, pg.acting, pg.states)
    assert cluster.moved_bytes == 0


@pytest.mark.parametrize(
    "command",
    [
        SetUpmap(PgId("9.0"), ((0, 1),)),
        SetUpmap(PgId("1.0"), ()),
        SetUpmap(PgId("1.0"), ((0, 99),)),
        RemoveUpmap(PgId("9.0")),
        Reweight(OsdId(99), 0.5),
        Reweight(OsdId(0), 1.5),
        CrushReweight(OsdId(99), 1.0),
        PrimaryAffinity(OsdId(0), 2.0),
        SetFlag("nonsense", True),
        SetOption("nonsense", "1"),
    ],
    ids=str,
)
def test_a_command_that_makes_no_sense_is_refused_and_changes_nothing(command: Command) -> None:
    cluster = simulated()
    epoch = cluster.view().epoch
    answer = cluster.apply(command)
    assert not answer.ok
    assert answer.text.startswith("Error E")
    assert cluster.view().epoch == epoch
