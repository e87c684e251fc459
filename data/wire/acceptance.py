"""What may come in: times that can be, counters that can be, and what to do about those that cannot.

A reading from the future or with a negative counter is refused whole, because its sender is broken and would
send more of them. A single number that no drive can have (5e15 power-on hours, a count of all ones) is the
drive's own garble, and drives that garble are the ones to watch: that field becomes None, which is "not
known", and the rest of the reading is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta

from data.reading import Counters, LatencySummary, Reading, Smart
from data.refusal import Refusal

FUTURE = timedelta(minutes=5)
"""How far a host's clock may run ahead."""

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
"""Before this, a host's clock was never set."""

LONGEST_NAME = 256

_COUNT = (0, 2**32 - 2)  # 2^32 - 1 and the all-ones of wider registers are "nothing here", not a count
_BYTES = (0, 10**19)  # 10 GB/s for thirty years

PLAUSIBLE: Mapping[str, tuple[int, int]] = {
    **{field.name: _COUNT for field in fields(Counters)},
    "percentage_used": (0, 255),
    "available_spare_pct": (0, 100),
    "critical_warning": (0, 255),
    "bytes_written": _BYTES,
    "bytes_read": _BYTES,
    "power_on_hours": (0, 350_400),  # forty years
    "temperature_c": (-60, 150),
}
"""Least and greatest value of a number that a drive can truly have."""


class Refused(Refusal):
    """A reading or summary that is not taken in. The text names the field and its number."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A number that no drive can have, which was read as not known."""

    field: str
    number: int

    def __str__(self) -> str:
        least, greatest = PLAUSIBLE[self.field]
        return f"{self.field} {self.number:,} is outside {least:,} to {greatest:,} and counts as not known"


def accept(reading: Reading, now: datetime) -> Reading:
    """The reading as it is to be kept: what `doubts` names is None, all else as sent. Raises Refused."""
    _named("device", reading.device)
    _named("host", reading.host)
    _dated("taken_at", reading.taken_at, now, reading.host)
    if not isinstance(reading.seen, Smart):
        _dated("unreadable since", reading.seen.since, now, reading.host)
        return reading
    _counted(reading)
    unknown = {doubt.field for doubt in doubts(reading)}
    if not unknown:
        return reading
    smart = reading.seen
    return replace(
        reading,
        seen=replace(
            smart,
            counters=replace(smart.counters, **dict.fromkeys(unknown & _COUNTERS)),
            power_on_hours=None if "power_on_hours" in unknown else smart.power_on_hours,
            temperature_c=None if "temperature_c" in unknown else smart.temperature_c,
        ),
    )


def doubts(reading: Reading) -> tuple[Doubt, ...]:
    """Numbers that no drive can have, in the order of PLAUSIBLE; none for an unreadable drive."""
    if not isinstance(reading.seen, Smart):
        return ()
    return tuple(
        Doubt(name, number)
        for name, number in _numbers(reading.seen)
        if not PLAUSIBLE[name][0] <= number <= PLAUSIBLE[name][1]
    )


def accept_latency(summary: LatencySummary, now: datetime) -> LatencySummary:
    """The summary, unchanged. Raises Refused."""
    _named("host", summary.host)
    _dated("window_start", summary.window_start, now, summary.host)
    if summary.osd < 0:
        raise Refused(f"osd.{summary.osd} is no OSD: OSDs count from 0")
    if not summary.window_seconds > 0:
        raise Refused(f"window_seconds {summary.window_seconds:g} is no window: it must be above 0")
    for field in fields(LatencySummary):
        number = getattr(summary, field.name)
        if isinstance(number, int | float) and not number >= 0:
            raise Refused(
                f"{field.name} {number:g} of osd.{summary.osd} on {summary.host} is negative or no number:"
                " update that host's collector"
            )
    return summary


_COUNTERS = frozenset(field.name for field in fields(Counters))


def _numbers(smart: Smart) -> Iterator[tuple[str, int]]:
    for name in PLAUSIBLE:
        number: int | None = getattr(smart.counters if name in _COUNTERS else smart, name)
        if number is not None:
            yield name, number


def _counted(reading: Reading) -> None:
    """No count may be below zero: smartctl never prints one, so it was made on the way."""
    assert isinstance(reading.seen, Smart)
    numbers = [pair for pair in _numbers(reading.seen) if pair[0] != "temperature_c"]
    identity = reading.seen.identity
    sizes = (("capacity_bytes", identity.capacity_bytes), ("rotation_rpm", identity.rotation_rpm))
    numbers += [(name, number) for name, number in sizes if number is not None]
    for id_, row in reading.seen.attributes.items():
        if not 0 <= id_ <= 255:
            raise Refused(f"attribute {id_} of {reading.device} is no attribute: they count from 0 to 255")
        numbers += [
            (f"attribute {id_} {name}", number)
            for name, number in (("raw", row.raw), ("value", row.value), ("worst", row.worst))
            if number is not None
        ]
    for name, number in numbers:
        if number < 0:
            raise Refused(
                f"{name} {number:,} of {reading.device} on {reading.host} is negative: update that host's"
                " collector, or look at what writes its smartctl output"
            )


def _dated(field: str, time: datetime, now: datetime, host: str) -> None:
    if time.tzinfo is None:
        raise Refused(f"{field} {time.isoformat()} from {host} has no time zone: send UTC")
    if time > now + FUTURE:
        ahead = (time - now).total_seconds()
        raise Refused(
            f"{field} {time.isoformat()} from {host} is {ahead:,.0f} s in the future:"
            " set that host's clock (NTP)"
        )
    if time < EARLIEST:
        raise Refused(f"{field} {time.isoformat()} from {host} is before 2000: set that host's clock (NTP)")


def _named(field: str, name: str) -> None:
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise Refused(
            f"the {field} name {name[:64]!r} is empty, longer than {LONGEST_NAME} characters or unprintable:"
            " look at the host that sent it"
        )
