"""Latencies: what hosts counted reaches the store once, and what is wrong with a batch takes nothing else with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest
from structlog.testing import capture_logs

from predrain.collector.delivery.http_sink import WebSink
from predrain.collector.delivery.spool import BATCH_RECORDS
from predrain.data.ids import ClusterId, HostName, OsdId
from predrain.data.latency_windows import LatencyBatch, LatencySummary, LatencyWindows
from predrain.data.log.log_port import Record, Topic
from predrain.data.store.store_faults import StoreFull
from predrain.data.wire import encode_envelope
from predrain.service.app.application import Application
from predrain.service.streams.dead_letters import list_dead_letters, replay_dead_letters
from tests.service.conftest import INGEST_TOKEN, NOON, Site

HOST = HostName("stor-01")
OURS = ClusterId("00000000-0000-4000-8000-000000000000")
THEIRS = ClusterId("11111111-1111-4111-8111-111111111111")
EVER = datetime(2000, 1, 1, tzinfo=UTC)
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "wire"


@pytest.fixture
def caplog_events() -> Iterator[list[dict[str, object]]]:
    """The lines of the log, as they are logged."""
    with capture_logs() as lines:
        yield lines  # type: ignore[misc]


def summary(osd: int, minute: int = 0, **changes: object) -> LatencySummary:
    at = NOON - timedelta(minutes=10 - minute)
    made = LatencySummary(
        OsdId(osd), HOST, at, 60.0, 4_000, read_ms_p50=4.0, read_ms_p99=19.5, backfills_max=1
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def batch(*summaries: LatencySummary, lost: int = 0) -> LatencyBatch:
    return LatencyBatch(HOST, LatencyWindows.from_summaries(summaries), lost)


def kept(application: Application, osd: int) -> list[LatencySummary]:
    while application.latencies.step().taken:
        pass
    return list(application.store.read_latency_summaries(osd, NOON - timedelta(hours=1)))


def test_a_batch_reaches_the_store_osd_by_osd(application: Application) -> None:
    sent = [summary(1), summary(2), summary(1, minute=1)]
    assert application.latencies.ingest([batch(*sent)]) == ()
    assert kept(application, 1) == [sent[0], sent[2]]
    assert kept(application, 2) == [sent[1]]


def test_a_batch_that_comes_twice_counts_once(application: Application) -> None:
    for _ in range(2):
        application.latencies.ingest([batch(summary(1))])
    assert kept(application, 1) == [summary(1)]


def test_a_summary_that_cannot_be_true_is_refused_and_its_neighbours_are_kept(
    application: Application,
) -> None:
    wrong = summary(2, read_ms_p99=-1.0)
    ((place, why),) = application.latencies.ingest([batch(summary(3)), batch(summary(1), wrong)])
    assert place == 1
    assert "read_ms_p99 -1.0 of osd.2 on stor-01" in str(why)
    assert kept(application, 1) == [summary(1)]
    assert kept(application, 2) == []


def test_latencies_of_another_cluster_are_stored_apart_and_logged_once(
    application: Application, caplog_events: list[dict[str, object]]
) -> None:
    application.store.bind_cluster(OURS)
    ours, theirs = summary(1, cluster=OURS), summary(1, cluster=THEIRS, operations=7)
    for minute in range(2):
        later = [
            replace(one, window_start=one.window_start + timedelta(minutes=minute)) for one in (ours, theirs)
        ]
        application.latencies.ingest([batch(*later)])
        application.latencies.step()
    assert {one.cluster for one in kept(application, 1)} == {OURS}
    assert [one.operations for one in application.store.read_latency_summaries(1, EVER, THEIRS)] == [7, 7]
    warned = [one for one in caplog_events if one["event"] == "a host reports OSDs of another cluster"]
    assert [(one["host"], one["cluster"]) for one in warned] == [(HOST, THEIRS)]


def test_a_batch_of_a_collector_that_does_not_know_the_cluster_is_of_the_own_one(
    application: Application,
) -> None:
    """The recorded bytes are those of version 2 of the wire."""
    raw = (GOLDEN / "latency_batch.v2.json").read_bytes()
    application.store.bind_cluster(OURS)
    application.log.append(Topic.LATENCY, [Record("ceph-17", raw)])
    kept(application, 17)
    found = application.store.read_latency_summaries(18, EVER)
    assert [(one.host, one.cluster) for one in found] == [("ceph-17", OURS)]


def test_a_bad_batch_written_directly_to_the_log_is_checked_again_and_kept_as_a_dead_letter(
    application: Application,
) -> None:
    half = encode_envelope(
        batch(summary(1), summary(2, window_seconds=0.0)), producer="stor-01", sequence=1, sent_at=NOON
    )
    application.log.append(Topic.LATENCY, [Record(HOST, half), Record(HOST, b"\x28\xb5\x2f\xfd torn")])
    assert kept(application, 1) == [summary(1)]
    letters = list_dead_letters(application.log).letters
    assert [letter.value for letter in letters] == [half, b"\x28\xb5\x2f\xfd torn"]
    assert "1 of 2 summaries are refused" in letters[0].reason
    assert "no envelope" in letters[1].reason
    assert replay_dead_letters(application.log).sent == 2
    assert kept(application, 1) == [summary(1)]


def test_losses_that_hosts_tell_are_counted(application: Application) -> None:
    application.latencies.ingest([batch(lost=7), batch(summary(1), lost=5)])
    assert application.latencies.step().lost == 12


def test_losses_of_a_batch_that_comes_twice_are_counted_once(application: Application) -> None:
    for minute in (1, 2, 1, 2, 3):
        application.latencies.ingest([batch(summary(1, minute), lost=5)])
    assert application.latencies.step().lost == 15


def test_losses_that_a_backlog_tells_after_the_newest_batch_are_counted_too(application: Application) -> None:
    application.latencies.ingest(
        [batch(summary(1, 9)), batch(summary(1, 1), lost=5), batch(summary(1, 2), lost=6)]
    )
    assert application.latencies.step().lost == 11


def test_losses_of_a_step_that_failed_are_counted_by_the_next(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    application.latencies.ingest([batch(summary(1), lost=5)])
    with monkeypatch.context() as full:
        full.setattr(application.store, "add_latency", Mock(side_effect=StoreFull("full")))
        with pytest.raises(StoreFull):
            application.latencies.step()
    assert application.latencies.step().lost == 5


def test_collectors_without_kafka_post_their_batches(site: Site) -> None:
    sealed = encode_envelope(batch(summary(1), summary(2)), producer="stor-01", sequence=1, sent_at=NOON)
    answer = site.client.post(
        "/api/v1/latency", json=[json.loads(sealed), {"schema": "reading"}], headers=site.ingesting
    )
    assert answer.status_code == 207
    body = answer.json()
    assert body["accepted"] == 1
    assert [one["index"] for one in body["refused"]] == [1]
    assert kept(site.application, 2) == [summary(2)]


def test_a_collector_can_read_what_is_said_of_a_backlog_under_a_wrong_clock(site: Site) -> None:
    before_2000 = {"window_start": datetime(1970, 1, 1, tzinfo=UTC)}
    backlog = encode_envelope(
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


def test_a_caller_without_a_token_may_not_post_latencies(site: Site) -> None:
    assert site.client.post("/api/v1/latency", json=[]).status_code == 401
