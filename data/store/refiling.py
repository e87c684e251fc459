"""Readings that change the device under whose name they are kept, as when a disk is found to live in another host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection, bindparam, func, select

from predrain.data.ids import DeviceId
from predrain.data.reading import Reading
from predrain.data.store import documents, schema
from predrain.data.store.database import Database
from predrain.data.store.schema import microseconds

_READINGS, _LATEST = schema.readings, schema.latest_readings


def refile_readings(database: Database, readings: Sequence[Reading], device: DeviceId) -> None:
    """As `data.store.port.Store.refile_readings`."""
    if not readings:
        return
    ordered = sorted(readings, key=lambda one: (one.device, one.taken_at))
    rows = [
        {
            "device": device,
            "taken_at": microseconds(one.taken_at),
            "document": documents.READING.write(replace(one, device=device)),
        }
        for one in ordered
    ]
    concerned = sorted({device, *(one.device for one in readings)})
    leaving = _READINGS.delete().where(
        _READINGS.c.device == bindparam("of"), _READINGS.c.taken_at == bindparam("at")
    )

    def write(connection: Connection) -> None:
        database.put(connection, _READINGS, rows, lambda insert: insert.on_conflict_do_nothing())
        connection.execute(leaving, [{"of": one.device, "at": microseconds(one.taken_at)} for one in ordered])
        connection.execute(
            schema.checkpoints.delete().where(database.among(schema.checkpoints.c.device, concerned))
        )
        for name in concerned:
            _renew_latest(database, connection, name)

    database.write(write)


def forget_newest(database: Database, device: DeviceId) -> None:
    """As `data.store.port.Store.forget_newest`."""

    def write(connection: Connection) -> None:
        for table in (schema.checkpoints, schema.latest_outlooks, _LATEST):
            connection.execute(table.delete().where(table.c.device == device))

    database.write(write)


def _renew_latest(database: Database, connection: Connection, device: str) -> None:
    """Find the newest reading of a device anew."""
    last = select(func.max(_READINGS.c.taken_at)).where(_READINGS.c.device == device).scalar_subquery()
    newest = select(_READINGS.c.taken_at, _READINGS.c.document).where(
        _READINGS.c.device == device, _READINGS.c.taken_at == last
    )
    found = connection.execute(newest).one_or_none()
    connection.execute(_LATEST.delete().where(_LATEST.c.device == device))
    if found is not None:
        row = {"device": device, "taken_at": found.taken_at, "document": found.document}
        connection.execute(_LATEST.insert().values(**row, written=database.number(connection)))
