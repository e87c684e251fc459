"""What others wrote into a store since one last looked, at next to no cost when that is nothing.

Rows that are followed carry the number of the transaction that wrote them last. What a mark is made of is the
database's own affair (data.store.database): transactions with lower numbers may commit later.
"""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, Table, select

from predrain.data.store import documents, schema
from predrain.data.store.database import Database
from predrain.data.store.port import News
from predrain.data.wire import bodies
from predrain.data.wire.bodies import BodyCodec

T = TypeVar("T")


def news(database: Database, since: str | None) -> News:
    """As `data.store.port.Store.news`."""
    mark, found = database.read(partial(_rows, database, since))

    def read(table: Table, body: BodyCodec[T]) -> tuple[T, ...]:
        return database.set_aside.read_all(table.name, found[table.name], body.read, whole=since is None)

    return News(
        mark,
        read(schema.latest_readings, documents.READING),
        read(schema.latest_outlooks, documents.OUTLOOK),
        read(schema.drains, documents.DRAIN),
        read(schema.outcomes, bodies.OUTCOME),
    )


def _rows(database: Database, since: str | None, connection: Connection) -> tuple[str, dict[str, list[Any]]]:
    now = database.mark(connection)  # first: what commits after it belongs to the next look
    found = {}
    for table in schema.FOLLOWED:
        rows = select(table.c.document)
        if since is None:
            rows = rows.order_by(*table.primary_key)
        else:
            rows = rows.where(database.between(table.c.written, since, now))
        found[table.name] = list(connection.execute(rows).scalars())
    return now, found
