"""The spool: what is accepted stays until it is acknowledged, and what has to go goes in the order of its worth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.collector.delivery import Spool, SpoolLimits, SpoolStatus, SpoolUnusable, read_spool_status
from predrain.collector.delivery.spool import DeliveryBatch
from predrain.data.ids import HostName
from predrain.data.latency_windows import LatencyBatch
from predrain.data.log.log_port import Topic
from predrain.data.reading import Reading
from predrain.data.wire import decode_envelope
from tests.collector.delivery.parcels import HOST, NOON, batch_of, reading, reading_of, summary

READING_BYTES = 700  # of an entry, above what one of these readings takes


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "spool.db"


def opened(path: Path, room: SpoolLimits | None = None) -> Spool:
    return Spool(path, HOST, Random(7), room)


def batches(spool: Spool) -> Iterator[DeliveryBatch]:
    """Everything, each batch acknowledged."""
    while (batch := spool.take_batch()) is not None:
        yield batch
        spool.settle_batch(batch, NOON)


def hours(spool: Spool) -> list[float]:
    """Of every reading that is left, in the order in which they are handed out."""
    return [
        (reading_of(record).taken_at - NOON) / timedelta(hours=1)
        for batch in batches(spool)
        if batch.topic is Topic.READINGS
        for record in batch.records
    ]


def test_an_accepted_reading_is_handed_out_until_it_is_acknowledged(path: Path) -> None:
    spool = opened(path)
    spool.accept([reading(1), reading(2)], NOON)
    first = spool.take_batch()
    assert first is not None
    assert spool.take_batch() == first
    spool.settle_batch(first, NOON)
    assert spool.take_batch() is None
    assert spool.read_status() == SpoolStatus(0, 0, 0, 0, 0, 0, int(NOON.timestamp()))
    spool.close()


def test_a_restart_hands_out_the_same_bytes_and_goes_on_counting(path: Path) -> None:
    spool = opened(path)
    spool.accept([reading(1)], NOON)
    before = spool.take_batch()
    spool.close()

    spool = opened(path)
    assert spool.take_batch() == before
    spool.accept([reading(2)], NOON)
    after = spool.take_batch()
    assert after is not None
    envelopes = [decode_envelope(record.value, Reading) for record in after.records]
    assert [envelope.sequence for envelope in envelopes] == [0, 1]
    assert len({envelope.producer for envelope in envelopes}) == 1
    spool.close()


def test_readings_are_keyed_by_device_and_latencies_by_host(path: Path) -> None:
    spool = opened(path)
    spool.accept([reading(1)], NOON)
    spool.accept_latency([summary(3), summary(4)], NOON)
    keys = {batch.topic: [record.key for record in batch.records] for batch in batches(spool)}
    assert keys == {Topic.READINGS: ["ST4000DM000_0001"], Topic.LATENCY: [HOST]}
    spool.close()


def test_the_newest_reading_of_each_disk_goes_first_and_then_the_backlog_oldest_first(path: Path) -> None:
    spool = opened(path)
    for hour in range(3):
        spool.accept([reading(disk, hour) for disk in (1, 2)], NOON)
        spool.accept_latency([summary(3, hour)], NOON)
    told = [(batch.topic, batch.late, len(batch.records)) for batch in batches(spool)]
    assert told == [
        (Topic.READINGS, False, 2),
        (Topic.LATENCY, False, 1),
        (Topic.READINGS, True, 4),
        (Topic.LATENCY, True, 2),
    ]
    for hour in range(3):
        spool.accept([reading(1, hour)], NOON)
    assert hours(spool) == [2, 0, 1]
    spool.close()


def test_a_reading_that_comes_in_goes_before_what_is_left_of_the_backlog(path: Path) -> None:
    spool = opened(path)
    for hour in range(3):
        spool.accept([reading(1, hour)], NOON)
    first = spool.take_batch()
    assert first is not None
    spool.settle_batch(first, NOON)
    spool.accept([reading(1, 3)], NOON)
    assert hours(spool) == [3, 0, 1]
    spool.close()


def test_a_full_spool_gives_up_the_oldest_latencies_first_and_says_so_in_the_next_batch(path: Path) -> None:
    spool = opened(path, SpoolLimits(bytes=20 * READING_BYTES))
    for minute in range(100):
        spool.accept_latency([summary(osd, minute) for osd in range(4)], NOON)
    spool.accept([reading(disk) for disk in range(10)], NOON)
    standing = spool.read_status()
    assert standing.readings == 10
    assert standing.lost_readings == 0
    assert standing.bytes <= 20 * READING_BYTES
    sent = [
        batch_of(record)
        for batch in batches(spool)
        if batch.topic is Topic.LATENCY
        for record in batch.records
    ]
    minutes = sorted(batch.summaries[0].window_start for batch in sent)
    assert minutes == [NOON + timedelta(minutes=m) for m in range(100 - len(minutes), 100)]
    spool.accept_latency([summary(0, 100)], NOON)
    (last,) = batches(spool)
    lost = sum(batch.lost for batch in sent) + batch_of(last.records[0]).lost
    assert lost == standing.lost_summaries == 400 - sum(len(batch.summaries) for batch in sent)
    spool.close()


def test_no_reading_goes_for_a_latency(path: Path) -> None:
    spool = opened(path, SpoolLimits(bytes=10 * READING_BYTES))
    while spool.read_status().lost_readings == 0:
        spool.accept([reading(spool.read_status().readings)], NOON)
    full = spool.read_status()
    spool.accept_latency([summary(0)], NOON)
    assert spool.read_status().readings == full.readings
    assert spool.read_status().lost_readings == 1
    assert spool.read_status().lost_summaries == 1
    spool.close()


def test_with_no_latency_left_the_oldest_readings_go_and_are_counted(path: Path) -> None:
    spool = opened(path, SpoolLimits(bytes=10 * READING_BYTES))
    for hour in range(50):
        spool.accept([reading(1, hour)], NOON)
    left = spool.read_status().readings
    assert spool.read_status().lost_readings == 50 - left
    assert sorted(hours(spool)) == list(range(50 - left, 50))
    spool.close()


def test_a_batch_on_its_way_to_the_sink_is_not_given_up(path: Path) -> None:
    spool = opened(path, SpoolLimits(bytes=10 * READING_BYTES))
    spool.accept([reading(1)], NOON)
    on_its_way = spool.take_batch()
    assert on_its_way is not None
    for hour in range(50):
        spool.accept([reading(2, hour)], NOON)
    assert spool.take_batch() != on_its_way  # the newest of disk 2 is newer
    spool.settle_batch(on_its_way, NOON)
    assert spool.read_status().readings + spool.read_status().lost_readings == 50
    spool.close()


def test_a_reading_too_old_by_the_running_time_of_the_collector_is_given_up(path: Path) -> None:
    spool = opened(path, SpoolLimits(days=1))
    for hour in range(30):
        spool.accept([reading(1, hour)], NOON + timedelta(hours=hour))
    assert spool.read_status().lost_readings == 5
    spool.close()


def test_a_jump_of_the_hosts_clock_makes_nothing_too_old(path: Path) -> None:
    spool = opened(path, SpoolLimits(days=1))
    spool.accept([reading(1)], NOON)
    spool.accept([reading(1, 1)], NOON + timedelta(days=400))
    spool.accept([reading(1, 2)], NOON)
    assert spool.read_status() == SpoolStatus(3, 0, spool.read_status().bytes, 0, 0, 0, None)
    spool.close()


def test_a_reading_too_long_to_send_is_refused_and_the_others_are_kept(path: Path) -> None:
    spool = opened(path)
    (told,) = spool.accept([reading(1), reading(2, model="x" * (1 << 20)), reading(3)], NOON)
    assert "ST4000DM000_0002" in told
    assert "1,048,576" in told
    assert (spool.read_status().readings, spool.read_status().refused) == (2, 1)
    spool.close()


def test_a_second_collector_is_refused_the_spool(path: Path) -> None:
    spool = opened(path)
    with pytest.raises(SpoolUnusable, match="another collector"):
        opened(path)
    spool.close()
    opened(path).close()


@pytest.mark.parametrize("companions", [True, False])
def test_a_damaged_spool_is_moved_aside_and_a_new_one_begun(path: Path, companions: bool) -> None:
    spool = opened(path)
    spool.accept([reading(1)], NOON)
    spool.close()
    path.write_bytes(b"no database at all" * 1000)
    if companions:
        path.with_name("spool.db-wal").write_bytes(b"nor a log")
    spool = opened(path)
    assert path.with_name("spool.db.damaged").read_bytes().startswith(b"no database")
    spool.accept([reading(2)], NOON)
    assert spool.read_status().readings == 1
    spool.close()


def test_a_spool_damaged_while_it_is_used_goes_on_in_a_new_one_that_old_batches_do_not_settle(
    path: Path,
) -> None:
    spool = opened(path)
    spool.accept([reading(1), reading(2)], NOON)
    taken = spool.take_batch()
    assert taken is not None
    for part in path.parent.glob("spool.db*"):
        with part.open("r+b") as file:  # in place: another process, or the disk, wrote over it
            file.write(b"\xff" * part.stat().st_size)
    spool.accept([reading(3)], NOON)
    spool.settle_batch(taken, NOON)
    assert path.with_name("spool.db.damaged").exists()
    assert spool.read_status().readings == 1
    spool.close()


def test_a_spool_that_is_damaged_where_nothing_can_be_moved_counts_what_is_lost_and_goes_on_when_it_can(
    path: Path,
) -> None:
    """As on a disk whose file system has become read-only."""
    spool = opened(path)
    spool.accept([reading(1)], NOON)
    in_the_way = path.with_name("spool.db.damaged")
    (in_the_way / "more").mkdir(parents=True)
    for part in path.parent.glob("spool.db*"):
        if part.is_file():
            with part.open("r+b") as file:
                file.write(b"\xff" * part.stat().st_size)
    for _ in range(2):
        (told,) = spool.accept([reading(2)], NOON)
        assert "cannot be moved aside" in told
        assert spool.take_batch() is None
    (in_the_way / "more").rmdir()
    in_the_way.rmdir()
    assert spool.accept([reading(3)], NOON) == ()
    assert (spool.read_status().readings, spool.read_status().lost_readings) == (1, 2)
    spool.close()


def test_the_spool_of_a_running_collector_can_be_looked_at(path: Path) -> None:
    assert read_spool_status(path) is None
    spool = opened(path)
    spool.accept([reading(1)], NOON)
    assert read_spool_status(path) == spool.read_status()
    spool.close()


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from("rlt"), st.integers(0, 5)), max_size=60), st.integers(4, 40))
def test_nothing_is_ever_neither_kept_nor_delivered_nor_counted(
    steps: list[tuple[str, int]], room: int
) -> None:
    with TemporaryDirectory() as folder:
        spool = opened(Path(folder) / "spool.db", SpoolLimits(bytes=room * READING_BYTES))
        readings = summaries = 0
        got: dict[Topic, list[bytes]] = {Topic.READINGS: [], Topic.LATENCY: []}
        for hour, (what, which) in enumerate(steps):
            if what == "r":
                readings += 1
                spool.accept([reading(which, hour)], NOON)
            elif what == "l":
                summaries += which
                spool.accept_latency([summary(osd, hour) for osd in range(which)], NOON)
            elif what == "t" and (batch := spool.take_batch()) is not None:
                got[batch.topic] += [record.value for record in batch.records]
                spool.settle_batch(batch, NOON)
        lost = spool.read_status()
        for batch in batches(spool):
            got[batch.topic] += [record.value for record in batch.records]
        spool.close()
        assert len(got[Topic.READINGS]) == len(set(got[Topic.READINGS])) == readings - lost.lost_readings
        sent = sum(len(decode_envelope(value, LatencyBatch).body.summaries) for value in got[Topic.LATENCY])
        assert sent == summaries - lost.lost_summaries


def test_a_record_spooled_under_the_old_name_of_a_host_keeps_that_name(path: Path) -> None:
    before = Spool(path, HOST, Random(1))
    before.accept([reading(1)], NOON)
    before.accept_latency([summary(1)], NOON)
    kept = before.take_batch()
    before.close()
    renamed = HostName("archive-17")
    after = Spool(path, renamed, Random(2))
    after.accept_latency([replace(summary(1, 1), host=renamed)], NOON)
    told: list[tuple[str, bytes]] = []
    while (batch := after.take_batch()) is not None:
        told += [(record.key, record.value) for record in batch.records]
        after.settle_batch(batch, NOON)
    after.close()
    assert kept is not None
    assert (kept.records[0].key, kept.records[0].value) in told
    assert sorted(key for key, _ in told) == sorted([reading(1).device, HOST, renamed])
