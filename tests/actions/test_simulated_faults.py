"""The simulated cluster fails as real ones were seen to fail: disks, daemons, statistics, answers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from predrain.actions.cluster.cluster_port import (
    ClusterUnreachable,
    Command,
    Reweight,
    SetFlag,
    SetUpmap,
)
from predrain.actions.cluster.cluster_view import ClusterView, Pg
from predrain.actions.simulator import ClusterSpec, SimulatedCluster
from predrain.actions.simulator.worlds import build_world
from predrain.data.ids import OsdId, PgId

HOUR = 3600.0
SUSPECT = OsdId(0)


def simulated(name: str = "tiny", seed: int = 7) -> SimulatedCluster:
    return SimulatedCluster(build_world(name, seed), seed)


def young(spec: ClusterSpec) -> ClusterSpec:
    return replace(spec, pools=tuple(replace(pool, young=True) for pool in spec.pools))


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


def test_a_lost_pin_is_answered_set_and_dropped() -> None:
    cluster = simulated()
    pg = on(cluster.view(), SUSPECT)[0]
    cluster.drop_upmaps(1)
    assert cluster.apply(SetUpmap(pg.id, (walk_target(cluster.view(), pg),))).text.startswith("set ")
    cluster.advance(3)
    assert pg.id not in cluster.view().upmap_items
    done(cluster, SetUpmap(pg.id, (walk_target(cluster.view(), pg),)))
    cluster.advance(3)
    assert pg.id in cluster.view().upmap_items


def test_statistics_say_active_clean_for_four_to_five_seconds_after_a_map_change() -> None:
    cluster = simulated()
    before = cluster.view()
    answer = cluster.apply(Reweight(SUSPECT, 0.0))
    moved = [pg.id for pg in on(before, SUSPECT)]
    cluster.advance(3.5)
    stale = cluster.view()
    assert stale.epoch == answer.epoch
    assert words(stale) == {"active": 64, "clean": 64}
    assert all(stale.pgs[pg].reported_epoch < stale.epoch for pg in moved)
    cluster.advance(2.5)
    fresh = cluster.view()
    assert all(fresh.pgs[pg].reported_epoch >= stale.epoch for pg in moved)
    assert words(fresh)["remapped"] == len(moved)


def test_frozen_statistics_stand_still_with_their_stamp_and_come_back() -> None:
    cluster = simulated()
    cluster.freeze_statistics(120)
    stamp = cluster.view().as_of
    done(cluster, Reweight(SUSPECT, 0.0))
    cluster.advance(100)
    assert cluster.view().as_of == stamp
    assert words(cluster.view()) == {"active": 64, "clean": 64}
    cluster.advance(30)
    assert cluster.now - cluster.view().as_of < timedelta(seconds=5)
    assert words(cluster.view())["remapped"] > 0


def test_a_lying_dump_says_active_clean_with_a_fresh_stamp_while_copies_are_lost() -> None:
    cluster = simulated()
    cluster.lie_clean(60)
    cluster.fail_osd(SUSPECT)
    cluster.advance(30)
    view = cluster.view()
    assert words(view) == {"active": 64, "clean": 64}
    assert cluster.now - view.as_of < timedelta(seconds=5)
    assert min(pg.copies for pg in cluster.truth().pgs.values()) == 2
    cluster.advance(60)
    assert words(cluster.view())["degraded"] > 0


def test_log_recovery_in_a_young_pool_shows_as_degraded_though_nothing_is_lost() -> None:
    cluster = SimulatedCluster(young(build_world("tiny", 7)), 7)
    done(cluster, Reweight(SUSPECT, 0.0))
    cluster.advance(8)
    view = cluster.view()
    filling = [pg for pg in view.pgs.values() if {"recovering", "degraded"} <= pg.states]
    assert filling
    assert all(pg.degraded_objects > 0 for pg in filling)
    assert all(pg.copies == 3 for pg in cluster.truth().pgs.values())
    assert view.health == "HEALTH_WARN"


def test_a_new_mgr_is_silent_then_empty_then_whole_and_its_dump_version_falls() -> None:
    cluster = simulated()
    cluster.advance(HOUR)
    before = cluster.view()
    cluster.restart_mgr()
    with pytest.raises(ClusterUnreachable):
        cluster.view()
    cluster.advance(5)
    empty = cluster.view()
    assert words(empty) == {"unknown": 64}
    assert not empty.statistics_known
    assert all(osd.used_bytes is None for osd in empty.osds.values())
    assert empty.health == "HEALTH_OK"
    assert empty.mgr_id != before.mgr_id
    assert empty.dump_version < before.dump_version
    cluster.advance(10)
    assert words(cluster.view()) == {"active": 64, "clean": 64}
    assert cluster.view().statistics_known


@pytest.mark.parametrize("carried_out", [True, False])
def test_a_lost_answer_does_not_tell_whether_the_command_was_carried_out(carried_out: bool) -> None:
    cluster = simulated()
    cluster.lose_answers(1, carried_out=carried_out)
    with pytest.raises(ClusterUnreachable):
        cluster.apply(Reweight(SUSPECT, 0.0))
    assert (cluster.view().osds[SUSPECT].reweight == 0.0) is carried_out
    done(cluster, Reweight(SUSPECT, 0.5))


def test_a_dead_disk_is_down_at_once_out_after_ten_minutes_and_then_its_copies_are_restored() -> None:
    cluster = simulated()
    held = cluster.truth().used_bytes[SUSPECT]
    cluster.fail_osd(SUSPECT)
    cluster.advance(590)
    view = cluster.view()
    assert not view.osds[SUSPECT].up
    assert view.osds[SUSPECT].reweight == 1.0
    assert view.osds[SUSPECT].used_bytes is None
    assert view.health == "HEALTH_WARN"
    assert words(view)["undersized"] == words(view)["degraded"] > 0
    cluster.advance(24 * HOUR)
    assert cluster.view().osds[SUSPECT].reweight == 0.0
    assert all(pg.copies == 3 for pg in cluster.truth().pgs.values())
    assert cluster.recovered_bytes == pytest.approx(held, rel=1e-6)


def test_an_osd_that_is_down_and_is_given_a_weight_is_out_again_later_and_comes_back_with_that_weight() -> (
    None
):
    cluster = simulated()
    osd = OsdId(0)
    done(cluster, Reweight(osd, 0.5))
    cluster.stop_osd(osd)
    cluster.advance(700)
    assert cluster.view().osds[osd].reweight == 0.0
    done(cluster, Reweight(osd, 0.75))
    cluster.advance(500)
    assert cluster.view().osds[osd].reweight == 0.75
    cluster.advance(200)
    assert cluster.view().osds[osd].reweight == 0.0
    cluster.revive(osd)
    assert cluster.view().osds[osd].reweight == 0.75


def test_noout_keeps_a_dead_osd_in_until_it_is_lifted() -> None:
    cluster = simulated()
    done(cluster, SetFlag("noout", True))
    cluster.fail_osd(SUSPECT)
    cluster.advance(HOUR)
    assert cluster.view().osds[SUSPECT].reweight == 1.0
    done(cluster, SetFlag("noout", False))
    cluster.advance(120)
    assert cluster.view().osds[SUSPECT].reweight == 0.0


def test_a_daemon_that_comes_back_catches_up_from_the_log_and_is_degraded_meanwhile() -> None:
    cluster = simulated()
    cluster.stop_osd(SUSPECT)
    cluster.advance(300)
    cluster.revive(SUSPECT)
    assert min(pg.copies for pg in cluster.truth().pgs.values()) == 2
    cluster.advance(6)
    assert words(cluster.view())["recovering"] > 0
    cluster.advance(60)
    assert words(cluster.view()) == {"active": 64, "clean": 64}
    assert all(pg.copies == 3 for pg in cluster.truth().pgs.values())


def test_a_flapping_osd_makes_its_pgs_peer_each_time() -> None:
    cluster = simulated()
    epoch = cluster.view().epoch
    cluster.flap(SUSPECT, times=3, seconds=40)
    cluster.advance(400)
    view = cluster.view()
    assert view.epoch >= epoch + 6
    assert view.osds[SUSPECT].up
    assert words(view) == {"active": 64, "clean": 64}


def test_a_new_disk_in_the_slot_is_filled_with_what_belongs_there() -> None:
    cluster = simulated()
    held = cluster.truth().used_bytes[SUSPECT]
    done(cluster, Reweight(SUSPECT, 0.0))
    cluster.advance(24 * HOUR)
    cluster.fail_osd(SUSPECT)
    cluster.advance(HOUR)
    cluster.replace(SUSPECT)
    assert cluster.truth().used_bytes[SUSPECT] == 0
    cluster.advance(24 * HOUR)
    assert cluster.truth().used_bytes[SUSPECT] == held
    assert words(cluster.view()) == {"active": 64, "clean": 64}


def test_a_disk_that_dies_with_the_last_copies_loses_the_pg_and_says_down() -> None:
    cluster = simulated()
    pg = cluster.view().pgs[PgId("1.0")]
    for osd in pg.up:
        cluster.fail_osd(OsdId(osd))
    cluster.advance(30)
    assert pg.id in cluster.truth().lost
    assert "down" in cluster.view().pgs[pg.id].states


def test_norebalance_lets_lost_copies_be_restored() -> None:
    cluster = simulated()
    done(cluster, SetFlag("norebalance", True))
    cluster.fail_osd(SUSPECT)
    cluster.advance(24 * HOUR)
    assert all(pg.copies == 3 for pg in cluster.truth().pgs.values())


def test_a_flapping_osd_whose_disk_dies_stays_down() -> None:
    cluster = simulated()
    cluster.flap(SUSPECT, times=3, seconds=40)
    cluster.advance(10)
    cluster.fail_osd(SUSPECT)
    cluster.advance(400)
    assert not cluster.view().osds[SUSPECT].up


def test_a_pg_that_peers_on_a_hanging_osd_waits_until_the_daemon_starts_again() -> None:
    cluster = simulated()
    pg = on(cluster.view(), SUSPECT)[0]
    pair = walk_target(cluster.view(), pg)
    cluster.silence_peer(OsdId(pair[1]), 10 * HOUR)
    done(cluster, SetUpmap(pg.id, (pair,)))
    cluster.advance(HOUR)
    assert "peering" in cluster.view().pgs[pg.id].states
    assert OsdId(pair[1]) in cluster.truth().up
    cluster.flap(OsdId(pair[1]), 1, 20.0)
    cluster.advance(60)
    assert "active" in cluster.view().pgs[pg.id].states


def test_a_hanging_osd_delays_no_pg_that_does_not_peer() -> None:
    cluster = simulated()
    cluster.silence_peer(SUSPECT, HOUR)
    cluster.advance(60)
    assert all(pg.states == {"active", "clean"} for pg in cluster.view().pgs.values())


def test_client_writes_to_a_moving_pg_are_copied_as_well_and_take_space_on_every_holder() -> None:
    cluster, quiet = simulated(), simulated()
    pg = on(cluster.view(), SUSPECT)[0]
    pair = walk_target(cluster.view(), pg)
    for each in (cluster, quiet):
        done(each, SetUpmap(pg.id, (pair,)))
        each.advance(20)
        assert "backfilling" in each.view().pgs[pg.id].states
    before = cluster.truth().used_bytes
    used = {osd: before[osd] for osd in before}
    cluster.write_to_pool(pg.pool, 0.5)
    grown = cluster.truth().used_bytes
    assert all(grown[OsdId(osd)] > used[OsdId(osd)] for osd in {*pg.up, pair[1]})
    cluster.advance(HOUR)
    quiet.advance(HOUR)
    assert cluster.view().pgs[pg.id].states == {"active", "clean"}
    assert cluster.moved_bytes > 1.3 * quiet.moved_bytes
