"""Parses one row of a table as a reading, by the names of its columns.

Columns: `device`, or `model` and `serial` (and `vendor`), from which Ceph's device id is made; `taken_at`; `host`,
`wwn`, `firmware`, `family`, `protocol`, `capacity_bytes`, `rotation_rpm`, `passed`, `power_on_hours`,
`temperature_c`. Also every counter of `data.reading.Counters`, and `smart_N_raw` and `smart_N_normalized`, decoded by
the rules for a drive that smartctl's database does not know. A value that is missing, NULL or no number is not
reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal, InvalidOperation

from predrain.data.device_id import device_id
from predrain.data.ids import DeviceId, HostName
from predrain.data.importing.import_port import NO_ZONE, to_utc_time
from predrain.data.reading import Counters, Identity, Protocol, Reading, Smart
from predrain.data.smart import ata

NAMES = {9: "Power_On_Hours", 194: "Temperature_Celsius", 241: "Total_LBAs_Written", 242: "Total_LBAs_Read"}
"""smartctl's names of these attributes for a hard disk that it does not know; the others keep the common meaning of
their number."""

SMART_COLUMN = re.compile(r"smart_(\d{1,3})_(raw|normalized)")
COUNTERS = tuple(field.name for field in fields(Counters))
COLUMNS = (
    *("device", "vendor", "model", "serial", "taken_at", "host", "wwn", "firmware", "family", "protocol"),
    *("capacity_bytes", "rotation_rpm", "passed", "power_on_hours", "temperature_c", *COUNTERS),
)
_PASSED = {"passed": True, "ok": True, "true": True, "t": True, "1": True, "failed": False, "false": False,
           "f": False, "0": False}  # fmt: skip
_MILLISECONDS_FROM = 10**11  # as seconds this is the year 5138


class NoReading(Exception):
    """The row is no reading; the text is the reason and the cure."""


class TableColumns:
    """The meaning of each column of a table. Make it once and use it for every row."""

    def __init__(self, columns: Mapping[str, int], host: HostName, zone: tzinfo | None = None) -> None:
        """Take the columns: name (of COLUMNS, or `smart_N_raw`) -> position in the row."""
        self._host, self._zone = host, zone
        self._at = dict(columns)
        smart: dict[int, dict[str, int]] = {}
        for name, place in columns.items():
            if match := SMART_COLUMN.fullmatch(name):
                smart.setdefault(int(match[1]), {})[match[2]] = place
        self._smart = [
            (number, NAMES.get(number, "Unknown_Attribute"), places["raw"], places.get("normalized"))
            for number, places in sorted(smart.items())
            if "raw" in places
        ]
        self._counters = [name for name in COUNTERS if name in columns]

    def parse_row(self, row: tuple[object, ...]) -> Reading:
        """Return the row as a reading that was received when it was taken. Raises NoReading."""
        model, serial, vendor = (self._text(row, name) for name in ("model", "serial", "vendor"))
        told = self._text(row, "device")
        device = DeviceId(told) if told else device_id(vendor, model, serial)
        if device is None:
            raise NoReading("the row names no device: it needs a device id, or a model and a serial number")
        taken_at = self._time(row)
        host = self._text(row, "host")
        seen = self._seen(row, model, serial, vendor)
        return Reading(device, HostName(host) if host else self._host, taken_at, taken_at, seen)

    def _seen(
        self, row: tuple[object, ...], model: str | None, serial: str | None, vendor: str | None
    ) -> Smart:
        spoken = (self._text(row, "protocol") or "ata").lower()
        protocol = next((one for one in Protocol if one.value == spoken), Protocol.ATA)
        who = Identity(
            vendor=vendor,
            model=model,
            family=self._text(row, "family"),
            serial=serial,
            wwn=self._text(row, "wwn"),
            firmware=self._text(row, "firmware"),
            capacity_bytes=self._positive(row, "capacity_bytes"),
            rotation_rpm=self._number(row, "rotation_rpm"),
        )
        smart = ata.smart_of_table(who, self._table(row))
        own = {name: told for name in self._counters if (told := self._number(row, name)) is not None}
        hours, celsius = self._number(row, "power_on_hours"), self._number(row, "temperature_c")
        return replace(
            smart,
            protocol=protocol,
            passed=self._passed(row),
            counters=replace(smart.counters, **own) if own else smart.counters,
            power_on_hours=smart.power_on_hours if hours is None else hours,
            temperature_c=smart.temperature_c if celsius is None else celsius,
        )

    def _table(self, row: tuple[object, ...]) -> Iterator[tuple[int, str, int, int | None]]:
        for number, name, raw, normalised in self._smart:
            value = to_whole_number(row[raw])
            if value is not None:
                level = None if normalised is None else to_whole_number(row[normalised])
                yield number, name, value, level if level is not None and 0 <= level <= 255 else None

    def _time(self, row: tuple[object, ...]) -> datetime:
        value = row[self._at["taken_at"]]
        if isinstance(value, str):
            value = _parse_iso_time(value)
        if isinstance(value, datetime):
            at = to_utc_time(value, self._zone)
            if at is None:
                raise NoReading(NO_ZONE)
            return at
        if isinstance(value, date):  # a whole day is a day of UTC
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        seconds = None if isinstance(value, str) else _to_decimal(value)
        if seconds is None:
            raise NoReading(
                "the row has no time, or one that is not written as 2024-05-31T12:00:00Z or seconds since 1970"
            )
        try:
            return datetime.fromtimestamp(
                float(seconds if seconds < _MILLISECONDS_FROM else seconds / 1000), UTC
            )
        except (OverflowError, OSError, ValueError):
            raise NoReading(f"the time {seconds} is no count of seconds since 1970") from None

    def _passed(self, row: tuple[object, ...]) -> bool | None:
        value = row[self._at["passed"]] if "passed" in self._at else None
        return value if isinstance(value, bool) else _PASSED.get(str(value).strip().lower())

    def _text(self, row: tuple[object, ...], name: str) -> str | None:
        place = self._at.get(name)
        value = None if place is None else row[place]
        said = "" if value is None else str(value).strip()
        return said or None

    def _number(self, row: tuple[object, ...], name: str) -> int | None:
        place = self._at.get(name)
        return None if place is None else to_whole_number(row[place])

    def _positive(self, row: tuple[object, ...], name: str) -> int | None:
        number = self._number(row, name)
        return number if number is not None and number > 0 else None


def to_whole_number(value: object) -> int | None:
    """Return a database's number, or a number in a text, cut to a whole number; None for anything else."""
    if type(value) is int:
        return value
    if value is None or isinstance(value, bool):
        return None
    number = _to_decimal(value)
    return None if number is None else int(number)


def _to_decimal(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        return None
    try:
        number = Decimal(str(value).strip()[:64])
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number) < 10**30 else None


def _parse_iso_time(value: str) -> datetime | date | str:
    """Parse ISO 8601. A day alone gives a date; digits alone are returned as text."""
    said = value.strip()
    for parse in (date.fromisoformat, datetime.fromisoformat) if not said.isdecimal() else ():
        try:
            return parse(said)
        except ValueError:
            pass
    return said
