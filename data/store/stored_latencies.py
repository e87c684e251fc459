"""Latencies in the store: one row for a host's report of a cluster's OSDs' windows that began at one instant.

The hosts that reported an OSD are stored in a second table, so that one OSD's history is found without unpacking the
rows of every host.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, String, cast, func, select

from predrain.data.ids import ClusterId, HostName, OsdId, OsdKey
from predrain.data.latency_windows import LatencySummary, LatencyWindows
from predrain.data.store import store_schema
from predrain.data.store.database import KEPT, Database
from predrain.data.store.latency_columns import pack_latency_windows, unpack_latency_windows
from predrain.data.store.store_cluster import StoreCluster
from predrain.data.store.store_schema import from_microseconds, to_microseconds

TABLE, _OSDS = store_schema.host_latency, store_schema.latency_osds
READ_COLUMNS = (TABLE.c.host, TABLE.c.window_start, TABLE.c.packed, TABLE.c.cluster)
"""The columns of a row as `unpack_latency_rows` takes it."""
AS_TOLD, MERGED = 0, 1
"""Values of `merged` of a row: windows as the host reported them, or ten minutes of them
(data.store.coarse_latencies).
"""


def add_latency_windows(database: Database, own: StoreCluster, windows: Iterable[LatencyWindows]) -> None:
    """Store windows, those without a cluster as windows of the own one. If a host has two windows of an OSD with the
    same begin, the first stays.
    """
    told = tuple(windows)

    def keep(connection: Connection) -> None:
        ours = own.lock_own(connection)
        fresh: dict[tuple[HostName, datetime, str], LatencyWindows] = {}
        for one in told:
            held = fresh.get(key := (one.host, one.window_start, one.cluster or ours))
            fresh[key] = one if held is None else held.add_missing_osds(replace(one, cluster=held.cluster))
        ordered = sorted(fresh.items())
        rows = [build_latency_row(one, AS_TOLD, cluster) for (_, _, cluster), one in ordered]
        _tell_hosts(database, connection, rows, [one for _, one in ordered])
        if database.insert_many(connection, TABLE, rows, KEPT) < len(rows):
            for each, (_, one) in zip(rows, ordered, strict=True):
                _add_missing(database, connection, each, one)

    if told:
        database.write(keep)


def has_any(database: Database) -> bool:
    """Return whether any latency is stored."""
    one = select(TABLE.c.host).limit(1)
    return database.read(lambda connection: connection.execute(one).first() is not None)


def list_latency_hosts(database: Database, own: StoreCluster) -> tuple[HostName, ...]:
    """Return the hosts that ever reported an OSD of the own cluster."""

    def work(connection: Connection) -> Sequence[str]:
        of_own = select(_OSDS.c.host).where(_OSDS.c.cluster == own.read_own(connection))
        return connection.execute(of_own.distinct().order_by(_OSDS.c.host)).scalars().all()

    return tuple(map(HostName, database.read(work)))


def of_host(
    database: Database, own: StoreCluster, host: HostName, since: datetime
) -> tuple[LatencyWindows, ...]:
    """Return the windows of a host's OSDs of the own cluster from `since` on, oldest first."""
    return database.read(
        lambda connection: _read_host_windows(database, [host], own.read_own(connection), since, connection)
    )


def of_osd(database: Database, own: StoreCluster, osd: OsdKey, since: datetime) -> tuple[LatencySummary, ...]:
    """Return the summaries of an OSD from `since` on, oldest first. Of two with one start the merged one counts.

    A key without a cluster is of the own one.
    """
    found = (windows.find_osd_summary(osd.osd) for windows in beside_osd(database, own, osd, since))
    return tuple(one for one in found if one is not None)


def beside_osd(
    database: Database, own: StoreCluster, osd: OsdKey, since: datetime
) -> tuple[LatencyWindows, ...]:
    """Return the windows from `since` on that have the OSD, with the other OSDs of the same host, oldest first.

    Of two with one start the merged one counts. A key without a cluster is of the own one.
    """

    def work(connection: Connection) -> tuple[LatencyWindows, ...]:
        cluster = osd.cluster or own.read_own(connection)
        hosts = select(_OSDS.c.host).where(_OSDS.c.osd == osd.osd, _OSDS.c.cluster == cluster)
        told = [HostName(host) for host in connection.execute(hosts).scalars()]
        return _read_host_windows(database, told, cluster, since, connection)

    found: dict[datetime, LatencyWindows] = {}
    for windows in database.read(work):
        if osd.osd in windows.osd:
            found.setdefault(windows.window_start, windows)
    return tuple(found.values())


def build_latency_row(windows: LatencyWindows, merged: int, cluster: str) -> dict[str, Any]:
    """Build the row that holds these windows. Raises InvalidValue."""
    return {
        "host": windows.host,
        "window_start": to_microseconds(windows.window_start),
        "merged": merged,
        "packed": pack_latency_windows(windows),
        "cluster": cluster,
    }


def unpack_latency_rows(
    database: Database, rows: Iterable[Row[str, int, bytes, str]]
) -> tuple[LatencyWindows, ...]:
    """Return the windows in rows of (host, window_start, packed, cluster), without those that cannot be read."""

    def read(row: Row[str, int, bytes, str]) -> LatencyWindows:
        host, start, packed, cluster = row
        of = ClusterId(cluster) if cluster else None
        return unpack_latency_windows(host, from_microseconds(start), packed, of)

    return database.set_aside.read_all(TABLE.name, rows, read)


def rows_of(*where: Any) -> Select[str, int, bytes, str]:
    """Select rows as `unpack_latency_rows` takes them, oldest first."""
    chosen = select(*READ_COLUMNS).where(*where)
    return chosen.order_by(TABLE.c.window_start, TABLE.c.merged.desc(), TABLE.c.host)


def _read_host_windows(
    database: Database, of: Sequence[HostName], cluster: str, since: datetime, connection: Connection
) -> tuple[LatencyWindows, ...]:
    mine = (TABLE.c.host.in_(of), TABLE.c.cluster == cluster)
    wanted = rows_of(*mine, TABLE.c.window_start >= to_microseconds(since))
    return unpack_latency_rows(database, connection.execute(wanted))


def _add_missing(
    database: Database, connection: Connection, fresh: dict[str, Any], windows: LatencyWindows
) -> None:
    """Add OSDs that the row with this key lacks; do nothing if the same windows came twice."""
    key = [TABLE.c[name] == fresh[name] for name in ("host", "window_start", "merged", "cluster")]
    held = connection.execute(rows_of(*key).with_for_update()).one()
    if held.packed == fresh["packed"]:
        return
    kept = unpack_latency_rows(database, [held])
    joined = kept[0].add_missing_osds(replace(windows, cluster=kept[0].cluster)) if kept else windows
    if not kept or len(joined.osd) > len(kept[0].osd):
        connection.execute(TABLE.update().where(*key), {"packed": pack_latency_windows(joined)})


def _tell_hosts(
    database: Database,
    connection: Connection,
    rows: Sequence[dict[str, Any]],
    windows: Sequence[LatencyWindows],
) -> None:
    """Record which hosts report an OSD, so that its history is found without unpacking the rows of every host.

    Nearly all of these pairs are recorded already.
    """
    told: defaultdict[tuple[str, str], set[OsdId]] = defaultdict(set)
    for row, one in zip(rows, windows, strict=True):
        told[row["host"], row["cluster"]].update(one.osd)
    hosts = {host for host, _ in told}
    numbers = func.aggregate_strings(cast(_OSDS.c.osd, String), " ")  # one row a host: OSDs are far more
    place = (_OSDS.c.host, _OSDS.c.cluster)
    known = select(*place, numbers).where(database.is_any_of(_OSDS.c.host, hosts)).group_by(*place)
    for host, cluster, osds in connection.execute(known):
        told[host, cluster].difference_update(map(OsdId, map(int, osds.split())))
    if new := sorted((osd, *place) for place, osds in told.items() for osd in osds):
        fresh = [{"osd": osd, "host": host, "cluster": cluster} for osd, host, cluster in new]
        database.insert_many(connection, _OSDS, fresh, KEPT)
