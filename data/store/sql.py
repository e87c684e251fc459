"""The store over SQLAlchemy Core: one implementation for every database (data.store.database)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import date, datetime
from operator import itemgetter
from typing import Any, TypeVar

from sqlalchemy import Connection, Select, Table, select

from predrain.data.drain import Drain, JournalEntry
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.outcome import Outcome
from predrain.data.outlook import Outlook
from predrain.data.reading import LatencySummary, Reading
from predrain.data.store import chain, checkpointing, documents, latencies, notes, refiling, schema, upkeep
from predrain.data.store.audit_rows import AuditRows
from predrain.data.store.change_feed import news
from predrain.data.store.cluster_events import ClusterEventRows
from predrain.data.store.database import Database
from predrain.data.store.drains import Drains
from predrain.data.store.lives import LifeChangeRows
from predrain.data.store.port import AUDIT, Checkpoint, News
from predrain.data.store.schema import microseconds
from predrain.data.windows import Windows
from predrain.data.wire import bodies
from predrain.data.wire.bodies import BodyCodec
from predrain.data.wire.shape import Misshapen

T = TypeVar("T")
Row = Mapping[str, Any]

_ONLY = 1  # the id of a table's one row


class SqlStore(LifeChangeRows, ClusterEventRows, AuditRows):
    """`data.store.port.Store` in a database.

    Every save is one transaction, durable before it returns. A reading or latency summary with a key that is already
    there is ignored; an outlook with such a key replaces the one before. Outcomes are ordered by `at`, then by when
    they were added. Rows are written in the order of their keys, so that several writers never wait for each other in
    a circle. Raises what data.store.faults tells.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._drains = Drains(database)
        self._unwritten_halt: str | None = None

    def add_readings(self, readings: Iterable[Reading]) -> int:
        """Keep readings; returns how many were new."""
        rows = _in_order(
            ("device", "taken_at"),
            [
                {
                    "device": reading.device,
                    "taken_at": microseconds(reading.taken_at),
                    "document": documents.READING.write(reading),
                }
                for reading in readings
            ],
        )

        def keep(connection: Connection) -> int:
            new = self._database.put(
                connection, schema.readings, rows, lambda insert: insert.on_conflict_do_nothing()
            )
            self._keep_latest(connection, schema.latest_readings, "taken_at", rows, again=False)
            checkpointing.drop_overtaken(self._database, connection, rows)
            return new

        return self._database.write(keep) if rows else 0

    def readings(self, device: DeviceId, since: datetime | None = None) -> tuple[Reading, ...]:
        """A device's readings from `since` on, oldest first."""
        return self._history(schema.readings, device, "taken_at", since, documents.READING)

    def latest_readings(self, devices: Collection[DeviceId] | None = None) -> Mapping[DeviceId, Reading]:
        """The newest reading of each of `devices` that was read, or of every device (None)."""
        table = schema.latest_readings
        wanted = select(table.c.document).order_by(table.c.device)
        if devices is not None:
            wanted = wanted.where(self._database.among(table.c.device, devices))
        found = self._documents(wanted, table, documents.READING)
        return {reading.device: reading for reading in found}

    def refile_readings(self, readings: Sequence[Reading], device: DeviceId) -> None:
        """Give readings, which are kept under their own device's name, to `device`, in one transaction."""
        refiling.refile_readings(self._database, readings, device)

    def forget_newest(self, device: DeviceId) -> None:
        """Drop what is newest of a device, so that it is a device no more; its history stays."""
        refiling.forget_newest(self._database, device)

    def save_checkpoints(self, checkpoints: Iterable[Checkpoint]) -> None:
        """Keep checkpoints, one a device: a later save replaces it."""
        self._replace(schema.checkpoints, checkpointing.rows_of(checkpoints), "device")

    def checkpoints(self, devices: Collection[DeviceId]) -> Mapping[DeviceId, Checkpoint]:
        """The checkpoint of each of `devices` that has one, and got no earlier reading after it."""
        return checkpointing.read_checkpoints(self._database, devices)

    def unsaved(self, devices: Collection[DeviceId]) -> Mapping[DeviceId, tuple[datetime, ...]]:
        """When each of `devices` was read since its checkpoint (ever, where it has none), where it was."""
        return checkpointing.read_unsaved(self._database, devices)

    def find_later_readings(self, devices: Collection[DeviceId]) -> Mapping[DeviceId, tuple[Reading, ...]]:
        """The readings of each of `devices` after its checkpoint, oldest first; none of a device that has none."""
        return checkpointing.read_readings_since(self._database, devices)

    def add_latency(self, windows: Iterable[Windows]) -> None:
        """Keep what hosts told of their OSDs, keyed by (osd, window_start)."""
        latencies.add(self._database, windows)

    def has_latency(self) -> bool:
        """Whether any OSD's latency is kept."""
        return latencies.has_any(self._database)

    def latency(self, osd: int, since: datetime) -> tuple[LatencySummary, ...]:
        """An OSD's summaries from `since` on, oldest first; older ones cover ten minutes (data.store.coarse)."""
        return latencies.of_osd(self._database, OsdId(osd), since)

    def latency_hosts(self) -> tuple[HostName, ...]:
        """Hosts that ever told of an OSD's latency, in order."""
        return latencies.hosts(self._database)

    def host_latency(self, host: HostName, since: datetime) -> tuple[Windows, ...]:
        """What a host told of its OSDs from `since` on, oldest first."""
        return latencies.of_host(self._database, host, since)

    def save_outlooks(self, outlooks: Iterable[Outlook]) -> None:
        """Keep outlooks, keyed by (device, as_of)."""
        rows = [
            {
                "device": outlook.device,
                "as_of": microseconds(outlook.as_of),
                "document": documents.OUTLOOK.write(outlook),
            }
            for outlook in outlooks
        ]
        self._replace(
            schema.outlooks,
            rows,
            *("device", "as_of"),
            beside=lambda connection, ordered: self._keep_latest(
                connection, schema.latest_outlooks, "as_of", ordered, again=True
            ),
        )

    def latest_outlooks(self, devices: Collection[DeviceId] | None = None) -> Mapping[DeviceId, Outlook]:
        """The newest outlook of each of `devices` that has any, or of every device (None)."""
        table = schema.latest_outlooks
        wanted = select(table.c.document).order_by(table.c.device)
        if devices is not None:
            wanted = wanted.where(self._database.among(table.c.device, devices))
        found = self._documents(wanted, table, documents.OUTLOOK)
        return {outlook.device: outlook for outlook in found}

    def outlooks(self, device: DeviceId, since: datetime | None = None) -> tuple[Outlook, ...]:
        """A device's outlooks from `since` on, oldest first."""
        return self._history(schema.outlooks, device, "as_of", since, documents.OUTLOOK)

    def save_drain(self, drain: Drain) -> None:
        """Keep the drain's newest revision. Raises RevisionConflict."""
        self._drains.save(drain)

    def drain(self, id: str) -> Drain | None:  # noqa: A002
        """One drain by id."""
        return self._drains.one(id)

    def drains(self) -> tuple[Drain, ...]:
        """All drains, newest first."""
        return self._drains.all()

    def add_journal(self, entries: Sequence[JournalEntry]) -> None:
        """Append lines to drains' journals; a line that is there already is not added again."""
        rows = self._lines(entries)
        if rows:
            self._database.write(lambda connection: self._append(connection, rows))

    def journal(self, drain: str | None = None, limit: int | None = None) -> tuple[JournalEntry, ...]:
        """Lines of one drain (or of all), newest last; the newest `limit` of them."""
        table = schema.journal
        newest_first = select(table.c.document, table.c.digest).order_by(table.c.number.desc())
        if drain is not None:
            newest_first = newest_first.where(table.c.drain == drain)
        if limit is not None:
            newest_first = newest_first.limit(max(limit, 0))
        return self._whole_documents(newest_first, table, bodies.JOURNAL_ENTRY)[::-1]

    def add_outcome(self, outcome: Outcome) -> None:
        """Append a statement about a device's end. The same statement twice has one effect."""
        document = bodies.OUTCOME.write(outcome)
        row = {"at": microseconds(outcome.at), "digest": documents.digest(document), "document": document}
        insert = self._database.insert(schema.outcomes).on_conflict_do_nothing()
        self._database.write(
            lambda connection: connection.execute(
                insert, {**row, "written": self._database.number(connection)}
            )
        )

    def outcomes(self) -> tuple[Outcome, ...]:
        """All statements, oldest first."""
        table = schema.outcomes
        oldest_first = select(table.c.document, table.c.digest).order_by(table.c.at, table.c.number)
        return self._whole_documents(oldest_first, table, bodies.OUTCOME)

    def news(self, since: str | None = None) -> News:
        """What was written since the look that gave the mark `since`, or all there is (None)."""
        return news(self._database, since)

    def notes(self, room: str) -> Mapping[str, bytes]:
        """Small things that a part of the service remembers under names of its own."""
        return notes.notes(self._database, room)

    def note(self, room: str, changes: Mapping[str, bytes | None], told: Sequence[JournalEntry] = ()) -> None:
        """Remember, or with None forget, all of `changes` or none, and with them append the lines `told`."""
        rows = self._lines(told)
        notes.write_notes(self._database, room, changes, lambda connection: self._append(connection, rows))

    def note_once(self, room: str, name: str, document: bytes) -> bytes:
        """Remember `document` unless something is remembered under that name; returns what is."""
        return notes.note_once(self._database, room, name, document)

    def is_empty(self) -> bool:
        """Whether it never took a reading, a latency, an outlook, a drain or an outcome."""
        return notes.is_empty(self._database)

    def describe_damage(self) -> str | None:
        """A sentence about the rows that were met and cannot be read, or None where there are none."""
        return self._database.set_aside.describe()

    def count_damaged_drains(self) -> int:
        """How many drains there were at the last look that cannot be read."""
        self._drains.all()
        return self._database.set_aside.count(schema.drains.name)

    def halt_reason(self) -> str | None:
        """Why everything is halted, or None when it is not."""
        if self._unwritten_halt is not None:
            return self._unwritten_halt
        why = select(schema.halt.c.why)
        return self._database.read(lambda connection: connection.execute(why).scalar_one_or_none())

    def set_halt(self, why: str | None) -> None:
        """Halt (with a reason) or lift the halt (None). Survives restarts.

        Where the database takes nothing, a halt stands in this object's memory; StoreRefusal is raised all the same.
        """
        if why is None:
            self._database.write(lambda connection: connection.execute(schema.halt.delete()))
            self._unwritten_halt = None
            return
        self._unwritten_halt = why
        halting = self._database.insert(schema.halt).on_conflict_do_update(
            index_elements=["id"], set_={"why": why}
        )
        self._add(halting, [{"id": _ONLY, "why": why}])
        self._unwritten_halt = None

    def hold_halt(self, why: str) -> None:
        """As `data.store.port.Store.hold_halt`."""
        self._unwritten_halt = why

    def unwritten_halt(self) -> str | None:
        """As `data.store.port.Store.unwritten_halt`."""
        return self._unwritten_halt

    def days(self) -> Mapping[date, int]:
        """UTC days with readings; each has a number that is another one once a daily value of that day is."""
        return upkeep.days(self._database)

    def daily(self, first: date, last: date) -> Iterator[Reading]:
        """Daily values of the UTC days `first` to `last`, by device, oldest first."""
        return upkeep.daily(self._database, first, last)

    def thin(self, before: date) -> int:
        """Keep of readings and outlooks from days before `before` the daily ones; returns how many went."""
        return upkeep.thin(self._database, before)

    def coarsen(self, before: datetime) -> int:
        """Make one summary of an OSD's latencies in ten minutes over by `before`; returns how many rows less."""
        return upkeep.coarsen(self._database, before)

    def prune(
        self,
        *,
        history: datetime | None = None,
        latency: datetime | None = None,
        journal: tuple[str, datetime] | None = None,
    ) -> int:
        """As `data.store.port.Store.prune`."""
        lines = upkeep.shorten(self._database, *journal) if journal is not None else 0
        return upkeep.prune(self._database, history, latency) + lines

    def alone(self, task: str) -> AbstractContextManager[bool]:
        """Whether no other process that shares the store does `task` as long as the block runs."""
        return self._database.alone(task)

    def close(self) -> None:
        """Let go of files and sockets."""
        self._database.close()

    def _replace(
        self,
        table: Table,
        rows: Sequence[Row],
        *keys: str,
        beside: Callable[[Connection, Sequence[Row]], None] = lambda _connection, _rows: None,
    ) -> None:
        """Rows in place of those with their keys; of two with one key the last. beside: in the same transaction."""

        def replacing(insert: Any) -> Any:
            fresh = {one.name: insert.excluded[one.name] for one in table.columns if one.name not in keys}
            return insert.on_conflict_do_update(index_elements=keys, set_=fresh)

        ordered = _in_order(keys, list({tuple(row[key] for key in keys): row for row in rows}.values()))

        def keep(connection: Connection) -> None:
            self._database.put(connection, table, ordered, replacing)
            beside(connection, ordered)

        if ordered:
            self._database.write(keep)

    def _lines(self, entries: Sequence[JournalEntry]) -> list[dict[str, Any]]:
        """Rows of the journal."""
        documents_ = [bodies.JOURNAL_ENTRY.write(entry) for entry in entries]
        return [
            {"drain": entry.drain, "digest": documents.digest(document), "document": document}
            for entry, document in zip(entries, documents_, strict=True)
        ]

    def _append(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Append lines that are not there already; those of the audit to its chain."""
        plain = [row for row in rows if row["drain"] != AUDIT]
        audit = [row for row in rows if row["drain"] == AUDIT]
        if plain:
            connection.execute(self._database.insert(schema.journal).on_conflict_do_nothing(), plain)
        if audit:
            chain.append_lines(self._database, connection, audit)

    def _add(self, statement: Any, rows: Sequence[Row], *keys: str) -> None:
        if rows:
            ordered = _in_order(keys, rows)
            self._database.write(lambda connection: connection.execute(statement, ordered))

    def _keep_latest(
        self, connection: Connection, table: Table, time: str, rows: Sequence[Row], *, again: bool
    ) -> None:
        """Replace a device's row by a later one; `again`: by an equally late one, too."""
        latest: dict[str, Row] = {}
        for row in rows:  # in the order of time
            held = latest.get(row["device"])
            if held is None or again or row[time] > held[time]:
                latest[row["device"]] = row
        number = self._database.number(connection)

        def later(insert: Any) -> Any:
            fresh, kept = insert.excluded[time], table.c[time]
            return insert.on_conflict_do_update(
                index_elements=["device"],
                set_={name: insert.excluded[name] for name in (time, "document", "written")},
                where=fresh >= kept if again else fresh > kept,
            )

        self._database.put(connection, table, [{**row, "written": number} for row in latest.values()], later)

    def _history(
        self, table: Table, device: DeviceId, time: str, since: datetime | None, body: BodyCodec[T]
    ) -> tuple[T, ...]:
        rows = select(table.c.document).where(table.c.device == device).order_by(table.c[time])
        if since is not None:
            rows = rows.where(table.c[time] >= microseconds(since))
        return self._documents(rows, table, body)

    def _documents(self, rows: Select[Any], table: Table, body: BodyCodec[T]) -> tuple[T, ...]:
        raws = self._database.read(lambda connection: connection.execute(rows).scalars().all())
        return self._database.set_aside.read_all(table.name, raws, body.read)

    def _whole_documents(self, rows: Select[Any, Any], table: Table, body: BodyCodec[T]) -> tuple[T, ...]:
        """As `_documents`, of rows of (document, digest): one that is not what was written is left out, too."""
        found = self._database.read(lambda connection: connection.execute(rows).all())
        changed = {
            one for one, digest in found if not isinstance(one, bytes) or documents.digest(one) != digest
        }

        def read(document: bytes) -> T:
            if document in changed:
                raise Misshapen("it is not what was written")
            return body.read(document)

        return self._database.set_aside.read_all(table.name, [document for document, _ in found], read)


def _in_order(keys: Sequence[str], rows: Sequence[Row]) -> Sequence[Row]:
    """Rows by their keys; those of one key stay as they came."""
    return sorted(rows, key=itemgetter(*keys)) if keys else rows
