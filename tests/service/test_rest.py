"""REST over a real server: what it answers, to whom, and how it refuses."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from datetime import timedelta
from pathlib import Path

import httpx2
import msgspec
import pytest

from data.log.port import LogFull, Topic
from service.house import House
from tests.service.conftest import NOON, Place, Serve, Site, shut, smart_reading, week_of, with_service
from tests.service.test_worker import work

SMART = Path(__file__).parents[1] / "data" / "smart" / "samples"


def envelope(house: House, reading: object) -> dict:
    return json.loads(house._sender.seal(reading))  # type: ignore[type-var]


def test_status_without_a_cluster_says_so(site: Site) -> None:
    status = site.client.get("/api/v1/status").json()
    assert status["controller"] == "holding: no cluster configured, forecasts only"
    assert status["epoch"] is None
    assert status["forecast"]["bundle"] == "default"
    assert status["forecast"]["expected_30d"] is None


def test_envelopes_that_are_sent_come_out_as_outlooks(site: Site) -> None:
    sent = [envelope(site.house, reading) for reading in week_of("A", pending=40)]
    answer = site.client.post("/api/v1/readings", json=sent, headers=site.ingesting)
    assert (answer.status_code, answer.json()) == (200, {"accepted": 8, "refused": []})
    work(site.house)
    (outlook,) = site.client.get("/api/v1/outlooks").json()["items"]
    assert outlook["device"] == "ST4000DM000_A"
    assert outlook["reasons"][0]["sentence"]
    device = site.client.get("/api/v1/devices/ST4000DM000_A").json()
    assert device["outlook"]["as_of"] == "2026-03-10T12:00:00Z"
    assert device["identity"]["rotation_rpm"] == 5900
    assert device["family_survival"][0] == {"day": 0, "p": 1.0}
    assert device["family_survival"][30]["p"] > device["outlook"]["survival"][30]["p"]
    history = site.client.get("/api/v1/devices/ST4000DM000_A/history?days=10").json()
    series = {one["name"]: one["points"] for one in history["series"]}
    assert [value for _, value in series["pending"]] == [0] * 7 + [40]
    assert "media_errors" not in series


def test_counters_that_moved_come_first_in_a_history(site: Site) -> None:
    site.house.ingest(week_of("A", pending=40))
    work(site.house)
    names = [one["name"] for one in site.client.get("/api/v1/devices/ST4000DM000_A/history").json()["series"]]
    assert names.index("pending") < names.index("reallocated")


def test_smartctl_documents_are_taken_as_they_are(site: Site) -> None:
    files = sorted(SMART.glob("*.json*"))
    if not files:
        pytest.skip("no samples of smartctl's output are here")
    bodies = [
        gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes() for file in files
    ]
    documents = [json.loads(body) for body in bodies if body.lstrip().startswith(b"{") and _whole(body)]
    answer = site.client.post("/api/v1/readings?host=stor-07", json=documents, headers=site.ingesting)
    body = answer.json()
    assert body["accepted"] + len(body["refused"]) == len(documents)
    assert body["accepted"] > 0
    assert all(one["reason"] for one in body["refused"])
    work(site.house)
    hosts = {one["host"] for one in site.client.get("/api/v1/devices").json()["items"]}
    assert hosts == {"stor-07"}


def _whole(body: bytes) -> bool:
    try:
        json.loads(body)
    except ValueError:
        return False
    return True


def test_bad_readings_are_refused_one_by_one_and_the_good_ones_are_kept(site: Site) -> None:
    good = envelope(site.house, smart_reading("A"))
    future = envelope(site.house, smart_reading("B", NOON + timedelta(hours=1)))
    negative = json.loads(
        json.dumps(good).replace('"pending":0', '"pending":-3').replace('"pending": 0', '"pending": -3')
    )
    unknown = {**good, "version": 99}
    garbled = {**good, "body": {"device": 7}}
    answer = site.client.post(
        "/api/v1/readings", json=[future, good, negative, unknown, garbled, 5], headers=site.ingesting
    )
    body = answer.json()
    assert answer.status_code == 207
    assert body["accepted"] == 1
    reasons = {one["index"]: one["reason"] for one in body["refused"]}
    assert "future" in reasons[0]
    assert "NTP" in reasons[0]
    assert "negative" in reasons[2]
    assert "version 99" in reasons[3]
    assert set(reasons) == {0, 2, 3, 4, 5}


def test_a_duplicate_over_http_is_accepted_and_changes_nothing(site: Site) -> None:
    sent = [envelope(site.house, smart_reading("A"))] * 2
    assert site.client.post("/api/v1/readings", json=sent, headers=site.ingesting).json()["accepted"] == 2
    work(site.house)
    assert len(site.house.store.readings(smart_reading("A").device)) == 1


@pytest.mark.parametrize("body", [b"", b"{", b"7", b'{"a": 1}', b"\xff\xfe", b"[1, 2"])
def test_a_body_that_is_no_array_is_a_problem(site: Site, body: bytes) -> None:
    answer = site.client.post("/api/v1/readings", content=body, headers=site.ingesting)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"


class FullDisk:
    """The real log, on a disk that fills up when a test says so."""

    def __init__(self, real: object) -> None:
        self._real, self.full = real, False

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def append(self, topic: Topic, records: object) -> None:
        if self.full:
            raise LogFull("The disk under the log is full; make room.")
        self._real.append(topic, records)  # type: ignore[attr-defined]


def test_a_full_disk_under_the_log_is_a_503_that_says_so_and_what_was_accepted_is_safe(
    place: Place, serve: Serve
) -> None:
    from data.log.sqlite import SqliteLog

    log = FullDisk(SqliteLog(place.state.log))
    house = place.house(log=log)  # type: ignore[arg-type]
    house.start()
    site = serve(house)
    sent = [envelope(house, smart_reading("A"))]
    assert site.client.post("/api/v1/readings", json=sent, headers=site.ingesting).status_code == 200
    log.full = True
    answer = site.client.post(
        "/api/v1/readings", json=[envelope(house, smart_reading("B"))], headers=site.ingesting
    )
    assert answer.status_code == 503
    assert "make room" in answer.json()["detail"]
    assert answer.headers["retry-after"]
    log.full = False
    work(house)
    assert set(house.store.latest_outlooks()) == {"ST4000DM000_A"}
    shut(house)


def test_acting_without_the_token_names_the_file_that_has_it(site: Site, place: Place) -> None:
    answer = site.client.post("/api/v1/halt", json={"why": "x"})
    assert answer.status_code == 401
    assert str(place.state.token) in answer.json()["detail"]
    assert site.house.store.halt_reason() is None


def test_a_token_that_nobody_knows_is_refused_even_for_reading(site: Site) -> None:
    assert site.client.get("/api/v1/status", headers={"Authorization": "Bearer nonsense"}).status_code == 401


def test_a_token_may_only_do_what_its_scopes_say(site: Site) -> None:
    answer = site.client.post("/api/v1/halt", json={"why": "x"}, headers=site.ingesting)
    assert answer.status_code == 403
    assert "scope act" in answer.json()["detail"]
    assert site.house.store.halt_reason() is None


def test_halt_stands_until_it_is_lifted(site: Site) -> None:
    assert site.client.post("/api/v1/halt", json={"why": "maintenance"}, headers=site.acting).json() == {
        "halted": "maintenance"
    }
    assert site.client.get("/api/v1/status").json()["halted"] == "maintenance"
    assert site.client.post("/api/v1/halt", json={"why": None}, headers=site.acting).json() == {
        "halted": None
    }
    assert site.client.get("/api/v1/halt").json() == {"halted": None}
    lines = [(line.decided, line.caller) for line in site.house.store.journal("halt")]
    assert lines == [("halt: maintenance", "token-file"), ("lift the halt", "token-file")]


def test_a_foreign_host_header_is_refused(site: Site) -> None:
    answer = site.client.get("/api/v1/status", headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert "evil.example" in answer.json()["detail"]
    assert site.client.get("/api/v1/status", headers={"Host": "localhost:1234"}).status_code == 200


def test_a_body_over_the_limit_is_refused_with_and_without_a_length(place: Place, serve: Serve) -> None:
    house = with_service(place, body_limit_bytes=2000).house()
    site = serve(house)
    told = site.client.post("/api/v1/readings", content=b"[" + b" " * 3000, headers=site.ingesting)
    assert told.status_code == 413

    def chunks():  # type: ignore[no-untyped-def]
        yield b"["
        for _ in range(30):
            yield b" " * 100

    streamed = site.client.post("/api/v1/readings", content=chunks(), headers=site.ingesting)
    assert streamed.status_code == 413
    assert "2000 bytes" in streamed.json()["detail"]
    shut(house)


@pytest.mark.parametrize("path", ["/api/v1/status", "/api/v1/osds", "/api/v1/drains", "/api/v1/outlooks"])
def test_what_has_not_changed_costs_a_304(site: Site, path: str) -> None:
    site.house.ingest([smart_reading("A")])
    work(site.house)
    first = site.client.get(path)
    again = site.client.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_a_changed_answer_has_another_etag(site: Site) -> None:
    before = site.client.get("/api/v1/outlooks").headers["etag"]
    site.house.ingest([smart_reading("A")])
    work(site.house)
    after = site.client.get("/api/v1/outlooks", headers={"If-None-Match": before})
    assert after.status_code == 200
    assert len(after.json()["items"]) == 1


def test_pages_follow_each_other_without_loss_while_devices_come(site: Site) -> None:
    site.house.ingest([smart_reading(f"{n:02d}") for n in range(7)])
    work(site.house)
    seen, cursor = [], ""
    while True:
        page = site.client.get(f"/api/v1/devices?limit=3{cursor}").json()
        seen += [one["device"] for one in page["items"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
        site.house.ingest([smart_reading("00-new")])
        work(site.house)
    assert seen == sorted(f"ST4000DM000_{n:02d}" for n in range(7))


def test_a_cursor_of_somebody_else_is_a_problem(site: Site) -> None:
    assert site.client.get("/api/v1/devices?cursor=%21%21").status_code == 422


def test_an_unknown_device_is_a_404_that_says_where_to_look(site: Site) -> None:
    answer = site.client.get("/api/v1/devices/NOBODY")
    assert answer.status_code == 404
    assert "GET /api/v1/devices" in answer.json()["detail"]


def test_a_persons_word_about_a_device_is_kept(site: Site) -> None:
    site.house.ingest([smart_reading("A")])
    work(site.house)
    told = site.client.post(
        "/api/v1/devices/ST4000DM000_A/outcome",
        json={"fate": "failed", "note": "clicked"},
        headers=site.acting,
    )
    assert told.status_code == 201
    (outcome,) = site.client.get("/api/v1/devices/ST4000DM000_A").json()["outcomes"]
    assert (outcome["fate"], outcome["note"], outcome["source"]) == ("failed", "clicked", "token-file")


def test_a_drain_without_a_cluster_is_refused_with_a_sentence(site: Site) -> None:
    answer = site.client.post("/api/v1/drains", json={"target": "osd.1"}, headers=site.acting)
    assert answer.status_code == 409
    assert "No cluster is configured" in answer.json()["detail"]


def test_an_unknown_field_in_a_request_is_named(site: Site) -> None:
    answer = site.client.post("/api/v1/drains", json={"target": "osd.1", "forze": True}, headers=site.acting)
    assert answer.status_code == 422
    assert "forze" in answer.json()["detail"]


def test_events_tell_what_changed_at_most_four_times_a_second(site: Site) -> None:
    got: list[tuple[float, dict]] = []
    ready = threading.Event()

    def listen() -> None:
        with site.client.stream("GET", "/api/v1/events") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            for line in stream.iter_lines():
                ready.set()
                if line.startswith("data:"):
                    got.append((time.monotonic(), json.loads(line[5:])))
                    if len(got) == 2:
                        return

    listener = threading.Thread(target=listen)
    listener.start()
    assert ready.wait(5)
    for n in range(20):
        site.house.ingest([smart_reading(f"E{n}")])
        site.house.step_worker()
        time.sleep(0.02)
    site.house.halt("now", "test")
    listener.join(10)
    assert len(got) == 2
    assert "osds" in got[0][1]["kinds"]
    assert got[1][0] - got[0][0] >= 0.2


def test_a_listener_does_not_keep_the_server_from_ending(house: House, serve: Serve) -> None:
    site = serve(house)
    begun = threading.Event()

    def listen() -> None:
        try:
            with httpx2.stream("GET", f"{site.client.base_url}/api/v1/events", timeout=20) as stream:
                for _ in stream.iter_lines():
                    begun.set()
        except httpx2.HTTPError:
            pass

    thread = threading.Thread(target=listen)
    thread.start()
    assert begun.wait(5)
    began = time.monotonic()
    house.changes.close()
    thread.join(5)
    assert time.monotonic() - began < 2


def test_readiness_waits_for_the_forecaster(place: Place, serve: Serve) -> None:
    house = place.house()
    site = serve(house)
    assert site.client.get("/healthz").status_code == 200
    assert site.client.get("/readyz").status_code == 503
    house.start()
    assert site.client.get("/readyz").status_code == 200
    shut(house)


def test_metrics_can_be_read_by_prometheus_and_name_no_device(site: Site) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    site.house.ingest(week_of("A", pending=400))
    work(site.house)
    text = site.client.get("/metrics").text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["predrain_readings_accepted"].samples[0].value == 8
    assert {s.labels["status"]: s.value for s in families["predrain_devices"].samples}["bad"] == 1
    assert "ST4000DM000" not in text


def test_the_page_is_served_at_all_its_addresses_under_a_strict_policy(site: Site) -> None:
    for path in ("/", "/fleet", "/devices/ST4000DM000_A", "/drains/x", "/events", "/alerts", "/forecast"):
        answer = site.client.get(path)
        assert answer.status_code in (200, 503)
        assert "make setup" in answer.text if answer.status_code == 503 else "<html" in answer.text
        assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert site.client.get("/assets/../settings.py").status_code == 404


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
    text = (Path(__file__).parents[2] / "docs" / "reference" / "rest.md").read_text()
    document = site.client.get("/api/v1/openapi.json").json()
    missing = [
        f"{method.upper()} {path}"
        for path, operations in document["paths"].items()
        for method in operations
        if f"`{method.upper()} {path.removeprefix('/api/v1/')}`" not in text
    ]
    assert missing == []


def test_a_request_that_is_no_http_does_no_harm(site: Site) -> None:
    url = site.client.base_url
    with socket.create_connection((url.host, url.port), timeout=5) as raw:
        raw.sendall(b"\x16\x03\x01 not http\r\n\r\n")
        raw.recv(1000)
    assert site.client.get("/healthz").status_code == 200


def test_an_answer_is_the_same_bytes_however_often_it_is_asked_for(site: Site) -> None:
    site.house.ingest([smart_reading(f"{n}") for n in range(20)])
    work(site.house)
    bodies = {site.client.get("/api/v1/outlooks").content for _ in range(3)}
    assert len(bodies) == 1
    assert len(msgspec.json.decode(bodies.pop())["items"]) == 20
