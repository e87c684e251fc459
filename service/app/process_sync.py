"""Bring the changes that other processes wrote to store and log into this process's fleet, page and controller."""

from __future__ import annotations

from predrain.data.log.log_port import Log
from predrain.data.outlook import Outlook
from predrain.data.store.store_port import Store
from predrain.service.app.changes import ChangeFeed, ChangeKind
from predrain.service.fleet.drain_timeline import Timelines
from predrain.service.fleet.fleet import Fleet
from predrain.service.fleet.residents import read_residences
from predrain.service.streams.log_recall import recall_announcements, recall_curves
from predrain.service.streams.outlook_announcements import Announcements

LATELY = 1_000
"""Newest records of a topic that are read when something was added there."""


class StoreFollower:
    """Follows the store. For one thread. Changes that this process stored itself come by too, and change nothing.

    timelines: the curves of drains, if another process keeps them; None if this one does.
    """

    def __init__(
        self,
        log: Log,
        store: Store,
        fleet: Fleet,
        announcements: Announcements,
        timelines: Timelines | None,
        changes: ChangeFeed,
    ) -> None:
        self._log, self._store, self._fleet = log, store, fleet
        self._announcements, self._timelines, self._changes = announcements, timelines, changes
        self._mark = fleet.mark

    def step(self) -> None:
        """Apply what is new and notify listeners. Raises what log and store raise; the next step starts over."""
        news = self._store.read_changes(self._mark)
        outlooks = [one for one in news.outlooks if self._fleet.outlook(one.device) != one]
        readings = [one for one in news.readings if self._fleet.reading(one.device) != one]
        kinds = set[ChangeKind]()
        residences, known = read_residences(self._store), self._fleet.residences()
        if residences != known:
            self._fleet.update_residences(residences)
            kinds |= {ChangeKind.OSDS, ChangeKind.DEVICES, ChangeKind.STATUS}
        if readings or outlooks:
            self._fleet.update_newest(readings, outlooks)
            kinds |= {ChangeKind.OSDS, ChangeKind.OUTLOOKS, ChangeKind.DEVICES, ChangeKind.STATUS}
        if self._announced(outlooks):
            kinds.add(ChangeKind.ALERTS)
        if news.drains:
            if self._timelines is not None:
                recall_curves(self._log, self._timelines, LATELY)
            kinds |= {ChangeKind.DRAINS, ChangeKind.OSDS, ChangeKind.STATUS}
        if news.outcomes:
            kinds.add(ChangeKind.DEVICES)
        self._mark = news.mark
        if kinds:
            self._changes.notify_change(*kinds)

    def _announced(self, outlooks: list[Outlook]) -> bool:
        """Recall new announcements; return whether there are any.

        A worker announces before it stores, so the log has the announcement of any stored outlook that deserves
        one.
        """
        if not self._announcements.select_news(sorted(outlooks, key=lambda one: one.as_of)):
            return False
        recall_announcements(self._log, self._announcements, LATELY)
        return True
