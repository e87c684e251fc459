"""The values of a drive and the drive models over REST."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from predrain.data.ids import DeviceId
from predrain.data.reading import Attribute, Reading, Smart, Unreadable
from predrain.data.unreadable import UnreadableCause
from tests.service.conftest import NOON, Site, smart_reading, week_of
from tests.service.test_worker import work

PEERS = 21
"""Drives of the model beside the one that is asked about: enough to compare within the model."""


def with_attribute(reading: Reading, id_: int, attribute: Attribute) -> Reading:
    assert isinstance(reading.seen, Smart)
    return replace(
        reading, seen=replace(reading.seen, attributes={**reading.seen.attributes, id_: attribute})
    )


def attribute_of(site: Site, serial: str, id_: int) -> dict[str, Any]:
    body = site.client.get(f"/api/v1/devices/ST4000DM000_{serial}/attributes").json()
    found: dict[str, Any] = next(one for one in body["values"] if one["id"] == id_)
    return found


def test_a_value_that_no_peer_has_is_worse_than_all_of_its_model(site: Site) -> None:
    site.application.ingest([*week_of("A", pending=40), *(smart_reading(f"P{n}") for n in range(PEERS))])
    work(site.application)
    assert attribute_of(site, "A", 197)["rarity"] == {
        "compared": PEERS,
        "better": PEERS,
        "equal": 0,
        "same_model": True,
    }
    assert attribute_of(site, "P0", 197)["rarity"]["equal"] == PEERS - 1


def test_a_drive_that_failed_is_no_longer_among_those_in_service(site: Site) -> None:
    site.application.ingest([smart_reading("A"), smart_reading("B"), smart_reading("C")])
    work(site.application)
    told = site.client.post(
        "/api/v1/devices/ST4000DM000_B/outcome", json={"fate": "failed"}, headers=site.acting
    )
    assert told.status_code == 201
    work(site.application)
    assert attribute_of(site, "A", 197)["rarity"]["compared"] == 1


def test_the_history_of_a_value_ends_with_its_newest_reading(site: Site) -> None:
    site.application.ingest(week_of("A", pending=40))
    work(site.application)
    points = attribute_of(site, "A", 197)["points"]
    assert [value for _, value in points] == [0] * 7 + [40]
    assert points[-1][0] == NOON.timestamp() * 1000


def test_a_normalised_value_at_its_threshold_is_told_apart_from_one_that_once_was(site: Site) -> None:
    low = with_attribute(smart_reading("A"), 5, Attribute("Reallocated_Sector_Ct", 900, 10, 10, 10))
    mended = with_attribute(smart_reading("B"), 5, Attribute("Reallocated_Sector_Ct", 900, 50, 9, 10))
    site.application.ingest([low, mended])
    work(site.application)
    told = [attribute_of(site, serial, 5) for serial in ("A", "B")]
    assert [(one["below_threshold"], one["was_below"]) for one in told] == [(True, True), (False, True)]


def test_a_drive_that_cannot_be_read_any_more_keeps_the_values_of_its_last_readable_report(
    site: Site,
) -> None:
    before = smart_reading("A", NOON - timedelta(days=1))
    silent = replace(smart_reading("A"), seen=Unreadable(NOON, "no answer", UnreadableCause.IO_ERROR))
    site.application.ingest([before, silent])
    work(site.application)
    body = site.client.get("/api/v1/devices/ST4000DM000_A/attributes").json()
    assert datetime.fromisoformat(body["taken_at"]) == before.taken_at
    assert {one["id"] for one in body["values"]} >= {5, 197}


def test_the_values_of_a_disk_that_nobody_knows_are_not_found(site: Site) -> None:
    assert site.client.get("/api/v1/devices/nobody/attributes").status_code == 404


def test_a_model_counts_its_living_disks_its_failures_and_those_without_a_name_last(site: Site) -> None:
    nameless = smart_reading("N")
    assert isinstance(nameless.seen, Smart)
    unnamed = replace(
        nameless,
        device=DeviceId("x"),
        seen=replace(nameless.seen, identity=replace(nameless.seen.identity, model=None)),
    )
    site.application.ingest([smart_reading("A"), smart_reading("B"), smart_reading("C"), unnamed])
    work(site.application)
    site.client.post("/api/v1/devices/ST4000DM000_B/outcome", json={"fate": "failed"}, headers=site.acting)
    work(site.application)
    items = site.client.get("/api/v1/models").json()["items"]
    assert [(one["model"], one["disks"], one["failed"]) for one in items] == [
        ("ST4000DM000", 2, 1),
        (None, 1, 0),
    ]
    assert items[0]["capacity_bytes"] == 4_000_787_030_016
    assert items[0]["age_days_p50"] == 20_000 / 24


def test_pages_of_models_joined_are_all_models(site: Site) -> None:
    named = [smart_reading("A"), smart_reading("B")]
    assert isinstance(named[1].seen, Smart)
    other = replace(
        named[1],
        device=DeviceId("WDC_B"),
        seen=replace(named[1].seen, identity=replace(named[1].seen.identity, model="WDC")),
    )
    site.application.ingest([named[0], other])
    work(site.application)
    first = site.client.get("/api/v1/models?limit=1").json()
    second = site.client.get(f"/api/v1/models?limit=1&cursor={first['next']}").json()
    assert [one["model"] for one in first["items"] + second["items"]] == ["ST4000DM000", "WDC"]
    assert second["next"] is None
