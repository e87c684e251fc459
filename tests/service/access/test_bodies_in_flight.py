"""Deliveries that find no free room: the answer names the seconds to wait, and no accepted record is lost."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from predrain.collector.delivery import Shipper, SinkUnavailable, Spool, WebSink
from predrain.collector.delivery.http_sink import LONGEST_ANSWER
from predrain.data.ids import HostName
from predrain.data.log.log_port import Record, Topic
from predrain.data.refusal import Refusal
from predrain.service.rest.problem_answers import LONGEST_FAULT, LONGEST_PLACE, MOST_FAULTS
from predrain.service.rest.reading_routes import MOST_REASONS, NO_REASON, answer_delivery
from tests.service.access.test_http_attacks import connect
from tests.service.conftest import (
    INGEST_TOKEN,
    NOON,
    Place,
    Serve,
    SetClock,
    Site,
    envelope,
    shut,
    smart_reading,
    with_service,
)

SMALL_LIMIT = 64 * 1024


@pytest.fixture
def narrow(place: Place, serve: Serve) -> Any:
    """A service that has room for two bodies of 64 KiB."""
    application = with_service(place, body_limit_bytes=SMALL_LIMIT).application()
    application.start()
    yield serve(application)
    shut(application)


def sink_of(site: Site) -> WebSink:
    return WebSink(str(site.client.base_url).rstrip("/"), lambda: INGEST_TOKEN)


def held(site: Site, bytes_: int) -> Any:
    """A delivery of which all but one byte has come."""
    connection = connect(site.client)
    connection.sendall(
        f"POST /api/v1/readings HTTP/1.1\r\nHost: localhost\r\nContent-Length: {bytes_}\r\n"
        f"Authorization: Bearer {INGEST_TOKEN}\r\n\r\n".encode()
        + b" " * (bytes_ - 1)
    )
    return connection


def until_refused(site: Site, sink: WebSink, records: list[Record]) -> SinkUnavailable:
    # A delivery that comes before all of the bodies that are held would take the room of one of them.
    time.sleep(1.5)
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            sink.deliver(Topic.READINGS, records)
        except SinkUnavailable as away:
            return away
        time.sleep(0.05)
    pytest.fail("a full service took more")


@pytest.mark.slow
def test_a_collector_is_told_when_to_come_again_and_delivers_then(narrow: Site) -> None:
    reading = smart_reading("A")
    record = Record(reading.device, json.dumps(envelope(narrow.application, reading)).encode())
    sink = sink_of(narrow)
    with held(narrow, SMALL_LIMIT) as first, held(narrow, SMALL_LIMIT):
        away = until_refused(narrow, sink, [record])
        assert away.after >= 1, "seconds of Retry-After"
        assert "nothing of this one was accepted" in str(away)
        accepted = narrow.application.counts["accepted"]
        first.close()
        end = time.monotonic() + 30
        while True:
            try:
                answer = sink.deliver(Topic.READINGS, [record])
                break
            except SinkUnavailable:
                assert time.monotonic() < end
                time.sleep(0.05)
    assert (answer.refused, answer.later) == ((), ())
    assert narrow.application.counts["accepted"] == accepted + 1


@pytest.mark.slow
def test_a_courier_stays_away_for_as_long_as_it_was_asked_and_keeps_what_it_has(
    narrow: Site, tmp_path: Any
) -> None:
    spool = Spool(tmp_path / "spool.sqlite", HostName("stor-01"), Random(1))
    clock = SetClock(NOON + timedelta(seconds=1))
    spool.accept([smart_reading("A")], clock.now())
    courier = Shipper(spool, sink_of(narrow), clock, Random(1))
    with held(narrow, SMALL_LIMIT), held(narrow, SMALL_LIMIT):
        until_refused(narrow, sink_of(narrow), [Record("any", b"[]")])
        assert courier.ship_batch() >= 2.0
        assert spool.read_status().readings == 1
    spool.close()


def test_bytes_that_went_make_room_again_however_they_went(narrow: Site) -> None:
    for _ in range(5):
        for one in (held(narrow, SMALL_LIMIT), held(narrow, SMALL_LIMIT)):
            one.close()
    end = time.monotonic() + 30
    body = b" " * (SMALL_LIMIT - 2) + b"[]"
    while narrow.client.post("/api/v1/readings", content=body, headers=narrow.ingesting).status_code != 200:
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("route", ["session", "enrolment", "halt", "drains", "readings"])
def test_before_anybody_is_known_a_body_is_at_most_8_kib(site: Site, route: str) -> None:
    answer = site.client.post(f"/api/v1/{route}", content=b'{"a":"' + b"x" * 9_000 + b'"}')
    assert answer.status_code == 413
    assert "8192 bytes" in answer.json()["detail"]


def test_a_made_up_token_makes_no_body_larger(site: Site) -> None:
    answer = site.client.post(
        "/api/v1/readings", content=b" " * 100_000, headers={"Authorization": "Bearer nonsense"}
    )
    assert answer.status_code == 413


def test_an_answer_names_a_few_faults_in_short_and_never_what_was_sent(site: Site) -> None:
    sent = {f"key-{number}-{'x' * 150}": "secret" for number in range(40)}
    answer = site.client.post("/api/v1/session", json=sent)
    assert answer.status_code == 422
    faults = answer.json()["errors"]
    assert len(faults) == MOST_FAULTS
    assert all(len(one["where"]) <= LONGEST_PLACE and len(one["what"]) <= LONGEST_FAULT for one in faults)
    assert "secret" not in answer.text
    assert "and 38 more" in answer.json()["detail"]
    assert len(answer.content) < 8_192


def test_reasons_of_refused_readings_stay_below_what_a_collector_reads() -> None:
    answer = answer_delivery(0, [(index, Refusal("x" * 900)) for index in range(10_000)])
    assert answer.status_code == 207
    refused = json.loads(answer.body)["refused"]
    assert [one["index"] for one in refused] == list(range(10_000))
    assert {one["reason"] for one in refused[MOST_REASONS:]} == {NO_REASON}
    assert len(answer.body) < LONGEST_ANSWER
