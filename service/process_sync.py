"""What other processes wrote into the store and the log, brought to this one's fleet, page and controller."""

from __future__ import annotations

from predrain.data.log.port import Log
from predrain.data.outlook import Outlook
from predrain.data.store.port import Store
from predrain.service.changes import ChangeKind, Changes
from predrain.service.drains.timeline import Timelines
from predrain.service.fleet import Fleet
from predrain.service.log_recall import recall_announcements, recall_curves
from predrain.service.outlook_announcements import Announcements
from predrain.service.scoring.residents import read_residences

LATELY = 1_000
"""Records of a topic that are looked back at when something was said there."""


class Following:
    """For one thread. What this process stored itself comes by too, and changes nothing.

    timelines: the curves of drains, where another process keeps them; None where this one does.
    """

    def __init__(
        self,
        log: Log,
        store: Store,
        fleet: Fleet,
        announcements: Announcements,
        timelines: Timelines | None,
        changes: Changes,
    ) -> None:
        self._log, self._store, self._fleet = log, store, fleet
        self._announcements, self._timelines, self._changes = announcements, timelines, changes
        self._mark = fleet.mark

    def step(self) -> None:
        """Take what is new and tell who listens. Raises what log and store raise; the next step starts over."""
        news = self._store.news(self._mark)
        outlooks = [one for one in news.outlooks if self._fleet.outlook(one.device) != one]
        readings = [one for one in news.readings if self._fleet.reading(one.device) != one]
        kinds = set[ChangeKind]()
        residences, known = read_residences(self._store), self._fleet.residences()
        if residences != known:
            self._fleet.settle(residences)
            kinds |= {ChangeKind.OSDS, ChangeKind.DEVICES, ChangeKind.STATUS}
        if readings or outlooks:
            self._fleet.take(readings, outlooks)
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
            self._changes.tell(*kinds)

    def _announced(self, outlooks: list[Outlook]) -> bool:
        """Whoever scores announces before it stores: an outlook that is worth it stands in the log by now."""
        if not self._announcements.news(sorted(outlooks, key=lambda one: one.as_of)):
            return False
        recall_announcements(self._log, self._announcements, LATELY)
        return True
