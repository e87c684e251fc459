"""Checkpoints in the store: what a worker remembers of each device, as of a reading that the store holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, or_, select

from data.ids import DeviceId
from data.store import schema
from data.store.database import Database
from data.store.port import Checkpoint
from data.store.schema import instant, microseconds


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
    later = or_(saved.c.through.is_(None), kept.c.taken_at > saved.c.through)
    wanted = (
        select(kept.c.device, kept.c.taken_at)
        .outerjoin_from(kept, saved, kept.c.device == saved.c.device)
        .where(database.among(kept.c.device, devices), later)
        .order_by(kept.c.device, kept.c.taken_at)
    )
    rows = database.read(lambda connection: connection.execute(wanted).all())
    return {
        device: tuple(instant(row.taken_at) for row in of_device)
        for device, of_device in groupby(rows, itemgetter(0))
    }


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
