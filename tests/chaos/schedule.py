"""The faults of a run and their times: the same for the same way of delivery, seed and length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from random import Random


class Way(StrEnum):
    """A way by which readings come from hosts into the store."""

    KAFKA = "kafka"
    """Over Kafka to workers, which keep them in PostgreSQL."""
    HTTP = "http"
    """Over HTTP to `predrain up`, which keeps them in SQLite."""


class Part(StrEnum):
    """A kind of server or process that is killed and frozen; a run may have several of one kind."""

    BROKER = "broker"
    POSTGRES = "PostgreSQL"
    WORKER = "worker"
    SERVICE = "service"
    HOST = "host"
    """A process that delivers: a collector or a load generator."""


class Kind(StrEnum):
    """A fault."""

    BROKER = "broker killed"
    POSTGRES = "PostgreSQL killed"
    WORKER = "worker killed"
    SERVICE = "service killed"
    HOST = "host killed"
    BROKER_FROZEN = "broker frozen"
    POSTGRES_FROZEN = "PostgreSQL frozen"
    WORKER_FROZEN = "worker frozen"
    SERVICE_FROZEN = "service frozen"
    HOST_FROZEN = "host frozen"
    NETWORK = "network cut"
    DISK_FULL = "spool's disk full"
    CLOCK = "clock two hours back"
    POISON = "poison sent"


KILLS: Mapping[Kind, Part] = {
    Kind.BROKER: Part.BROKER,
    Kind.POSTGRES: Part.POSTGRES,
    Kind.WORKER: Part.WORKER,
    Kind.SERVICE: Part.SERVICE,
    Kind.HOST: Part.HOST,
}
FREEZES: Mapping[Kind, Part] = {
    Kind.BROKER_FROZEN: Part.BROKER,
    Kind.POSTGRES_FROZEN: Part.POSTGRES,
    Kind.WORKER_FROZEN: Part.WORKER,
    Kind.SERVICE_FROZEN: Part.SERVICE,
    Kind.HOST_FROZEN: Part.HOST,
}


@dataclass(frozen=True, slots=True)
class Rate:
    """How often in ten minutes, and how long it lasts at least and at most, in seconds."""

    times: int
    shortest: float
    longest: float


_ALWAYS: Mapping[Kind, Rate] = {
    Kind.HOST: Rate(10, 0, 4),
    Kind.HOST_FROZEN: Rate(5, 2, 15),
    Kind.NETWORK: Rate(12, 12, 20),  # a producer of Kafka gives a delivery up after ten seconds
    Kind.DISK_FULL: Rate(1, 15, 30),
    Kind.CLOCK: Rate(1, 15, 30),
}
RATES: Mapping[Way, Mapping[Kind, Rate]] = {
    Way.KAFKA: {
        Kind.BROKER: Rate(5, 1, 10),
        Kind.POSTGRES: Rate(3, 0, 6),
        Kind.WORKER: Rate(10, 0, 4),
        Kind.BROKER_FROZEN: Rate(3, 2, 15),
        Kind.POSTGRES_FROZEN: Rate(3, 2, 15),
        Kind.WORKER_FROZEN: Rate(6, 11, 25),  # a worker is given up for dead after ten seconds
        **_ALWAYS,
        Kind.POISON: Rate(10, 0, 0),
    },
    Way.HTTP: {Kind.SERVICE: Rate(10, 0, 4), Kind.SERVICE_FROZEN: Rate(6, 2, 25), **_ALWAYS},
}
WHOLE_SECONDS = 600.0
_BEGIN, _END = 0.08, 0.92
"""Parts of the whole time between which everything begins: there is something to break, and time to heal."""


@dataclass(frozen=True, slots=True)
class Blow:
    """At `at` seconds something is broken for `seconds`; `target` says which of several, modulo their number.

    Cuts of the network take turns, the one that has readings delivered twice first.
    """

    at: float
    kind: Kind
    seconds: float
    target: int


def schedule(way: Way, seed: int, seconds: float) -> tuple[Blow, ...]:
    """All blows in the order of their times: as many as in ten minutes where `seconds` are as long or longer, else in
    proportion, and one of each kind at least. One of each kind falls into each part of the time, so that kinds meet
    each other and not themselves.
    """
    random, found = Random(seed), []
    for kind, rate in RATES[way].items():
        times = max(1, ceil(rate.times * min(1.0, seconds / WHOLE_SECONDS)))
        part = (_END - _BEGIN) * seconds / times
        for turn in range(times):
            lasting = min(random.uniform(rate.shortest, rate.longest), part / 2)
            at = _BEGIN * seconds + part * turn + random.uniform(0, part - lasting)
            target = turn if kind is Kind.NETWORK else random.randrange(1 << 16)
            found.append(Blow(at, kind, lasting, target))
    return tuple(sorted(found, key=lambda blow: blow.at))
