"""Checks incoming values: plausible times, plausible counters, and the handling of implausible ones.

A reading from the future or with a negative counter is refused as a whole, because its sender is broken and would
send more of them. A single number that no drive can have (5e15 power-on hours, a count of all ones) comes from the
drive itself, and drives that report such numbers are the ones to watch. That field becomes None, which means "not
known", and the rest of the reading is kept.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from operator import attrgetter

from predrain.data.ids import ClusterId, HostName, OsdId, parse_cluster_id
from predrain.data.latency_windows import LatencySummary
from predrain.data.outside_text import DEVICE, is_clean
from predrain.data.reading import Counters, Reading, Smart
from predrain.data.refusal import Refusal
from predrain.data.residence import BETWEEN, is_apart
from predrain.data.wire.text_cleaning import clean_reading

FUTURE = timedelta(minutes=5)
"""Most time by which a host's clock may run ahead."""

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
"""A host's clock that shows an earlier time was never set."""

LONGEST_NAME = DEVICE.limit
LONGEST_WINDOW = timedelta(days=1)

_COUNT = (0, 2**32 - 2)  # 2^32 - 1 and the all-ones of wider registers mean "nothing here" and are no count
_BYTES = (0, 10**19)  # 10 GB/s for thirty years
_LIMIT_C = (1, 150)
_WIDEST = 2**64
WIDEST_MEASURE = 2**63
NO_OSD = 2**31 - 1  # CRUSH has it for "none"

PLAUSIBLE: Mapping[str, tuple[int, int]] = {
    **{field.name: _COUNT for field in fields(Counters)},
    "percentage_used": (0, 255),
    "available_spare_pct": (0, 100),
    "critical_warning": (0, 255),
    "bytes_written": _BYTES,
    "bytes_read": _BYTES,
    "power_on_hours": (0, 350_400),  # forty years
    "temperature_c": (-60, 150),
    "temperature_limit_c": _LIMIT_C,
    "temperature_critical_c": _LIMIT_C,
}
"""Smallest and largest value of a number that a drive can truly have."""


class NotAccepted(Refusal):
    """A reading or summary is not accepted. The text names the field and its number."""


class RefusedForTime(NotAccepted):
    """A value is refused for its time. It is unknown whose clock is wrong, so the value may be kept and sent again."""

    def __init__(self, why: str, seconds: float) -> None:
        super().__init__(why)
        self.seconds = seconds
        """Seconds until the value would be accepted, if no clock is set meanwhile."""


@dataclass(frozen=True, slots=True)
class ImplausibleNumber:
    """A number that no drive can have, which was read as not known."""

    field: str
    number: int

    def __str__(self) -> str:
        least, greatest = PLAUSIBLE[self.field]
        return f"{self.field} {self.number:,} is outside {least:,} to {greatest:,} and counts as not known"


def accept_reading(reading: Reading, now: datetime) -> Reading:
    """Return the reading as it is to be stored.

    Numbers in `find_implausible_numbers` become None, texts are cleaned, times are not ahead of `now`, and all else
    is as it was sent. Raises NotAccepted.
    """
    reading = clean_reading(reading)
    _check_field_name("device", reading.device)
    _check_field_name("host", reading.host)
    if is_apart(reading.device):
        raise NotAccepted(
            f"the device name {reading.device[:64]!r} holds {BETWEEN!r}, which stands between a disk and its host where"
            " two hosts name one disk: send the drive's own name"
        )
    _check_field_time("taken_at", reading.taken_at, now, reading.host)
    _check_osds_and_kernel_errors(reading)
    if reading.taken_at > now or reading.received_at > now:
        reading = replace(
            reading, taken_at=_not_ahead(reading.taken_at, now), received_at=min(reading.received_at, now)
        )
    if not isinstance(reading.seen, Smart):
        _check_field_time("unreadable since", reading.seen.since, now, reading.host)
        if reading.seen.since > now:
            reading = replace(reading, seen=replace(reading.seen, since=now))
        return reading
    _check_smart_counts(reading)
    unknown = {doubt.field for doubt in find_implausible_numbers(reading)}
    if not unknown:
        return reading
    smart = reading.seen
    return replace(
        reading,
        seen=replace(
            smart,
            counters=replace(smart.counters, **dict.fromkeys(unknown.intersection(_COUNTERS))),
            power_on_hours=None if "power_on_hours" in unknown else smart.power_on_hours,
            temperature_c=None if "temperature_c" in unknown else smart.temperature_c,
            temperature_limit_c=None if "temperature_limit_c" in unknown else smart.temperature_limit_c,
            temperature_critical_c=None
            if "temperature_critical_c" in unknown
            else smart.temperature_critical_c,
        ),
    )


def find_implausible_numbers(reading: Reading) -> tuple[ImplausibleNumber, ...]:
    """Return the numbers that no drive can have, in the order of PLAUSIBLE; none for an unreadable drive."""
    if not isinstance(reading.seen, Smart):
        return ()
    return tuple(
        ImplausibleNumber(name, number)
        for (name, (least, greatest)), number in zip(
            PLAUSIBLE.items(), _list_checked_numbers(reading.seen), strict=True
        )
        if number is not None and not least <= number <= greatest
    )


def accept_latency(summary: LatencySummary, now: datetime) -> LatencySummary:
    """Return the summary, unchanged. Raises NotAccepted."""
    accept_source(summary.host, summary.window_start, now)
    _check_cluster(summary.cluster, summary.osd, summary.host)
    if not 0 <= summary.osd < NO_OSD:
        raise NotAccepted(f"osd.{summary.osd} is no OSD: OSDs count from 0")
    if not 0 < summary.window_seconds <= LONGEST_WINDOW.total_seconds():
        raise NotAccepted(
            f"window_seconds {summary.window_seconds:g} is no window: it must be above 0, and a day at most"
        )
    known = [number for number in _measured(summary) if number is not None]
    # This holds nearly always. A sum with a NaN compares as false. The maximum is tested before the sum,
    # because an integer of a thousand digits cannot be added to a float.
    if min(known) >= 0 and max(known) < WIDEST_MEASURE and sum(known) < WIDEST_MEASURE:
        return summary
    for name, number in zip(_MEASURED, _measured(summary), strict=True):
        if number is not None and not 0 <= number < WIDEST_MEASURE:
            raise NotAccepted(
                f"{name} {str(number)[:32]} of osd.{summary.osd} on {summary.host} is negative, too large or no number:"
                " update that host's collector"
            )
    return summary


def accept_source(host: str, window_start: datetime, now: datetime) -> None:
    """Check that a host may have windows that began then. Raises NotAccepted."""
    _check_field_name("host", host)
    _check_field_time("window_start", window_start, now, host)


_COUNTERS = tuple(field.name for field in fields(Counters))
_counters = attrgetter(*_COUNTERS)
_TEMPERATURES = ("temperature_c", "temperature_limit_c", "temperature_critical_c")
_temperatures = attrgetter(*_TEMPERATURES)
_MEASURED = tuple(
    field.name for field in fields(LatencySummary) if field.name not in ("host", "window_start", "cluster")
)
_measured = attrgetter(*_MEASURED)
_IDS = frozenset(range(256))
_COLDEST = -128
_DEGREES = frozenset(f"attribute {number} raw" for number in (190, 194, 231))
"""Values that may be below zero, as far as a signed byte goes."""
_ROW = ("raw", "value", "worst", "threshold", "raw_packed")
_row = attrgetter(*_ROW)


def _list_checked_numbers(smart: Smart) -> tuple[int | None, ...]:
    """Return the checked numbers in the order of PLAUSIBLE."""
    return (*_counters(smart.counters), smart.power_on_hours, *_temperatures(smart))


def _check_osds_and_kernel_errors(reading: Reading) -> None:
    for osd_device in reading.osd_devices:
        if not 0 <= osd_device.osd < NO_OSD:
            raise NotAccepted(
                f"osd.{osd_device.osd} on {reading.host} is no OSD: update that host's collector"
            )
        _check_cluster(osd_device.cluster, osd_device.osd, reading.host)
    if reading.kernel_errors is not None and not 0 <= reading.kernel_errors < _WIDEST:
        raise NotAccepted(
            f"kernel_errors {reading.kernel_errors:,} of {reading.device} on {reading.host} is no count of errors:"
            " update that host's collector"
        )


def _check_cluster(cluster: ClusterId | None, osd: OsdId, host: HostName) -> None:
    if cluster is not None and parse_cluster_id(cluster) != cluster:
        raise NotAccepted(
            f"cluster {cluster[:64]!r} of osd.{osd} on {host} is no fsid, which is a UUID in lower case: update that"
            " host's collector"
        )


def _check_smart_counts(reading: Reading) -> None:
    """Raise NotAccepted for a count below zero or wider than a register.

    smartctl prints no such count, so it was made on the way.
    """
    assert isinstance(reading.seen, Smart)
    smart, identity = reading.seen, reading.seen.identity
    own = _list_checked_numbers(smart)[: -len(_TEMPERATURES)]
    sizes = (identity.capacity_bytes, identity.rotation_rpm)
    rows = chain.from_iterable(map(_row, smart.attributes.values()))
    with suppress(OverflowError):
        array("Q", filter(None, (*own, *sizes, *rows)))  # all of them fit into registers, nearly always
        if smart.attributes.keys() <= _IDS:
            return
    named = [*zip(PLAUSIBLE, own, strict=False), ("capacity_bytes", sizes[0]), ("rotation_rpm", sizes[1])]
    for id_, row in smart.attributes.items():
        if not 0 <= id_ <= 255:
            raise NotAccepted(
                f"attribute {id_} of {reading.device} is no attribute: they count from 0 to 255"
            )
        named += [(f"attribute {id_} {name}", number) for name, number in zip(_ROW, _row(row), strict=True)]
    for name, number in named:
        if number is None:
            continue
        if number < (_COLDEST if name in _DEGREES else 0):
            raise NotAccepted(
                f"{name} {number:,} of {reading.device} on {reading.host} is negative: update that host's"
                " collector, or look at what writes its smartctl output"
            )
        if number >= _WIDEST and name not in PLAUSIBLE:
            raise NotAccepted(
                f"{name} of {reading.device} on {reading.host} has {len(str(number))} digits, which no drive's register"
                " holds: update that host's collector, or look at what writes its smartctl output"
            )


def _not_ahead(time: datetime, now: datetime) -> datetime:
    """Return `time`, or the time of receipt if it is ahead of the local clock, so that it never outranks later
    readings.

    The readings of a host whose clock runs ahead keep their order. Each is dated before `now` by as many microseconds
    as its lead is seconds short of FUTURE.
    """
    return time if time <= now else now - (FUTURE - (time - now)) / 1_000_000


def _check_field_time(field: str, time: datetime, now: datetime, host: str) -> None:
    if time.tzinfo is None:
        raise NotAccepted(f"{field} {time.isoformat()} from {host} has no time zone: send UTC")
    if time > now + FUTURE:
        ahead = (time - now).total_seconds()
        raise RefusedForTime(
            f"{field} {time.isoformat()} from {host} is {ahead:,.0f} s in the future:"
            " set that host's clock (NTP), or the service's",
            ahead - FUTURE.total_seconds(),
        )
    if time < EARLIEST:
        raise NotAccepted(
            f"{field} {time.isoformat()} from {host} is before 2000: set that host's clock (NTP)"
        )


def _check_field_name(field: str, name: str) -> None:
    if not name or len(name) > LONGEST_NAME or not (name.isprintable() or is_clean(name, LONGEST_NAME)):
        raise NotAccepted(
            f"the {field} name {name[:64]!r} is empty, longer than {LONGEST_NAME} characters or unprintable:"
            " look at the host that sent it"
        )
