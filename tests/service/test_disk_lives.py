"""One truth about a disk: page, alerts, messages, metrics, REST and command line say the same of its life."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import DeviceId, OsdId
from predrain.data.life_cycle import LifeSource, LifeState, RetiredWhy
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.outlook import Status
from predrain.service.app.application import Application
from predrain.service.app.life_cycle_schedule import keep_lives
from predrain.service.cli import main
from predrain.service.notifications import find_alert_causes
from tests.service.conftest import Place, Serve, Site, shut, smart_reading, week_of
from tests.service.test_drains import World, site, world
from tests.service.test_metrics import scraped
from tests.service.test_worker import work

__all__ = ["site", "world"]
OLD, NEW = DeviceId("ST4000DM000_A"), DeviceId("ST4000DM000_NEW")


def replace_disk(world: World) -> None:
    """A bad disk under osd.0 dies, and another one stands in its slot from now on."""
    application = world.application
    world.tick(5)
    application.ingest(week_of("A", application.clock.now(), passed=False))
    work(application)
    keep_lives(application)
    application.ingest([smart_reading("NEW", application.clock.now())])
    work(application)
    put_under_osd_0(application, NEW)


def put_under_osd_0(application: Application, device: DeviceId) -> None:
    view = application.fleet.view
    assert view is not None
    osds = {**view.osds, OsdId(0): replace(view.osds[OsdId(0)], device=device)}
    application.fleet.update_view(replace(view, osds=osds))
    application.changes.notify_change()
    keep_lives(application)


def shown(site: Site, device: DeviceId = OLD) -> dict[str, Any]:
    body: dict[str, Any] = site.client.get(f"/api/v1/devices/{device}").json()
    return body


def test_a_replaced_disk_is_retired_and_names_its_successor(world: World) -> None:
    replace_disk(world)
    change = world.application.get_snapshot().lives[OLD].change
    assert (change.state, change.why, change.successor) == (LifeState.RETIRED, RetiredWhy.REPLACED, NEW)
    assert (change.source, change.osds) == (LifeSource.CLUSTER, (0,))


def test_the_alert_on_bad_disks_ends_when_the_disk_was_replaced(world: World) -> None:
    replace_disk(world)
    assert not scraped(world.application).get("predrain_bad_devices")


def test_metrics_and_messages_end_alike_when_a_bad_disk_was_drained(world: World) -> None:
    application = world.application
    world.tick(5)
    application.ingest(week_of("A", application.clock.now(), passed=False))
    work(application)
    assert scraped(application)["predrain_bad_devices"]
    now = application.clock.now()
    application.store.save_drain(
        Drain("d-1", OLD, (OsdId(0),), DrainState.VERIFIED, Intent.REPLACE, "ada", "bad", now, now)
    )
    application.fleet.update_view(application.fleet.view)
    application.changes.notify_change()
    keep_lives(application)
    assert application.get_snapshot().lives[OLD].state is LifeState.DRAINED
    assert not [
        cause
        for cause in find_alert_causes(application.build_alert_snapshot())
        if cause.key.startswith("disks:")
    ]
    assert not scraped(application).get("predrain_bad_devices")


def test_nobody_is_told_to_drain_a_disk_that_was_replaced(world: World, site: Site) -> None:
    replace_disk(world)
    assert not [
        point
        for cause in find_alert_causes(world.application.build_alert_snapshot())
        for point in cause.points
        if OLD in point.name
    ]
    alert = next(one for one in site.client.get("/api/v1/alerts").json()["items"] if one["device"] == OLD)
    assert (alert["status"], alert["severity"], alert["state"]) == ("bad", None, "retired")
    assert alert["action"] == f"It was replaced: {NEW} stands in its slot."


def test_nothing_is_forecast_of_a_disk_that_was_replaced(world: World, site: Site) -> None:
    replace_disk(world)
    told = shown(site)
    assert (told["state"], told["severity"], told["outlook"]) == ("retired", None, None)
    assert (told["life"]["successor"], told["life"]["source"]) == (NEW, "cluster")
    assert [one["state"] for one in told["life_changes"]] == ["retired", "in_service"]
    assert OLD not in {one["device"] for one in site.client.get("/api/v1/outlooks").json()["items"]}
    (slot, *_) = site.client.get("/api/v1/osds").json()["items"]
    assert (slot["device"], slot["severity"]) == (NEW, shown(site, NEW)["severity"])


def test_the_command_line_says_what_the_page_says(
    world: World, site: Site, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    replace_disk(world)
    place.state.url.write_text(str(site.client.base_url))
    at = ["--state", str(place.state.path)]
    assert main(["disks", "--life", "retired", "--json", *at]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["device"], told["state"], told["severity"]) == (OLD, "retired", None)
    assert main(["disks", *at]) == 0
    assert "retired" in capsys.readouterr().out


def test_a_disk_that_a_person_called_failed_counts_as_bad_no_more(
    application: Application, serve: Serve
) -> None:
    application.ingest(week_of("A", passed=False))
    work(application)
    assert scraped(application)["predrain_bad_devices"]
    application.clock.sleep(3_600)
    application.record_outcome(Outcome(OLD, application.clock.now(), DriveFate.FAILED, "jo", "clicks"))
    told = shown(serve(application))
    assert (told["state"], told["outlook"], told["life"]["subject"]) == ("failed", None, "jo")
    assert not scraped(application).get("predrain_bad_devices")


def test_the_record_of_lives_outlives_the_process(place: Place) -> None:
    first = place.application()
    first.start()
    first.ingest(week_of("A"))
    work(first)
    keep_lives(first)
    recorded = first.store.read_life_changes()
    shut(first)
    second = place.application()
    try:
        keep_lives(second)
        assert [one.state for one in recorded] == [LifeState.IN_SERVICE]
        assert second.store.read_life_changes() == recorded
        assert second.get_snapshot().lives[OLD].change == recorded[0]
    finally:
        shut(second)


def test_a_disk_that_is_read_no_more_falls_silent_and_is_lost_after_a_week(application: Application) -> None:
    application.ingest(week_of("A"))
    work(application)
    found = []
    for hours in (1, 2, 24 * 7):
        application.clock.sleep(3_600 * hours)
        keep_lives(application)
        found.append(application.get_snapshot().lives[OLD].state)
    assert found == [LifeState.IN_SERVICE, LifeState.SILENT, LifeState.RETIRED]
    times = [one.at for one in reversed(application.store.read_life_changes())]
    assert times == sorted(times)
    assert times[1] - times[0] >= timedelta(hours=2)


def test_fleet_and_messages_agree_on_the_severity_of_a_disk(application: Application) -> None:
    application.ingest(week_of("A", passed=False))
    work(application)
    for _ in range(2):
        application.clock.sleep(3_600)
        application.ingest([smart_reading("A", application.clock.now())])
        work(application)
        snapshot = application.get_snapshot()
        assert snapshot.severity(OLD) is snapshot.outlooks[OLD].severity
        told = [
            cause
            for cause in find_alert_causes(application.build_alert_snapshot())
            if cause.key.startswith("disks:")
        ]
        assert bool(told) == (snapshot.severity(OLD) in (Status.WARNING, Status.BAD))


def test_a_failed_disk_counts_for_its_model_also_when_another_one_stands_in_its_slot(
    world: World,
    site: Site,
) -> None:
    replace_disk(world)
    told = site.client.post(f"/api/v1/devices/{OLD}/outcome", json={"fate": "failed"}, headers=site.acting)
    assert told.status_code == 201
    assert world.application.get_snapshot().lives[OLD].state is LifeState.RETIRED
    items = site.client.get("/api/v1/models").json()["items"]
    assert sum(one["failed"] for one in items) == 1
