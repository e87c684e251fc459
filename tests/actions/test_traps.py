"""The traps that real clusters were seen to set (ceph.md), each sprung on the simulator under a drain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from predrain.actions.cluster.cluster_port import Balancer, Reweight, SetUpmap
from predrain.actions.core.drain_policy import Policy
from predrain.actions.crush.pg_placement import place_pgs
from predrain.actions.crush.pool import Pool
from predrain.data.drain import DrainState
from predrain.data.ids import OsdId
from tests.actions.made import ec_spec, wide_spec
from tests.actions.run import Run, whole

S = DrainState


@pytest.fixture
def run() -> Iterator[Run]:
    with Run(wide_spec(used=0.35)) as run:
        yield run


def draining(run: Run) -> str:
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    return drain.id


def commands_in(run: Run, ticks: int, seconds: float = 10.0) -> int:
    before = len(run.watched.commands)
    for _ in range(ticks):
        run.tick(seconds)
    return len(run.watched.commands) - before


def test_statistics_that_lag_the_map_are_waited_for_before_the_next_step(run: Run) -> None:
    draining(run)
    while not any(isinstance(command, SetUpmap) for command in run.watched.commands):
        run.tick()
    assert commands_in(run, 3, seconds=2.0) == 0


def test_statistics_that_stand_still_hold_the_drain_and_say_how_old_they_are(run: Run) -> None:
    id_ = draining(run)
    run.ticks(3)
    run.cluster.freeze_statistics(600.0)
    run.ticks(7)
    assert commands_in(run, 20) == 0
    held = run.controller.requests.get_drain(id_)
    assert held.state is S.HOLDING
    assert any("s ago, limit 60 s" in sentence or "late, limit 60 s" in sentence for sentence in held.held_by)
    run.until(held, S.VERIFIED)


def test_a_hold_is_as_old_as_its_first_look_however_its_numbers_go_on(run: Run) -> None:
    id_ = draining(run)
    run.ticks(3)
    run.cluster.freeze_statistics(600.0)
    run.ticks(9)
    first = run.controller.requests.get_drain(id_)
    assert first.state is S.HOLDING
    run.ticks(5)
    later = run.controller.requests.get_drain(id_)
    assert later.held_by != first.held_by
    assert later.updated_at == first.updated_at, "who is told of holds of over a day would never be"


def stuck(run: Run) -> str:
    """A drain with a PG on its way that never arrives."""
    id_ = draining(run)
    while not any(isinstance(command, SetUpmap) for command in run.watched.commands):
        run.tick()
    for osd in run.cluster.truth().size_bytes:
        run.cluster.set_slow(osd, 1e6)
    return id_


def test_the_journal_says_once_why_a_drain_stands_still_though_nothing_holds_it(run: Run) -> None:
    """As where a target has no room for a PG that is on its way (backfill_toofull): it may wait for ever."""
    id_ = stuck(run)

    def waits() -> list[str]:
        return [line.decided for line in run.store.journal(id_) if line.decided.startswith("wait: ")]

    for _ in range(60):
        run.tick(110.0)
    assert waits() == []
    assert not run.controller.requests.get_drain(id_).held_by
    for _ in range(20):
        run.tick(110.0)
    (told,) = waits()
    mapped = {command.pg for command in run.watched.commands if isinstance(command, SetUpmap)}
    assert told.startswith("wait: nothing has moved for 2 h: ")
    assert any(f"{pg} is active+backfilling+remapped" in told for pg in mapped)
    stands = run.controller.requests.get_drain(id_)
    assert stands.state is S.DRAINING
    assert stands.held_by == (f"N{told.removeprefix('wait: n')}.",), (
        "it says so itself, for messages and pages"
    )
    for osd in run.cluster.truth().size_bytes:
        run.cluster.set_slow(osd, 1.0)
    for _ in range(60):
        run.tick(110.0)
        if not run.controller.requests.get_drain(id_).held_by:
            break
    goes_on = run.controller.requests.get_drain(id_)
    assert goes_on.progress.movement_key != stands.progress.movement_key
    assert goes_on.held_by == (), "until something moves"
    assert waits() == [told]


def test_time_in_which_a_person_held_a_drain_up_is_no_standstill(run: Run) -> None:
    id_ = stuck(run)
    run.ticks(3)
    run.controller.requests.pause(id_, "operator", run.cluster.now)
    for _ in range(70):
        run.tick(110.0)
    run.controller.requests.resume(id_, "operator", run.cluster.now)
    for _ in range(60):
        run.tick(110.0)
    assert not [line for line in run.store.journal(id_) if line.decided.startswith("wait: ")]
    assert not run.controller.requests.get_drain(id_).held_by


def test_a_new_mgr_with_empty_statistics_is_unknown_and_holds(run: Run) -> None:
    id_ = draining(run)
    run.ticks(3)
    run.cluster.restart_mgr()
    assert commands_in(run, 3, seconds=4.0) == 0
    held = run.controller.requests.get_drain(id_)
    assert held.state is S.HOLDING
    run.until(held, S.VERIFIED)


def test_pins_that_are_answered_set_and_vanish_are_set_again(run: Run) -> None:
    id_ = draining(run)
    run.cluster.drop_upmaps(2)
    run.until(run.controller.requests.get_drain(id_), S.VERIFIED)
    upmaps = [command.pg for command in run.watched.commands if isinstance(command, SetUpmap)]
    assert len(upmaps) > len(set(upmaps))
    assert whole(run)


def test_a_pin_that_vanishes_again_and_again_holds_the_drain_and_names_the_pg(run: Run) -> None:
    id_ = draining(run)
    run.cluster.drop_upmaps(10_000)
    run.ticks(60)
    held = run.controller.requests.get_drain(id_)
    assert held.state is S.HOLDING
    assert any("3 times and the map never shows it" in sentence for sentence in held.held_by)
    assert len(run.watched.commands) < 20


@pytest.mark.slow
def test_log_recovery_of_a_young_pool_shows_as_degraded_and_does_not_hold_the_drain() -> None:
    spec = wide_spec(used=0.35)
    young = replace(spec, pools=tuple(replace(pool, young=True) for pool in spec.pools))
    with Run(young) as run:
        drain = run.drain("osd.0")
        degraded = False
        while run.known(drain).state is not S.VERIFIED:
            run.tick(5.0)
            degraded = degraded or any("degraded" in pg.states for pg in run.cluster.view().pgs.values())
            assert run.known(drain).state is not S.HOLDING
        assert degraded
        assert whole(run)


def test_the_balancer_cannot_refill_what_is_being_drained() -> None:
    with Run(replace(wide_spec(pg_num=32), balancer=True)) as run:
        drain = run.drain("osd.0")
        most = len([pg for pg in run.cluster.truth().pgs.values() if 0 in pg.up])
        while run.known(drain).state is not S.VERIFIED:
            run.tick()
            left = len([pg for pg in run.cluster.truth().pgs.values() if 0 in pg.up])
            assert left <= most
            most = left
        run.cluster.apply(Balancer(True))
        run.ticks(60)
        assert not any(0 in pg.up for pg in run.cluster.truth().pgs.values())


def test_ec_without_a_spare_host_is_not_stepped_on_under_health_ok() -> None:
    with Run(ec_spec(hosts=4, per_host=1, k=3, m=1, pg_num=16)) as run:
        drain = run.drain("osd.0")
        run.ticks(10)
        assert run.cluster.view().health == "HEALTH_OK"
        assert run.watched.commands == []
        assert "no spare failure domain" in run.known(drain).held_by[0]


def test_a_dead_suspect_is_left_to_recovery_and_its_drain_ends_when_nothing_names_it(run: Run) -> None:
    id_ = draining(run)
    run.ticks(8)
    run.cluster.fail_osd(OsdId(0))
    run.ticks(2)
    held = run.controller.requests.get_drain(id_)
    assert held.state is S.HOLDING
    assert any("osd.0 is down" in sentence for sentence in held.held_by)
    run.until(held, S.VERIFIED)
    assert whole(run)


@pytest.mark.slow
def test_a_death_elsewhere_freezes_the_drain_until_the_cluster_is_whole_where_nothing_may_recover() -> None:
    policy = Policy(out_share_max=0.5, recovering_share_max=0.0)
    with Run(wide_spec(hosts=8, pg_num=64), policy=policy) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        run.ticks(4)
        run.cluster.fail_osd(OsdId(9))
        run.tick()
        while not whole(run):
            assert commands_in(run, 1) == 0
        run.until(drain, S.VERIFIED)
        assert whole(run)


@pytest.mark.slow
def test_a_flapping_osd_holds_the_drain_and_loses_nothing(run: Run) -> None:
    id_ = draining(run)
    run.cluster.flap(OsdId(5), 4, 20.0)
    run.ticks(2)
    assert run.controller.requests.get_drain(id_).state is S.HOLDING
    run.until(run.controller.requests.get_drain(id_), S.VERIFIED)
    assert whole(run)


@pytest.mark.slow
def test_a_target_that_crush_would_overfill_gives_way_to_a_less_full_legal_one() -> None:
    with Run(wide_spec(hosts=8, racks=0, pg_num=128, used=0.55)) as run:
        view = run.cluster.view()
        weights = {osd: float(osd != 0) for osd in view.osds}
        filled = dict.fromkeys(view.osds, 0)
        for pg, up in place_pgs(view.crush, view.pools, weights, {}).items():
            for osd in up:
                filled[OsdId(osd)] += view.pgs[pg].shard_bytes
        assert max(filled.values()) > 0.85 * 100e9
        run.until(run.drain("osd.0"), S.VERIFIED)
        truth = run.cluster.truth()
        assert max(truth.used_bytes.values()) <= 0.85 * 100e9
        assert not any(0 in pg.up for pg in truth.pgs.values())


@pytest.mark.slow
def test_a_slow_client_path_slows_the_drain_down() -> None:
    with Run(wide_spec(pg_num=64)) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        for osd in range(12):
            run.cluster.set_slow(OsdId(osd), 3.0)
        assert commands_in(run, 20) == 0
        assert run.known(drain).state is S.DRAINING
        for osd in range(12):
            run.cluster.set_slow(OsdId(osd), 1.0)
        run.until(drain, S.VERIFIED)


def test_a_pool_that_changes_its_pg_num_is_waited_for(run: Run) -> None:
    pool: Pool = run.spec.pools[0].pool
    id_ = draining(run)
    run.cluster.osdmap.pools[pool.id] = replace(pool, pg_num_target=pool.pg_num * 2)
    assert commands_in(run, 5) == 0
    assert any("Wait for it" in sentence for sentence in run.controller.requests.get_drain(id_).held_by)


@pytest.mark.slow
def test_a_pin_dropped_beside_the_last_override_is_set_again_before_a_full_disk_fills() -> None:
    with Run(wide_spec(pg_num=32)) as run:
        full = run.cluster.truth().used_bytes[OsdId(10)]
        drain = run.drain("osd.0")

        def drop_the_pin_beside_the_override() -> None:
            if [type(command) for command in run.watched.commands].count(Reweight) == 1:
                run.watched.after_command = lambda: None
                run.cluster.drop_upmaps(1)

        run.watched.after_command = drop_the_pin_beside_the_override
        run.until(drain, S.VERIFIED)
        assert "again: the last ones do not stand" in run.transcript(drain)
        assert run.cluster.truth().used_bytes[OsdId(10)] <= full
