"""REST over a real server: readings come in, whole, in part, or not at all."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from predrain.data.ids import DeviceId
from predrain.data.log.log_port import LogFull, Record, Topic
from predrain.data.log.memory_log import MemoryLog
from predrain.data.reading import Unreadable
from tests.service.conftest import NOON, Place, Serve, Site, envelope, shut, smart_reading, week_of
from tests.service.test_worker import work

SMART = Path(__file__).parents[1] / "data" / "smart" / "samples"


def test_envelopes_that_are_sent_come_out_as_outlooks(site: Site) -> None:
    sent = [envelope(site.application, reading) for reading in week_of("A", pending=40)]
    answer = site.client.post("/api/v1/readings", json=sent, headers=site.ingesting)
    assert (answer.status_code, answer.json()) == (200, {"accepted": 8, "refused": []})
    work(site.application)
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


class CountingLog(MemoryLog):
    """A log that is slow to append, and counts how many threads do so at once."""

    def __init__(self) -> None:
        super().__init__()
        self.most = self._now = 0

    def append(self, topic: Topic, records: Sequence[Record]) -> None:
        if topic is Topic.READINGS:
            self._now += 1
            self.most = max(self.most, self._now)
            time.sleep(0.1)
            self._now -= 1
        super().append(topic, records)


def test_deliveries_that_come_at_once_are_taken_in_one_after_the_other(place: Place, serve: Serve) -> None:
    """Each one more would take its turns of the processor from the worker that scores."""
    log = CountingLog()
    application = place.application(log=log)
    site = serve(application)

    def deliver(serial: str) -> int:
        sent = [envelope(application, smart_reading(serial))]
        return site.client.post("/api/v1/readings", json=sent, headers=site.ingesting).status_code

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(deliver, "ABCD")) == {200}
    assert log.most == 1
    shut(application)


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
    work(site.application)
    hosts = {one["host"] for one in site.client.get("/api/v1/devices").json()["items"]}
    assert hosts == {"stor-07"}


def test_a_document_that_tells_a_disks_name_alone_is_a_disk_that_could_not_be_read(site: Site) -> None:
    words = "A mandatory SMART command failed: exiting."
    document = {
        "smartctl": {"exit_status": 4, "output": [words]},
        "device": {"name": "/dev/sda", "type": "sat", "protocol": "ATA"},
        "model_name": "ST4000DM000",
        "serial_number": "Z1",
    }
    answer = site.client.post("/api/v1/readings", json=[document], headers=site.ingesting)
    assert answer.json()["accepted"] == 1
    work(site.application)
    (reading,) = site.application.store.readings(DeviceId("ST4000DM000_Z1"))
    assert isinstance(reading.seen, Unreadable)
    assert words.rstrip(".") in reading.seen.why


def test_a_document_of_a_disk_that_sleeps_is_refused_and_no_failure(site: Site) -> None:
    said = {"exit_status": 2, "messages": [{"string": "Device is in STANDBY mode, exit(2)"}]}
    document = {"smartctl": said, "model_name": "ST4000DM000", "serial_number": "Z1", "wwn": {}}
    (refused,) = site.client.post("/api/v1/readings", json=[document], headers=site.ingesting).json()[
        "refused"
    ]
    assert "STANDBY" in refused["reason"]


def _whole(body: bytes) -> bool:
    try:
        json.loads(body)
    except ValueError:
        return False
    return True


def test_bad_readings_are_refused_one_by_one_and_the_good_ones_are_kept(site: Site) -> None:
    good = envelope(site.application, smart_reading("A"))
    future = envelope(site.application, smart_reading("B", NOON + timedelta(hours=1)))
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
    sent = [envelope(site.application, smart_reading("A"))] * 2
    assert site.client.post("/api/v1/readings", json=sent, headers=site.ingesting).json()["accepted"] == 2
    work(site.application)
    assert len(site.application.store.readings(smart_reading("A").device)) == 1


@pytest.mark.parametrize("body", [b"", b"{", b"7", b'{"a": 1}', b"\xff\xfe", b"[1, 2"])
def test_a_body_that_is_no_array_is_a_problem(site: Site, body: bytes) -> None:
    answer = site.client.post("/api/v1/readings", content=body, headers=site.ingesting)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["readings", "latency"])
@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b"[" + b"[" * 100_000 + b"]" * 100_000 + b"]",
        b'[{"schema": "reading", "version": 1, "body": ' + b'{"a": ' * 50_000 + b"1" + b"}" * 50_001 + b"]",
    ],
)
def test_a_body_without_a_bottom_is_a_problem_like_any_other(site: Site, path: str, body: bytes) -> None:
    answer = site.client.post(f"/api/v1/{path}", content=body, headers=site.ingesting)
    assert answer.status_code == 422
    assert "32 levels of arrays and objects" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["readings", "latency"])
def test_a_small_body_does_not_ask_for_a_huge_answer(site: Site, path: str) -> None:
    body = b"[" + b"1," * 200_000 + b"1]"
    answer = site.client.post(f"/api/v1/{path}", content=body, headers=site.ingesting)
    assert answer.status_code == 413
    assert "10,000" in answer.json()["detail"]
    assert "send it in parts" in answer.json()["detail"]


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
    from predrain.data.log.sqlite_log import SqliteLog

    log = FullDisk(SqliteLog(place.state.log))
    application = place.application(log=log)  # type: ignore[arg-type]
    application.start()
    site = serve(application)
    sent = [envelope(application, smart_reading("A"))]
    assert site.client.post("/api/v1/readings", json=sent, headers=site.ingesting).status_code == 200
    log.full = True
    answer = site.client.post(
        "/api/v1/readings", json=[envelope(application, smart_reading("B"))], headers=site.ingesting
    )
    assert answer.status_code == 503
    assert "make room" in answer.json()["detail"]
    assert answer.headers["retry-after"]
    log.full = False
    work(application)
    assert set(application.store.latest_outlooks()) == {"ST4000DM000_A"}
    shut(application)
