"""The verdict finds what is lost, doubled, announced twice, and a run in which nothing came twice."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from predrain.collector.delivery import LogSink, Shipper, Spool
from predrain.data.clock import SystemClock
from predrain.data.ids import HostName
from predrain.data.log.log_port import Record, Topic
from predrain.data.log.memory_log import MemoryLog
from predrain.data.outlook import Outlook, Status
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.fleet.fleet import Fleet
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.forecasting.worker import ScoringWorker
from predrain.service.storage.record_sender import RecordSender
from predrain.service.streams.outlook_announcements import Announcements
from tests.chaos.audit import OutlookKey, compare_outlooks, compare_readings, judge_outlooks, judge_readings
from tests.chaos.evidence import carried_readings
from tests.chaos.spool_host import SpoolHost
from tests.chaos.verdict import Finding, Measure, Verdict
from tests.chaos.witness import ReadingKey, WitnessedSpool
from tests.system.stream.fleet import compose_reading

pytestmark = pytest.mark.slow
DRIVES, TURNS = 4, 3


@dataclass
class Delivered:
    """A host whose readings are all in the log and in the store, one batch of them twice in the log."""

    host: SpoolHost
    log: MemoryLog
    file: Path

    def judge(self) -> Verdict:
        """The verdict on log and store as they are now."""
        verdict, readings = Verdict(), carried_readings(self.log, [self.host], [])
        store = SqliteStore(self.file)
        try:
            judge_readings(verdict, [self.host], store, readings)
            judge_outlooks(verdict, self.log, store, readings)
        finally:
            store.close()
        return verdict

    def change_store(self, statement: str) -> None:
        """Damage the store behind its back."""
        with closing(sqlite3.connect(self.file)) as connection, connection:
            connection.execute(statement)


def deliver(tmp_path: Path, *, repeated: int, read_again: int = 0) -> Delivered:
    """`repeated` records come again after all were delivered; `read_again` drives are read twice at the last time."""
    host, log, clock = SpoolHost(tmp_path, "load-0", "tests.chaos.load"), MemoryLog(), SystemClock()
    WitnessedSpool.folder = host.folder
    spool, now = WitnessedSpool(host.spool, host.name, Random(1)), clock.now()
    courier = Shipper(spool, LogSink(lambda: log), clock, Random(1))
    for turn in range(TURNS):
        at = now - timedelta(days=TURNS - turn)
        spool.accept(
            [
                compose_reading(f"Z{drive}", HostName("load-0"), at, 9_000 + turn, 400 * turn)
                for drive in range(DRIVES)
            ],
            now,
        )
        courier.ship_batch()
    spool.accept(
        [
            compose_reading(f"Z{drive}", HostName("load-0"), now - timedelta(days=1), 9_000 + TURNS, 0)
            for drive in range(read_again)
        ],
        now,
    )
    courier.ship_batch()
    spool.close()
    again = log.read_newest(Topic.READINGS, repeated)
    log.append(Topic.READINGS, [Record(record.key, record.value) for record in again])
    store = SqliteStore(tmp_path / "store.sqlite")
    worker = ScoringWorker(
        log,
        store,
        clock,
        BundledForecaster.load(),
        Fleet(store),
        Announcements(),
        RecordSender("test", clock),
    )
    worker.rebuild()
    while worker.step().taken:
        pass
    store.close()
    return Delivered(host, log, tmp_path / "store.sqlite")


@pytest.fixture
def delivered(tmp_path: Path) -> Delivered:
    return deliver(tmp_path, repeated=DRIVES)


def test_a_delivery_that_came_twice_and_is_kept_once_passes(delivered: Delivered) -> None:
    verdict = delivered.judge()
    assert verdict.passed, verdict.examples
    assert verdict.counts[Measure.ACCEPTED] == verdict.counts[Measure.KEPT] == DRIVES * TURNS
    assert verdict.counts[Measure.AGAIN] == DRIVES
    assert verdict.counts[Measure.ANNOUNCED] >= DRIVES


def test_a_second_reading_of_a_drive_at_one_time_is_told_and_not_kept(tmp_path: Path) -> None:
    verdict = deliver(tmp_path, repeated=DRIVES, read_again=2).judge()
    assert verdict.passed, verdict.examples
    assert verdict.counts[Measure.SAME_TIME] == len(verdict.notes) == 2
    assert verdict.counts[Measure.KEPT] == DRIVES * TURNS == verdict.counts[Measure.ACCEPTED] - 2


def test_each_reading_that_is_removed_from_the_store_is_counted_as_lost(delivered: Delivered) -> None:
    delivered.change_store("DELETE FROM readings WHERE device IN ('ST4000DM000_Z1', 'ST4000DM000_Z2')")
    assert delivered.judge().findings == {Finding.LOST: 2 * TURNS}


def test_each_reading_that_was_accepted_and_never_delivered_is_counted_as_lost(delivered: Delivered) -> None:
    spool = Spool(delivered.host.spool, delivered.host.name, Random(1))
    now = SystemClock().now()
    spool.accept([compose_reading(f"Z{one}", delivered.host.name, now, 9_100, 0) for one in range(3)], now)
    spool.close()
    assert delivered.judge().findings == {Finding.LOST: 3}


def test_each_reading_that_a_witness_saw_and_the_spool_forgot_is_counted_as_lost(
    delivered: Delivered,
) -> None:
    with (delivered.host.folder / "accepted").open("a") as witness:
        witness.write(f"{bytes(16).hex()} Z1 forgotten\n")
    assert delivered.judge().findings == {Finding.LOST: 1}


def test_a_reading_that_is_kept_twice_is_counted_as_doubled() -> None:
    key = ReadingKey.of(compose_reading("Z1", HostName("load-0"), SystemClock().now(), 9_000, 0))
    verdict = Verdict()
    compare_readings(verdict, {key: b"one"}, [(key, b"one"), (key, b"one"), (key, b"one")])
    assert verdict.findings == {Finding.DOUBLED: 2}


def test_a_reading_that_nobody_sent_is_counted_as_made_up(delivered: Delivered) -> None:
    delivered.change_store(
        "INSERT INTO readings SELECT device, taken_at + 1000000, document FROM readings WHERE device LIKE '%Z1' LIMIT 1"
    )
    found = delivered.judge().findings
    assert found[Finding.MADE_UP] + found[Finding.DOUBLED] == 1


def test_an_outlook_that_is_removed_is_counted_as_missing(delivered: Delivered) -> None:
    delivered.change_store("DELETE FROM outlooks WHERE device = 'ST4000DM000_Z1'")
    assert delivered.judge().findings[Finding.OUTLOOK_MISSING] == TURNS


def test_a_record_of_an_announcement_that_comes_again_is_taken_once(delivered: Delivered) -> None:
    first = delivered.log.read_newest(Topic.OUTLOOKS, 100)[0]
    before = delivered.judge().counts[Measure.ANNOUNCED]
    delivered.log.append(Topic.OUTLOOKS, [Record(first.key, first.value)])
    verdict = delivered.judge()
    assert verdict.passed, verdict.examples
    assert (verdict.counts[Measure.ANNOUNCED], verdict.counts[Measure.ANNOUNCED_AGAIN]) == (before, 1)


def test_an_event_of_an_outlook_that_the_store_keeps_twice_is_counted(delivered: Delivered) -> None:
    delivered.change_store(
        "INSERT INTO cluster_events (subject, place, kind, at, document, cluster) SELECT subject, place + 100, kind, "
        "at, document, cluster FROM cluster_events WHERE kind LIKE 'outlook%' LIMIT 1"
    )
    assert delivered.judge().findings == {Finding.ANNOUNCED_TWICE: 1}


def test_a_run_in_which_nothing_was_delivered_twice_fails(tmp_path: Path) -> None:
    verdict = deliver(tmp_path, repeated=0).judge()
    assert verdict.findings == {Finding.NOT_WALKED: 1}
    assert not verdict.passed


def test_a_verdict_counts_what_is_gone_and_not_the_sentences_about_it() -> None:
    verdict = Verdict()
    verdict.blame(Finding.LOST, [f"number {number} is gone" for number in range(13)])
    assert verdict.findings[Finding.LOST] == 13
    assert len(verdict.examples) < 13
    assert not verdict.passed


def outlooks_of(delivered: Delivered) -> dict[OutlookKey, Outlook]:
    store = SqliteStore(delivered.file)
    kept = {
        (one.device, one.as_of): one for device in store.latest_readings() for one in store.outlooks(device)
    }
    store.close()
    return kept


def find_wrong(expected: dict[OutlookKey, Outlook], found: dict[OutlookKey, Outlook]) -> int:
    verdict = Verdict()
    compare_outlooks(verdict, expected, found)
    return verdict.findings[Finding.OUTLOOK_WRONG]


def test_chances_that_follow_a_base_rate_learned_meanwhile_are_no_wrong_outlooks(
    delivered: Delivered,
) -> None:
    expected = outlooks_of(delivered)
    found = {
        key: replace(one, p_fail_30d=one.p_fail_30d * 1.001 if one.p_fail_30d is not None else None)
        for key, one in expected.items()
    }
    assert any(one.p_fail_30d for one in expected.values())
    assert find_wrong(expected, found) == 0


@pytest.mark.parametrize(
    "change", [{"readings": 9}, {"held": Status.BAD}, {"hard": True}, {"p_fail_30d": 0.9}]
)
def test_an_outlook_that_differs_in_anything_else_is_counted(
    delivered: Delivered, change: dict[str, object]
) -> None:
    expected = outlooks_of(delivered)
    key = next(iter(expected))
    assert find_wrong(expected, expected | {key: replace(expected[key], **change)}) == 1  # type: ignore[arg-type]


def test_an_outlook_that_is_missing_or_made_up_is_counted(delivered: Delivered) -> None:
    expected = outlooks_of(delivered)
    fewer = dict(list(expected.items())[1:])
    assert find_wrong(expected, fewer) == find_wrong(fewer, expected) == 1
