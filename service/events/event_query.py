"""Queries of the history: kinds, period, number of events; and the page of events that answers a query."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import TypeVar

from predrain.data.cluster_event import ClusterEvent
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.life_cycle import LifeChange
from predrain.data.store.store_port import Store
from predrain.service.events.event import CurrentPlaces, HistoryEvent, KnownChange
from predrain.service.events.event_conversion import make_event
from predrain.service.events.event_kinds import HistoryKind
from predrain.service.events.event_sentences import describe_event

AT_ONCE = 500
"""Changes that are read from the store at once."""
MOST_LOOKED_AT = 20_000
"""Changes that one page examines at most, since a filter must not make a page ever more expensive."""
_TICK = timedelta(microseconds=1)

Changed = TypeVar("Changed", ClusterEvent, LifeChange)


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """The wanted events; an empty field or None filters nothing out. Times: `since` included, `until` not."""

    since: datetime | None = None
    until: datetime | None = None
    kinds: frozenset[HistoryKind] = frozenset()
    host: HostName | None = None
    device: DeviceId | None = None
    osd: OsdId | None = None
    words: tuple[str, ...] = ()
    """Each word must occur in the event's text, without regard to case."""

    def matches_event(self, event: HistoryEvent) -> bool:
        """Return whether the query wants `event`."""
        if self.kinds and event.kind not in self.kinds:
            return False
        if self.host is not None and event.host != self.host:
            return False
        if self.device is not None and event.device != self.device:
            return False
        if self.osd is not None and event.osd != self.osd:
            return False
        return not self.words or self._says(event)

    def _says(self, event: HistoryEvent) -> bool:
        names = (event.host, event.device, event.drain, describe_event(event))
        text = " ".join(name for name in names if name).casefold()
        return all(word.casefold() in text for word in self.words)


@dataclass(frozen=True, slots=True)
class HistoryCursor:
    """The last event of the previous page."""

    at: datetime
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """Events, newest first. `next`: where the following page begins; None if there is nothing older.

    A page that examined too many changes may hold fewer events than were requested, even none, and still have a
    next one.
    """

    events: tuple[HistoryEvent, ...]
    next: HistoryCursor | None


def read_history(
    store: Store,
    places: CurrentPlaces,
    asked: HistoryQuery,
    limit: int,
    after: HistoryCursor | None,
) -> HistoryPage:
    """Read one page of the history."""
    until = asked.until
    if after is not None:
        until = min(until or after.at + _TICK, after.at + _TICK)
    found: list[HistoryEvent] = []
    last, looked = after, 0
    for event in iterate_events_back(store, places, asked.since, until):
        if after is not None and event.at == after.at and event.key <= after.key:
            continue
        if len(found) == limit or looked == MOST_LOOKED_AT:
            return HistoryPage(tuple(found), last)
        last, looked = HistoryCursor(event.at, event.key), looked + 1
        if asked.matches_event(event):
            found.append(event)
    return HistoryPage(tuple(found), None)


def iterate_events_back(
    store: Store,
    places: CurrentPlaces,
    since: datetime | None,
    until: datetime | None,
) -> Iterator[HistoryEvent]:
    """Yield events, newest first; those of one instant in the order of their keys, equal ones once."""
    told: Sequence[Iterator[tuple[datetime, KnownChange]]] = (
        ((change.at, change) for change in _read_back(store.read_cluster_events, since, until)),
        ((change.at, change) for change in _read_back(store.read_life_changes, since, until)),
        _sort_back([(outcome.at, outcome) for outcome in store.outcomes()], since, until),
    )
    merged = heapq.merge(*told, key=itemgetter(0), reverse=True)
    for _, together in groupby(merged, key=itemgetter(0)):
        made = (make_event(known, places) for _, known in together)
        yield from sorted({event.key: event for event in made if event is not None}.values(), key=_key_of)


def _key_of(event: HistoryEvent) -> tuple[str, ...]:
    return event.key


def _read_back(
    read: Callable[[datetime | None, datetime | None, int], Sequence[Changed]],
    since: datetime | None,
    until: datetime | None,
) -> Iterator[Changed]:
    """Yield the changes of one table, newest first, reading back only as far as they are consumed."""
    size = AT_ONCE
    while changes := read(since, until, size):
        if len(changes) >= size:  # the oldest instant may have more changes
            whole = [change for change in changes if change.at > changes[-1].at]
            if not whole:
                size *= 2
                continue
            changes = whole
        yield from changes
        until, size = changes[-1].at, AT_ONCE


def _sort_back(
    told: list[tuple[datetime, KnownChange]], since: datetime | None, until: datetime | None
) -> Iterator[tuple[datetime, KnownChange]]:
    """Return those from `since` on and before `until`, newest first."""
    within = [
        (at, known) for at, known in told if (since is None or at >= since) and (until is None or at < until)
    ]
    return iter(sorted(within, key=itemgetter(0), reverse=True))
