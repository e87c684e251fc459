"""The store on SQLAlchemy Core: one implementation for every database (data.store.database)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import date, datetime
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Select, Table, not_, or_, select

from predrain.data.drain import JournalEntry, OfOtherCluster
from predrain.data.ids import ClusterId, DeviceId, HostName, OsdId, OsdKey
from predrain.data.latency_windows import LatencySummary, LatencyWindows
from predrain.data.outcome import Outcome
from predrain.data.outlook import Outlook
from predrain.data.reading import Reading
from predrain.data.store import (
    audit_chain,
    checkpointing,
    documents,
    notes,
    refiling,
    store_schema,
    stored_days,
    stored_histories,
    stored_latencies,
    table_upkeep,
)
from predrain.data.store.audit_rows import AuditRows
from predrain.data.store.change_feed import read_store_changes
from predrain.data.store.database import KEPT, Conflict, Database
from predrain.data.store.store_cluster import StoreCluster
from predrain.data.store.store_port import AUDIT, Checkpoint, DeviceTimes, NoteCondition, StoreChanges
from predrain.data.store.store_schema import from_microseconds, to_microseconds
from predrain.data.store.stored_drains import DrainRows
from predrain.data.store.stored_events import ClusterEventRows
from predrain.data.store.stored_lives import LifeChangeRows
from predrain.data.wire import wire_bodies
from predrain.data.wire.strict_json import InvalidValue
from predrain.data.wire.wire_bodies import BodyCodec

T = TypeVar("T")
Row = Mapping[str, Any]

_ONLY = 1  # the id of a table's one row
_HALT: Final = select(store_schema.halt.c.why)


class SqlStore(DrainRows, LifeChangeRows, ClusterEventRows, AuditRows):
    """`data.store.store_port.Store` in a database.

    Every save is one transaction, durable before it returns. A reading or latency summary with an existing key is
    ignored; an outlook with an existing key replaces the earlier one. Outcomes are ordered by `at`, then by the order
    in which they were added. Rows are written in the order of their keys, so that several writers never deadlock.
    Raises the errors of data.store.store_faults.

    cluster: rows that name OSDs are read and written as those of this cluster. None: of the one to which the store is
    bound (data.store.store_cluster).
    """

    def __init__(self, database: Database, cluster: ClusterId | None = None) -> None:
        super().__init__(database, StoreCluster(database, cluster))
        self._unwritten_halt: str | None = None

    def bind_cluster(self, cluster: ClusterId) -> ClusterId:
        """Implement `data.store.store_port.Store.bind_cluster`."""
        return self._own.bind(cluster)

    def get_cluster(self) -> ClusterId | None:
        """Return the cluster to which the store is bound, or None."""
        return self._own.get_cluster()

    def add_readings(self, readings: Iterable[Reading]) -> int:
        """Store readings; return how many were new."""
        rows = _in_order(
            ("device", "taken_at"),
            [
                {
                    "device": reading.device,
                    "taken_at": to_microseconds(reading.taken_at),
                    "document": documents.READING.write(reading),
                }
                for reading in readings
            ],
        )

        def keep(connection: Connection) -> int:
            new = self._database.insert_many(connection, store_schema.readings, rows, KEPT)
            self._keep_latest(connection, store_schema.latest_readings, "taken_at", rows, again=False)
            checkpointing.drop_overtaken(self._database, connection, rows)
            return new

        return self._database.write(keep) if rows else 0

    def readings(self, device: DeviceId, since: datetime | None = None) -> tuple[Reading, ...]:
        """Return a device's readings from `since` on, oldest first."""
        return self._history(store_schema.readings, device, "taken_at", since, documents.READING)

    def latest_readings(self, devices: Collection[DeviceId] | None = None) -> Mapping[DeviceId, Reading]:
        """Return the newest reading of each of `devices` that was read, or of every device (None)."""
        table = store_schema.latest_readings
        wanted = select(table.c.document).order_by(table.c.device)
        if devices is not None:
            wanted = wanted.where(self._database.is_any_of(table.c.device, devices))
        found = self._documents(wanted, table, documents.READING)
        return {reading.device: reading for reading in found}

    def read_newest_times(self) -> Mapping[DeviceId, datetime]:
        """Return the time of each device's newest reading, without reading the reading itself."""
        table = store_schema.latest_readings
        times = select(table.c.device, table.c.taken_at)
        rows = self._database.read(lambda connection: connection.execute(times).all())
        return {DeviceId(device): from_microseconds(at) for device, at in rows}

    def refile_readings(self, readings: Sequence[Reading], device: DeviceId) -> None:
        """Move readings, which are stored under their own device's name, to `device`, in one transaction."""
        refiling.refile_readings(self._database, readings, device)

    def forget_newest(self, device: DeviceId) -> None:
        """Drop a device's newest reading, outlook and checkpoint, so that it is no longer listed; its history stays."""
        refiling.forget_newest(self._database, device)

    def save_checkpoints(self, checkpoints: Iterable[Checkpoint]) -> None:
        """Store checkpoints, one for each device: a later save replaces it."""
        self._replace(store_schema.checkpoints, checkpointing.rows_of(checkpoints), "device")

    def checkpoints(self, devices: Collection[DeviceId]) -> Mapping[DeviceId, Checkpoint]:
        """Return the checkpoint of each of `devices` that has one, and got no earlier reading after it."""
        return checkpointing.read_checkpoints(self._database, devices)

    def iterate_readings(
        self, since: Mapping[DeviceId, datetime | None]
    ) -> Iterator[tuple[DeviceId, tuple[Reading, ...]]]:
        """Implement `data.store.store_port.Store.iterate_readings`."""
        return stored_histories.iterate_histories(
            self._database, store_schema.readings, "taken_at", documents.READING, since
        )

    def add_latency(self, windows: Iterable[LatencyWindows]) -> None:
        """Store the hosts' reports of their OSDs, keyed by (cluster, osd, window_start)."""
        stored_latencies.add_latency_windows(self._database, self._own, windows)

    def has_latency(self) -> bool:
        """Return whether any OSD's latency is stored."""
        return stored_latencies.has_any(self._database)

    def read_latency_summaries(
        self, osd: int, since: datetime, cluster: ClusterId | None = None
    ) -> tuple[LatencySummary, ...]:
        """Return an OSD's summaries from `since` on, oldest first; older ones cover ten minutes
        (data.store.coarse_latencies).
        """
        return stored_latencies.of_osd(self._database, self._own, OsdKey(cluster, OsdId(osd)), since)

    def read_latency_beside(self, osd: int, since: datetime) -> tuple[LatencyWindows, ...]:
        """Return the windows from `since` on that have an OSD, with the other OSDs of its host, oldest first."""
        return stored_latencies.beside_osd(self._database, self._own, OsdKey(None, OsdId(osd)), since)

    def latency_hosts(self) -> tuple[HostName, ...]:
        """Return the hosts that ever reported an OSD's latency, in order."""
        return stored_latencies.list_latency_hosts(self._database, self._own)

    def host_latency(self, host: HostName, since: datetime) -> tuple[LatencyWindows, ...]:
        """Return a host's windows from `since` on, oldest first."""
        return stored_latencies.of_host(self._database, self._own, host, since)

    def save_outlooks(self, outlooks: Iterable[Outlook]) -> None:
        """Store outlooks, keyed by (device, as_of); only a device's newest one with its survival curve."""
        by_time = sorted(outlooks, key=attrgetter("as_of"))
        last = {one.device: place for place, one in enumerate(by_time)}
        rows, newest = list[Row](), list[Row]()
        for place, one in enumerate(by_time):
            past = documents.OUTLOOK.write_past(one)
            row = {"device": one.device, "as_of": to_microseconds(one.as_of), "document": past}
            rows.append(row)
            if last[one.device] == place:
                newest.append({**row, "document": documents.add_curve(past, one.survival)})
        self._replace(
            store_schema.outlooks,
            rows,
            *("device", "as_of"),
            beside=lambda connection: self._keep_latest(
                connection, store_schema.latest_outlooks, "as_of", _in_order(["device"], newest), again=True
            ),
        )

    def latest_outlooks(self, devices: Collection[DeviceId] | None = None) -> Mapping[DeviceId, Outlook]:
        """Return the newest outlook of each of `devices` that has any, or of every device (None)."""
        table = store_schema.latest_outlooks
        wanted = select(table.c.document).order_by(table.c.device)
        if devices is not None:
            wanted = wanted.where(self._database.is_any_of(table.c.device, devices))
        found = self._documents(wanted, table, documents.OUTLOOK)
        return {outlook.device: outlook for outlook in found}

    def outlooks(self, device: DeviceId, since: datetime | None = None) -> tuple[Outlook, ...]:
        """Return a device's outlooks from `since` on, oldest first, without their survival curves."""
        return self._history(store_schema.outlooks, device, "as_of", since, documents.OUTLOOK)

    def iterate_outlooks(
        self, since: Mapping[DeviceId, datetime | None]
    ) -> Iterator[tuple[DeviceId, tuple[Outlook, ...]]]:
        """Implement `data.store.store_port.Store.iterate_outlooks`."""
        return stored_histories.iterate_histories(
            self._database, store_schema.outlooks, "as_of", documents.OUTLOOK, since
        )

    def find_outlook_keys(
        self, keys: Collection[tuple[DeviceId, datetime]]
    ) -> frozenset[tuple[DeviceId, datetime]]:
        """Return those of `keys`, each a device and a time, of which there is an outlook."""
        return stored_histories.find_outlook_keys(self._database, keys)

    def add_journal(self, entries: Sequence[JournalEntry]) -> None:
        """Append lines to drains' journals; a line that is there already is not added again. Raises OfOtherCluster."""
        rows = self._lines(entries)
        if rows:
            self._database.write(lambda connection: self._append(connection, rows))

    def journal(self, drain: str | None = None, limit: int | None = None) -> tuple[JournalEntry, ...]:
        """Return the lines of one drain (or of all), newest last; the newest `limit` of them.

        Lines that name another cluster are left out. Documents are JSON without blanks, and a quotation mark within a
        text is escaped, so that only the field itself matches.
        """
        table, own = store_schema.journal, self._own.get_cluster()
        newest_first = select(table.c.document, table.c.digest).order_by(table.c.number.desc())
        if own is not None:
            holds = partial(self._database.contains_bytes, table.c.document)
            named, ours = holds(b'"cluster":"'), holds(b'"cluster":"%b"' % own.encode())
            newest_first = newest_first.where(or_(not_(named), ours))
        if drain is not None:
            newest_first = newest_first.where(table.c.drain == drain)
        if limit is not None:
            newest_first = newest_first.limit(max(limit, 0))
        return self._whole_documents(newest_first, table, wire_bodies.JOURNAL_ENTRY)[::-1]

    def add_outcome(self, outcome: Outcome) -> None:
        """Append a statement about a device's end. The same statement twice has one effect."""
        document = wire_bodies.OUTCOME.write(outcome)
        row = {
            "at": to_microseconds(outcome.at),
            "digest": documents.compute_document_digest(document),
            "document": document,
        }
        insert = self._database.insert(store_schema.outcomes).on_conflict_do_nothing()
        self._database.write(
            lambda connection: connection.execute(
                insert, {**row, "written": self._database.read_transaction_number(connection)}
            )
        )

    def outcomes(self) -> tuple[Outcome, ...]:
        """Return all statements, oldest first."""
        table = store_schema.outcomes
        oldest_first = select(table.c.document, table.c.digest).order_by(table.c.at, table.c.number)
        return self._whole_documents(oldest_first, table, wire_bodies.OUTCOME)

    def read_changes(self, since: str | None = None) -> StoreChanges:
        """Return the rows written since the poll that gave the mark `since`, or all rows (None)."""
        return read_store_changes(self._database, self._own, since)

    def read_notes(self, room: str) -> Mapping[str, bytes]:
        """Return the notes of a part of the service, by name."""
        return notes.read_notes(self._database, room)

    def write_notes(
        self, room: str, changes: Mapping[str, bytes | None], told: Sequence[JournalEntry] = ()
    ) -> None:
        """Write, or with None delete, all of `changes` or none, and with them append the journal lines `told`."""
        rows = self._lines(told)
        notes.write_notes(self._database, room, changes, lambda connection: self._append(connection, rows))

    def write_notes_if(
        self, condition: NoteCondition, room: str, changes: Mapping[str, bytes | None]
    ) -> bool:
        """Implement `data.store.store_port.Store.write_notes_if`."""
        return notes.write_notes_if(self._database, condition, room, changes)

    def note_once(self, room: str, name: str, document: bytes) -> bytes:
        """Write the note `document` unless there is one under that name; return the stored note."""
        return notes.note_once(self._database, room, name, document)

    def is_empty(self) -> bool:
        """Return whether the store never took a reading, a latency, an outlook, a drain or an outcome."""
        return notes.is_empty(self._database)

    def describe_damage(self) -> str | None:
        """Return a sentence about the rows that were found to be unreadable, or None if there are none."""
        return self._database.set_aside.describe()

    def halt_reason(self) -> str | None:
        """Return the reason of the halt, or None without a halt."""
        if self._unwritten_halt is not None:
            return self._unwritten_halt
        return self._database.read(lambda connection: connection.execute(_HALT).scalar_one_or_none())

    def set_halt(self, why: str | None) -> None:
        """Halt (with a reason) or lift the halt (None). A halt survives restarts.

        If the database cannot be written, a halt stands in this object's memory, and StoreRefusal is raised all the
        same.
        """
        if why is None:
            self._database.write(lambda connection: connection.execute(store_schema.halt.delete()))
            self._unwritten_halt = None
            return
        self._unwritten_halt = why
        halting = self._database.insert(store_schema.halt).on_conflict_do_update(
            index_elements=["id"], set_={"why": why}
        )
        self._add(halting, [{"id": _ONLY, "why": why}])
        self._unwritten_halt = None

    def hold_halt(self, why: str) -> None:
        """Implement `data.store.store_port.Store.hold_halt`."""
        self._unwritten_halt = why

    def unwritten_halt(self) -> str | None:
        """Implement `data.store.store_port.Store.unwritten_halt`."""
        return self._unwritten_halt

    def compute_day_fingerprints(self) -> Mapping[date, int]:
        """Return the UTC days with readings, each with a number that changes whenever a daily value of
        that day changes.
        """
        return table_upkeep.compute_day_fingerprints(self._database)

    def read_daily_readings(self, first: date, last: date) -> Iterator[Reading]:
        """Yield the daily values of the UTC days `first` to `last`, by device, oldest first."""
        return table_upkeep.read_daily_readings(self._database, first, last)

    def list_reading_days(self, before: date) -> tuple[date, ...]:
        """Return the UTC days before `before` with readings, oldest first."""
        return stored_days.list_reading_days(self._database, before)

    def iterate_day_times(self, day: date) -> Iterator[DeviceTimes]:
        """Yield the times of each device's readings of a UTC day."""
        return stored_days.iterate_day_times(self._database, day)

    def read_day_readings(self, day: date, devices: Collection[DeviceId]) -> tuple[Reading, ...]:
        """Return the readings of a UTC day of some devices, by device, oldest first."""
        return stored_days.read_day_readings(self._database, day, devices)

    def thin_to_daily_values(
        self,
        before: date,
        since: date | None = None,
        archived: Mapping[tuple[DeviceId, date], int] | None = None,
    ) -> int:
        """Thin the readings and outlooks from days in [since, before); return how many were dropped."""
        return table_upkeep.thin_to_daily_values(self._database, before, since, archived)

    def merge_old_latencies(self, before: datetime) -> int:
        """Merge an OSD's latencies of each ten minutes over by `before`; return by how many rows the table shrank."""
        return table_upkeep.merge_old_latencies(self._database, before)

    def prune(
        self,
        *,
        history: datetime | None = None,
        latency: datetime | None = None,
        journal: tuple[str, datetime] | None = None,
    ) -> int:
        """Implement `data.store.store_port.Store.prune`."""
        lines = table_upkeep.prune_journal_lines(self._database, *journal) if journal is not None else 0
        return table_upkeep.prune_old_rows(self._database, history, latency) + lines

    def try_lock_task(self, task: str) -> AbstractContextManager[bool]:
        """Yield whether no other process that shares the store does `task` as long as the block runs."""
        return self._database.try_lock_task(task)

    def close(self) -> None:
        """Close files and sockets."""
        self._database.close()

    def _replace(
        self,
        table: Table,
        rows: Sequence[Row],
        *keys: str,
        beside: Callable[[Connection], None] = lambda _: None,
    ) -> None:
        """Write rows over those with their keys; of two with one key the last counts.

        `beside` runs in the same transaction.
        """

        fresh = tuple(one.name for one in table.columns if one.name not in keys)
        ordered = _in_order(keys, list({tuple(row[key] for key in keys): row for row in rows}.values()))

        def keep(connection: Connection) -> None:
            self._database.insert_many(connection, table, ordered, Conflict(keys, fresh))
            beside(connection)

        if ordered:
            self._database.write(keep)

    def _lines(self, entries: Sequence[JournalEntry]) -> list[dict[str, Any]]:
        """Build the rows of the journal. Raises OfOtherCluster."""
        named = {entry.cluster: entry for entry in entries if entry.cluster is not None}
        own = self._own.get_cluster() if named else None
        for cluster, entry in named.items():
            if own is not None and cluster != own:
                raise OfOtherCluster(f"A line of the journal of {entry.drain}", cluster, own)
        documents_ = [wire_bodies.JOURNAL_ENTRY.write(entry) for entry in entries]
        return [
            {
                "drain": entry.drain,
                "digest": documents.compute_document_digest(document),
                "document": document,
            }
            for entry, document in zip(entries, documents_, strict=True)
        ]

    def _append(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Append lines that are not there already; lines of the audit go to its chain."""
        plain = [row for row in rows if row["drain"] != AUDIT]
        audit = [row for row in rows if row["drain"] == AUDIT]
        if plain:
            connection.execute(self._database.insert(store_schema.journal).on_conflict_do_nothing(), plain)
        if audit:
            audit_chain.append_lines(self._database, connection, audit)

    def _add(self, statement: Any, rows: Sequence[Row], *keys: str) -> None:
        if rows:
            ordered = _in_order(keys, rows)
            self._database.write(lambda connection: connection.execute(statement, ordered))

    def _keep_latest(
        self, connection: Connection, table: Table, time: str, rows: Sequence[Row], *, again: bool
    ) -> None:
        """Replace a device's row by a later one; with `again` also by an equally late one."""
        latest: dict[str, Row] = {}
        for row in rows:  # in the order of time
            held = latest.get(row["device"])
            if held is None or again or row[time] > held[time]:
                latest[row["device"]] = row
        number = self._database.read_transaction_number(connection)

        self._database.insert_many(
            connection,
            table,
            [{**row, "written": number} for row in latest.values()],
            Conflict(("device",), (time, "document", "written"), later=time, again=again),
        )

    def _history(
        self, table: Table, device: DeviceId, time: str, since: datetime | None, body: BodyCodec[T]
    ) -> tuple[T, ...]:
        rows = select(table.c.document).where(table.c.device == device).order_by(table.c[time])
        if since is not None:
            rows = rows.where(table.c[time] >= to_microseconds(since))
        return self._documents(rows, table, body)

    def _documents(self, rows: Select[Any], table: Table, body: BodyCodec[T]) -> tuple[T, ...]:
        raws = self._database.read(lambda connection: connection.execute(rows).scalars().all())
        return self._database.set_aside.read_all(table.name, raws, body.read)

    def _whole_documents(self, rows: Select[Any, Any], table: Table, body: BodyCodec[T]) -> tuple[T, ...]:
        """Return documents as `_documents` does, from rows of (document, digest).

        A document that is not the one that was written is left out, too.
        """
        found = self._database.read(lambda connection: connection.execute(rows).all())
        changed = {
            one
            for one, digest in found
            if not isinstance(one, bytes) or documents.compute_document_digest(one) != digest
        }

        def read(document: bytes) -> T:
            if document in changed:
                raise InvalidValue("it is not what was written")
            return body.read(document)

        return self._database.set_aside.read_all(table.name, [document for document, _ in found], read)


def _in_order(keys: Sequence[str], rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows in the order of their keys; rows of one key keep their order."""
    return sorted(rows, key=itemgetter(*keys)) if keys else rows
