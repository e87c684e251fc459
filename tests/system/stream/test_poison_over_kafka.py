"""Every poison at once among good readings, over a real Kafka and a real PostgreSQL: the good come through."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from predrain.data.clock import SystemClock
from predrain.data.ids import DeviceId
from predrain.data.log.log_port import Record, Topic
from predrain.data.reading import Reading, Smart
from predrain.data.store.postgres_store import PostgresStore
from predrain.service.storage.record_sender import RecordSender
from tests.deadlines import idle_seconds
from tests.system.kafka.broker import Broker as KafkaServer
from tests.system.stream.fleet import readings

with warnings.catch_warnings():  # of how kafka-python reads its own schemas, once, while it is imported
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaProducer

    from predrain.data.log.kafka import Broker, KafkaLog, TopicShape, ensure_topics

pytestmark = [pytest.mark.system, pytest.mark.slow]
PATIENCE = 240.0
MEGABYTE = 1 << 20
BOMB = 192 * MEGABYTE
ROOM = 160 * MEGABYTE
"""The bytes of memory that the poison may cost a worker beside those that it takes anyway: less than the bomb alone."""
RUN = "from predrain.service.cli import run; run()"
OF_TOMORROW = """
from dataclasses import replace
from predrain.data.reading import Reading
from predrain.data.wire import envelope
from predrain.data.wire import wire_bodies as bodies
today = envelope._SCHEMAS[Reading]
envelope._SCHEMAS[Reading] = replace(today, version=99, readers={**today.readers, 99: bodies.READING})
"""


@dataclass(frozen=True)
class Poison:
    """A record as it is sent, what its dead letter says, and of whom a reading comes of it once it is mended."""

    says: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    mended: Reading | None = None


def poisons() -> dict[str, Poison]:
    """Each is good but for one thing."""
    good = next(readings(1, 1))
    sealed = RecordSender("hosts", SystemClock()).encode_envelope(good)
    own = good.device.encode()

    def changed(**body: Any) -> bytes:
        document = json.loads(sealed)
        document["body"] |= body
        return json.dumps(document).encode()

    def named(name: str) -> Reading:
        return replace(good, device=DeviceId(name))

    def at(when: str) -> Poison:
        return Poison("taken_at|calendar", own, changed(taken_at=when))

    tomorrow = json.loads(RecordSender("hosts", SystemClock()).encode_envelope(named("OF_TOMORROW")))
    elsewhere = RecordSender("hosts", SystemClock()).encode_envelope(named("OF_ANOTHER"))
    raw = json.dumps({"schema": "reading", "version": 2}).encode()
    soon = (datetime.now(UTC) + timedelta(days=2)).isoformat()
    return {
        "the schema of the future": Poison(
            "version 99 .* update it", b"OF_TOMORROW", json.dumps({**tomorrow, "version": 99}).encode(),
            mended=named("OF_TOMORROW"),
        ),
        "another's key": Poison("under the key 'DISK_1'", b"DISK_1", elsewhere, mended=named("OF_ANOTHER")),
        "an empty key": Poison("under the key ''", b"", sealed),
        "no key": Poison("under the key ''", None, sealed),
        "a key that is no text": Poison("under the key", b"\xff\xfe" + own, sealed),
        "a key of a megabyte": Poison("under the key", b"k" * MEGABYTE, sealed),
        "no value": Poison("no envelope", own, None),
        "an empty value": Poison("no envelope", own, b""),
        "zstd cut short": Poison("no envelope", own, b"\x28\xb5\x2f\xfd\x04\x58torn"),
        "ten megabytes": Poison("10,485,760 bytes are longer", own, b" " * (10 * MEGABYTE)),
        "a bomb": Poison("hold more than 33,554,432 bytes", b"bomb", bytes(BOMB)),
        "a header that is no text, and an endless one": Poison(
            "in the future", own, changed(taken_at=soon), (("h" * 9_000, b"\xff" * MEGABYTE),),
        ),
        "deep nesting": Poison("recursion", own, raw[:-1] + b', "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        "invalid UTF-8": Poison("can't decode", own, sealed.replace(b"stor-", b"\xff\xfe")),
        "NUL in a name": Poison("unprintable", b"a\0b", changed(device="a\0b")),
        "NaN": Poison("malformed", own, sealed.replace(b'"raw":0', b'"raw":NaN', 1)),
        "1e400": Poison("range|float", own, sealed.replace(b'"raw":0', b'"raw":1e400', 1)),
        "four thousand digits": Poison(
            "digits", own, changed(smart={**json.loads(sealed)["body"]["smart"],
                                          "attributes": {"5": {"name": "x", "raw": 10**4_000}}}),
        ),
        "a name of half a megabyte": Poison("unknown field", own, changed(**{"n" * (MEGABYTE // 2): 1})),
        "a naive time": at("2026-03-01T12:00:00"),
        "a leap second": at("2016-12-31T23:59:60Z"),
        "the year 9999": at("9999-12-31T23:59:59Z"),
        "after the last year": at("9999-12-31T23:59:59-14:00"),
        "another schema": Poison("'outlook'", own, sealed.replace(b'"reading"', b'"outlook"', 1)),
    }  # fmt: skip


class Shop:
    """Topics, a store and settings of its own; workers run in it."""

    def __init__(self, kafka: KafkaServer, database: str, folder: Path) -> None:
        self.database, self._folder = database, folder
        self.broker = Broker((kafka.address(),), prefix="poison.")
        shapes = {
            topic: TopicShape(2 if topic is Topic.DEAD_LETTERS else 3, timedelta(days=1)) for topic in Topic
        }
        ensure_topics(self.broker, shapes, replicas=1, in_sync=1)
        self.config = folder / "predrain.toml"
        self.config.write_text(
            f'[service]\nstate = "{folder / "state"}"\n[store]\nurl = "{database}"\n'
            f'[kafka]\nbootstrap_servers = ["{kafka.address()}"]\nprefix = "poison."\n'
            "replication_factor = 1\nmin_insync_replicas = 1\n"
        )

    @contextmanager
    def worker(self, prelude: str = "") -> Iterator[subprocess.Popen[bytes]]:
        """One process of `predrain work`; `prelude` is done in it first."""
        said = self._folder / f"worker-{len(prelude)}.txt"
        command = [sys.executable, "-c", prelude + RUN, "work", "--config", str(self.config)]
        with said.open("wb") as out, subprocess.Popen(command, stderr=out) as process:
            try:
                yield process
                process.send_signal(signal.SIGTERM)
                assert process.wait(60) == 0
                assert b"Traceback" not in said.read_bytes()
            finally:
                process.kill()

    def says(self, *words: str) -> tuple[int, Any]:
        """The exit code and JSON of a command."""
        command = [sys.executable, "-c", RUN, *words, "--config", str(self.config), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert "Traceback" not in done.stderr
        return done.returncode, json.loads(done.stdout)

    def letters(self) -> list[dict[str, Any]]:
        code, found = self.says("deadletter", "list")
        assert code == 0
        return list(found)


def until(done: Callable[[], bool]) -> None:
    end = idle_seconds() + PATIENCE
    while not done():
        assert idle_seconds() < end, "it does not come to an end"
        time.sleep(0.3)


def peak(process: subprocess.Popen[bytes]) -> int:
    """Most memory that the process has held, in bytes."""
    (line,) = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
    return int(line) * 1024


def kept(store: PostgresStore) -> set[tuple[str, datetime]]:
    return {(device, one.taken_at) for device in store.latest_readings() for one in store.readings(device)}


def test_all_poison_among_five_hundred_readings_is_told_and_the_readings_are_scored(
    kafka: KafkaServer, database: str, tmp_path: Path
) -> None:
    shop, injected = Shop(kafka, database, tmp_path), poisons()
    good = [one for one in readings(100, 5) if isinstance(one.seen, Smart)]
    expected = {(one.device, one.taken_at) for one in good}
    sender = RecordSender("hosts", SystemClock())
    with closing(KafkaLog(shop.broker)) as log, closing(PostgresStore(database)) as store:
        with shop.worker() as worker:
            log.append(
                Topic.READINGS, [Record(one.device, sender.encode_envelope(one)) for one in good[:100]]
            )
            until(lambda: len(store.latest_outlooks()) > 0)
            before = peak(worker)
            poison(shop.broker, injected)
            log.append(
                Topic.READINGS, [Record(one.device, sender.encode_envelope(one)) for one in good[100:]]
            )
            until(lambda: len(log.read_newest(Topic.DEAD_LETTERS, 1_000)) >= len(injected))
            until(lambda: kept(store) == expected)
            taken = peak(worker) - before
            assert taken < ROOM, f"{taken:,} bytes"
        letters = shop.letters()
        assert len(letters) == len(injected)
        for name, one in injected.items():
            told = [letter for letter in letters if re.search(one.says, letter["reason"])]
            assert told, f"no letter tells of {name}: {[letter['reason'] for letter in letters]}"
        assert all(len(letter["reason"]) < 1_100 for letter in letters)
        assert {letter["partition"] for letter in letters} == {0, 1, 2}
        assert len(store.latest_outlooks()) == len({device for device, _ in expected})

        with shop.worker(OF_TOMORROW):
            assert shop.says("deadletter", "replay") == (
                3, {"sent": len(injected) - 2, "kept": 2, "sealed": 0}
            )  # fmt: skip
            mended = {(one.mended.device, one.mended.taken_at) for one in injected.values() if one.mended}
            # Four came under keys that are not theirs, with a reading that is there already.
            stay = len(injected) - len(mended) - 4
            until(lambda: kept(store) == expected | mended)
            until(lambda: len(shop.letters()) == stay)
        letters = shop.letters()
        assert len({(one["partition"], one["offset"]) for one in letters}) == len(letters) == stay
        assert len([one for one in letters if not one["whole"]]) == 2
        assert kept(store) == expected | mended


def poison(broker: Broker, injected: dict[str, Poison]) -> None:
    """Each in a batch of its own, as a sender of any make could."""
    producer = KafkaProducer(
        bootstrap_servers=list(broker.bootstrap), compression_type="zstd", acks="all", linger_ms=0,
        max_request_size=1 << 30, delivery_timeout_ms=120_000, request_timeout_ms=60_000,
    )  # fmt: skip
    try:
        for number, one in enumerate(injected.values()):
            sent = producer.send(
                broker.broker_topic_name(Topic.READINGS),
                one.value,
                one.key,
                list(one.headers),
                partition=number % 3,
            )
            sent.get(120)
    finally:
        producer.close()
