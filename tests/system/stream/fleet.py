"""A made-up fleet of any size: daily readings, some a day late, some twice, some of drives on their way out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random

from predrain.data.ids import DeviceId, HostName
from predrain.data.reading import Attribute, Counters, Identity, Protocol, Reading, Smart

BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)
DRIVES_A_HOST = 24
SICK, LATE, TWICE = 0.03, 0.02, 0.01


def readings(drives: int, days: int, seed: int = 1) -> Iterator[Reading]:
    """`days` readings of each of `drives` in the order of their arrival, made as they are asked for.

    One in fifty comes among those of the next day, half of these after that day's reading of the same drive; one in a
    hundred comes twice. Counters of three drives in a hundred rise from the second day on.
    """
    random = Random(seed)
    sick = [random.random() < SICK for _ in range(drives)]
    held: list[tuple[int, int]] = []
    for day in range(days):
        arriving, held = held, []
        for number in range(drives):
            late = day < days - 1 and random.random() < LATE
            (held if late else arriving).append((number, day))
        random.shuffle(arriving)
        for number, of in arriving:
            reading = _reading(number, of, sick[number])
            yield reading
            if random.random() < TWICE:
                yield reading


def _reading(number: int, day: int, sick: bool) -> Reading:
    host = HostName(f"stor-{number // DRIVES_A_HOST:04d}")
    at = BEGIN + timedelta(days=day, seconds=number % 3_600)
    return compose_reading(
        f"Z{number:07d}", host, at, 9_000 + number % 20_000 + 24 * day, _pending(number, day, sick)
    )


def _pending(number: int, day: int, sick: bool) -> int:
    return day * (8 + number % 50) if sick else 0


def compose_reading(
    serial: str, host: HostName, at: datetime, hours: int, pending: int, *, passed: bool = True
) -> Reading:
    """Compose a reading of a hard disk after `hours` of power, with `pending` sectors that wait to be reallocated."""
    raw = {5: pending // 2, 9: hours, 187: pending // 8, 194: 28, 197: pending, 198: pending, 199: 0}
    seen = Smart(
        Protocol.ATA,
        Identity(model="ST4000DM000", serial=serial, capacity_bytes=4_000_787_030_016, rotation_rpm=5900),
        passed,
        Counters(reallocated=raw[5], pending=pending, offline_uncorrectable=pending, crc_errors=0),
        {id_: Attribute(f"smart_{id_}", count) for id_, count in raw.items()},
        raw[9],
        28,
    )
    return Reading(DeviceId(f"ST4000DM000_{serial}"), host, at, at, seen)
