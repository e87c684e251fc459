"""Events of the cluster as they are kept: append only, one where a subject stands otherwise than before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, func, select

from predrain.data.cluster_event import ClusterEvent, ClusterEventKind
from predrain.data.store import schema
from predrain.data.store.database import Database
from predrain.data.store.schema import microseconds
from predrain.data.wire import bodies

_EVENTS = schema.cluster_events


class ClusterEventRows:
    """The events of the cluster in one database."""

    _database: Database

    def add_cluster_events(self, events: Sequence[ClusterEvent]) -> None:
        """As `data.store.port.Store.add_cluster_events`."""
        if events:
            self._database.write(lambda connection: append_events(self._database, connection, events))

    def read_cluster_events(
        self, since: datetime | None = None, until: datetime | None = None, limit: int | None = None
    ) -> tuple[ClusterEvent, ...]:
        """As `data.store.port.Store.read_cluster_events`."""
        wanted = select(_EVENTS.c.document).order_by(_EVENTS.c.at.desc(), _EVENTS.c.number.desc())
        if since is not None:
            wanted = wanted.where(_EVENTS.c.at >= microseconds(since))
        if until is not None:
            wanted = wanted.where(_EVENTS.c.at < microseconds(until))
        if limit is not None:
            wanted = wanted.limit(max(limit, 0))
        raws = self._database.read(lambda connection: connection.execute(wanted).scalars().all())
        return self._database.set_aside.read_all(_EVENTS.name, raws, bodies.CLUSTER_EVENT.read)

    def last_cluster_events(self, kind: ClusterEventKind) -> Mapping[str, ClusterEvent]:
        """As `data.store.port.Store.last_cluster_events`."""
        last = select(func.max(_EVENTS.c.number)).group_by(_EVENTS.c.subject)
        wanted = select(_EVENTS.c.document).where(_EVENTS.c.number.in_(last), _EVENTS.c.kind == kind.value)
        raws = self._database.read(lambda connection: connection.execute(wanted).scalars().all())
        found = self._database.set_aside.read_all(_EVENTS.name, raws, bodies.CLUSTER_EVENT.read)
        return {event.subject: event for event in found}


def append_events(database: Database, connection: Connection, events: Sequence[ClusterEvent]) -> None:
    """Append those of `events` after which their subject stands otherwise than by the last one that is kept."""
    last = _last_of(database, connection, {event.subject for event in events})
    rows = []
    for event in events:
        place, before = last.get(event.subject, (0, None))
        if not event.follows(before):
            continue
        last[event.subject] = place + 1, event
        rows.append(
            {
                "subject": event.subject,
                "place": place + 1,
                "kind": event.kind.value,
                "at": microseconds(event.at),
                "document": bodies.CLUSTER_EVENT.write(event),
            }
        )
    if rows:
        # Who appends the same at the same time gives it the same place.
        connection.execute(database.insert(_EVENTS).on_conflict_do_nothing(), rows)


def _last_of(
    database: Database, connection: Connection, subjects: set[str]
) -> dict[str, tuple[int, ClusterEvent | None]]:
    """The last event of each subject, and its place among the subject's events."""
    among = database.among(_EVENTS.c.subject, sorted(subjects))
    last = select(func.max(_EVENTS.c.number)).where(among).group_by(_EVENTS.c.subject)
    wanted = select(_EVENTS.c.subject, _EVENTS.c.place, _EVENTS.c.document).where(_EVENTS.c.number.in_(last))
    read = database.set_aside.read_one
    return {
        subject: (place, read(_EVENTS.name, raw, bodies.CLUSTER_EVENT.read))
        for subject, place, raw in connection.execute(wanted)
    }
