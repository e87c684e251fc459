"""What goes wrong when: the same for the same seed and length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from random import Random


class Kind(StrEnum):
    """What is done to whom."""

    BROKER = "broker killed"
    POSTGRES = "PostgreSQL killed"
    WORKER = "worker killed"
    COLLECTOR = "collector killed"
    DISK_FULL = "spool's disk full"
    CLOCK = "clock two hours back"
    POISON = "poison sent"


@dataclass(frozen=True, slots=True)
class Rate:
    """How often in ten minutes, and how long it lasts at least and at most, in seconds."""

    times: int
    shortest: float
    longest: float


RATES: Mapping[Kind, Rate] = {
    Kind.BROKER: Rate(5, 1, 10),
    Kind.POSTGRES: Rate(3, 0, 6),
    Kind.WORKER: Rate(10, 0, 4),
    Kind.COLLECTOR: Rate(10, 0, 4),
    Kind.DISK_FULL: Rate(1, 15, 30),
    Kind.CLOCK: Rate(1, 15, 30),
    Kind.POISON: Rate(10, 0, 0),
}
WHOLE_SECONDS = 600.0
_BEGIN, _END = 0.08, 0.92
"""Parts of the whole time between which everything begins: there is something to break, and time to heal."""


@dataclass(frozen=True, slots=True)
class Blow:
    """At `at` seconds something is broken for `seconds`; `target` says which of several, modulo their number."""

    at: float
    kind: Kind
    seconds: float
    target: int


def schedule(seed: int, seconds: float) -> tuple[Blow, ...]:
    """All blows in the order of their times: as many as in ten minutes where `seconds` are as long or longer, else in
    proportion, and one of each kind at least. One of each kind falls into each part of the time, so that kinds meet
    each other and not themselves.
    """
    random, found = Random(seed), []
    for kind, rate in RATES.items():
        times = max(1, ceil(rate.times * min(1.0, seconds / WHOLE_SECONDS)))
        part = (_END - _BEGIN) * seconds / times
        for turn in range(times):
            lasting = min(random.uniform(rate.shortest, rate.longest), part / 2)
            at = _BEGIN * seconds + part * turn + random.uniform(0, part - lasting)
            found.append(Blow(at, kind, lasting, random.randrange(1 << 16)))
    return tuple(sorted(found, key=lambda blow: blow.at))
