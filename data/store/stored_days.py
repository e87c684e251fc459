"""The readings of whole UTC days, for the archive: which days there are, at which times, and the readings themselves.

Each question covers hundreds of devices, and costs what their rows of the day cost (`data.store.database`, ranges).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import date, timedelta
from functools import partial
from itertools import groupby, islice
from operator import itemgetter

from sqlalchemy import Connection, select

from predrain.data.ids import DeviceId
from predrain.data.reading import Reading
from predrain.data.store import store_schema
from predrain.data.store.database import EARLIEST, Database, KeyRange
from predrain.data.store.store_port import DeviceTimes
from predrain.data.store.store_schema import from_microseconds
from predrain.data.store.table_upkeep import (
    DAY,
    EPOCH,
    TOGETHER,
    decode_reading,
    find_day_start,
    iterate_table_keys,
)

_READINGS = store_schema.readings


def list_reading_days(database: Database, before: date) -> tuple[date, ...]:
    """Implement `data.store.store_port.Store.list_reading_days`."""
    days, end = set[int](), find_day_start(before)
    for devices in _iterate_device_batches(database):
        ranges = [KeyRange(device, EARLIEST, end) for device in devices]
        days.update(database.read(partial(_read_days, database, ranges)))
    return tuple(EPOCH + timedelta(days=number) for number in sorted(days))


def iterate_day_times(database: Database, day: date) -> Iterator[DeviceTimes]:
    """Implement `data.store.store_port.Store.iterate_day_times`."""
    for devices in _iterate_device_batches(database):
        found = database.read(partial(_read_times, database, _list_day_ranges(day, devices)))
        for device, rows in groupby(found, itemgetter(0)):
            yield DeviceTimes(DeviceId(device), tuple(from_microseconds(at) for _, at in rows))


def read_day_readings(database: Database, day: date, devices: Collection[DeviceId]) -> tuple[Reading, ...]:
    """Implement `data.store.store_port.Store.read_day_readings`."""
    found = database.read(partial(_read_documents, database, _list_day_ranges(day, devices)))
    readings = (decode_reading(database, document) for document in found)
    return tuple(one for one in readings if one is not None)


def _iterate_device_batches(database: Database) -> Iterator[list[str]]:
    keys = iterate_table_keys(database, _READINGS, "device")
    while devices := list(islice(keys, TOGETHER)):
        yield devices


def _list_day_ranges(day: date, devices: Collection[str]) -> list[KeyRange]:
    begin = find_day_start(day)
    return [KeyRange(device, begin, begin + DAY) for device in devices]


def _read_days(database: Database, ranges: Sequence[KeyRange], connection: Connection) -> Sequence[int]:
    rows = database.rows_in_ranges(_READINGS, "device", "taken_at", database.list_ranges(ranges))
    return connection.execute(select(rows.c.taken_at // DAY).distinct()).scalars().all()


def _read_times(
    database: Database, ranges: Sequence[KeyRange], connection: Connection
) -> Sequence[tuple[str, int]]:
    rows = database.rows_in_ranges(_READINGS, "device", "taken_at", database.list_ranges(ranges))
    wanted = select(rows.c.device, rows.c.taken_at).order_by(rows.c.device, rows.c.taken_at)
    return [(device, at) for device, at in connection.execute(wanted).all()]


def _read_documents(
    database: Database, ranges: Sequence[KeyRange], connection: Connection
) -> Sequence[bytes]:
    rows = database.rows_in_ranges(_READINGS, "device", "taken_at", database.list_ranges(ranges))
    return (
        connection.execute(select(rows.c.document).order_by(rows.c.device, rows.c.taken_at)).scalars().all()
    )
