"""A store that is about one cluster does nothing on another one."""

from __future__ import annotations

from dataclasses import replace

from predrain.actions.controller.controller import Controller
from predrain.actions.simulator import SimulatedCluster
from predrain.data.drain import DrainState as S
from tests.actions.made import wide_spec
from tests.actions.made_config_keys import KeepInMemory, LeaseInHand
from tests.actions.run import Run

SPEC = wide_spec(hosts=6, per_host=2, racks=0, pg_num=64, used=0.3)
OTHER = replace(SPEC, fsid="11111111-1111-4111-8111-111111111111")


def test_the_drains_of_one_cluster_are_not_carried_out_on_another_one() -> None:
    with Run(SPEC) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        other, keep, lease = SimulatedCluster(OTHER, 1), KeepInMemory(), LeaseInHand()
        controller = Controller(other, run.store, run.policy, keep=keep, lease=lease)
        before = other.view()
        for _ in range(12):
            other.advance(10.0)
            report = controller.tick(other.now)
            assert report.commands == 0
            assert SPEC.fsid in report.trouble
            assert OTHER.fsid in report.trouble
        after = other.view()
        assert (after.epoch, after.osds, after.upmap_items) == (before.epoch, before.osds, before.upmap_items)
        assert keep.names() == ()
        assert not lease.has


def test_the_first_cluster_is_gone_on_with_after_another_one_answered() -> None:
    with Run(SPEC) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        other = SimulatedCluster(OTHER, 1)
        Controller(other, run.store, run.policy).tick(other.now)
        run.started()
        assert run.until(drain, S.VERIFIED).state is S.VERIFIED


def test_a_store_without_a_cluster_takes_the_first_one_that_answers() -> None:
    with Run(OTHER) as run:
        drain = run.drain("osd.0")
        assert run.until(drain, S.DRAINING).state is S.DRAINING
