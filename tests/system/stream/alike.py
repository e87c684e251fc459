"""A comparison of the drives in two stores, bit by bit and for any amount: each store is read once, a row at a time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from hashlib import blake2b
from itertools import groupby

from sqlalchemy import Table, create_engine, make_url, select

from predrain.data.ids import DeviceId
from predrain.data.log.log_port import Log, Topic
from predrain.data.outlook import Outlook, Status
from predrain.data.reading import Reading
from predrain.data.store import store_schema
from predrain.data.wire import decode_envelope
from predrain.service.storage.store_identity import MARK_KEY

ROWS_AT_ONCE = 2_000
HELD = {
    store_schema.readings: "taken_at",
    store_schema.latest_readings: "taken_at",
    store_schema.outlooks: "as_of",
    store_schema.latest_outlooks: "as_of",
}


Told = frozenset[tuple[DeviceId, datetime | None, Status | None]]


def differing(one: str, other: str) -> dict[str, list[str]]:
    """Devices that the stores at two URLs do not tell the same of, by table; only tables with such are named."""
    found = {}
    for table in HELD:
        left, right = digests(one, table), digests(other, table)
        unlike = sorted(
            device for device in left.keys() | right.keys() if left.get(device) != right.get(device)
        )
        if unlike:
            found[table.name] = unlike
    return found


def digests(url: str, table: Table) -> dict[str, bytes]:
    """A digest of all that the table holds of each device: keys, times and documents as they were written."""
    where = make_url(url)
    engine = create_engine(
        where.set(drivername="postgresql+psycopg") if where.drivername == "postgresql" else where
    )
    try:
        with engine.connect() as connection:
            wanted = select(table.c.device, table.c[HELD[table]], table.c.document).order_by(
                *table.primary_key
            )
            rows = connection.execution_options(yield_per=ROWS_AT_ONCE).execute(wanted)
            return {
                device: blake2b(repr([tuple(row) for row in of_device]).encode(), digest_size=16).digest()
                for device, of_device in groupby(rows, key=lambda row: row.device)
            }
    finally:
        engine.dispose()


def announced(log: Log, disordered: frozenset[DeviceId]) -> Told:
    """Return what was announced at least once: the device, its `as_of` time, and its status.

    For `disordered` drives, only the device is returned. A reading that comes after a newer one is the first news of
    its drive if a worker took both together, and is no news if the newer one was announced before.
    """
    found = [
        decode_envelope(record.value, Outlook).body
        for record in log.read_newest(Topic.OUTLOOKS, 1_000_000)
        if record.key != MARK_KEY
    ]
    return frozenset(
        (one.device, None, None) if one.device in disordered else (one.device, one.as_of, one.status)
        for one in found
    )


def disordered(readings: Iterable[Reading]) -> frozenset[DeviceId]:
    """Drives with a reading that came after a newer one."""
    newest: dict[DeviceId, datetime] = {}
    found = set()
    for one in readings:
        if one.taken_at < newest.setdefault(one.device, one.taken_at):
            found.add(one.device)
        newest[one.device] = max(newest[one.device], one.taken_at)
    return frozenset(found)
