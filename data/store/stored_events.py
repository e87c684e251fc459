"""Events of the cluster as they are stored: append only, one for each change of a subject's state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, func, select

from predrain.data.cluster_event import ClusterEvent, ClusterEventKind
from predrain.data.store import store_schema
from predrain.data.store.database import Database
from predrain.data.store.store_cluster import StoreCluster
from predrain.data.store.store_schema import to_microseconds
from predrain.data.wire import wire_bodies

_EVENTS = store_schema.cluster_events


class ClusterEventRows:
    """The events of one cluster."""

    _database: Database
    _own: StoreCluster

    def add_cluster_events(self, events: Sequence[ClusterEvent]) -> None:
        """Implement `data.store.store_port.Store.add_cluster_events`."""
        if events:
            self._database.write(
                lambda connection: append_events(
                    self._database, connection, self._own.lock_own(connection), events
                )
            )

    def read_cluster_events(
        self, since: datetime | None = None, until: datetime | None = None, limit: int | None = None
    ) -> tuple[ClusterEvent, ...]:
        """Implement `data.store.store_port.Store.read_cluster_events`."""
        wanted = select(_EVENTS.c.document).order_by(_EVENTS.c.at.desc(), _EVENTS.c.number.desc())
        if since is not None:
            wanted = wanted.where(_EVENTS.c.at >= to_microseconds(since))
        if until is not None:
            wanted = wanted.where(_EVENTS.c.at < to_microseconds(until))
        if limit is not None:
            wanted = wanted.limit(max(limit, 0))
        return self._events(wanted)

    def last_cluster_events(self, kind: ClusterEventKind) -> Mapping[str, ClusterEvent]:
        """Implement `data.store.store_port.Store.last_cluster_events`."""
        last = select(func.max(_EVENTS.c.number)).group_by(_EVENTS.c.subject, _EVENTS.c.cluster)
        wanted = select(_EVENTS.c.document).where(_EVENTS.c.number.in_(last), _EVENTS.c.kind == kind.value)
        return {event.subject: event for event in self._events(wanted)}

    def _events(self, wanted: Select[Any]) -> tuple[ClusterEvent, ...]:
        def work(connection: Connection) -> Sequence[bytes]:
            of_own = wanted.where(_EVENTS.c.cluster == self._own.read_own(connection))
            return connection.execute(of_own).scalars().all()

        return self._database.set_aside.read_all(
            _EVENTS.name, self._database.read(work), wire_bodies.CLUSTER_EVENT.read
        )


def append_events(
    database: Database, connection: Connection, cluster: str, events: Sequence[ClusterEvent]
) -> None:
    """Append those of `events` of a cluster that change the state of their subject since its last stored event."""
    last = _last_of(database, connection, cluster, {event.subject for event in events})
    rows = []
    for event in events:
        place, before = last.get(event.subject, (0, None))
        if not event.is_news_after(before):
            continue
        last[event.subject] = place + 1, event
        rows.append(
            {
                "subject": event.subject,
                "place": place + 1,
                "kind": event.kind.value,
                "at": to_microseconds(event.at),
                "document": wire_bodies.CLUSTER_EVENT.write(event),
                "cluster": cluster,
            }
        )
    if rows:
        # A process that appends the same at the same time gives it the same place.
        connection.execute(database.insert(_EVENTS).on_conflict_do_nothing(), rows)


def _last_of(
    database: Database, connection: Connection, cluster: str, subjects: set[str]
) -> dict[str, tuple[int, ClusterEvent | None]]:
    """Return the last event of each subject, and its place among the subject's events."""
    among = (database.is_any_of(_EVENTS.c.subject, sorted(subjects)), _EVENTS.c.cluster == cluster)
    last = select(func.max(_EVENTS.c.number)).where(*among).group_by(_EVENTS.c.subject)
    wanted = select(_EVENTS.c.subject, _EVENTS.c.place, _EVENTS.c.document).where(_EVENTS.c.number.in_(last))
    read = database.set_aside.read_one
    return {
        subject: (place, read(_EVENTS.name, raw, wire_bodies.CLUSTER_EVENT.read))
        for subject, place, raw in connection.execute(wanted)
    }
