"""An OSD that is long down is marked out by the mon, and gets its override again when it comes up."""

from __future__ import annotations

from dataclasses import replace

from predrain.actions.core.claimed_settings import read_setting_value
from predrain.actions.core.drain_policy import Policy
from predrain.actions.engine.map_claims import forget_void_pairs, undo_weights
from predrain.actions.simulator import SimulatedCluster
from predrain.data.drain import DrainState as S
from predrain.data.drain import Intent
from predrain.data.ids import DeviceId, OsdId
from predrain.data.setting import OsdOverride, UpmapItem
from tests.actions.made import a_drain, wide_spec
from tests.actions.run import Run, empty, whole
from tests.settings_by_text import by_setting

SPEC = wide_spec(hosts=6, per_host=2, racks=0, pg_num=64, used=0.3)
POLICY = Policy(out_share_max=0.5, drains_per_rack=9, drains_per_cluster=9)
OSD = OsdId(0)


def mark_out(run: Run, osd: OsdId) -> None:
    """The OSD stops, and the mon marks it out."""
    run.cluster.stop_osd(osd)
    while run.cluster.view().osds[osd].reweight:
        run.tick(60.0)
    run.ticks(6)


def test_the_override_of_an_osd_that_the_mon_marked_out_is_the_one_that_it_gets_again() -> None:
    with Run(SPEC, policy=POLICY) as run:
        mark_out(run, OSD)
        view = run.cluster.view()
        assert (view.osds[OSD].reweight, view.osds[OSD].old_weight) == (0.0, 1.0)
        assert read_setting_value(view, OsdOverride(OSD)) == "1.0"
        run.cluster.revive(OSD)
        view = run.cluster.view()
        assert (view.osds[OSD].reweight, view.osds[OSD].old_weight) == (1.0, 0.0)


def test_a_disk_that_was_out_by_the_mon_alone_and_comes_up_is_drained_again() -> None:
    with Run(SPEC, policy=POLICY) as run:
        mark_out(run, OSD)
        drain = run.drain("osd.0")
        run.until(drain, S.VERIFIED)
        run.cluster.revive(OSD)
        run.tick()
        run.tick()
        assert run.known(drain).state in (S.PREPARING, S.DRAINING)
        run.until(drain, S.VERIFIED)
        assert run.cluster.view().osds[OSD].override_when_up == 0.0
        assert empty(run, OSD)
        assert whole(run)


def test_a_new_disk_under_the_id_of_an_emptied_one_is_not_drained() -> None:
    with Run(SPEC, policy=POLICY) as run:
        mark_out(run, OSD)
        drain = run.drain("osd.0")
        run.until(drain, S.VERIFIED)
        run.cluster.replace(OSD, DeviceId("ACME_D100_NEW"))
        run.ticks(6)
        assert run.known(drain).state is S.HANDED_OVER
        assert run.cluster.view().osds[OSD].reweight == 1.0


def test_a_cancel_gives_the_override_back_once_its_osd_is_up_and_all_else_at_once() -> None:
    spec = replace(SPEC, settings={"osd/osd_max_backfills": "8"}, balancer=True)
    with Run(spec, policy=POLICY) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINED)
        assert run.cluster.view().osds[OSD].reweight == 0.0
        run.cluster.stop_osd(OSD)
        run.ticks(6)
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        run.ticks(60)
        held, view = run.known(drain), run.cluster.view()
        assert held.state is S.CANCELLING
        assert "while it is down and out" in held.held_by[0]
        assert view.balancer_active
        assert view.settings["osd/osd_max_backfills"] == "8"
        run.cluster.revive(OSD)
        run.until(drain, S.CANCELLED)
        assert run.cluster.view().osds[OSD].reweight == 1.0
        assert whole(run)


def test_a_cancel_that_waits_for_a_dead_disk_takes_no_place_among_the_drains_at_once() -> None:
    with Run(SPEC, policy=replace(POLICY, drains_per_cluster=1)) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINED)
        run.cluster.fail_osd(OSD)
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        run.ticks(60)
        assert run.known(drain).state is S.CANCELLING
        other = run.drain("osd.5")
        run.until(other, S.VERIFIED)
        assert empty(run, 5)


def test_a_pair_of_others_whose_target_the_mon_marked_out_is_not_put_back() -> None:
    cluster = SimulatedCluster(SPEC, 1)
    view = cluster.view()
    pg = next(pg for pg in view.pgs.values() if OSD in pg.up)
    target = next(osd for osd in view.osds if osd not in pg.up and view.osds[osd].host != view.osds[OSD].host)
    pair = f"{OSD}>{target}"
    drain = replace(
        a_drain(1),
        intent=Intent.REPLACE,
        state=S.DRAINING,
        saved=by_setting({f"upmap/{pg.id}": pair}),
        ours=by_setting({f"upmap/{pg.id}": ""}),
    )
    assert forget_void_pairs(drain, undo_weights(view, (drain,))) is drain
    cluster.stop_osd(target)
    cluster.advance(3600.0)
    without = undo_weights(cluster.view(), (drain,))
    assert forget_void_pairs(drain, without).saved[UpmapItem(pg.id)] == ""
