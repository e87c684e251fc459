"""What is done to whole tables: daily values read out, old rows thinned, merged and dropped.

A device or an hour of a host at a time, each by a range of its table's key, so that those who write wait only for one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import takewhile
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, Delete, Select, Table, bindparam, func, select

from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.reading import LatencySummary, Reading, Smart
from predrain.data.residence import is_apart
from predrain.data.store import chain, coarse, documents, latencies, lives, schema
from predrain.data.store.database import Database
from predrain.data.store.port import AUDIT
from predrain.data.store.schema import instant, microseconds
from predrain.data.windows import Windows
from predrain.data.wire import bodies

_DAY = 86_400_000_000
_BIN = coarse.SECONDS * 1_000_000
_HOUR = 3_600_000_000
_EPOCH = date(1970, 1, 1)
_LINES = 1_000
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_AS_TOLD = latencies.TABLE.c.merged == latencies.AS_TOLD
COUNTED = {"preserve_rowcount": True}
"""Execution options without which an INSERT does not say how many rows it made."""


def days(database: Database) -> Mapping[date, int]:
    """UTC days with readings; each has a number that is another one once a daily value of that day is."""
    table = schema.readings
    day = (table.c.taken_at // _DAY).label("day")
    last = select(day, func.max(table.c.taken_at).label("last")).group_by(table.c.device, day).subquery()
    # A day more each, so that the sum tells one value at noon from two at six.
    milliseconds = (last.c.last % _DAY + _DAY) // 1000
    marks = select(last.c.day, func.sum(milliseconds)).group_by(last.c.day)
    rows = database.read(lambda connection: connection.execute(marks).all())
    return {_EPOCH + timedelta(days=number): int(mark) for number, mark in sorted(map(tuple, rows))}


def daily(database: Database, first: date, last: date) -> Iterator[Reading]:
    """Daily values of the UTC days `first` to `last`, by device, oldest first."""
    begin, end = _start(first), _start(last) + _DAY
    for device in _keys(database, schema.latest_readings, "device"):
        if not is_apart(device):  # of two hosts that name one drive only its home tells of it
            yield from database.read(partial(_daily, database, device, begin, end))


def thin(database: Database, before: date) -> int:
    """Keep of readings and outlooks from days before `before` the daily ones; returns how many went."""
    end, gone = _start(before), 0
    for device in _keys(database, schema.latest_readings, "device"):
        gone += database.write(partial(_thin_readings, database, device, end))
    for device in _keys(database, schema.latest_outlooks, "device"):
        gone += database.write(partial(_thin_outlooks, device, end))
    return gone


def coarsen(database: Database, before: datetime) -> int:
    """Make one summary of each OSD's latencies in ten minutes over by `before`; returns how many rows less."""
    end = microseconds(before) // _BIN * _BIN
    return sum(
        database.write(partial(_coarsen, database, host, begin, min(begin + _HOUR, end)))
        for host in _keys(database, latencies.TABLE, "host")
        for begin in _hours(database, host, end)
    )


def prune(database: Database, history: datetime | None, latency: datetime | None) -> int:
    """Drop what is from before `history`, latency from before `latency` (`data.store.port.Store.prune`)."""
    kinds = (
        (schema.readings, "device", "taken_at", history),
        (schema.outlooks, "device", "as_of", history),
        (latencies.TABLE, "host", "window_start", latency),
    )
    dropped = 0
    for table, key, time, before in kinds:
        if before is None:
            continue
        for of in _keys(database, table, key):
            old = table.delete().where(table.c[key] == of, table.c[time] < microseconds(before))
            dropped += database.write(partial(_gone, old))
    if history is not None:
        events = schema.cluster_events
        old = events.delete().where(events.c.at < microseconds(history))
        dropped += database.write(partial(_gone, old))
        dropped += database.write(lambda connection: lives.prune_life_changes(connection, history))
        dropped += database.write(partial(_prune_outcomes, database, microseconds(history)))
    return dropped


def _prune_outcomes(database: Database, before: int, connection: Connection) -> int:
    """Whatever class of fates is asked for, the last outcome of it is the newest one of its fate, which stays."""
    table = schema.outcomes
    rows = connection.execute(
        select(table.c.number, table.c.at, table.c.document).order_by(table.c.at, table.c.number)
    ).all()
    newest, old = dict[tuple[str, ...], int](), list[tuple[int, tuple[str, ...]]]()
    for number, at, document in rows:
        outcome = database.set_aside.read_one(table.name, document, bodies.OUTCOME.read)
        if outcome is None:
            continue
        key = outcome.device, outcome.fate.value, outcome.source
        newest[key] = number
        if at < before:
            old.append((number, key))
    gone = [{"of": number} for number, key in old if newest[key] != number]
    if gone:
        connection.execute(table.delete().where(table.c.number == bindparam("of")), gone)
    return len(gone)


def shorten(database: Database, journal: str, before: datetime) -> int:
    """Drop the first lines of a journal as far as they are from before `before`; returns how many."""
    table, gone = schema.journal, 0
    mine = table.c.drain == journal
    first = select(table.c.number, table.c.document).where(mine).order_by(table.c.number).limit(_LINES)
    while True:
        lines = database.read(lambda connection: connection.execute(first).all())
        old = [number for number, _ in takewhile(lambda line: _written_at(database, line[1]) < before, lines)]
        if old:
            gone += database.write(partial(_shorten, journal, old[-1]))
        if len(old) < _LINES:
            return gone


def _shorten(journal: str, last: int, connection: Connection) -> int:
    table = schema.journal
    if journal == AUDIT:
        chain.move_anchor(connection, last)
    return _gone(table.delete().where(table.c.drain == journal, table.c.number <= last), connection)


def _written_at(database: Database, line: bytes) -> datetime:
    """When a line was written; one that cannot be read goes with those before it, so that it keeps none after it."""
    entry = database.set_aside.read_one(schema.journal.name, line, bodies.JOURNAL_ENTRY.read)
    return entry.at if entry is not None else _LONG_AGO


def _start(day: date) -> int:
    return (day - _EPOCH).days * _DAY


def _keys(database: Database, table: Table, key: str) -> Iterator[Any]:
    """Every key of a table in order, each found by one look at the index."""
    column, at = table.c[key], None
    while True:
        following = select(func.min(column))
        if at is not None:
            following = following.where(column > at)
        at = database.read(partial(_one, following))
        if at is None:
            return
        yield at


def _one(query: Select[Any], connection: Connection) -> Any:
    return connection.execute(query).scalar_one()


def _gone(deletion: Delete, connection: Connection) -> int:
    return connection.execute(deletion).rowcount


def _daily(
    database: Database, device: DeviceId, begin: int, end: int, connection: Connection
) -> list[Reading]:
    table = schema.readings
    mine = (table.c.device == device, table.c.taken_at >= begin, table.c.taken_at < end)
    lasts = select(func.max(table.c.taken_at)).where(*mine).group_by(table.c.taken_at // _DAY)
    newest = (
        select(table.c.taken_at, table.c.document)
        .where(table.c.device == device, table.c.taken_at.in_(lasts))
        .order_by(table.c.taken_at)
    )
    found: list[Reading] = []
    for taken_at, document in connection.execute(newest).all():
        reading = _reading(database, document)
        if reading is None or not isinstance(reading.seen, Smart):
            reading = _readable(database, connection, device, taken_at)
        if reading is not None:
            found.append(reading)
    return found


def _readable(database: Database, connection: Connection, device: DeviceId, before: int) -> Reading | None:
    """The last reading of the day of `before`, and before it, in which the drive said something."""
    table = schema.readings
    earlier = (
        select(table.c.document)
        .where(table.c.device == device, table.c.taken_at >= before // _DAY * _DAY, table.c.taken_at < before)
        .order_by(table.c.taken_at.desc())
    )
    for document in connection.execute(earlier).scalars():
        reading = _reading(database, document)
        if reading is not None and isinstance(reading.seen, Smart):
            return reading
    return None


def _reading(database: Database, document: bytes) -> Reading | None:
    """The reading, or None where its document cannot be read."""
    return database.set_aside.read_one(schema.readings.name, document, documents.READING.read)


def _thin_readings(database: Database, device: DeviceId, end: int, connection: Connection) -> int:
    table = schema.readings
    day = table.c.taken_at // _DAY
    mine = (table.c.device == device, table.c.taken_at < end)
    full = select(day).where(*mine).group_by(day).having(func.count() > 1)
    rows = connection.execute(
        select(table.c.taken_at, table.c.document)
        .where(*mine, day.in_(full))
        .order_by(table.c.taken_at.desc())
    ).all()
    kept, gone = set[int](), list[int]()
    readable = set[int]()
    for taken_at, document in rows:
        of = taken_at // _DAY
        if of in kept and of in readable:
            gone.append(taken_at)
            continue
        reading = _reading(database, document)
        told = reading is not None and isinstance(reading.seen, Smart)
        if of in kept and not told:
            gone.append(taken_at)
        kept.add(of)
        if told:
            readable.add(of)
    if gone:
        one = table.delete().where(table.c.device == device, table.c.taken_at == bindparam("at"))
        connection.execute(one, [{"at": taken_at} for taken_at in gone])
    return len(gone)


def _thin_outlooks(device: DeviceId, end: int, connection: Connection) -> int:
    table = schema.outlooks
    mine = (table.c.device == device, table.c.as_of < end)
    lasts = select(func.max(table.c.as_of)).where(*mine).group_by(table.c.as_of // _DAY)
    return connection.execute(table.delete().where(*mine, table.c.as_of.not_in(lasts))).rowcount


def _hours(database: Database, host: HostName, end: int) -> Iterator[int]:
    """Where hours begin in which the host has windows that are not merged."""
    table, at = latencies.TABLE, 0
    while True:
        first = select(func.min(table.c.window_start)).where(
            table.c.host == host, table.c.window_start >= at, table.c.window_start < end, _AS_TOLD
        )
        found = database.read(partial(_one, first))
        if found is None:
            return
        yield found // _HOUR * _HOUR
        at = found // _HOUR * _HOUR + _HOUR


def _coarsen(database: Database, host: HostName, begin: int, end: int, connection: Connection) -> int:
    table = latencies.TABLE
    mine = (table.c.host == host, table.c.window_start >= begin, table.c.window_start < end)
    # Taken out and looked at in one: what another process adds meanwhile stays for the next time.
    taking = table.delete().where(*mine, _AS_TOLD)
    told = connection.execute(taking.returning(table.c.host, table.c.window_start, table.c.packed)).all()
    merged = {
        one.window_start: one
        for one in latencies.opened(database, connection.execute(latencies.rows_of(*mine, ~_AS_TOLD)))
    }
    bins: dict[datetime, dict[OsdId, list[LatencySummary]]] = defaultdict(lambda: defaultdict(list))
    for windows in sorted(latencies.opened(database, told), key=attrgetter("window_start")):
        start = instant(microseconds(windows.window_start) // _BIN * _BIN)
        for one in windows.summaries():
            bins[start][one.osd].append(one)
    rows = []
    for start, osds in sorted(bins.items()):
        # A ten minutes that is kept already stays as it was: these came too late for it.
        kept = merged[start].summaries() if start in merged else ()
        new = [coarse.coarse(held, start) for held in osds.values()]
        (whole,) = Windows.of([*kept, *new])
        rows.append(latencies.row(whole, latencies.MERGED))
    if rows:
        database.put(
            connection,
            table,
            rows,
            lambda insert: insert.on_conflict_do_update(
                index_elements=["host", "window_start", "merged"], set_={"packed": insert.excluded.packed}
            ),
        )
    return len(told) - (len(rows) - len(merged.keys() & bins.keys()))
