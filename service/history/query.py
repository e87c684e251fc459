"""What is asked of the history: which events, from when to when, how many; and the page of events that answers it."""

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
from predrain.data.store.port import Store
from predrain.service.history.event import CurrentPlaces, HistoryEvent, KnownChange
from predrain.service.history.events import make_event
from predrain.service.history.kinds import HistoryKind
from predrain.service.history.sentences import describe_event

AT_ONCE = 500
"""Changes that are read from the store at once."""
MOST_LOOKED_AT = 20_000
"""Changes that one page looks at: what a filter leaves out must not cost ever more."""
_TICK = timedelta(microseconds=1)

Changed = TypeVar("Changed", ClusterEvent, LifeChange)


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """Which events are wanted; what is empty or None leaves none out. Times: `since` included, `until` not."""

    since: datetime | None = None
    until: datetime | None = None
    kinds: frozenset[HistoryKind] = frozenset()
    host: HostName | None = None
    device: DeviceId | None = None
    osd: OsdId | None = None
    words: tuple[str, ...] = ()
    """Each must stand in what is told of the event; capital letters make no difference."""

    def wants(self, event: HistoryEvent) -> bool:
        """Whether `event` is one of them."""
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
    """The last event of the page before."""

    at: datetime
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """Events, newest first. `next`: where the following page begins; None: nothing older is there. A page that looked
    at too many changes may hold fewer events than were asked for, and even none, and be followed by another.
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
    """A page of what happened."""
    until = asked.until
    if after is not None:
        until = min(until or after.at + _TICK, after.at + _TICK)
    found: list[HistoryEvent] = []
    last, looked = after, 0
    for event in _events_back(store, places, asked.since, until):
        if after is not None and event.at == after.at and event.key <= after.key:
            continue
        if len(found) == limit or looked == MOST_LOOKED_AT:
            return HistoryPage(tuple(found), last)
        last, looked = HistoryCursor(event.at, event.key), looked + 1
        if asked.wants(event):
            found.append(event)
    return HistoryPage(tuple(found), None)


def _events_back(
    store: Store,
    places: CurrentPlaces,
    since: datetime | None,
    until: datetime | None,
) -> Iterator[HistoryEvent]:
    """Events, newest first; those of one instant in the order of their keys, equal ones once."""
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
    """Changes of one table, newest first, read as far back as they are taken."""
    size = AT_ONCE
    while changes := read(since, until, size):
        if len(changes) >= size:  # of the oldest instant there may be more
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
    """Those from `since` on and before `until`, newest first."""
    within = [
        (at, known) for at, known in told if (since is None or at >= since) and (until is None or at < until)
    ]
    return iter(sorted(within, key=itemgetter(0), reverse=True))
