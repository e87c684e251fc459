"""The store in one SQLite file: durable, safe between threads, one writer at a time, readers never wait."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from sqlalchemy import Connection, Select, Table, bindparam, create_engine, event, inspect, select
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.pool import QueuePool, StaticPool

from data.drain import Drain, JournalEntry
from data.ids import DeviceId
from data.outcome import Outcome
from data.outlook import Outlook
from data.reading import LatencySummary, Reading
from data.sqlite_file import BUSY_SECONDS, make_durable
from data.store import schema
from data.store.faults import StoreUnreadable, explained, legible
from data.store.port import Checkpoint, RevisionConflict
from data.store.schema import instant, microseconds
from data.wire import bodies
from data.wire.bodies import Body

T = TypeVar("T")

MEMORY = ":memory:"
_ONLY = 1  # the id of a table's one row


class SqliteStore:
    """`data.store.port.Store` in the file `path`, or in this process's memory (`":memory:"`).

    Several threads and processes may use one file. Every save is one transaction, flushed to the disk (WAL,
    synchronous=FULL) before it returns. A reading or latency summary with a key that is already there is
    ignored; an outlook with such a key replaces the one before. Outcomes are ordered by `at`, then by when
    they were added. Raises StoreUnreadable, StoreFull or StoreBusy (data.store.faults).
    """

    def __init__(self, path: Path | str) -> None:
        self._name = str(path)
        # In memory there is one connection, and so one user at a time.
        self._alone = RLock() if self._name == MEMORY else None
        self._writer = RLock()
        if self._alone is None:
            try:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreUnreadable(f"the folder of the store {path} cannot be made: {error}") from error
        self._engine = create_engine(
            f"sqlite:///{self._name}",
            poolclass=QueuePool if self._alone is None else StaticPool,
            connect_args={"check_same_thread": False, "timeout": BUSY_SECONDS},
        )
        event.listen(self._engine, "connect", _prepare)
        event.listen(self._engine, "begin", _begin)
        try:
            self._open()
        except BaseException:
            self._engine.dispose()
            raise

    def add_readings(self, readings: Iterable[Reading]) -> int:
        """Keep readings; returns how many were new."""
        rows = [
            {
                "device": reading.device,
                "taken_at": microseconds(reading.taken_at),
                "document": bodies.READING.write(reading),
            }
            for reading in readings
        ]
        if not rows:
            return 0
        with self._writing() as connection:
            new = connection.execute(insert(schema.readings).on_conflict_do_nothing(), rows).rowcount
            _keep_latest(connection, schema.latest_readings, "taken_at", rows, again=False)
            _drop_checkpoints(connection, rows)
        return new

    def readings(self, device: DeviceId, since: datetime | None = None) -> tuple[Reading, ...]:
        """A device's readings from `since` on, oldest first."""
        return self._history(schema.readings, "device", device, "taken_at", since, bodies.READING)

    def latest_readings(self) -> Mapping[DeviceId, Reading]:
        """Every device's newest reading."""
        table = schema.latest_readings
        found = self._documents(select(table.c.document).order_by(table.c.device), table, bodies.READING)
        return {reading.device: reading for reading in found}

    def save_checkpoints(self, checkpoints: Iterable[Checkpoint]) -> None:
        """Keep checkpoints, one a device: a later save replaces it."""
        rows = [
            {
                "device": one.device,
                "layout": one.layout,
                "through": microseconds(one.through),
                "state": one.state,
            }
            for one in checkpoints
        ]
        statement = insert(schema.checkpoints)
        fresh = {name: statement.excluded[name] for name in ("layout", "through", "state")}
        if rows:
            with self._writing() as connection:
                connection.execute(statement.on_conflict_do_update(set_=fresh), rows)

    def checkpoint(self, device: DeviceId) -> Checkpoint | None:
        """The device's checkpoint; None when there is none or when an earlier reading came after it."""
        table = schema.checkpoints
        wanted = select(table.c.layout, table.c.through, table.c.state).where(table.c.device == device)
        with self._reading() as connection:
            row = connection.execute(wanted).one_or_none()
        return None if row is None else Checkpoint(device, row.layout, instant(row.through), row.state)

    def add_latency(self, summaries: Iterable[LatencySummary]) -> None:
        """Keep latency summaries, keyed by (osd, window_start)."""
        rows = [
            {
                "osd": summary.osd,
                "window_start": microseconds(summary.window_start),
                "document": bodies.LATENCY.write(summary),
            }
            for summary in summaries
        ]
        if rows:
            with self._writing() as connection:
                connection.execute(insert(schema.latency).on_conflict_do_nothing(), rows)

    def latency(self, osd: int, since: datetime) -> tuple[LatencySummary, ...]:
        """An OSD's summaries from `since` on, oldest first."""
        return self._history(schema.latency, "osd", osd, "window_start", since, bodies.LATENCY)

    def save_outlooks(self, outlooks: Iterable[Outlook]) -> None:
        """Keep outlooks, keyed by (device, as_of)."""
        rows = [
            {
                "device": outlook.device,
                "as_of": microseconds(outlook.as_of),
                "document": bodies.OUTLOOK.write(outlook),
            }
            for outlook in outlooks
        ]
        if not rows:
            return
        statement = insert(schema.outlooks)
        with self._writing() as connection:
            connection.execute(
                statement.on_conflict_do_update(set_={"document": statement.excluded.document}), rows
            )
            _keep_latest(connection, schema.latest_outlooks, "as_of", rows, again=True)

    def latest_outlooks(self) -> Mapping[DeviceId, Outlook]:
        """Every device's newest outlook."""
        table = schema.latest_outlooks
        found = self._documents(select(table.c.document).order_by(table.c.device), table, bodies.OUTLOOK)
        return {outlook.device: outlook for outlook in found}

    def outlooks(self, device: DeviceId, since: datetime | None = None) -> tuple[Outlook, ...]:
        """A device's outlooks from `since` on, oldest first."""
        return self._history(schema.outlooks, "device", device, "as_of", since, bodies.OUTLOOK)

    def save_drain(self, drain: Drain) -> None:
        """Keep the drain's newest revision. Raises RevisionConflict."""
        statement = insert(schema.drains).values(
            id=drain.id,
            created_at=microseconds(drain.created_at),
            revision=drain.revision,
            document=bodies.DRAIN.write(drain),
        )
        fresh = {name: statement.excluded[name] for name in ("created_at", "revision", "document")}
        with self._writing() as connection:
            stored = self._drain(connection, drain.id)
            if stored == drain:
                return
            if stored is not None and stored.revision >= drain.revision:
                raise RevisionConflict(
                    f"drain {drain.id} was saved with revision {stored.revision} by somebody else and"
                    f" revision {drain.revision} comes too late: read it again and decide anew"
                )
            connection.execute(statement.on_conflict_do_update(set_=fresh))

    def drain(self, id: str) -> Drain | None:  # noqa: A002
        """One drain by id."""
        with self._reading() as connection:
            return self._drain(connection, id)

    def drains(self) -> tuple[Drain, ...]:
        """All drains, newest first."""
        table = schema.drains
        newest_first = select(table.c.document).order_by(table.c.created_at.desc(), table.c.id.desc())
        return self._documents(newest_first, table, bodies.DRAIN)

    def add_journal(self, entries: Sequence[JournalEntry]) -> None:
        """Append lines to drains' journals; a line that is there already is not added again."""
        documents = [bodies.JOURNAL_ENTRY.write(entry) for entry in entries]
        rows = [
            {"drain": entry.drain, "digest": _digest(document), "document": document}
            for entry, document in zip(entries, documents, strict=True)
        ]
        if rows:
            with self._writing() as connection:
                connection.execute(insert(schema.journal).on_conflict_do_nothing(), rows)

    def journal(self, drain: str | None = None, limit: int | None = None) -> tuple[JournalEntry, ...]:
        """Lines of one drain (or of all), newest last; the newest `limit` of them."""
        table = schema.journal
        newest_first = select(table.c.document).order_by(table.c.number.desc())
        if drain is not None:
            newest_first = newest_first.where(table.c.drain == drain)
        if limit is not None:
            newest_first = newest_first.limit(max(limit, 0))
        return self._documents(newest_first, table, bodies.JOURNAL_ENTRY)[::-1]

    def add_outcome(self, outcome: Outcome) -> None:
        """Append a statement about a device's end. The same statement twice has one effect."""
        document = bodies.OUTCOME.write(outcome)
        row = {"at": microseconds(outcome.at), "digest": _digest(document), "document": document}
        with self._writing() as connection:
            connection.execute(insert(schema.outcomes).on_conflict_do_nothing(), row)

    def outcomes(self) -> tuple[Outcome, ...]:
        """All statements, oldest first."""
        table = schema.outcomes
        oldest_first = select(table.c.document).order_by(table.c.at, table.c.number)
        return self._documents(oldest_first, table, bodies.OUTCOME)

    def halt_reason(self) -> str | None:
        """Why everything is halted, or None when it is not."""
        with self._reading() as connection:
            return connection.execute(select(schema.halt.c.why)).scalar_one_or_none()

    def set_halt(self, why: str | None) -> None:
        """Halt (with a reason) or lift the halt (None). Survives restarts."""
        with self._writing() as connection:
            if why is None:
                connection.execute(schema.halt.delete())
            else:
                statement = insert(schema.halt).values(id=_ONLY, why=why)
                connection.execute(statement.on_conflict_do_update(set_={"why": why}))

    def prune(self, *, history: datetime | None = None, latency: datetime | None = None) -> int:
        """Drop readings and outlooks from before `history`, latency from before `latency`; returns how many.

        A device's latest reading, latest outlook and checkpoint stay, however old. Drains, their journal and
        outcomes are never dropped.
        """
        kinds = (
            (schema.readings, "device", "taken_at", history),
            (schema.outlooks, "device", "as_of", history),
            (schema.latency, "osd", "window_start", latency),
        )
        dropped = 0
        for table, key, time, before in kinds:
            if before is None:
                continue
            # By key, so that each deletion is a range of the primary key and writers wait only for one.
            with self._reading() as connection:
                keys = connection.execute(select(table.c[key]).distinct()).scalars().all()
            for of in keys:
                old = table.delete().where(table.c[key] == of, table.c[time] < microseconds(before))
                with self._writing() as connection:
                    dropped += connection.execute(old).rowcount
        return dropped

    def close(self) -> None:
        """Let go of the file."""
        self._engine.dispose()

    def _open(self) -> None:
        """Make the tables of a new file; refuse a file that is not ours."""
        with self._writing() as connection:
            tables = set(inspect(connection).get_table_names())
            if not tables:
                schema.metadata.create_all(connection)
                connection.execute(insert(schema.schema_version).values(id=_ONLY, version=schema.VERSION))
                return
            if schema.schema_version.name not in tables:
                raise StoreUnreadable(
                    f"{self._name} is a database but not a store of predrain's: name another file or folder"
                )
            version = connection.execute(select(schema.schema_version.c.version)).scalar_one_or_none()
            if version in schema.ONLY_MORE_TABLES:
                schema.metadata.create_all(connection)
                connection.execute(schema.schema_version.update().values(version=schema.VERSION))
                return
        if version != schema.VERSION:
            raise StoreUnreadable(
                f"the store {self._name} has version {version} and this predrain knows {schema.VERSION}:"
                " update predrain, or start it with another state folder"
            )

    def _drain(self, connection: Connection, id_: str) -> Drain | None:
        table = schema.drains
        raw = connection.execute(select(table.c.document).where(table.c.id == id_)).scalar_one_or_none()
        if raw is None:
            return None
        with legible(self._name, table.name):
            return bodies.DRAIN.read(raw)

    def _history(
        self, table: Table, key: str, of: Any, time: str, since: datetime | None, body: Body[T]
    ) -> tuple[T, ...]:
        rows = select(table.c.document).where(table.c[key] == of).order_by(table.c[time])
        if since is not None:
            rows = rows.where(table.c[time] >= microseconds(since))
        return self._documents(rows, table, body)

    def _documents(self, rows: Select[Any], table: Table, body: Body[T]) -> tuple[T, ...]:
        with self._reading() as connection:
            raws = connection.execute(rows).scalars().all()
        with legible(self._name, table.name):
            return tuple(body.read(raw) for raw in raws)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._alone or _nothing(), explained(self._name), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """One transaction: durable when the block ends, undone when it raises."""
        with (
            self._alone or self._writer,
            explained(self._name),
            self._engine.connect() as connection,
            connection.execution_options(predrain_writes=True).begin(),
        ):
            yield connection


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def _digest(document: bytes) -> bytes:
    return hashlib.sha256(document).digest()


def _keep_latest(
    connection: Connection, table: Table, time: str, rows: Sequence[Mapping[str, Any]], *, again: bool
) -> None:
    """Replace a device's row by a later one; `again`: by an equally late one, too."""
    statement = insert(table)
    fresh, held = statement.excluded[time], table.c[time]
    connection.execute(
        statement.on_conflict_do_update(
            set_={time: fresh, "document": statement.excluded.document},
            where=fresh >= held if again else fresh > held,
        ),
        rows,
    )


def _drop_checkpoints(connection: Connection, readings: Sequence[Mapping[str, Any]]) -> None:
    """A reading that comes late is not in its device's checkpoint."""
    earliest: dict[str, int] = {}
    for row in readings:
        taken_at = row["taken_at"]
        earliest[row["device"]] = min(taken_at, earliest.get(row["device"], taken_at))
    table = schema.checkpoints
    overtaken = table.delete().where(
        table.c.device == bindparam("of"), table.c.through >= bindparam("earliest")
    )
    connection.execute(overtaken, [{"of": of, "earliest": first} for of, first in earliest.items()])


def _prepare(connection: Any, _record: Any) -> None:
    # The driver's own transactions begin too late for BEGIN IMMEDIATE; `_begin` takes over.
    connection.isolation_level = None
    make_durable(connection)


def _begin(connection: Connection) -> None:
    # A writer that begins as a reader may find that somebody else has written, and then cannot wait.
    writes = connection.get_execution_options().get("predrain_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
