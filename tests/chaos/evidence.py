"""The records that hosts accepted, by three witnesses that know nothing of each other, and the outcome for each record.

1. The drives (`Cabinet.said`): the log must not hold a collector's reading that no drive has said.
2. A witness beside each spool (tests.chaos.witness): each reading that the witness has noted was accepted, and its
   delivery was promised.
3. The spool itself: the spool numbers its records in the transaction that accepts them, and leaves no number out. The
   readings of a spool are therefore exactly the numbers from 0 up to the spool's count.

The log is thus complete when it holds, for each host, every number that the spool has counted, and no other.
A service seals again the records that come over HTTP. The log must then hold as many different readings of a host as
the host's spool has counted, and the witness says which ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TypeVar

from predrain.data.clock import SystemClock
from predrain.data.latency_windows import LatencyBatch
from predrain.data.log.log_port import Delivered, Log, Topic
from predrain.data.reading import Reading, Smart
from predrain.data.refusal import Refusal
from predrain.data.wire import Envelope, accept_reading, decode_envelope
from tests.chaos.spool_host import CollectorHost, SpoolHost
from tests.chaos.witness import ReadingKey, digest_reading

B = TypeVar("B", Reading, LatencyBatch)
EVERYTHING = 10_000_000
"""Records of a topic."""
SERVICE = "predrain"
"""The name of the producer in the envelopes that a service seals."""


@dataclass
class Carried:
    """The records that came from hosts over one topic, compared with the counts of the spools."""

    accepted: int = 0
    """The number of accepted records, by the spools' own counts."""
    again: int = 0
    """Records that were delivered more than once, with the same bytes."""
    lost: list[str] = field(default_factory=list)
    """Accepted, and not in the log: one sentence each."""
    strange: list[str] = field(default_factory=list)
    """In the log, and never accepted."""


@dataclass
class CarriedReadings(Carried):
    """Readings, by digests: there may be a million of them."""

    expected: dict[ReadingKey, bytes] = field(default_factory=dict)
    """The digests, by key, of the readings in a store that lost nothing. Of two with one key the first is kept."""
    same_time: list[str] = field(default_factory=list)
    """Readings whose key an earlier reading of the log has under another number: one sentence each."""
    digests: set[bytes] = field(default_factory=set)
    """The digests of the readings as the hosts sent them."""
    of_collectors: list[tuple[Reading, bytes]] = field(default_factory=list)
    """Those of hosts with a collector, whole, with their envelopes."""


def carried_readings(
    log: Log, hosts: Sequence[SpoolHost], collectors: Sequence[CollectorHost]
) -> CarriedReadings:
    """Return the readings that the log holds of each host, compared with the numbers that the host's spool counted."""
    found, now = CarriedReadings(), SystemClock().now()
    names = {host.name for host in collectors}

    def take(reading: Reading, raw: bytes) -> None:
        found.digests.add(digest_reading(reading))
        kept = accept_reading(reading, now)
        key, digest = ReadingKey.of(kept), digest_reading(kept)
        if found.expected.setdefault(key, digest) is not digest:
            content = "the same content" if found.expected[key] == digest else "another content"
            found.same_time.append(f"{reading.host} read {key.device} twice at {key.taken_at}: {content}")
        if reading.host in names:
            found.of_collectors.append((reading, raw))

    _carry(found, log, Topic.READINGS, Reading, hosts, take)
    return found


def carried_batches(log: Log, hosts: Sequence[SpoolHost]) -> tuple[Carried, list[LatencyBatch]]:
    """Return the latency batches that the log holds of each host, compared with the numbers that its spool counted."""
    found, batches = Carried(), list[LatencyBatch]()
    _carry(found, log, Topic.LATENCY, LatencyBatch, hosts, lambda batch, _: batches.append(batch))
    return found, batches


def _carry(
    found: Carried,
    log: Log,
    topic: Topic,
    kind: type[B],
    hosts: Sequence[SpoolHost],
    take: Callable[[B, bytes], None],
) -> None:
    numbered: dict[str, dict[int, bytes]] = {}
    anew: dict[str, set[bytes]] = {}
    for record in log.read_newest(topic, EVERYTHING):
        envelope = _opened(record, kind)
        if envelope is None or envelope.producer == "poison":
            continue
        digest = _digest(envelope.body)
        if envelope.producer == SERVICE:
            of_host = anew.setdefault(envelope.body.host, set())
            is_new = digest not in of_host
            of_host.add(digest)
        else:
            of_producer = numbered.setdefault(envelope.producer, {})
            is_new = envelope.sequence not in of_producer
            if of_producer.setdefault(envelope.sequence, digest) != digest:
                found.strange.append(
                    f"{envelope.producer} has sent two records with number {envelope.sequence}"
                )
                continue
        if is_new:
            take(envelope.body, record.value)
        else:
            found.again += 1
    for host in hosts:
        numbers = host.numbers()
        producer = f"{host.name}/{numbers['identity']:08x}"
        count = numbers.get(f"sequence.{kind.__name__}", 0)
        found.accepted += count
        if host.name in anew:
            more = len(anew.pop(host.name)) - count
            found.lost += [f"{host.name} accepted one that is not in the log"] * -more
            found.strange += [f"one of {host.name} is in the log and was never accepted"] * more
            continue
        of_host_numbers = numbered.pop(producer, {}).keys()
        found.lost += [
            f"number {number} of {producer} was accepted and is not in the log"
            for number in sorted(set(range(count)) - of_host_numbers)
        ]
        found.strange += [
            f"number {number} of {producer} is in the log and was never accepted"
            for number in sorted(of_host_numbers - set(range(count)))
        ]
    for name, of_stranger in (*numbered.items(), *anew.items()):
        found.strange += [f"nobody knows {name}, which sent something"] * len(of_stranger)


def _digest(body: Reading | LatencyBatch) -> bytes:
    if isinstance(body, Reading):
        return digest_reading(body)
    return blake2b(repr(body).encode(), digest_size=16).digest()


def never_said(readings: Iterable[Reading], hosts: Sequence[CollectorHost]) -> list[str]:
    """Readings that no drive has said, one sentence each."""
    said: Counter[tuple[str, str]] = Counter()
    names = set()
    for host in hosts:
        for device, smart in host.cabinet.said():
            said[device, repr(smart)] += 1
            names.add(device)
    return [
        f"no drive has said what {reading.device} is said to have said at {reading.taken_at}"
        for reading in readings
        if reading.device not in names
        or (isinstance(reading.seen, Smart) and (reading.device, repr(reading.seen)) not in said)
    ]


def unwitnessed(digests: set[bytes], hosts: Sequence[SpoolHost]) -> tuple[int, list[str]]:
    """Return the number of witnessed readings, and a sentence for each one that is not among `digests`."""
    seen = [line for host in hosts for line in host.witnessed()]
    return len(seen), [
        f"a reading was accepted and is gone: {words}" for digest, words in seen if digest not in digests
    ]


def _opened(record: Delivered, kind: type[B]) -> Envelope[B] | None:
    try:
        return decode_envelope(record.value, kind)
    except Refusal:
        return None
