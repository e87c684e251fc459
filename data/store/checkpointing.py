"""Checkpoints in the store: a worker's state of each device, as of a reading that the store holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select

from predrain.data.ids import DeviceId
from predrain.data.store import store_schema
from predrain.data.store.database import Database
from predrain.data.store.store_port import Checkpoint
from predrain.data.store.store_schema import from_microseconds, to_microseconds


def rows_of(checkpoints: Iterable[Checkpoint]) -> list[dict[str, Any]]:
    """Return the rows that hold `checkpoints`."""
    return [
        {
            "device": one.device,
            "layout": one.layout,
            "through": to_microseconds(one.through),
            "state": one.state,
        }
        for one in checkpoints
    ]


def read_checkpoints(database: Database, devices: Collection[DeviceId]) -> Mapping[DeviceId, Checkpoint]:
    """Return the checkpoint of each of `devices` that has one."""
    table = store_schema.checkpoints
    columns = (table.c.device, table.c.layout, table.c.through, table.c.state)
    wanted = select(*columns).where(database.is_any_of(table.c.device, devices))
    rows = database.read(lambda connection: connection.execute(wanted).all())
    return {
        row.device: Checkpoint(row.device, row.layout, from_microseconds(row.through), row.state)
        for row in rows
    }


def drop_overtaken(database: Database, connection: Connection, readings: Sequence[Mapping[str, Any]]) -> None:
    """Drop the checkpoints of devices whose new readings are not later: such a reading is not in the checkpoint.

    Nearly always none is dropped.
    """
    earliest: dict[str, int] = {}
    for row in readings:
        earliest.setdefault(row["device"], row["taken_at"])
    table = store_schema.checkpoints
    late = select(table.c.device, table.c.through).where(
        database.is_any_of(table.c.device, earliest), table.c.through >= min(earliest.values())
    )
    overtaken = [of for of, through in connection.execute(late) if through >= earliest[of]]
    if overtaken:
        connection.execute(table.delete().where(database.is_any_of(table.c.device, overtaken)))
