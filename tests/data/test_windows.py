"""The latencies of a host's OSDs by column: put together and taken apart, sent over the wire, and judged."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.ids import ClusterId, HostName, OsdId
from predrain.data.latency_windows import LatencyBatch, LatencySummary, LatencyWindows
from predrain.data.wire import (
    NotAccepted,
    UndecodableRecord,
    accept_latency,
    accept_windows,
    decode_envelope,
    encode_envelope,
)
from predrain.data.wire.latency_wire import ONE_BY_ONE

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOST = HostName("stor-01")
FULL = LatencySummary(
    OsdId(3), HOST, NOON, 60.0, 100, 1.0, 9.0, 2.0, 8.0, 3.0, 7.0, 4.0, 5.0, 6.0, 2, 1, False, True
)
BARE = LatencySummary(OsdId(4), HOST, NOON, 60.0, 0)

_ms = st.none() | st.floats(-1e300, 1e300)
SUMMARIES = st.builds(
    LatencySummary,
    st.builds(OsdId, st.integers(-1, 3)),
    st.sampled_from([HOST, HostName("stor-02")]),
    st.sampled_from([NOON, NOON + timedelta(minutes=1), NOON + timedelta(days=1)]),
    st.sampled_from([60.0, 0.0, -1.0]),
    st.integers(-1, 2**62),
    *([_ms] * 9),
    st.none() | st.integers(-1, 9),
    st.none() | st.integers(-1, 9),
    st.none() | st.booleans(),
    st.none() | st.booleans(),
)


def test_an_osd_of_two_clusters_is_in_windows_of_its_own() -> None:
    theirs = replace(FULL, cluster=ClusterId("11111111-1111-4111-8111-111111111111"), operations=7)
    windows = LatencyWindows.from_summaries([FULL, theirs])
    assert [one.summaries() for one in windows] == [(FULL,), (theirs,)]
    assert windows[1].find_osd_summary(FULL.osd) == theirs


@pytest.mark.parametrize("fsid", ["", "ceph", "11111111-1111-4111-8111-11111111111A"])
def test_windows_with_a_cluster_that_is_no_fsid_are_refused(fsid: str) -> None:
    batch = decode_envelope(
        changed(LatencyBatch(HOST, LatencyWindows.from_summaries([FULL])), cluster=fsid), LatencyBatch
    )
    kept, (why,) = accept_windows(batch.body.windows[0], NOON)
    assert kept is None
    assert why.startswith(f"cluster {fsid!r} of osd.3 on stor-01 is no fsid")


def sealed(batch: LatencyBatch) -> bytes:
    return encode_envelope(batch, producer="stor-01", sequence=1, sent_at=NOON)


def changed(batch: LatencyBatch, **columns: Any) -> bytes:
    """An envelope of `batch` with columns of its first windows changed."""
    document = json.loads(sealed(batch))
    document["body"]["windows"][0].update(columns)
    return json.dumps(document).encode()


@given(st.lists(SUMMARIES, max_size=8))
def test_summaries_come_back_from_columns_each_once(summaries: list[LatencySummary]) -> None:
    first = {(one.host, one.window_start, one.osd): one for one in reversed(summaries)}
    windows = LatencyWindows.from_summaries(summaries)
    assert [one for group in windows for one in group.summaries()] == [first[key] for key in sorted(first)]
    for (host, start, osd), one in first.items():
        (mine,) = (group for group in windows if (group.host, group.window_start) == (host, start))
        assert mine.find_osd_summary(osd) == one


@given(st.lists(SUMMARIES, max_size=8))
def test_windows_over_the_wire_are_judged_as_their_summaries_are(summaries: list[LatencySummary]) -> None:
    batch = LatencyBatch(HOST, LatencyWindows.from_summaries(summaries))
    body = decode_envelope(sealed(batch), LatencyBatch).body
    assert body == batch
    kept: list[LatencySummary] = []
    refused: list[str] = []
    for one in batch.summaries:
        try:
            kept.append(accept_latency(one, NOON))
        except NotAccepted as why:
            refused.append(str(why))
    judged = [accept_windows(one, NOON) for one in body.windows]
    assert [one for windows, _ in judged if windows is not None for one in windows.summaries()] == kept
    assert [why for _, reasons in judged for why in reasons] == refused


def test_a_batch_of_an_older_collector_is_read_as_ever() -> None:
    batch = LatencyBatch(HOST, LatencyWindows.from_summaries([FULL, BARE]), 7)
    document = json.loads(sealed(batch))
    older = {**document, "version": 1, "body": json.loads(ONE_BY_ONE.write(batch))}
    assert decode_envelope(json.dumps(older).encode(), LatencyBatch).body == batch


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"iops": [1.0]}, "not of one length"),
        ({"osd": [3, 3]}, "an OSD is twice"),
        ({"osd": [], "window_seconds": [], "operations": []}, "empty"),
        ({"operations": [1, None]}, "Expected `int`, got `null`"),
        ({"window_start": "2026-03-01T12:00:00"}, "timezone"),
        ({"mood": [1, 2]}, "unknown field `mood`"),
    ],
)
def test_columns_that_do_not_fit_are_no_batch(columns: dict[str, Any], why: str) -> None:
    raw = changed(LatencyBatch(HOST, LatencyWindows.from_summaries([FULL, BARE])), **columns)
    with pytest.raises(UndecodableRecord, match=why):
        decode_envelope(raw, LatencyBatch)


def test_a_column_that_no_osd_reports_takes_no_room_on_the_wire() -> None:
    (told,) = json.loads(sealed(LatencyBatch(HOST, LatencyWindows.from_summaries([BARE]))))["body"]["windows"]
    assert told.keys() == {"window_start", "osd", "window_seconds", "operations"}


def test_of_windows_that_are_joined_those_that_were_there_stay() -> None:
    (kept,), (fresh,) = (
        LatencyWindows.from_summaries([FULL]),
        LatencyWindows.from_summaries([replace(FULL, operations=1), BARE]),
    )
    assert kept.add_missing_osds(fresh).summaries() == (FULL, BARE)
    assert kept.add_missing_osds(kept) is kept
