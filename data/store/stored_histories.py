"""Histories of many devices at once: readings and outlooks, by one question for each batch of devices."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Select, Table, select, tuple_

from predrain.data.ids import DeviceId
from predrain.data.store import store_schema
from predrain.data.store.database import EARLIEST, Database, KeyRange
from predrain.data.store.store_schema import from_microseconds, to_microseconds
from predrain.data.wire.wire_bodies import BodyCodec

T = TypeVar("T")

_TOGETHER: Final = 500
"""Devices in one question, if each is asked for its end."""
_WHOLE: Final = 50
"""Devices in one question for all of their histories: 50 x 2,470 documents of 400 bytes are 50 MB."""


def iterate_histories(
    database: Database,
    table: Table,
    time: str,
    body: BodyCodec[T],
    since: Mapping[DeviceId, datetime | None],
) -> Iterator[tuple[DeviceId, tuple[T, ...]]]:
    """Yield each device of `since` with its values from that time on (None: all), oldest first.

    The values of a device are decoded when it is its turn.
    """
    starts = {device: at if at is None else to_microseconds(at) for device, at in since.items()}
    ends = iter([(device, at) for device, at in starts.items() if at is not None])
    wholes = iter([(device, EARLIEST) for device, at in starts.items() if at is None])
    for devices, together in ((ends, _TOGETHER), (wholes, _WHOLE)):
        while some := dict(islice(devices, together)):
            ranges = database.list_ranges([KeyRange(device, begin) for device, begin in some.items()])
            rows_of = database.rows_in_ranges(table, "device", time, ranges)
            wanted = select(rows_of.c.device, rows_of.c.document).order_by(rows_of.c.device, rows_of.c[time])
            rows = database.read(partial(_read_rows, wanted))
            found = {device: [row.document for row in of] for device, of in groupby(rows, itemgetter(0))}
            for device in some:
                yield device, database.set_aside.read_all(table.name, found.pop(device, ()), body.read)


def _read_rows(wanted: Select[Any, Any], connection: Connection) -> Sequence[Any]:
    return connection.execute(wanted).all()


def find_outlook_keys(
    database: Database, keys: Collection[tuple[DeviceId, datetime]]
) -> frozenset[tuple[DeviceId, datetime]]:
    """Return those of `keys`, each a device and a time, of which there is an outlook."""
    table = store_schema.outlooks
    key = tuple_(table.c.device, table.c.as_of)
    wanted = select(table.c.device, table.c.as_of).where(
        key.in_([(device, to_microseconds(at)) for device, at in keys])
    )
    rows = database.read(partial(_read_rows, wanted))
    return frozenset((DeviceId(device), from_microseconds(at)) for device, at in rows)
