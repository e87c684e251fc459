"""The counts of a fleet's disks: only disks that are there count, and none counts twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.data.ids import DeviceId
from predrain.data.outlook import Outlook, Reason, Status
from predrain.models.forecast.explanations import CODES, FACTS
from predrain.service.fleet.fleet import FleetSnapshot
from predrain.service.fleet.fleet_counts import BACKGROUND, WITHOUT_SYMPTOM, count_fleet_disks, has_no_symptom
from tests.service.conftest import NOON, Place, Serve, shut, smart_reading, week_of
from tests.service.lives import build_living_snapshot
from tests.service.test_drains import seated
from tests.service.test_worker import work

HOUR = timedelta(hours=1)


def outlook(serial: str, p: float | None, *codes: str, status: Status = Status.GOOD) -> Outlook:
    reasons = tuple(Reason(code, "") for code in codes)
    return Outlook(DeviceId(f"ST4000DM000_{serial}"), NOON, status, "model:x", reasons, "", p_fail_30d=p)


def snapshot(*outlooks: Outlook, view: ClusterView | None = None, hours: float = 0) -> FleetSnapshot:
    """Disks that were all read `hours` before noon."""
    readings = [smart_reading(one.device.rsplit("_")[-1], NOON - hours * HOUR) for one in outlooks]
    made = FleetSnapshot(
        {one.device: one for one in readings}, {one.device: one for one in outlooks}, {}, (), None, view
    )
    return build_living_snapshot(made, NOON, 2 * HOUR)


def test_a_disk_that_left_the_cluster_is_in_no_sum() -> None:
    view = seated().view()
    here, gone = outlook("A", 0.2, "pending-rose", status=Status.BAD), outlook("GONE", 0.3, "no-symptom")
    counted = count_fleet_disks(snapshot(here, gone, view=view), NOON, 2 * HOUR)
    assert counted.total == len(view.osds)
    assert counted.fresh == 1
    assert counted.expected_30d == pytest.approx(0.2)
    assert counted.expected_silent_30d == 0
    assert counted.statuses == {Status.BAD: 1}


def test_osds_on_one_disk_count_as_one_and_a_disk_without_a_name_counts_as_not_read() -> None:
    view = seated().view()
    osds = {
        osd.id: replace(osd, device=None if osd.id == 1 else DeviceId("ST4000DM000_A"))
        for osd in view.osds.values()
    }
    counted = count_fleet_disks(
        snapshot(outlook("A", 0.1, "no-symptom"), view=replace(view, osds=osds)), NOON, 2 * HOUR
    )
    assert (counted.total, counted.fresh) == (2, 1)


def test_without_a_cluster_a_disk_counts_until_it_was_not_heard_of_for_a_week() -> None:
    one = outlook("A", 0.1, "no-symptom")
    assert count_fleet_disks(snapshot(one, hours=7 * 24), NOON, 2 * HOUR).total == 1
    assert count_fleet_disks(snapshot(one, hours=7 * 24 + 1), NOON, 2 * HOUR).total == 0
    assert count_fleet_disks(snapshot(one, hours=7 * 24 + 1), NOON, 48 * HOUR).total == 1


def test_silent_failures_are_those_of_disks_that_show_nothing_whatever_their_status() -> None:
    told = snapshot(
        outlook("A", 0.01, "no-symptom"),
        outlook("B", 0.02, "not-reported", status=Status.UNKNOWN),
        outlook("C", 0.04, "reallocated-old"),
        outlook("D", None, "smart-failed", status=Status.BAD),
    )
    counted = count_fleet_disks(told, NOON, 2 * HOUR)
    assert counted.expected_30d == pytest.approx(0.07)
    assert counted.expected_silent_30d == pytest.approx(0.03)


def test_the_expected_failures_are_unknown_and_not_zero_without_a_probability() -> None:
    counted = count_fleet_disks(snapshot(outlook("D", None, "smart-failed")), NOON, 2 * HOUR)
    assert counted.expected_30d is None
    assert counted.expected_silent_30d is None


@pytest.mark.parametrize("code", CODES)
def test_every_reason_of_the_model_is_a_symptom_or_said_to_be_none(code: str) -> None:
    assert has_no_symptom(outlook("A", 0.1, code)) == (code in WITHOUT_SYMPTOM)
    assert (code in WITHOUT_SYMPTOM) != any(code in (fact.code, fact.for_sas().code) for fact in FACTS)


@pytest.mark.parametrize(("interval", "fresh"), [(1.0, 0), (24.0, 1)])
def test_a_disk_is_fresh_for_two_intervals_of_the_settings(
    place: Place, serve: Serve, interval: float, fresh: int
) -> None:
    forecast = place.settings.forecast.model_copy(update={"reading_interval_hours": interval})
    daily = replace(place, settings=place.settings.model_copy(update={"forecast": forecast}))
    application = daily.application()
    application.start()
    application.ingest(week_of("A"))
    work(application)
    application.clock.sleep(2 * 3600 + 1)
    site = serve(application)
    assert site.client.get("/api/v1/status").json()["readings"] == {"fresh": fresh, "total": 1}
    application.clock.sleep(46 * 3600)
    assert site.client.get("/api/v1/status").json()["readings"]["fresh"] == 0
    shut(application)


def test_that_a_model_has_a_rate_is_no_symptom() -> None:
    from predrain.models.forecast.explanations.death_rate_text import CODE

    assert {CODE, "as-sata"} == BACKGROUND
    assert BACKGROUND < WITHOUT_SYMPTOM
