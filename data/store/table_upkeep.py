"""Work on whole tables: daily values read out, old rows thinned, merged and dropped.

Each step covers some devices or an hour of a host, as ranges of the table's key. Writers wait for one step only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import takewhile
from operator import attrgetter
from typing import Any, Final

from sqlalchemy import Connection, Delete, Select, Table, bindparam, func, select

from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.latency_windows import LatencySummary, LatencyWindows
from predrain.data.reading import Reading, Smart
from predrain.data.residence import is_apart
from predrain.data.store import (
    audit_chain,
    coarse_latencies,
    documents,
    store_schema,
    stored_latencies,
    stored_lives,
)
from predrain.data.store.database import EARLIEST, Conflict, Database, KeyRange
from predrain.data.store.store_port import AUDIT
from predrain.data.store.store_schema import from_microseconds, to_microseconds
from predrain.data.wire import wire_bodies

DAY = 86_400_000_000
_BIN = coarse_latencies.SECONDS * 1_000_000
_HOUR = 3_600_000_000
EPOCH = date(1970, 1, 1)
_LINES = 1_000
TOGETHER: Final = 500
"""Devices or hosts in one transaction. A day of 500 devices is 11,500 readings to drop, for which a writer of a file
waits 50 ms."""
FEW_TOGETHER: Final = 50
"""Devices in one transaction if all of their days are looked at: after an import there may be thousands of rows to drop
of each."""
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_AS_TOLD = stored_latencies.TABLE.c.merged == stored_latencies.AS_TOLD
COUNTED = {"preserve_rowcount": True}
"""Execution options without which an INSERT does not report how many rows it wrote."""


def compute_day_fingerprints(database: Database) -> Mapping[date, int]:
    """Return the UTC days with readings, each with a number that changes whenever a daily value of that day changes."""
    table = store_schema.readings
    day = (table.c.taken_at // DAY).label("day")
    last = select(day, func.max(table.c.taken_at).label("last")).group_by(table.c.device, day).subquery()
    # One day is added to each, so that the sum distinguishes one value at noon from two at six.
    milliseconds = (last.c.last % DAY + DAY) // 1000
    marks = select(last.c.day, func.sum(milliseconds)).group_by(last.c.day)
    rows = database.read(lambda connection: connection.execute(marks).all())
    return {EPOCH + timedelta(days=number): int(mark) for number, mark in sorted(map(tuple, rows))}


def read_daily_readings(database: Database, first: date, last: date) -> Iterator[Reading]:
    """Yield the daily values of the UTC days `first` to `last`, by device, oldest first."""
    begin, end = find_day_start(first), find_day_start(last) + DAY
    for device in iterate_table_keys(database, store_schema.latest_readings, "device"):
        if not is_apart(device):  # if two hosts name one drive, only the readings of its home count
            yield from database.read(partial(_read_device_dailies, database, device, begin, end))


def thin_to_daily_values(
    database: Database,
    before: date,
    since: date | None = None,
    archived: Mapping[tuple[DeviceId, date], int] | None = None,
) -> int:
    """Implement `data.store.store_port.Store.thin_to_daily_values`."""
    begin, end = EARLIEST if since is None else find_day_start(since), find_day_start(before)
    together = FEW_TOGETHER if since is None else TOGETHER
    gone = 0
    for newest, thin in (
        (store_schema.latest_readings, partial(_thin_readings, archived)),
        (store_schema.latest_outlooks, _thin_outlooks),
    ):
        work = partial(thin, database, begin, end)
        gone += _work_by_keys(database, newest, "device", together, work)
    return gone


def merge_old_latencies(database: Database, before: datetime) -> int:
    """Merge each OSD's latencies of each ten minutes over by `before`; return by how many rows the table shrank."""
    end = to_microseconds(before) // _BIN * _BIN
    return sum(
        database.write(partial(_merge_host_latencies, database, host, begin, min(begin + _HOUR, end)))
        for host in iterate_table_keys(database, stored_latencies.TABLE, "host")
        for begin in _iterate_unmerged_hours(database, host, end)
    )


def prune_old_rows(database: Database, history: datetime | None, latency: datetime | None) -> int:
    """Drop rows from before `history`, and latency from before `latency` (`data.store.store_port.Store.prune`)."""
    kinds = (
        (store_schema.readings, "device", "taken_at", history),
        (store_schema.outlooks, "device", "as_of", history),
        (stored_latencies.TABLE, "host", "window_start", latency),
    )
    dropped = 0
    for table, key, time, before in kinds:
        if before is None:
            continue
        work = partial(_drop_before, database, table, key, time, to_microseconds(before))
        dropped += _work_by_keys(database, table, key, TOGETHER, work)
    if history is not None:
        events = store_schema.cluster_events
        old = events.delete().where(events.c.at < to_microseconds(history))
        dropped += database.write(partial(_delete_rows, old))
        dropped += database.write(lambda connection: stored_lives.prune_life_changes(connection, history))
        dropped += database.write(partial(_prune_outcomes, database, to_microseconds(history)))
    return dropped


def _prune_outcomes(database: Database, before: int, connection: Connection) -> int:
    """Drop outcomes from before `before`, but keep the newest of each disk for each `fate` and `source`.

    So the last outcome of any class of `DriveFate` stays.
    """
    table = store_schema.outcomes
    rows = connection.execute(
        select(table.c.number, table.c.at, table.c.document).order_by(table.c.at, table.c.number)
    ).all()
    newest, old = dict[tuple[str, ...], int](), list[tuple[int, tuple[str, ...]]]()
    for number, at, document in rows:
        outcome = database.set_aside.read_one(table.name, document, wire_bodies.OUTCOME.read)
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


def prune_journal_lines(database: Database, journal: str, before: datetime) -> int:
    """Drop the first lines of a journal up to the first that is not from before `before`; return how many."""
    table, gone = store_schema.journal, 0
    mine = table.c.drain == journal
    first = select(table.c.number, table.c.document).where(mine).order_by(table.c.number).limit(_LINES)
    while True:
        lines = database.read(lambda connection: connection.execute(first).all())
        old = [number for number, _ in takewhile(lambda line: _written_at(database, line[1]) < before, lines)]
        if old:
            gone += database.write(partial(_delete_journal_lines, journal, old[-1]))
        if len(old) < _LINES:
            return gone


def _delete_journal_lines(journal: str, last: int, connection: Connection) -> int:
    table = store_schema.journal
    if journal == AUDIT:
        audit_chain.move_anchor(connection, last)
    return _delete_rows(table.delete().where(table.c.drain == journal, table.c.number <= last), connection)


def _written_at(database: Database, line: bytes) -> datetime:
    """Return the time when a line was written.

    A line that cannot be read counts as old, so that it does not keep the lines after it.
    """
    entry = database.set_aside.read_one(store_schema.journal.name, line, wire_bodies.JOURNAL_ENTRY.read)
    return entry.at if entry is not None else _LONG_AGO


def find_day_start(day: date) -> int:
    """Return the first microsecond of a UTC day."""
    return (day - EPOCH).days * DAY


def _to_day(at: int) -> date:
    return EPOCH + timedelta(days=at // DAY)


def _work_by_keys(
    database: Database,
    table: Table,
    key: str,
    together: int,
    work: Callable[[Sequence[str], Connection], int],
) -> int:
    """Do `work` on every key of a table in order, so many in one transaction; return the sum of its answers."""

    def step(after: str | None, connection: Connection) -> tuple[Sequence[str], int]:
        keys = _read_keys(table, key, together, after, connection)
        return keys, work(keys, connection) if keys else 0

    at: str | None = None
    total = 0
    while True:
        keys, count = database.write(partial(step, at))
        total += count
        if len(keys) < together:
            return total
        at = keys[-1]


def iterate_table_keys(database: Database, table: Table, key: str) -> Iterator[Any]:
    """Yield every key of a table in order."""
    at: str | None = None
    while True:
        keys = database.read(partial(_read_keys, table, key, TOGETHER, at))
        yield from keys
        if len(keys) < TOGETHER:
            return
        at = keys[-1]


def _read_keys(
    table: Table, key: str, count: int, after: str | None, connection: Connection
) -> Sequence[Any]:
    """Return the next keys of a table in order, each found by one lookup in the index."""
    column = table.c[key]
    first = select(func.min(column).label("of"))
    keys = (first if after is None else first.where(column > after)).cte("keys", recursive=True)
    following = select(func.min(column)).where(column > keys.c.of).scalar_subquery()
    keys = keys.union_all(select(following).where(keys.c.of.is_not(None)))
    wanted = select(keys.c.of).where(keys.c.of.is_not(None)).limit(count)
    return connection.execute(wanted).scalars().all()


def _read_scalar(query: Select[Any], connection: Connection) -> Any:
    return connection.execute(query).scalar_one()


def _drop_before(
    database: Database,
    table: Table,
    key: str,
    time: str,
    before: int,
    keys: Sequence[str],
    connection: Connection,
) -> int:
    ranges = database.list_ranges([KeyRange(of, end=before) for of in keys])
    return database.delete_ranges(connection, table, key, time, ranges)


def _delete_rows(deletion: Delete, connection: Connection) -> int:
    return connection.execute(deletion).rowcount


def _read_device_dailies(
    database: Database, device: DeviceId, begin: int, end: int, connection: Connection
) -> list[Reading]:
    table = store_schema.readings
    mine = (table.c.device == device, table.c.taken_at >= begin, table.c.taken_at < end)
    lasts = select(func.max(table.c.taken_at)).where(*mine).group_by(table.c.taken_at // DAY)
    newest = (
        select(table.c.taken_at, table.c.document)
        .where(table.c.device == device, table.c.taken_at.in_(lasts))
        .order_by(table.c.taken_at)
    )
    found: list[Reading] = []
    for taken_at, document in connection.execute(newest).all():
        reading = decode_reading(database, document)
        if reading is None or not isinstance(reading.seen, Smart):
            reading = _find_earlier_smart_reading(database, connection, device, taken_at)[1]
        if reading is not None:
            found.append(reading)
    return found


def _find_earlier_smart_reading(
    database: Database, connection: Connection, device: DeviceId, before: int
) -> tuple[int, Reading] | tuple[None, None]:
    """Return the last Smart reading on the day of `before` and earlier than it, with the time of its row; or Nones."""
    table = store_schema.readings
    earlier = (
        select(table.c.taken_at, table.c.document)
        .where(table.c.device == device, table.c.taken_at >= before // DAY * DAY, table.c.taken_at < before)
        .order_by(table.c.taken_at.desc())
    )
    for taken_at, document in connection.execute(earlier):
        reading = decode_reading(database, document)
        if reading is not None and isinstance(reading.seen, Smart):
            return taken_at, reading
    return None, None


def decode_reading(database: Database, document: bytes) -> Reading | None:
    """Return the reading, or None if its document cannot be read."""
    return database.set_aside.read_one(store_schema.readings.name, document, documents.READING.read)


def _thin_readings(
    archived: Mapping[tuple[DeviceId, date], int] | None,
    database: Database,
    begin: int,
    end: int,
    devices: Sequence[str],
    connection: Connection,
) -> int:
    """Thin the readings of some devices. A day whose last reading is a Smart one needs no look at the others."""
    table = store_schema.readings
    days = _select_full_days(database, table, "taken_at", begin, end, devices).subquery()
    if archived is None:
        lasts = select(days.c.device, days.c.last, days.c.last + 1)
        return _thin_days(database, lasts, connection)[0]
    counted = connection.execute(select(days.c.device, days.c.begin, days.c.last, days.c.readings)).all()
    full = [one for one in counted if archived.get((one.device, _to_day(one.begin))) == one.readings]
    if not full:
        return 0
    ranges = database.list_ranges([KeyRange(one.device, one.last, one.last + 1) for one in full])
    with connection.begin_nested() as attempt:
        gone, kept = _thin_days(database, ranges, connection)
        if gone + kept == sum(one.readings for one in full):
            return gone
        # Another process has added a reading since it was counted. It waits for the next thinning.
        attempt.rollback()
    return 0


def _thin_days(database: Database, lasts: Select[str, int, int], connection: Connection) -> tuple[int, int]:
    """Thin the days whose last readings are in the ranges `lasts`; return how many were dropped, and how many stay."""
    table, earlier, gone, kept = store_schema.readings, list[KeyRange](), 0, 0
    found = select(database.rows_in_ranges(table, "device", "taken_at", lasts))
    for device, taken_at, document in connection.execute(found).all():
        day = KeyRange(device, taken_at // DAY * DAY, taken_at)
        reading = decode_reading(database, document)
        kept += 1
        if reading is not None and isinstance(reading.seen, Smart):
            earlier.append(day)
        else:
            dropped, smart = _thin_silent_day(database, day, connection)
            gone, kept = gone + dropped, kept + smart
    if earlier:
        gone += database.delete_ranges(connection, table, "device", "taken_at", database.list_ranges(earlier))
    return gone, kept


def _thin_silent_day(database: Database, day: KeyRange, connection: Connection) -> tuple[int, int]:
    """Drop the readings of a day before its last, which is no Smart one, but for the last Smart one.

    Return how many were dropped, and how many of those before the last stay.
    """
    table = store_schema.readings
    mine = [table.c.device == day.key, table.c.taken_at >= day.begin, table.c.taken_at < day.end]
    kept, _ = _find_earlier_smart_reading(database, connection, DeviceId(day.key), day.end)
    if kept is not None:
        mine.append(table.c.taken_at != kept)
    return _delete_rows(table.delete().where(*mine), connection), int(kept is not None)


def _thin_outlooks(
    database: Database, begin: int, end: int, devices: Sequence[str], connection: Connection
) -> int:
    table = store_schema.outlooks
    days = _select_full_days(database, table, "as_of", begin, end, devices).subquery()
    ranges = select(days.c.device, days.c.begin, days.c.last)
    return database.delete_ranges(connection, table, "device", "as_of", ranges)


def _select_full_days(
    database: Database, table: Table, time: str, begin: int, end: int, devices: Sequence[str]
) -> Select[str, int, int, int]:
    """Select device, begin, the time of the last row and the number of rows of each device's day in [begin, end) with
    several rows.
    """
    ranges = database.list_ranges([KeyRange(device, begin, end) for device in devices])
    rows = database.rows_in_ranges(table, "device", time, ranges)
    day = rows.c[time] // DAY
    return (
        select(
            rows.c.device,
            (day * DAY).label("begin"),
            func.max(rows.c[time]).label("last"),
            func.count().label("readings"),
        )
        .group_by(rows.c.device, day)
        .having(func.count() > 1)
    )


def _iterate_unmerged_hours(database: Database, host: HostName, end: int) -> Iterator[int]:
    """Yield the start of each hour in which the host has windows that are not merged."""
    table, at = stored_latencies.TABLE, 0
    while True:
        first = select(func.min(table.c.window_start)).where(
            table.c.host == host, table.c.window_start >= at, table.c.window_start < end, _AS_TOLD
        )
        found = database.read(partial(_read_scalar, first))
        if found is None:
            return
        yield found // _HOUR * _HOUR
        at = found // _HOUR * _HOUR + _HOUR


def _merge_host_latencies(
    database: Database, host: HostName, begin: int, end: int, connection: Connection
) -> int:
    table = stored_latencies.TABLE
    mine = (table.c.host == host, table.c.window_start >= begin, table.c.window_start < end)
    # The rows are deleted and read in one statement: rows that another process adds meanwhile stay for the
    # next time.
    taking = table.delete().where(*mine, _AS_TOLD)
    told = connection.execute(taking.returning(*stored_latencies.READ_COLUMNS)).all()
    merged = {
        (one.cluster or "", one.window_start): one
        for one in stored_latencies.unpack_latency_rows(
            database, connection.execute(stored_latencies.rows_of(*mine, ~_AS_TOLD))
        )
    }
    bins: dict[tuple[str, datetime], dict[OsdId, list[LatencySummary]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for windows in sorted(
        stored_latencies.unpack_latency_rows(database, told), key=attrgetter("window_start")
    ):
        start = from_microseconds(to_microseconds(windows.window_start) // _BIN * _BIN)
        for one in windows.summaries():
            bins[windows.cluster or "", start][one.osd].append(one)
    rows = []
    for (cluster, start), osds in sorted(bins.items()):
        # Ten minutes that are merged already stay as they are: these windows came too late.
        kept = merged[cluster, start].summaries() if (cluster, start) in merged else ()
        new = [coarse_latencies.merge_latency_summaries(held, start) for held in osds.values()]
        (whole,) = LatencyWindows.from_summaries([*kept, *new])
        rows.append(stored_latencies.build_latency_row(whole, stored_latencies.MERGED, cluster))
    if rows:
        database.insert_many(
            connection,
            table,
            rows,
            Conflict(("host", "window_start", "merged", "cluster"), ("packed",)),
        )
    return len(told) - (len(rows) - len(merged.keys() & bins.keys()))
