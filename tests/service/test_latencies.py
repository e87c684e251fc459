"""Latencies: what hosts counted reaches the store once, and what is wrong with a batch takes nothing else with it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest

from predrain.collector.delivery.spool import BATCH_RECORDS
from predrain.collector.delivery.web import WebSink
from predrain.data.ids import HostName, OsdId
from predrain.data.log.port import Record, Topic
from predrain.data.reading import LatencyBatch, LatencySummary
from predrain.data.store.faults import StoreFull
from predrain.data.windows import Windows
from predrain.data.wire import encode
from predrain.service.application import House
from predrain.service.scoring.deadletters import replay, standing
from tests.service.conftest import INGEST_TOKEN, NOON, Site

HOST = HostName("stor-01")


def summary(osd: int, minute: int = 0, **changes: object) -> LatencySummary:
    at = NOON - timedelta(minutes=10 - minute)
    made = LatencySummary(
        OsdId(osd), HOST, at, 60.0, 4_000, read_ms_p50=4.0, read_ms_p99=19.5, backfills_max=1
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def batch(*summaries: LatencySummary, lost: int = 0) -> LatencyBatch:
    return LatencyBatch(HOST, Windows.of(summaries), lost)


def kept(house: House, osd: int) -> list[LatencySummary]:
    while house.latencies.step().taken:
        pass
    return list(house.store.latency(osd, NOON - timedelta(hours=1)))


def test_a_batch_reaches_the_store_osd_by_osd(house: House) -> None:
    sent = [summary(1), summary(2), summary(1, minute=1)]
    assert house.latencies.ingest([batch(*sent)]) == ()
    assert kept(house, 1) == [sent[0], sent[2]]
    assert kept(house, 2) == [sent[1]]


def test_a_batch_that_comes_twice_counts_once(house: House) -> None:
    for _ in range(2):
        house.latencies.ingest([batch(summary(1))])
    assert kept(house, 1) == [summary(1)]


def test_a_summary_that_cannot_be_true_is_refused_and_its_neighbours_are_kept(house: House) -> None:
    wrong = summary(2, read_ms_p99=-1.0)
    ((place, why),) = house.latencies.ingest([batch(summary(3)), batch(summary(1), wrong)])
    assert place == 1
    assert "read_ms_p99 -1.0 of osd.2 on stor-01" in str(why)
    assert kept(house, 1) == [summary(1)]
    assert kept(house, 2) == []


def test_what_comes_past_the_door_is_judged_again_and_kept_as_a_dead_letter(house: House) -> None:
    half = encode(
        batch(summary(1), summary(2, window_seconds=0.0)), producer="stor-01", sequence=1, sent_at=NOON
    )
    house.log.append(Topic.LATENCY, [Record(HOST, half), Record(HOST, b"\x28\xb5\x2f\xfd torn")])
    assert kept(house, 1) == [summary(1)]
    letters = standing(house.log).letters
    assert [letter.value for letter in letters] == [half, b"\x28\xb5\x2f\xfd torn"]
    assert "1 of 2 summaries are refused" in letters[0].reason
    assert "no envelope" in letters[1].reason
    assert replay(house.log).sent == 2
    assert kept(house, 1) == [summary(1)]


def test_losses_that_hosts_tell_are_counted(house: House) -> None:
    house.latencies.ingest([batch(lost=7), batch(summary(1), lost=5)])
    assert house.latencies.step().lost == 12


def test_losses_of_a_batch_that_comes_twice_are_counted_once(house: House) -> None:
    for minute in (1, 2, 1, 2, 3):
        house.latencies.ingest([batch(summary(1, minute), lost=5)])
    assert house.latencies.step().lost == 15


def test_losses_that_a_backlog_tells_after_the_newest_batch_are_counted_too(house: House) -> None:
    house.latencies.ingest([batch(summary(1, 9)), batch(summary(1, 1), lost=5), batch(summary(1, 2), lost=6)])
    assert house.latencies.step().lost == 11


def test_losses_of_a_step_that_failed_are_counted_by_the_next(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.latencies.ingest([batch(summary(1), lost=5)])
    with monkeypatch.context() as full:
        full.setattr(house.store, "add_latency", Mock(side_effect=StoreFull("full")))
        with pytest.raises(StoreFull):
            house.latencies.step()
    assert house.latencies.step().lost == 5


def test_collectors_without_kafka_post_their_batches(site: Site) -> None:
    sealed = encode(batch(summary(1), summary(2)), producer="stor-01", sequence=1, sent_at=NOON)
    answer = site.client.post(
        "/api/v1/latency", json=[json.loads(sealed), {"schema": "reading"}], headers=site.ingesting
    )
    assert answer.status_code == 207
    body = answer.json()
    assert body["accepted"] == 1
    assert [one["index"] for one in body["refused"]] == [1]
    assert kept(site.house, 2) == [summary(2)]


def test_a_collector_can_read_what_is_said_of_a_backlog_under_a_wrong_clock(site: Site) -> None:
    before_2000 = {"window_start": datetime(1970, 1, 1, tzinfo=UTC)}
    backlog = encode(
        batch(*(summary(osd, **before_2000) for osd in range(60))),
        producer="stor-01",
        sequence=1,
        sent_at=NOON,
    )
    sink = WebSink(str(site.client.base_url), lambda: INGEST_TOKEN)
    refused = sink.deliver(Topic.LATENCY, [Record(HOST, backlog)] * BATCH_RECORDS).refused
    assert len(refused) == BATCH_RECORDS
    assert "60 of 60 summaries are refused, the first: window_start 1970" in refused[0]
    assert "set that host's clock" in refused[0]


def test_who_may_not_ingest_may_not_post_latencies(site: Site) -> None:
    assert site.client.post("/api/v1/latency", json=[]).status_code == 401
