"""Finds the rows that other processes wrote into a store since the last poll, at little cost if there are none.

Followed rows carry the number of the transaction that wrote them last. The content of a mark is up to the database
(data.store.database): transactions with lower numbers may commit later.
"""

from __future__ import annotations

from functools import partial
from typing import TypeVar

from sqlalchemy import Connection, Table, select

from predrain.data.store import documents, store_schema
from predrain.data.store.database import Database
from predrain.data.store.store_cluster import StoreCluster
from predrain.data.store.store_port import StoreChanges
from predrain.data.wire import wire_bodies
from predrain.data.wire.wire_bodies import BodyCodec

T = TypeVar("T")


def read_store_changes(database: Database, own: StoreCluster, since: str | None) -> StoreChanges:
    """Implement `data.store.store_port.Store.read_changes`."""
    return database.read(partial(_read_changed_rows, database, own, since))


def _read_changed_rows(
    database: Database, own: StoreCluster, since: str | None, connection: Connection
) -> StoreChanges:
    now = database.read_commit_mark(connection)  # first: a later commit belongs to the next poll

    def read(table: Table, body: BodyCodec[T]) -> tuple[T, ...]:
        rows = select(table.c.document)
        if "cluster" in table.c:
            rows = rows.where(table.c.cluster == own.read_own(connection))
        if since is None:
            rows = rows.order_by(*table.primary_key)
        else:
            rows = rows.where(database.is_committed_between(table.c.written, since, now))
        # Each document is decoded as it comes: all of them beside their values were a third of a start's peak memory.
        raws = connection.execute(rows).scalars()
        return database.set_aside.read_all(table.name, raws, body.read, whole=since is None)

    return StoreChanges(
        now,
        read(store_schema.latest_readings, documents.READING),
        read(store_schema.latest_outlooks, documents.OUTLOOK),
        read(store_schema.drains, documents.DRAIN),
        read(store_schema.outcomes, wire_bodies.OUTCOME),
    )
