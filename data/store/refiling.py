"""Moves readings to another device's name, as when a disk is found to live in another host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection, bindparam, func, select

from predrain.data.ids import DeviceId
from predrain.data.reading import Reading
from predrain.data.store import documents, store_schema
from predrain.data.store.database import KEPT, Database
from predrain.data.store.store_schema import to_microseconds

_READINGS, _LATEST = store_schema.readings, store_schema.latest_readings


def refile_readings(database: Database, readings: Sequence[Reading], device: DeviceId) -> None:
    """Implement `data.store.store_port.Store.refile_readings`."""
    if not readings:
        return
    ordered = sorted(readings, key=lambda one: (one.device, one.taken_at))
    rows = [
        {
            "device": device,
            "taken_at": to_microseconds(one.taken_at),
            "document": documents.READING.write(replace(one, device=device)),
        }
        for one in ordered
    ]
    concerned = sorted({device, *(one.device for one in readings)})
    leaving = _READINGS.delete().where(
        _READINGS.c.device == bindparam("of"), _READINGS.c.taken_at == bindparam("at")
    )

    def write(connection: Connection) -> None:
        database.insert_many(connection, _READINGS, rows, KEPT)
        connection.execute(
            leaving, [{"of": one.device, "at": to_microseconds(one.taken_at)} for one in ordered]
        )
        connection.execute(
            store_schema.checkpoints.delete().where(
                database.is_any_of(store_schema.checkpoints.c.device, concerned)
            )
        )
        for name in concerned:
            _renew_latest(database, connection, name)

    database.write(write)


def forget_newest(database: Database, device: DeviceId) -> None:
    """Implement `data.store.store_port.Store.forget_newest`."""

    def write(connection: Connection) -> None:
        for table in (store_schema.checkpoints, store_schema.latest_outlooks, _LATEST):
            connection.execute(table.delete().where(table.c.device == device))

    database.write(write)


def _renew_latest(database: Database, connection: Connection, device: str) -> None:
    """Find the newest reading of a device again."""
    last = select(func.max(_READINGS.c.taken_at)).where(_READINGS.c.device == device).scalar_subquery()
    newest = select(_READINGS.c.taken_at, _READINGS.c.document).where(
        _READINGS.c.device == device, _READINGS.c.taken_at == last
    )
    found = connection.execute(newest).one_or_none()
    connection.execute(_LATEST.delete().where(_LATEST.c.device == device))
    if found is not None:
        row = {"device": device, "taken_at": found.taken_at, "document": found.document}
        connection.execute(
            _LATEST.insert().values(**row, written=database.read_transaction_number(connection))
        )
