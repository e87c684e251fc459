"""The cluster's own device list settles which host a disk lives in, and nothing drains a disk that two hosts name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from predrain.actions.simulator import SimulatedCluster
from predrain.actions.simulator.worlds import build_tiny_cluster
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.outlook import Status
from predrain.data.residence import (
    HostClaim,
    Residence,
    ResidenceLimits,
    ResidenceState,
    SettledBy,
    decide_residence,
    name_apart,
)
from predrain.service.app.application import Application
from predrain.service.notifications import find_alert_causes
from tests.service.conftest import NOON, Place, shut, smart_reading, week_of
from tests.service.test_drains import ClusterClock
from tests.service.test_worker import work

DISK = DeviceId("ST4000DM000_A")
FORGER = HostName("forger")


@pytest.fixture
def seated(place: Place) -> Iterator[tuple[Application, HostName]]:
    """Yield an application beside a simulated cluster that has the disk under osd.0, and the host of osd.0."""
    spec = build_tiny_cluster(1)
    osds = (replace(spec.osds[0], device=DISK, model="ST4000DM000"), *spec.osds[1:])
    cluster = SimulatedCluster(replace(spec, osds=osds), 1, NOON)
    on_its_time = replace(place, clock=ClusterClock(cluster))  # type: ignore[arg-type]
    application = on_its_time.application(cluster=cluster)
    application.start()
    application.step_controller()
    assert application.fleet.view is not None
    yield application, application.fleet.view.osds[OsdId(0)].host
    shut(application)


def test_the_cluster_names_the_home_though_another_host_named_the_disk_first(
    seated: tuple[Application, HostName],
) -> None:
    application, home = seated
    now = application.clock.now()
    application.ingest([replace(one, host=FORGER) for one in week_of("A", now - timedelta(minutes=10))])
    dying = [
        replace(smart_reading("A", now - timedelta(minutes=ago), pending=4000, passed=False), host=home)
        for ago in (3, 2, 1)
    ]
    application.ingest(dying[:2])
    work(application)
    assert application.store.latest_readings()[DISK].host == FORGER
    application.step_controller()  # it looks where the cluster has the disk, and writes that down
    application.step_worker()
    assert application.store.latest_readings()[DISK].host == home
    application.ingest(dying[2:])
    work(application)
    assert application.store.latest_outlooks()[DISK].status is Status.BAD
    assert not [
        one for one in find_alert_causes(application.build_alert_snapshot()) if one.key.startswith("twice:")
    ]


def test_a_forgers_readings_of_a_disk_under_an_osd_are_stored_apart_and_cause_no_drain(
    seated: tuple[Application, HostName],
) -> None:
    application, home = seated
    now = application.clock.now()
    application.ingest([replace(one, host=home) for one in week_of("A", now - timedelta(minutes=10))])
    application.ingest(
        [replace(one, host=FORGER) for one in week_of("A", now - timedelta(minutes=5), pending=4000)]
    )
    work(application)
    application.step_controller()
    application.step_worker()
    assert {one.host for one in application.store.readings(DISK)} == {home}
    assert application.store.latest_outlooks()[DISK].status is Status.GOOD
    assert name_apart(DISK, FORGER) in application.store.latest_outlooks()
    assert not application.store.drains()


def test_of_osds_that_are_down_the_cluster_tells_the_host_only_where_none_is_up(
    seated: tuple[Application, HostName],
) -> None:
    application, home = seated
    view = application.fleet.view
    assert view is not None
    elsewhere = next(osd for osd in view.osds.values() if osd.host != home)
    moved = replace(elsewhere, device=DISK)
    old = view.osds[OsdId(0)]
    both = replace(view, osds={**view.osds, moved.id: moved})
    assert both.hosts_of(DISK) == {home, elsewhere.host}
    down = replace(both, osds={**both.osds, old.id: replace(old, up=False)})
    assert down.hosts_of(DISK) == {elsewhere.host}
    alone = replace(view, osds={**view.osds, old.id: replace(old, up=False)})
    assert alone.hosts_of(DISK) == {home}


def test_the_host_of_a_disk_is_the_machine_that_its_osd_runs_on_and_no_place_in_crush(
    seated: tuple[Application, HostName],
) -> None:
    application, home = seated
    view = application.fleet.view
    assert view is not None
    split = replace(
        view.osds[OsdId(0)], host=HostName(f"{home}-ssd"), machine=HostName(f"{home}.example.net")
    )
    listed = replace(view, osds={**view.osds, split.id: split}).hosts_of(DISK)
    assert listed == {f"{home}.example.net"}
    now = application.clock.now()
    claim = HostClaim(FORGER, now, now)
    verdict = decide_residence(Residence(home, now, now, claims=(claim,)), listed, now, ResidenceLimits())
    assert (verdict.state, verdict.home, verdict.by) == (ResidenceState.SETTLED, home, SettledBy.CLUSTER)
