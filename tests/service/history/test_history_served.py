"""The events of a simulated cluster are on record, and REST and the command line report them."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from typing import Any

import pytest

from predrain.actions.cluster.cluster_port import ClusterUnreachable
from predrain.data.ids import OsdId
from predrain.service.cli import main
from predrain.service.cli.events_commands import BadTime, read_time
from predrain.service.events.event import CurrentPlaces
from predrain.service.events.event_query import HistoryQuery, read_history
from predrain.service.streams.outlook_announcements import Announcements
from tests.service.conftest import NOON, Place, Serve, Site, shut, week_of
from tests.service.test_disk_lives import OLD, replace_disk
from tests.service.test_drains import Seated, World, ask_drain, proposed, site, world  # noqa: F401
from tests.service.test_worker import work


def told(site: Site, **asked: Any) -> list[dict[str, Any]]:  # noqa: F811
    answer = site.client.get("/api/v1/history", params=asked)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def kinds(site: Site, **asked: Any) -> list[str]:  # noqa: F811
    return [item["kind"] for item in told(site, **asked)]


@pytest.fixture
def busy(world: World, site: Site) -> Site:  # noqa: F811
    """An OSD went down and came back, a drain was asked for and cancelled, everything was halted and is not."""
    world.cluster.stop_osd(OsdId(5))
    world.tick(3)
    world.cluster.revive(OsdId(5))
    world.tick(6)
    drain = proposed(site)
    world.tick()
    ask_drain(site, drain, "cancel")
    world.tick(3)
    for why in ("switch maintenance", None):
        site.client.post("/api/v1/halt", json={"reason": why}, headers=site.acting)
        world.tick()
    return site


def test_osds_down_and_up_drains_and_halts_are_told_newest_first_with_a_link_each(busy: Site) -> None:
    found = told(busy)
    assert [item["kind"] for item in reversed(found) if item["group"] in ("osd", "drain", "halt")] == [
        "osd_down", "osd_up", "drain_proposed", "drain_cancelling", "drain_cancelled", "halted", "halt_lifted",
    ]  # fmt: skip
    assert [item["at"] for item in found] == sorted((item["at"] for item in found), reverse=True)
    down = told(busy, kind="osd_down")[0]
    assert down["sentence"] == "osd.5 is down."
    assert (down["osd"], down["host"]) == (5, told(busy, kind="osd_up")[0]["host"])
    assert told(busy, kind="drain_proposed")[0]["href"].startswith("/drains/osd.0-")
    assert told(busy, kind="halted")[0]["sentence"].endswith(": switch maintenance.")
    assert all(item["href"].startswith("/") for item in found)


def test_events_are_filtered_by_kind_host_disk_time_and_words(busy: Site) -> None:
    assert kinds(busy, kind=["osd", "halted"]) == ["halted", "osd_up", "osd_down"]
    host = told(busy, kind="osd_down")[0]["host"]
    assert set(kinds(busy, host=host, kind="osd")) == {"osd_up", "osd_down"}
    assert kinds(busy, host="nowhere") == []
    assert kinds(busy, disk="osd.5", kind="osd") == ["osd_up", "osd_down"]
    assert "drain_proposed" in kinds(busy, disk="ST4000DM000_A")
    assert kinds(busy, q="SWITCH maintenance") == ["halted"]
    up = told(busy, kind="osd_up")[0]["at"]
    assert kinds(busy, since=up, kind="osd") == ["osd_up"]
    assert kinds(busy, until=up, kind="osd") == ["osd_down"]


def test_pages_lead_to_older_events_until_there_are_none(busy: Site) -> None:
    whole, found, cursor = told(busy), [], None
    while True:
        asked = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = busy.client.get("/api/v1/history", params=asked).json()
        found += page["items"]
        cursor = page["next"]
        if cursor is None:
            break
    assert found == whole


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked", ["kind=meteor", "since=yesterday", "since=2026-03-01T00:00:00", "limit=0", "cursor=bm9uZQ=="]
)
def test_a_history_query_with_an_invalid_value_is_refused(site: Site, asked: str) -> None:  # noqa: F811
    assert site.client.get(f"/api/v1/history?{asked}").status_code == 422


def test_a_service_that_starts_again_tells_of_an_osd_that_came_up_meanwhile(
    world: World,  # noqa: F811
    place: Place,
    serve: Serve,
) -> None:
    world.tick(2)
    world.cluster.stop_osd(OsdId(5))
    world.tick(2)
    shut(world.application)
    world.cluster.revive(OsdId(5))
    world.cluster.advance(60)
    again = replace(place, clock=world.application.clock).application(cluster=Seated(world.cluster))  # type: ignore[arg-type]
    again.start()
    again.step_controller()
    again.step_controller()
    assert kinds(serve(again), kind="osd") == ["osd_up", "osd_down"]
    shut(again)


def test_a_cluster_that_does_not_answer_is_neither_a_halt_nor_osds_that_went_down(
    world: World,  # noqa: F811
    site: Site,  # noqa: F811
) -> None:
    world.reach.reachable = False
    with pytest.raises(ClusterUnreachable):
        world.reach.view()
    world.tick(3)
    world.reach.reachable = True
    world.tick(3)
    assert kinds(site, kind=["osd", "halt"]) == []


def test_the_command_line_tells_what_happened_in_a_table_and_as_json(
    busy: Site, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.state.url.write_text(str(busy.client.base_url))
    here = ["--state", str(place.state.path)]
    assert main(["events", "--since", "7d", "--kind", "osd", *here]) == 0
    told = capsys.readouterr().out
    assert told.index("osd.5 is up again.") < told.index("osd.5 is down.")
    assert f"{NOON:%Y-%m-%d}" in told, "the year is told"
    assert main(["events", "maintenance", "--json", *here]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [item["kind"] for item in found["items"]] == ["halted"]
    assert found["more"] is False
    assert main(["events", "--limit", "1", *here]) == 0
    assert "there are older ones: --limit 2" in capsys.readouterr().out
    assert main(["events", "--disk", "nothing", *here]) == 0
    assert "nothing of that is known since 2026-03-0" in capsys.readouterr().out
    assert main(["events", "--since", "yesterday", *here]) == 1
    assert "neither an age nor a date" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "hours"),
    [("12h", 12), ("2d", 48), ("1w", 168), ("2026-03-10", 12), ("2026-03-10T13:00+02:00", 1)],
)
def test_a_time_is_an_age_or_a_date(text: str, hours: int) -> None:
    assert (NOON - read_time(text, NOON)).total_seconds() == hours * 3_600


@pytest.mark.parametrize("text", ["", "7", "d7", "soon", "123456d"])
def test_a_text_that_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadTime, match="12h, 7d, 4w"):
        read_time(text, NOON)


def test_an_outlook_event_of_a_replaced_disk_is_found_by_its_former_osd(world: World, site: Site) -> None:  # noqa: F811
    replace_disk(world)
    (event,) = told(site, kind="outlook", disk="osd.0")
    assert (event["device"], event["osd"], event["kind"]) == (OLD, 0, "outlook_worse")


def test_outlooks_are_told_as_far_back_as_events_are_kept_and_of_before_they_were_kept(place: Place) -> None:
    first = place.application()
    first.start()
    for day in range(3):
        first.ingest(week_of(f"{day}", passed=False))
        work(first)
    kept = [event for event in first.store.read_cluster_events() if event.kind.is_of_outlook]
    assert len(kept) == 3
    first.announcements = Announcements(kept=1)
    site_of_first = {one.device for one in kept}
    page = read_history(first.store, CurrentPlaces(), HistoryQuery(), 10, None)
    assert {event.device for event in page.events if event.kind == "outlook_worse"} == site_of_first
    shut(first)
    with sqlite3.connect(place.state.store) as file:
        file.execute("DELETE FROM cluster_events")
    file.close()
    again = place.application()
    again.start()
    assert [event for event in again.store.read_cluster_events() if event.kind.is_of_outlook] == kept
    shut(again)


def test_the_report_of_a_month_counts_a_cancelled_drain_and_an_undrained_failure(busy: Site) -> None:
    failed = {"fate": "failed", "note": "does not spin up"}
    assert busy.client.post(
        "/api/v1/devices/ST4000DM000_A/outcome", json=failed, headers=busy.acting
    ).is_success
    month = told(busy)[0]["at"][:7]
    report = busy.client.get("/api/v1/report", params={"month": month}).json()
    assert (report["drains"], report["failures"], report["false_alarms"]) == (1, 1, 0)
    assert report["whole"] is False
    assert [entry["device"] for entry in report["entries"] if entry["kind"].startswith("failed")] == [
        "ST4000DM000_A"
    ]


def test_a_month_that_is_none_is_refused(site: Site) -> None:  # noqa: F811
    assert site.client.get("/api/v1/report", params={"month": "2026-13"}).status_code == 422
