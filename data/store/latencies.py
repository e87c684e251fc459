"""Latencies in the store: one row for what a host told of its OSDs' windows that began at one instant.

Which hosts told of an OSD is kept beside them, so that one OSD's history is found without unpacking every host's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Connection, Row, Select, String, cast, func, select

from predrain.data.ids import HostName, OsdId
from predrain.data.reading import LatencySummary
from predrain.data.store import schema
from predrain.data.store.columns import pack, unpack
from predrain.data.store.database import Database
from predrain.data.store.schema import instant, microseconds
from predrain.data.windows import Windows

TABLE, _OSDS = schema.host_latency, schema.latency_osds
_told = select(_OSDS.c.osd, _OSDS.c.host)
AS_TOLD, MERGED = 0, 1
"""What `merged` says of a row: windows as the host told them, or ten minutes of them (data.store.coarse)."""


def add(database: Database, windows: Iterable[Windows]) -> None:
    """Keep windows. Of an OSD's windows that begin at once on a host the first stays."""
    fresh: dict[tuple[HostName, datetime], Windows] = {}
    for one in windows:
        held = fresh.get(key := (one.host, one.window_start))
        fresh[key] = one if held is None else held.joined(one)
    ordered = [fresh[key] for key in sorted(fresh)]
    rows = [row(one, AS_TOLD) for one in ordered]

    def keep(connection: Connection) -> None:
        _tell_hosts(database, connection, ordered)
        if database.put(connection, TABLE, rows, lambda insert: insert.on_conflict_do_nothing()) < len(rows):
            for each, one in zip(rows, ordered, strict=True):
                _add_missing(database, connection, each, one)

    if rows:
        database.write(keep)


def has_any(database: Database) -> bool:
    """Whether there is any."""
    one = select(TABLE.c.host).limit(1)
    return database.read(lambda connection: connection.execute(one).first() is not None)


def hosts(database: Database) -> tuple[HostName, ...]:
    """Who ever told of an OSD."""
    names = select(_OSDS.c.host).distinct().order_by(_OSDS.c.host)
    return tuple(map(HostName, database.read(lambda connection: connection.execute(names).scalars().all())))


def of_host(database: Database, host: HostName, since: datetime) -> tuple[Windows, ...]:
    """What a host told from `since` on, oldest first."""
    return database.read(partial(_found, database, [host], since))


def of_osd(database: Database, osd: OsdId, since: datetime) -> tuple[LatencySummary, ...]:
    """What was told of an OSD from `since` on, oldest first. Of two with one start the merged one counts."""

    def work(connection: Connection) -> tuple[Windows, ...]:
        told = connection.execute(_told.where(_OSDS.c.osd == osd)).all()
        return _found(database, [HostName(host) for _, host in told], since, connection)

    found: dict[datetime, LatencySummary] = {}
    for windows in database.read(work):
        one = windows.summary(osd)
        if one is not None:
            found.setdefault(one.window_start, one)
    return tuple(found.values())


def row(windows: Windows, merged: int) -> dict[str, Any]:
    """The row that keeps them. Raises Misshapen."""
    return {
        "host": windows.host,
        "window_start": microseconds(windows.window_start),
        "merged": merged,
        "packed": pack(windows),
    }


def opened(database: Database, rows: Iterable[Row[str, int, bytes]]) -> tuple[Windows, ...]:
    """The windows in rows of (host, window_start, packed), without those that cannot be read."""

    def read(row: Row[str, int, bytes]) -> Windows:
        host, start, packed = row
        return unpack(host, instant(start), packed)

    return database.set_aside.read_all(TABLE.name, rows, read)


def rows_of(*where: Any) -> Select[str, int, bytes]:
    """Rows as `opened` takes them, oldest first."""
    chosen = select(TABLE.c.host, TABLE.c.window_start, TABLE.c.packed).where(*where)
    return chosen.order_by(TABLE.c.window_start, TABLE.c.merged.desc(), TABLE.c.host)


def _found(
    database: Database, of: Sequence[HostName], since: datetime, connection: Connection
) -> tuple[Windows, ...]:
    wanted = rows_of(TABLE.c.host.in_(of), TABLE.c.window_start >= microseconds(since))
    return opened(database, connection.execute(wanted))


def _add_missing(database: Database, connection: Connection, fresh: dict[str, Any], windows: Windows) -> None:
    """Add OSDs that the row with this key lacks; nothing where the same windows came twice."""
    key = [TABLE.c[name] == fresh[name] for name in ("host", "window_start", "merged")]
    held = connection.execute(rows_of(*key).with_for_update()).one()
    if held.packed == fresh["packed"]:
        return
    kept = opened(database, [held])
    joined = kept[0].joined(windows) if kept else windows
    if not kept or len(joined.osd) > len(kept[0].osd):
        connection.execute(TABLE.update().where(*key), {"packed": pack(joined)})


def _tell_hosts(database: Database, connection: Connection, windows: Sequence[Windows]) -> None:
    """Note who tells of an OSD, so that its history is found without unpacking every host's. Nearly all is noted."""
    told: defaultdict[HostName, set[OsdId]] = defaultdict(set)
    for one in windows:
        told[one.host].update(one.osd)
    numbers = func.aggregate_strings(cast(_OSDS.c.osd, String), " ")  # a host a row: there are many more OSDs
    known = select(_OSDS.c.host, numbers).where(database.among(_OSDS.c.host, told)).group_by(_OSDS.c.host)
    for host, osds in connection.execute(known):
        told[host].difference_update(map(OsdId, map(int, osds.split())))
    if new := sorted((osd, host) for host, osds in told.items() for osd in osds):
        rows = [{"osd": osd, "host": host} for osd, host in new]
        database.put(connection, _OSDS, rows, lambda insert: insert.on_conflict_do_nothing())
