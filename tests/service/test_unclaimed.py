"""The doctor tells what looks like a drain's, where store and cluster keys are both lost."""

from __future__ import annotations

from dataclasses import replace

from predrain.data.drain import DrainState as S
from predrain.service.config.settings import Settings
from predrain.service.doctor import ceph_checks
from predrain.service.doctor.ceph_checks import list_likely_ours
from predrain.service.doctor.finding import Finding
from tests.actions.made import wide_spec
from tests.actions.recordings import CLEAN
from tests.actions.run import Run
from tests.service.conftest import SetClock
from tests.service.test_doctor import PlayedCluster

SPEC = replace(
    wide_spec(hosts=6, per_host=2, racks=0, pg_num=64, used=0.3),
    settings={"osd/osd_max_backfills": "8"},
    balancer=True,
)


def test_a_cluster_that_was_never_drained_has_nothing_that_looks_like_a_drains() -> None:
    with Run(SPEC) as run:
        assert list(list_likely_ours(run.cluster.view())) == []


def test_the_settings_of_a_drain_are_listed_when_store_and_keys_were_lost() -> None:
    with Run(SPEC) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        while run.cluster.view().osds[drain.osds[0]].reweight in (0.0, 1.0):
            run.tick()
        told = list(list_likely_ours(run.cluster.view()))
        assert "osd_max_backfills 1 for all OSDs" in told
        assert "the balancer is off" in told
        assert any(one.startswith("override 0.") and one.endswith(" of osd.0") for one in told)


def test_after_a_cancel_nothing_looks_like_a_drains() -> None:
    with Run(SPEC) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        run.ticks(10)
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        run.until(drain, S.CANCELLED)
        assert list(list_likely_ours(run.cluster.view())) == []


def test_the_doctor_says_that_a_clean_cluster_has_nothing_unclaimed() -> None:
    found = {
        one.what: one
        for one in ceph_checks.check_cluster_over_channel(PlayedCluster(), Settings(), SetClock(CLEAN.at))
    }
    assert found["unclaimed settings"] == Finding(
        "unclaimed settings", "ok", "nothing looks like what a drain leaves"
    )
