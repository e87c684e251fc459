"""What was accepted, by three witnesses that know nothing of each other, and what became of it.

1. The drives (`Cabinet.said`): nothing is in the log or the store that no drive has said.
2. A witness beside each spool (`Host.witnessed`): each reading there was accepted, that is, promised.
3. The spool itself: it numbers what it accepts in the transaction that accepts it, and no number is free while another
   one is taken, so that the readings of a spool are exactly its numbers from 0 up to what it has counted.

What the log holds is thus complete when, for each host, it holds every number that the spool has counted, and no other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar

from data.clock import SystemClock
from data.ids import DeviceId
from data.log.port import Delivered, Log, Topic
from data.reading import LatencyBatch, Reading, Smart
from data.refusal import Refusal
from data.wire import Envelope, accept, decode
from data.wire.bodies import READING
from tests.chaos.arena import Host

B = TypeVar("B", Reading, LatencyBatch)
EVERYTHING = 10_000_000
"""Records of a topic."""


@dataclass
class Carried(Generic[B]):
    """What came from hosts over one topic."""

    accepted: int = 0
    """By the spools' own numbers."""
    bodies: list[B] = field(default_factory=list)
    """Each once, as they were sent."""
    raw: list[bytes] = field(default_factory=list)
    """Their envelopes."""
    again: int = 0
    """Records that were delivered more than once, with the same bytes."""
    faults: list[str] = field(default_factory=list)


def carried(log: Log, topic: Topic, kind: type[B], hosts: Sequence[Host]) -> Carried[B]:
    """What the log holds of each host's, against what its spool has counted."""
    found: Carried[B] = Carried()
    sent: dict[str, dict[int, tuple[bytes, Envelope[B]]]] = {}
    for record in log.recent(topic, EVERYTHING):
        envelope = _opened(record, kind)
        if envelope is None or envelope.producer == "poison":
            continue
        of_host = sent.setdefault(envelope.producer, {})
        if envelope.sequence not in of_host:
            of_host[envelope.sequence] = record.value, envelope
        elif of_host[envelope.sequence][0] == record.value:
            found.again += 1
        else:
            found.faults.append(f"{envelope.producer} has sent two records with number {envelope.sequence}")
    for host in hosts:
        numbers = host.numbers()
        producer = f"{host.name}/{numbers['identity']:08x}"
        count = numbers.get(f"sequence.{kind.__name__}", 0)
        of_host = sent.pop(producer, {})
        found.accepted += count
        for number in sorted(set(range(count)) - of_host.keys()):
            found.faults.append(f"number {number} of {producer} was accepted and is not in the log")
        for number in sorted(of_host.keys() - set(range(count))):
            found.faults.append(f"number {number} of {producer} is in the log and was never accepted")
        for raw, envelope in of_host.values():
            found.raw.append(raw)
            found.bodies.append(envelope.body)
    found.faults += [
        f"nobody knows {producer}, which sent {len(of_host)}" for producer, of_host in sent.items()
    ]
    return found


def never_said(readings: Iterable[Reading], hosts: Sequence[Host]) -> list[str]:
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


def unwitnessed(readings: Sequence[Reading], hosts: Sequence[Host]) -> tuple[int, list[str]]:
    """How many acceptances were seen; a sentence for each that is not among `readings`."""
    there = Counter(READING.write(reading) for reading in readings)
    seen = [line for host in hosts for line in host.witnessed]
    return len(seen), [
        f"a reading was accepted and is gone: {line[:120]!r}" for line in seen if not there[line]
    ]


def kept_of(readings: Iterable[Reading]) -> dict[tuple[DeviceId, datetime], Reading]:
    """What a store that lost nothing holds, by its key."""
    now = SystemClock().now()
    found: dict[tuple[DeviceId, datetime], Reading] = {}
    for reading in readings:
        found.setdefault((reading.device, reading.taken_at), accept(reading, now))
    return found


def _opened(record: Delivered, kind: type[B]) -> Envelope[B] | None:
    try:
        return decode(record.value, kind)
    except Refusal:
        return None
