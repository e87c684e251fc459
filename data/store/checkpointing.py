"""Checkpoints in the store: what a worker remembers of each device, as of a reading that the store holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Column, Connection, Select, and_, select

from predrain.data.ids import DeviceId
from predrain.data.reading import Reading
from predrain.data.store import documents, schema
from predrain.data.store.database import Database
from predrain.data.store.port import Checkpoint
from predrain.data.store.schema import instant, microseconds


def rows_of(checkpoints: Iterable[Checkpoint]) -> list[dict[str, Any]]:
    """Return the rows that hold `checkpoints`."""
    return [
        {"device": one.device, "layout": one.layout, "through": microseconds(one.through), "state": one.state}
        for one in checkpoints
    ]


def read_checkpoints(database: Database, devices: Collection[DeviceId]) -> Mapping[DeviceId, Checkpoint]:
    """Return the checkpoint of each of `devices` that has one."""
    table = schema.checkpoints
    columns = (table.c.device, table.c.layout, table.c.through, table.c.state)
    wanted = select(*columns).where(database.among(table.c.device, devices))
    rows = database.read(lambda connection: connection.execute(wanted).all())
    return {row.device: Checkpoint(row.device, row.layout, instant(row.through), row.state) for row in rows}


def read_unsaved(
    database: Database, devices: Collection[DeviceId]
) -> Mapping[DeviceId, tuple[datetime, ...]]:
    """Return when each of `devices` was read since its checkpoint (ever, where it has none), where it was."""
    kept, saved = schema.readings, schema.checkpoints
    wanted = _select_since(database, devices, kept.c.taken_at)
    with_checkpoint = select(saved.c.device).where(database.among(saved.c.device, devices))

    def find_times(connection: Connection) -> list[Any]:
        others = set(devices).difference(connection.execute(with_checkpoint).scalars())
        ever = select(kept.c.device, kept.c.taken_at).where(database.among(kept.c.device, others))
        return [
            *connection.execute(wanted),
            *(connection.execute(ever.order_by(*kept.primary_key)) if others else ()),
        ]

    rows = database.read(find_times)
    return {
        device: tuple(instant(row.taken_at) for row in of_device)
        for device, of_device in groupby(rows, itemgetter(0))
    }


def read_readings_since(
    database: Database, devices: Collection[DeviceId]
) -> Mapping[DeviceId, tuple[Reading, ...]]:
    """Return the readings of each of `devices` that has a checkpoint and was read since, oldest first."""
    kept = schema.readings
    wanted = _select_since(database, devices, kept.c.document)
    rows = database.read(lambda connection: connection.execute(wanted).all())
    return {
        device: database.set_aside.read_all(
            kept.name, [row.document for row in of_device], documents.READING.read
        )
        for device, of_device in groupby(rows, itemgetter(0))
    }


def _select_since(database: Database, devices: Collection[DeviceId], column: Column[Any]) -> Select[Any, Any]:
    """Select device and `column` of the readings that were taken after the checkpoint of each of `devices`.

    The comparison stands alone in the join, so that of each device's index only the end is read.
    """
    kept, saved = schema.readings, schema.checkpoints
    after = and_(kept.c.device == saved.c.device, kept.c.taken_at > saved.c.through)
    return (
        select(kept.c.device, column)
        .select_from(saved.join(kept, after))
        .where(database.among(saved.c.device, devices))
        .order_by(kept.c.device, kept.c.taken_at)
    )


def drop_overtaken(database: Database, connection: Connection, readings: Sequence[Mapping[str, Any]]) -> None:
    """Drop the checkpoints of devices whose new readings are not later: such a reading is not in the checkpoint.

    Nearly always none is dropped.
    """
    earliest: dict[str, int] = {}
    for row in readings:
        earliest.setdefault(row["device"], row["taken_at"])
    table = schema.checkpoints
    late = select(table.c.device, table.c.through).where(
        database.among(table.c.device, earliest), table.c.through >= min(earliest.values())
    )
    overtaken = [of for of, through in connection.execute(late) if through >= earliest[of]]
    if overtaken:
        connection.execute(table.delete().where(database.among(table.c.device, overtaken)))
