"""Whether all that was accepted is kept once, and nothing else; and what one process alone would have made of it."""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from predrain.data.clock import SystemClock
from predrain.data.ids import DeviceId, OsdId
from predrain.data.latency_windows import LatencyBatch, LatencySummary
from predrain.data.log.log_port import Log, Record, Topic
from predrain.data.log.memory_log import MemoryLog
from predrain.data.outlook import GRAVITY, Outlook, Status
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_port import Store
from predrain.data.wire import DeadLetter, decode_envelope
from predrain.service.fleet.fleet import Fleet
from predrain.service.fleet.fleet_counts import BACKGROUND
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.forecasting.worker import ScoringWorker
from predrain.service.storage.record_sender import RecordSender
from predrain.service.storage.store_identity import MARK_KEY
from predrain.service.streams.outlook_announcements import Announcements
from tests.chaos import evidence
from tests.chaos.arena import Arena
from tests.chaos.evidence import Carried, CarriedReadings
from tests.chaos.pace import LoadPace, await_scored
from tests.chaos.poison import Place
from tests.chaos.spool_host import SpoolHost
from tests.chaos.storm import Dealt
from tests.chaos.verdict import Finding, Measure, Verdict
from tests.chaos.witness import ReadingKey, digest_reading

K = TypeVar("K")
V = TypeVar("V")
PATIENCE_SECONDS = 180.0
"""The seconds without progress after which the missing records count as lost."""
EVER = datetime.min.replace(tzinfo=UTC)
OutlookKey = tuple[DeviceId, datetime]
RATE_TOLERANCE = 0.01
"""By how much of itself a chance may differ: a run's few drive-hours move a base rate by less than a thousandth."""
_PERCENTAGE = re.compile(r"\d+(\.\d+)? %")


def measure_pace(arena: Arena, dealt: Dealt) -> LoadPace:
    """Wait until what was delivered is scored, and tell how the machine took the load."""
    accepted = sum(host.count_accepted() for host in arena.hosts)
    last = await_scored(lambda: arena.count_rows("outlooks"), accepted)
    return LoadPace(
        seconds=dealt.delivery_seconds,
        due=dealt.due,
        read=sum(host.count_accepted() for host in arena.loads),
        accepted=accepted,
        undelivered=dealt.undelivered,
        scored=dealt.scored,
        drain_seconds=max(0.0, last - dealt.ended),
    )


def judge(arena: Arena, dealt: Dealt) -> Verdict:
    """Wait until the consumers have taken what was delivered, end them, and compare."""
    verdict = Verdict()
    poison = {place for _, place in dealt.poison}
    log = arena.open_log()
    try:
        readings = evidence.carried_readings(log, arena.hosts, arena.collectors)
        batch_count, batches = evidence.carried_batches(log, arena.hosts)
        windows = len({(one.host, one.window_start) for batch in batches for one in batch.windows})
        began = time.monotonic()
        _wait(lambda: _count_missing(arena, log, len(readings.expected), windows, len(poison)))
        dealt.tell(f"all was through {time.monotonic() - began:.1f} s after the last delivery was seen")
        for program in arena.consumers:
            if not program.stop():
                dealt.unexpected.append(f"a process did not end in order: see {program.log}")
        verdict.blame(Finding.DISORDER, dealt.unexpected)
        verdict.counts[Measure.REPEATED_STARTS] = sum(one.revived for one in arena.consumers)
        verdict.counts[Measure.DOCUMENTS] = sum(host.cabinet.documents for host in arena.collectors)
        store = arena.open_store()
        try:
            judge_readings(verdict, arena.hosts, store, readings)
            whole = [reading for reading, _ in readings.of_collectors]
            verdict.blame(Finding.MADE_UP, evidence.never_said(whole, arena.collectors))
            _judge_latencies(verdict, arena, store, batch_count, batches)
            judge_outlooks(verdict, log, store, readings)
            _compare_alone(verdict, store, readings, arena.folder)
        finally:
            store.close()
        if arena.broker is not None:
            _judge_letters(verdict, log, dealt, poison)
    finally:
        log.close()
    return verdict


def judge_readings(
    verdict: Verdict, hosts: Sequence[SpoolHost], store: Store, readings: CarriedReadings
) -> None:
    """Each accepted reading must be in the log and, once, in the store. Some must have been delivered twice: else what
    absorbs them was not walked.
    """
    witnessed, gone = evidence.unwitnessed(readings.digests, hosts)
    kept = [
        (ReadingKey.of(reading), digest_reading(reading))
        for device in store.latest_readings()
        for reading in store.readings(device)
    ]
    verdict.counts |= {
        Measure.ACCEPTED: readings.accepted,
        Measure.WITNESSED: witnessed,
        Measure.SAME_TIME: len(readings.same_time),
        Measure.AGAIN: readings.again,
        Measure.REFUSED: _refused(hosts, "readings"),
        Measure.KEPT: len(kept),
    }
    verdict.notes += readings.same_time
    # One that is gone with its number is no second loss.
    verdict.blame(Finding.LOST, readings.lost)
    verdict.blame(Finding.LOST, gone, count=max(0, len(gone) - len(readings.lost)))
    verdict.blame(Finding.MADE_UP, readings.strange)
    compare_readings(verdict, readings.expected, kept)
    if not readings.again:
        verdict.blame(Finding.NOT_WALKED, ["no reading came twice, so that nothing had to be absorbed"])


def compare_readings(
    verdict: Verdict, expected: Mapping[ReadingKey, bytes], kept: Sequence[tuple[ReadingKey, bytes]]
) -> None:
    """Compare the kept readings with the expected ones by their digests, and note each difference in the verdict."""
    times, found = Counter(key for key, _ in kept), dict(kept)
    verdict.blame(
        Finding.LOST,
        [f"a reading is lost: {_words(key)}" for key in sorted(expected.keys() - found.keys())],
    )
    verdict.blame(
        Finding.DOUBLED,
        [f"a reading is kept {count} times: {_words(key)}" for key, count in times.items() if count > 1],
        count=sum(count - 1 for count in times.values()),
    )
    verdict.blame(
        Finding.MADE_UP,
        [
            f"a reading is there that nobody sent: {_words(key)}"
            for key in sorted(found.keys() - expected.keys())
        ],
    )
    verdict.blame(
        Finding.CHANGED,
        [
            f"a reading is another one: {_words(key)}"
            for key, digest in expected.items()
            if found.get(key, digest) != digest
        ],
    )


AnnouncementKey = tuple[DeviceId, datetime, Status]


def judge_outlooks(verdict: Verdict, log: Log, store: Store, readings: CarriedReadings) -> None:
    """Check that each reading has an outlook, and that each outlook that is news was announced once.

    A record of the log may be written twice, since a process that was frozen while it wrote goes on when it wakes. The
    two records name the same device, time and severity, and every reader of the log takes the announcement once. The
    store must keep one event of the announcement.
    """
    announced = _announced(log)
    records = Counter((one.device, one.as_of, one.severity) for one in announced)
    keys = _kept_events(store)
    ours, theirs = _standing(announced), dict[DeviceId, Status]()
    missing, count = set(readings.expected), 0
    for device in sorted({key.device for key in readings.expected}):
        outlooks = store.outlooks(device)
        count += len(outlooks)
        missing -= {ReadingKey(one.device, one.as_of) for one in outlooks}
        theirs |= _standing([alert.outlook for alert in Announcements().select_news(outlooks)])
    verdict.counts |= {
        Measure.OUTLOOKS: count,
        Measure.ANNOUNCED: len(records),
        Measure.ANNOUNCED_AGAIN: len(announced) - len(records),
    }
    verdict.blame(
        Finding.OUTLOOK_MISSING, [f"a reading has no outlook: {_words(key)}" for key in sorted(missing)]
    )
    verdict.blame(
        Finding.ANNOUNCED_TWICE,
        [f"{one} was told {times} times" for one, times in keys.items() if times > 1],
        count=sum(times - 1 for times in keys.values()),
    )
    verdict.blame(
        Finding.ANNOUNCEMENT_WRONG,
        [
            f"{device} was last announced as {ours.get(device)}, and its outlooks say {theirs.get(device)}"
            for device in sorted(ours.keys() | theirs.keys())
            if ours.get(device) != theirs.get(device)
        ],
    )


def _judge_latencies(
    verdict: Verdict, arena: Arena, store: Store, carried: Carried, batches: Sequence[LatencyBatch]
) -> None:
    expected: dict[tuple[OsdId, datetime], LatencySummary] = {
        (one.osd, one.window_start): one for batch in batches for one in batch.summaries
    }
    osds = sorted({osd for osd, _ in expected})
    kept = {
        (one.osd, one.window_start): one for osd in osds for one in store.read_latency_summaries(osd, EVER)
    }
    verdict.counts |= {
        Measure.SUMMARIES: sum(len(batch.summaries) for batch in batches),
        Measure.BATCHES_AGAIN: carried.again,
        Measure.SUMMARIES_REFUSED: _refused(arena.hosts, "summaries"),
        Measure.SUMMARIES_KEPT: len(kept),
    }
    verdict.blame(Finding.LATENCY_WRONG, [*carried.lost, *carried.strange])
    verdict.blame(Finding.LATENCY_WRONG, _differences("a latency summary", expected, kept))


def _refused(hosts: Sequence[SpoolHost], what: str) -> int:
    return sum(host.numbers().get(f"lost.{what}", 0) for host in hosts)


def _compare_alone(verdict: Verdict, store: Store, readings: CarriedReadings, folder: Path) -> None:
    """Outlooks of the collectors' drives, against those of one process that is given the readings in the order of their
    times."""
    alone = _work_alone(readings, folder)
    devices = sorted(alone.latest_readings())
    expected = {(one.device, one.as_of): one for device in devices for one in alone.outlooks(device)}
    found = {(one.device, one.as_of): one for device in devices for one in store.outlooks(device)}
    alone.close()
    compare_outlooks(verdict, expected, found)


def compare_outlooks(
    verdict: Verdict, expected: Mapping[OutlookKey, Outlook], found: Mapping[OutlookKey, Outlook]
) -> None:
    """Outlooks that one process made of all readings in order, against those that are kept.

    Base rates follow what the running service has counted of its own drives, and the one process alone counts nothing.
    So chances may differ by RATE_TOLERANCE, and sentences in their percentages; all else must be equal.
    """
    same = {key for key in expected.keys() & found.keys() if _agree_but_for_rates(expected[key], found[key])}
    verdict.blame(
        Finding.OUTLOOK_WRONG,
        _differences(
            "an outlook",
            {key: one for key, one in expected.items() if key not in same},
            {key: one for key, one in found.items() if key not in same},
        ),
    )


def _agree_but_for_rates(one: Outlook, other: Outlook) -> bool:
    return _without_chances(one) == _without_chances(other) and all(
        math.isclose(mine, theirs, rel_tol=RATE_TOLERANCE)
        for mine, theirs in zip(_chances(one), _chances(other), strict=True)
    )


def _without_chances(outlook: Outlook) -> Outlook:
    reasons = tuple(
        replace(reason, sentence=_PERCENTAGE.sub("%", reason.sentence))
        for reason in outlook.reasons
        if reason.code not in BACKGROUND
    )
    clears = _PERCENTAGE.sub("%", outlook.clears)
    blank = replace(outlook, reasons=reasons, clears=clears, p_fail_7d=None, p_fail_14d=None, p_fail_30d=None)
    return replace(blank, survival=None, life=None)


def _chances(outlook: Outlook) -> list[float]:
    """Every chance and every length of life; -1 in place of one that is not given."""
    life = outlook.life
    lives = (life.p10_days, life.p50_days, life.p90_days) if life else (None,)
    told = (outlook.p_fail_7d, outlook.p_fail_14d, outlook.p_fail_30d, *(outlook.survival or ()), *lives)
    return [-1.0 if chance is None else chance for chance in told]


def _judge_letters(verdict: Verdict, log: Log, dealt: Dealt, poison: set[Place]) -> None:
    """Dead letters are of the poison and of nothing else. One may be written twice; its place says that it is one."""
    letters = _letters(log)
    places = Counter(_place(letter) for letter in letters)
    what = {place: bad.what for bad, place in dealt.poison}
    verdict.counts |= {
        Measure.POISON: len(poison),
        Measure.LETTERS: len(places),
        Measure.LETTERS_AGAIN: sum(count - 1 for count in places.values()),
    }
    reasons = {_place(letter): letter.reason for letter in letters}
    verdict.blame(
        Finding.LETTER_WRONG,
        [
            *(
                f"poison ({what[place]}) has no dead letter: {place}"
                for place in sorted(poison - places.keys())
            ),
            *(
                f"a good record became a dead letter: {reasons[one]}"
                for one in sorted(places.keys() - poison)
            ),
        ],
    )


def _letters(log: Log) -> list[DeadLetter]:
    found = log.read_newest(Topic.DEAD_LETTERS, evidence.EVERYTHING)
    return [decode_envelope(record.value, DeadLetter).body for record in found]


def _place(letter: DeadLetter) -> Place:
    return Place(letter.topic, letter.partition, letter.offset)


def _work_alone(readings: CarriedReadings, folder: Path) -> SqliteStore:
    """Return the store of one process that scored the collectors' readings in the order of their times."""
    clock, log = SystemClock(), MemoryLog(max_bytes=1 << 30)
    store = SqliteStore(folder / "alone.db")
    ordered = sorted(readings.of_collectors, key=lambda pair: pair[0].taken_at)
    log.append(Topic.READINGS, [Record(body.device, raw) for body, raw in ordered])
    sender = RecordSender("alone", clock)
    worker = ScoringWorker(log, store, clock, BundledForecaster.load(), Fleet(store), Announcements(), sender)
    worker.rebuild()
    while worker.step().taken:
        pass
    return store


def _announced(log: Log) -> list[Outlook]:
    return [
        decode_envelope(record.value, Outlook).body
        for record in log.read_newest(Topic.OUTLOOKS, evidence.EVERYTHING)
        if record.key != MARK_KEY
    ]


def _kept_events(store: Store) -> Counter[AnnouncementKey]:
    """Events of outlooks in the store."""
    return Counter(
        (one.device or DeviceId(one.subject), one.at, one.severity or Status.UNKNOWN)
        for one in store.read_cluster_events()
        if one.kind.is_of_outlook
    )


def _standing(announced: Sequence[Outlook]) -> dict[DeviceId, Status]:
    """Return the status that was last announced of each device, without the devices whose last status is GOOD.

    Of two announcements of one reading the graver one counts, in any order of the two in the log. Every reader of the
    log decides in the same way (`service.streams.outlook_announcements.Announcements`).
    """
    in_order = sorted(announced, key=lambda one: (one.as_of, GRAVITY[one.severity]))
    last = {one.device: one.severity for one in in_order}
    return {device: status for device, status in last.items() if status is not Status.GOOD}


def _words(key: ReadingKey) -> str:
    return f"{key.device} at {key.taken_at}"


def _differences(what: str, expected: Mapping[K, V], found: Mapping[K, V]) -> list[str]:
    return [
        *(f"{what} is lost: {key}" for key in sorted(expected.keys() - found.keys(), key=str)),
        *(
            f"{what} is there that nobody sent: {key}"
            for key in sorted(found.keys() - expected.keys(), key=str)
        ),
        *(
            f"{what} is another one: {key}: {found[key]} in place of {expected[key]}"
            for key in sorted(expected.keys() & found.keys(), key=str)
            if expected[key] != found[key]
        ),
    ]


def _count_missing(arena: Arena, log: Log, readings: int, windows: int, letters: int) -> int:
    """Rows and dead letters that are to come yet."""
    wanted = {"readings": readings, "outlooks": readings, "host_latency": windows}
    missing = sum(max(0, count - arena.count_rows(table)) for table, count in wanted.items())
    return missing + (max(0, letters - len({_place(letter) for letter in _letters(log)})) if letters else 0)


def _wait(count_missing: Callable[[], int]) -> None:
    """Until nothing is missing, or so long that it never comes: what is missing is found then."""
    last, end = count_missing(), time.monotonic() + PATIENCE_SECONDS
    while last and time.monotonic() < end:
        asked = time.monotonic()
        missing = count_missing()
        time.sleep(max(0.5, 5 * (time.monotonic() - asked)))  # rows are counted by who also has to take them
        if missing < last:
            end = time.monotonic() + PATIENCE_SECONDS
        last = missing
