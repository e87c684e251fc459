"""Changes in the lives of disks as they are stored: append only, in the order in which they were written."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, func, select

from predrain.data.ids import DeviceId, OsdId
from predrain.data.life_cycle import LifeChange
from predrain.data.store import store_schema
from predrain.data.store.database import Database
from predrain.data.store.store_cluster import StoreCluster
from predrain.data.store.store_schema import to_microseconds
from predrain.data.wire import wire_bodies

_CHANGES = store_schema.life_changes
_AT_ONCE = 5_000
"""Rows in one statement and one transaction."""


class LifeChangeRows:
    """The changes in the lives of the disks of one cluster."""

    _database: Database
    _own: StoreCluster

    def add_life_changes(self, changes: Sequence[LifeChange]) -> None:
        """Append changes in the lives of disks. The same change twice has one effect."""
        adding = self._database.insert(_CHANGES).on_conflict_do_nothing()
        for begin in range(0, len(changes), _AT_ONCE):
            rows = [_row_of(change) for change in changes[begin : begin + _AT_ONCE]]

            def add(connection: Connection, rows: Sequence[dict[str, object]] = rows) -> None:
                cluster = self._own.lock_own(connection)
                connection.execute(adding, [{**row, "cluster": cluster} for row in rows])

            self._database.write(add)

    def read_life_changes(
        self,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
        device: DeviceId | None = None,
        osd: OsdId | None = None,
    ) -> tuple[LifeChange, ...]:
        """Implement `data.store.store_port.Store.read_life_changes`."""
        wanted = select(_CHANGES.c.document).order_by(_CHANGES.c.at.desc(), _CHANGES.c.number.desc())
        if device is not None:
            wanted = wanted.where(_CHANGES.c.device == device)
        if osd is not None:
            wanted = wanted.where(_CHANGES.c.osds.contains(f",{osd},"))
        if since is not None:
            wanted = wanted.where(_CHANGES.c.at >= to_microseconds(since))
        if until is not None:
            wanted = wanted.where(_CHANGES.c.at < to_microseconds(until))
        if limit is not None:
            wanted = wanted.limit(max(limit, 0))
        return self._changes(wanted)

    def last_life_changes(self, after: int = 0) -> tuple[int, Mapping[DeviceId, LifeChange]]:
        """Implement `data.store.store_port.Store.last_life_changes`."""
        newest = select(func.max(_CHANGES.c.number)).where(_CHANGES.c.number > after)
        number: int | None = self._database.read(
            lambda connection: connection.execute(self._of_own(newest, connection)).scalar_one()
        )
        if number is None:
            return after, {}
        last = (
            select(func.max(_CHANGES.c.number))
            .where(_CHANGES.c.number > after, _CHANGES.c.number <= number)
            .group_by(_CHANGES.c.device, _CHANGES.c.cluster)
        )
        found = self._changes(select(_CHANGES.c.document).where(_CHANGES.c.number.in_(last)))
        return number, {change.device: change for change in found}

    def _changes(self, wanted: Select[Any]) -> tuple[LifeChange, ...]:
        raws = self._database.read(
            lambda connection: connection.execute(self._of_own(wanted, connection)).scalars().all()
        )
        return self._database.set_aside.read_all(_CHANGES.name, raws, wire_bodies.LIFE_CHANGE.read)

    def _of_own(self, wanted: Select[Any], connection: Connection) -> Select[Any]:
        return wanted.where(_CHANGES.c.cluster == self._own.read_own(connection))


def _row_of(change: LifeChange) -> dict[str, object]:
    document = wire_bodies.LIFE_CHANGE.write(change)
    return {
        "device": change.device,
        "at": to_microseconds(change.at),
        "digest": hashlib.sha256(document).digest(),
        "document": document,
        "osds": f",{','.join(map(str, change.osds))}," if change.osds else "",
    }


def prune_life_changes(connection: Connection, before: datetime) -> int:
    """Drop changes from before `before`; the newest one of each disk and of each slot stays. Return how many."""
    newest = (
        select(func.max(_CHANGES.c.number)).group_by(column, _CHANGES.c.cluster)
        for column in (_CHANGES.c.device, _CHANGES.c.osds)
    )
    old = _CHANGES.delete().where(
        _CHANGES.c.at < to_microseconds(before), *(_CHANGES.c.number.not_in(numbers) for numbers in newest)
    )
    return connection.execute(old).rowcount
