"""REST over a real server: answers that are asked for again and again, and events that spare the asking."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import msgspec
import pytest

from predrain.data.store.store_faults import StoreBusy
from predrain.service.app.application import Application
from predrain.service.app.changes import ChangeKind
from predrain.service.fleet.fleet_counts import FleetTally, count_fleet_disks
from predrain.service.rest import status_routes
from predrain.service.rest.list_answers import IncrementalList
from tests.service.conftest import Serve, Site, smart_reading
from tests.service.test_worker import work


@pytest.mark.parametrize("path", ["/api/v1/status", "/api/v1/osds", "/api/v1/drains", "/api/v1/outlooks"])
def test_an_unchanged_answer_is_sent_as_an_empty_304(site: Site, path: str) -> None:
    site.application.ingest([smart_reading("A")])
    work(site.application)
    first = site.client.get(path)
    again = site.client.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_a_changed_answer_has_another_etag(site: Site) -> None:
    before = site.client.get("/api/v1/outlooks").headers["etag"]
    site.application.ingest([smart_reading("A")])
    work(site.application)
    after = site.client.get("/api/v1/outlooks", headers={"If-None-Match": before})
    assert after.status_code == 200
    assert len(after.json()["items"]) == 1


def test_pages_follow_each_other_without_loss_while_devices_come(site: Site) -> None:
    site.application.ingest([smart_reading(f"{n:02d}") for n in range(7)])
    work(site.application)
    seen, cursor = [], ""
    while True:
        page = site.client.get(f"/api/v1/devices?limit=3{cursor}").json()
        seen += [one["device"] for one in page["items"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
        site.application.ingest([smart_reading("00-new")])
        work(site.application)
    assert seen == sorted(f"ST4000DM000_{n:02d}" for n in range(7))


def test_the_header_of_a_page_names_the_next_page_with_all_that_was_requested(site: Site) -> None:
    site.application.ingest([smart_reading(f"{n:02d}") for n in range(7)])
    work(site.application)
    for path in (
        "devices?limit=3",
        "outlooks?status=good&limit=3",
        "devices?limit=3&since=of-a-forgotten-service",
    ):
        pages = [site.client.get(f"/api/v1/{path}")]
        while "next" in pages[-1].links:
            pages.append(site.client.get(pages[-1].url.join(pages[-1].links["next"]["url"])))
        seen = [one["device"] for page in pages for one in page.json()["items"]]
        assert seen == sorted(f"ST4000DM000_{n:02d}" for n in range(7)), path
        assert [page.json()["next"] is None for page in pages] == [False, False, True]
        asked = {name: value for name, value in pages[0].url.params.items() if name != "since"}
        assert all({**page.url.params} == asked | {"cursor": page.url.params["cursor"]} for page in pages[1:])


def test_the_header_of_a_page_of_changes_names_the_next_page_of_the_same_changes(site: Site) -> None:
    site.application.ingest([smart_reading(f"{n:02d}") for n in range(7)])
    work(site.application)
    at = site.client.get("/api/v1/devices?limit=1").json()["at"]
    site.application.ingest([smart_reading(f"1{n}") for n in range(3)])
    work(site.application)
    first = site.client.get(f"/api/v1/devices?limit=2&since={at}")
    assert not first.json()["full"]
    second = site.client.get(first.url.join(first.links["next"]["url"]))
    assert not second.json()["full"]
    assert [one["device"] for page in (first, second) for one in page.json()["items"]] == [
        f"ST4000DM000_1{n}" for n in range(3)
    ]
    assert "next" not in second.links


def test_a_cursor_of_somebody_else_is_a_problem(site: Site) -> None:
    assert site.client.get("/api/v1/devices?cursor=%21%21").status_code == 422


@pytest.mark.slow
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
        site.application.ingest([smart_reading(f"E{n}")])
        site.application.step_worker()
        time.sleep(0.02)
    site.application.halt("now", "test")
    listener.join(10)
    assert len(got) == 2
    assert "osds" in got[0][1]["kinds"]
    assert got[1][0] - got[0][0] >= 0.2


def test_a_listener_does_not_keep_the_server_from_ending(application: Application, serve: Serve) -> None:
    site = serve(application)
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
    application.changes.close()
    thread.join(15)
    assert not thread.is_alive()


@pytest.mark.slow
def test_requests_that_wait_for_a_list_to_be_written_anew_keep_no_other_request_out(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.application.ingest([smart_reading("A")])
    work(site.application)
    begun, go_on, write = threading.Semaphore(0), threading.Event(), IncrementalList.build_page_since

    def slowly(*given: Any) -> Any:
        begun.release()
        assert go_on.wait(60)
        return write(*given)

    monkeypatch.setattr(IncrementalList, "build_page_since", slowly)
    with ThreadPoolExecutor(60) as people:
        asked = [
            people.submit(httpx2.get, f"{site.client.base_url}/api/v1/osds", timeout=60) for _ in range(60)
        ]
        try:
            assert begun.acquire(timeout=30)
            for other in ("status", "outlooks", "drains", "forecast"):
                assert site.client.get(f"/api/v1/{other}", timeout=30).status_code == 200
        finally:
            go_on.set()
        assert {each.result().status_code for each in asked} == {200}
    assert not begun.acquire(blocking=False), "one writes it, for all"


@pytest.mark.slow
def test_sums_over_all_disks_are_counted_by_one_for_all_who_ask_at_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.application.ingest([smart_reading("A")])
    work(site.application)
    begun, go_on = threading.Semaphore(0), threading.Event()

    def slowly(*given: Any) -> FleetTally:
        begun.release()
        assert go_on.wait(60)
        return count_fleet_disks(*given)

    monkeypatch.setattr(status_routes, "count_fleet_disks", slowly)
    with ThreadPoolExecutor(60) as people:
        asked = [
            people.submit(httpx2.get, f"{site.client.base_url}/api/v1/status", timeout=60) for _ in range(60)
        ]
        try:
            assert begun.acquire(timeout=30)
            assert site.client.get("/api/v1/forecast", timeout=30).status_code == 200
        finally:
            go_on.set()
        assert {each.result().json()["readings"]["total"] for each in asked} == {1}
    assert not begun.acquire(blocking=False), "one counts, for all"


def test_a_list_that_is_asked_for_is_written_anew_before_anybody_hears_of_the_change(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.application.ingest([smart_reading("A")])
    work(site.application)
    assert len(site.client.get("/api/v1/devices").json()["items"]) == 1
    site.application.ingest([smart_reading("B")])
    work(site.application)
    monkeypatch.setattr(IncrementalList, "build_page", None)  # a request that builds a page would fail
    assert len(site.client.get("/api/v1/devices").json()["items"]) == 2


def test_a_halt_stands_and_is_told_even_where_a_list_cannot_be_written(application: Application) -> None:
    def broken(number: int) -> None:
        raise StoreBusy(f"change {number} cannot be looked at")

    application.changes.register_preparation(broken)
    before = application.changes.number
    assert application.halt("smoke", "somebody") == "smoke"
    assert application.changes.find_changes_since(before) == (
        before + 1,
        frozenset({ChangeKind.HALT, ChangeKind.STATUS, ChangeKind.DRAINS}),
    )


def test_an_answer_is_the_same_bytes_however_often_it_is_asked_for(site: Site) -> None:
    site.application.ingest([smart_reading(f"{n}") for n in range(20)])
    work(site.application)
    bodies = {site.client.get("/api/v1/outlooks").content for _ in range(3)}
    assert len(bodies) == 1
    assert len(msgspec.json.decode(bodies.pop())["items"]) == 20


@pytest.mark.parametrize(("taken", "packed"), [("gzip", "gzip"), ("identity", None)])
def test_a_long_answer_is_packed_for_who_can_unpack_it(site: Site, taken: str, packed: str | None) -> None:
    site.application.ingest([smart_reading(f"{n}") for n in range(20)])
    work(site.application)
    answer = site.client.get("/api/v1/outlooks", headers={"Accept-Encoding": taken})
    assert answer.headers.get("content-encoding") == packed
    assert len(answer.json()["items"]) == 20
    sent = int(answer.headers["content-length"])
    assert sent < len(answer.content) / 3 if packed else sent == len(answer.content)
    again = {"Accept-Encoding": taken, "If-None-Match": answer.headers["etag"]}
    assert site.client.get("/api/v1/outlooks", headers=again).status_code == 304


def test_a_short_answer_and_a_stream_of_events_are_not_packed(site: Site) -> None:
    packing = {"Accept-Encoding": "gzip"}
    assert "content-encoding" not in site.client.get("/api/v1/halt", headers=packing).headers
    with site.client.stream("GET", "/api/v1/events", headers=packing) as stream:
        assert "content-encoding" not in stream.headers
        assert next(stream.iter_lines()).startswith((":", "retry"))
