"""The spool under real faults: kill -9 at any point, and a disk that is full."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from predrain.collector.delivery import Spool
from predrain.data.latency_windows import LatencyBatch
from predrain.data.log.log_port import Record, Topic
from predrain.data.reading import Reading
from predrain.data.wire import decode_envelope
from tests.collector.delivery.parcels import HOST, NOON, batch_of, reading, reading_of, summary

ROOT = Path(__file__).resolve().parents[3]

PRELUDE = """
import json, os, resource, sys
from datetime import timedelta
from pathlib import Path
from random import Random
from predrain.collector.delivery import Shipper, DeliveryPace, DeliveryResult, Spool
from tests.collector.delivery.parcels import HOST, NOON, reading, summary
from predrain.data.clock import SystemClock
place = Path(sys.argv[1])
def say(*words):
    os.write(1, (json.dumps(words) + "\\n").encode())
"""

COLLECT = """
class FileSink:
    # One write a record: a kill may fall between two of a batch.
    def deliver(self, topic, records):
        for record in records:
            os.write(out, json.dumps([topic, record.key, record.value.decode()]).encode() + b"\\n")
        return DeliveryResult()
out = os.open(place / "delivered", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
spool = Spool(place / "spool.db", HOST, Random())
shipper = Shipper(spool, FileSink(), SystemClock(), Random(), DeliveryPace(backlog_per_second=1e9))
run, left = int(sys.argv[2]), int(sys.argv[3])
for turn in range(10**9):
    spool.accept([reading(disk, run * 1000 + turn) for disk in range(3)], NOON)
    say("readings", run, turn)
    spool.accept_latency([summary(osd, run * 1000 + turn) for osd in range(3)], NOON)
    say("latency", run, turn)
    if turn % 3 == run % 3:
        shipper.ship_batch()
    left -= 1
    if left == 0:
        break
while spool.take_batch():
    shipper.ship_batch()
spool.close()
say("end")
"""


def killed(place: Path, run: int, after_lines: int, delay: float) -> list[list[Any]]:
    """Return the decoded lines that a collector printed before `kill -9`.

    The signal is sent `delay` seconds after the first `after_lines` lines.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + COLLECT, str(place), str(run), "0"],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        said = [process.stdout.readline() for _ in range(after_lines)]
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(delay)  # the pipe holds more than it says in that time
    finally:
        process.send_signal(signal.SIGKILL)
        rest, _ = process.communicate()
    return [json.loads(line) for line in (*said, *rest.splitlines())]


def delivered(place: Path) -> list[tuple[Topic, Record]]:
    """Whole lines only: a half-written one was never acknowledged."""
    lines = (place / "delivered").read_text().split("\n")
    found = []
    for line in lines[:-1]:
        topic, key, value = json.loads(line)
        found.append((Topic(topic), Record(key, value.encode())))
    return found


@pytest.mark.slow
def test_kill_9_at_any_point_loses_nothing_accepted_and_what_comes_twice_is_the_same_bytes(
    tmp_path: Path,
) -> None:
    seed = int(os.environ.get("PREDRAIN_SIM_SEED", "11"))
    random = Random(seed)
    accepted: set[tuple[str, int]] = set()
    for run in range(12):
        for what, said_run, turn in killed(tmp_path, run, random.randrange(1, 25), random.uniform(0, 0.02)):
            accepted.add((what, said_run * 1000 + turn))
    end = subprocess.run(
        [sys.executable, "-c", PRELUDE + COLLECT, str(tmp_path), "12", "1"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(end.stdout.splitlines()[-1]) == ["end"]

    given = delivered(tmp_path)
    readings = [record for topic, record in given if topic is Topic.READINGS]
    latencies = [record for topic, record in given if topic is Topic.LATENCY]
    there = {(record.key, reading_of(record).taken_at) for record in readings}
    wanted = {
        (one.device, one.taken_at)
        for what, turn in accepted if what == "readings"
        for one in (reading(disk, turn) for disk in range(3))
    }  # fmt: skip
    assert wanted <= there, f"seed {seed}"
    windows = {batch_of(record).summaries[0].window_start for record in latencies}
    assert {summary(0, turn).window_start for what, turn in accepted if what == "latency"} <= windows
    for records, kind in ((readings, Reading), (latencies, LatencyBatch)):
        bytes_of: dict[tuple[str, int], set[bytes]] = {}
        for record in records:
            envelope = decode_envelope(record.value, kind)  # type: ignore[type-var]
            bytes_of.setdefault((envelope.producer, envelope.sequence), set()).add(record.value)
        assert {len(values) for values in bytes_of.values()} == {1}
        sequences = sorted(sequence for _, sequence in bytes_of)
        assert sequences == list(range(len(sequences)))
    contents = Counter(record.key + str(reading_of(record).taken_at) for record in set(readings))
    assert max(contents.values()) == 1, "one look at one disk went out as two different envelopes"
    assert sum(batch_of(record).lost for record in latencies) == 0


FULL = """
# A limit on this file's size stands for a full disk; SIGXFSZ is ignored so that writes fail as they do there.
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
spool = Spool(place / "spool.db", HOST, Random())
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
for hour in range(20):
    spool.accept([reading(disk, hour) for disk in range(4)], NOON)
    spool.accept_latency([summary(osd, hour) for osd in range(4)], NOON)
biggest = max(part.stat().st_size for part in place.iterdir())
resource.setrlimit(resource.RLIMIT_FSIZE, (biggest, hard))
told = 0
for hour in range(20, 60):
    told += len(spool.accept([reading(disk, hour) for disk in range(4)], NOON))
    spool.accept_latency([summary(osd, hour) for osd in range(4)], NOON)
full = spool.read_status()
resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # not even what was delivered can be noted
taken = []
for _ in range(4):
    if batch := spool.take_batch():
        taken += [json.dumps([batch.topic, record.key, record.value.decode()]) for record in batch.records]
        spool.settle_batch(batch, NOON)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
(place / "delivered").write_text("".join(line + "\\n" for line in taken))
spool.accept([reading(99, 60)], NOON)
spool.accept_latency([summary(0, 60)], NOON)
say(told, full.lost_readings, spool.read_status().lost_readings, spool.read_status().lost_summaries)
spool.close()
"""


def test_a_full_disk_keeps_what_fits_counts_the_rest_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PRELUDE + FULL, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )  # fmt: skip
    told, lost_when_full, lost_readings, lost_summaries = json.loads(run.stdout)
    assert told == lost_when_full == lost_readings > 0
    assert lost_summaries > 0

    given = delivered(tmp_path)
    assert given
    spool = Spool(tmp_path / "spool.db", HOST, Random())
    while (batch := spool.take_batch()) is not None:
        given += [(batch.topic, record) for record in batch.records]
        spool.settle_batch(batch, NOON)
    spool.close()
    readings = [reading_of(record) for topic, record in given if topic is Topic.READINGS]
    batches = [batch_of(record) for topic, record in given if topic is Topic.LATENCY]
    assert len(readings) == 4 * 60 + 1 - lost_readings
    assert reading(99, 60).device in {one.device for one in readings}
    assert sum(len(batch.summaries) for batch in batches) == 4 * 60 + 1 - lost_summaries
    assert sum(batch.lost for batch in batches) == lost_summaries
