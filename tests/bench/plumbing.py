"""Figures of what carries a reading: decoding smartctl, the event log."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tests.bench.figure import Figure, Work
from tests.conftest import data_folder

SECONDS = 2.0
"""The seconds for which documents are decoded again and again."""
MOST_TIMES_PARSED = 6.0
"""The goal for a decoded document, in times of the fastest parser's processor time."""
SAMPLES = Path(__file__).resolve().parents[1] / "data" / "smart" / "samples"
BATCHES, BATCH, BYTES = 200, 50, 2_000


def documents() -> list[bytes]:
    """Real smartctl outputs: all of PREDRAIN_DATA, else those that lie beside the tests."""
    folder = data_folder()
    outputs = folder / "smartctl" / "json" if folder is not None else SAMPLES
    return [path.read_bytes() for path in sorted(outputs.rglob("*.json"))]


def decoded() -> Work:
    """`data.smart.decode` of every document, refusals included."""
    from predrain.data.smart import Undecodable, decode_smartctl_output

    texts, now, work = documents(), datetime(2026, 1, 1, tzinfo=UTC), Work()
    work.note = f"{len(texts)} files, {sum(map(len, texts)) / len(texts) / 1000:.0f} kB each"
    while work.seconds < SECONDS:
        with work.timed():
            for text in texts:
                try:
                    decode_smartctl_output(text, now)
                except Undecodable:
                    continue
        work.amount += len(texts)
    return work


def parsed() -> Work:
    """`json.loads` of the same bytes."""
    return _parse_with(json.loads)


def parsed_fast() -> Work:
    """msgspec's parser, to dicts and lists, of the same bytes."""
    return _parse_with(msgspec.json.decode)


def _parse_with(parse: Callable[[bytes], object]) -> Work:
    texts, work = documents(), Work()
    while work.seconds < SECONDS:
        with work.timed():
            for text in texts:
                try:
                    parse(text)
                except (ValueError, msgspec.DecodeError):
                    continue
        work.amount += len(texts)
    return work


def appended() -> Work:
    """Batches accepted by the SQLite log, each durable when it returns."""
    from predrain.data.log.log_port import Record, Topic
    from predrain.data.log.sqlite_log import SqliteLog

    work, batch = Work(note=f"batches of {BATCH} x {BYTES} B"), [Record("device", b"x" * BYTES)] * BATCH
    with tempfile.TemporaryDirectory() as folder:
        log = SqliteLog(Path(folder) / "log.sqlite")
        for _ in range(BATCHES):
            with work.timed():
                log.append(Topic.READINGS, batch)
            work.amount += BATCH
        log.close()
    return work


def inserted() -> Work:
    """The same bytes into a bare table with the same durability."""
    work = Work()
    with tempfile.TemporaryDirectory() as folder:
        connection = _bare(Path(folder))
        for _ in range(BATCHES):
            with work.timed():
                _insert(connection)
            work.amount += BATCH
        connection.close()
    return work


def read_back() -> Work:
    """The log's records read and committed by one group, a batch at a time."""
    from predrain.data.log.log_port import Record, Topic
    from predrain.data.log.sqlite_log import SqliteLog

    work = Work(note="read and commit, 500 at a time")
    with tempfile.TemporaryDirectory() as folder:
        log = SqliteLog(Path(folder) / "log.sqlite")
        for _ in range(BATCHES):
            log.append(Topic.READINGS, [Record("device", b"x" * BYTES)] * BATCH)
        with work.timed():
            while records := log.read(Topic.READINGS, "worker", 500):
                work.amount += len(records)
                log.commit(Topic.READINGS, "worker", records)
        log.close()
    return work


def selected() -> Work:
    """The same rows from a bare table, nothing committed."""
    work, last = Work(), 0
    with tempfile.TemporaryDirectory() as folder:
        connection = _bare(Path(folder))
        for _ in range(BATCHES):
            _insert(connection)
        query = "SELECT offset, key, value FROM records WHERE offset > ? ORDER BY offset LIMIT 500"
        with work.timed():
            while rows := connection.execute(query, (last,)).fetchall():
                work.amount += len(rows)
                last = rows[-1][0]
        connection.close()
    return work


def _bare(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "bare.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE records (offset INTEGER PRIMARY KEY, topic TEXT, key TEXT, value BLOB)")
    return connection


def _insert(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    rows = [("readings", "device", b"x" * BYTES)] * BATCH
    connection.executemany("INSERT INTO records (topic, key, value) VALUES (?, ?, ?)", rows)
    connection.execute("COMMIT")


FIGURES = (
    Figure(
        "smartctl JSON decoded", "documents", decoded, parsed,
        "json.loads of the same bytes", "over 2,000 a second", lambda work, _: work.rate > 2_000,
    ),
    Figure(
        "smartctl JSON to reading, processor", "documents", decoded, parsed_fast,
        "msgspec's parser on the same bytes", f"at most {MOST_TIMES_PARSED} times", most_times=MOST_TIMES_PARSED,
    ),
    Figure("log: append, durable", "records", appended, inserted, "bare sqlite3, same durability", ""),
    Figure("log: read and commit", "records", read_back, selected, "bare sqlite3 SELECT", ""),
)  # fmt: skip
