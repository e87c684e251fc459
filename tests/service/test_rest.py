"""REST over a real server: what it answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from predrain.data.device_id import device_id
from predrain.data.reading import Unreadable
from predrain.data.unreadable import UnreadableCause
from tests.service.conftest import NOON, Place, Serve, Site, shut, smart_reading, week_of
from tests.service.test_worker import work


def test_status_without_a_cluster_says_so(site: Site) -> None:
    status = site.client.get("/api/v1/status").json()
    assert status["controller"] == "holding: no cluster configured, forecasts only"
    assert status["epoch"] is None
    assert status["forecast"]["bundle"] == "default"
    assert status["forecast"]["expected_30d"] is None


def test_no_fsid_is_known_before_a_cluster_answered(site: Site) -> None:
    told = site.client.get("/api/v1/clusters/00000000-0000-4000-8000-000000000000/osds")
    assert told.status_code == 404
    assert told.json()["detail"].endswith("no cluster has answered yet.")


def test_counters_that_moved_come_first_in_a_history(site: Site) -> None:
    site.application.ingest(week_of("A", pending=40))
    work(site.application)
    names = [one["name"] for one in site.client.get("/api/v1/devices/ST4000DM000_A/history").json()["series"]]
    assert names.index("pending") < names.index("reallocated")


def test_a_disk_with_a_slash_in_its_name_is_found_by_it(site: Site) -> None:
    name = device_id("SEAGATE", "ST4000NM0023", "Z1Z0/0000C9")
    assert name is not None
    assert "/" in name
    site.application.ingest([replace(smart_reading(), device=name), smart_reading("A")])
    work(site.application)
    path = f"/api/v1/devices/{quote(name, safe='')}"
    assert site.client.get(path).json()["device"] == name
    assert site.client.get(f"{path}/history").json()["device"] == name
    said = site.client.post(f"{path}/outcome", json={"fate": "failed"}, headers=site.acting)
    assert said.status_code == 201
    assert site.client.get("/api/v1/devices/ST4000DM000_A/history").json()["device"] == "ST4000DM000_A"


@pytest.mark.parametrize(
    ("cause", "blames_host"), [(UnreadableCause.TOOL_MISSING, True), (UnreadableCause.IO_ERROR, False)]
)
def test_a_disk_that_cannot_be_read_tells_programs_the_cause(
    site: Site, cause: UnreadableCause, blames_host: bool
) -> None:
    site.application.ingest([replace(smart_reading("A"), seen=Unreadable(NOON, "in some words", cause))])
    work(site.application)
    told = site.client.get("/api/v1/devices/ST4000DM000_A").json()["unreadable"]
    assert (told["cause"], told["blames_host"]) == (cause.value, blames_host)


def test_readiness_waits_for_the_forecaster(place: Place, serve: Serve) -> None:
    application = place.application()
    site = serve(application)
    assert site.client.get("/healthz").status_code == 200
    assert site.client.get("/readyz").status_code == 503
    application.start()
    assert site.client.get("/readyz").status_code == 200
    shut(application)


def test_metrics_can_be_read_by_prometheus_and_name_no_device(site: Site) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    site.application.ingest(week_of("A", pending=400))
    work(site.application)
    text = site.client.get("/metrics").text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["predrain_readings_accepted"].samples[0].value == 8
    assert {s.labels["status"]: s.value for s in families["predrain_devices"].samples}["bad"] == 1
    assert "ST4000DM000_A" not in text


def test_the_page_is_served_at_all_its_addresses_under_a_strict_policy(site: Site) -> None:
    for path in (
        "/",
        "/fleet",
        "/devices/ST4000DM000_A",
        "/drains/x",
        "/events",
        "/alerts",
        "/forecast",
        "/clusters",
    ):
        answer = site.client.get(path)
        assert answer.status_code in (200, 503)
        assert "make setup" in answer.text if answer.status_code == 503 else "<html" in answer.text
        assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert site.client.get("/assets/../settings.py").status_code == 404


def test_a_browser_at_an_unknown_address_gets_the_page_and_a_program_the_problem(site: Site) -> None:
    browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    shown = site.client.get("/drainz", headers=browser)
    assert shown.status_code in (404, 503)
    assert "make setup" in shown.text if shown.status_code == 503 else "<html" in shown.text
    for answer in (site.client.get("/drainz"), site.client.get("/api/v1/drainz", headers=browser)):
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"


def test_every_route_is_described_with_its_problems(site: Site) -> None:
    document = site.client.get("/api/v1/openapi.json").json()
    for path in ("status", "osds", "devices", "outlooks", "drains", "halt", "readings", "events", "alerts"):
        assert f"/api/v1/{path}" in document["paths"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if path.startswith("/api/v1") and method == "post":
                assert "401" in operation["responses"], path
    assert "ProblemBody" in document["components"]["schemas"]


def test_the_rest_reference_names_every_route(site: Site) -> None:
    """The paths below `clusters/{fsid}` that also stand without it have one line together."""
    text = (Path(__file__).parents[2] / "docs" / "reference" / "rest.md").read_text()
    assert "`clusters/{fsid}/drains` and every path below it" in text
    document, below = site.client.get("/api/v1/openapi.json").json(), "/api/v1/clusters/{fsid}/"
    missing = [
        f"{method.upper()} {path}"
        for path, operations in document["paths"].items()
        for method in operations
        if f"`{method.upper()} {path.removeprefix('/api/v1/')}`" not in text
        and (not path.startswith(below) or path.replace(below, "/api/v1/") not in document["paths"])
    ]
    assert missing == []
