"""The rules for announcing a change of outlook: when its severity changes, and when its probability doubles."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from predrain.data.cluster_event import ClusterEvent, ClusterEventKind, tell_outlook
from predrain.data.ids import DeviceId
from predrain.data.outlook import GRAVITY, Outlook

NOTABLE_P = 0.05
"""A doubled probability is announced from this value on."""


class AnnouncementReason(StrEnum):
    """The reason for which an outlook is announced."""

    WORSE = "worse"
    DOUBLED = "doubled"
    BETTER = "better"


@dataclass(frozen=True, slots=True)
class Alert:
    """An outlook that was announced."""

    why: AnnouncementReason
    outlook: Outlook


def why_announce(announced: Outlook | None, outlook: Outlook) -> AnnouncementReason | None:
    """Return the reason for which `outlook` is news after the one last `announced` for its device, or None."""
    before = GRAVITY[announced.severity] if announced else 0
    now = GRAVITY[outlook.severity]
    if now != before:
        return AnnouncementReason.WORSE if now > before else AnnouncementReason.BETTER
    p, p_before = outlook.p_fail_30d, announced.p_fail_30d if announced else None
    if now and p is not None and p_before is not None and p >= NOTABLE_P and p >= 2 * p_before:
        return AnnouncementReason.DOUBLED
    return None


def can_follow_announcement(outlook: Outlook, announced: Outlook) -> bool:
    """Return whether `outlook` may be news after the announced one: it is of a later reading, or of the same one
    and graver.

    An outlook of the same reading is graver if an earlier reading came late and changed the judgement.
    """
    if outlook.as_of != announced.as_of:
        return outlook.as_of > announced.as_of
    return GRAVITY[outlook.severity] > GRAVITY[announced.severity]


def tell_alert(alert: Alert) -> ClusterEvent:
    """Return the cluster event of an announcement."""
    return tell_outlook(ClusterEventKind(f"outlook_{alert.why.value}"), alert.outlook)


class Announcements:
    """The last announcement of each device, and the newest alerts. Thread-safe."""

    def __init__(self, kept: int = 1000) -> None:
        self._last: dict[DeviceId, Outlook] = {}
        self._alerts: deque[Alert] = deque(maxlen=kept)
        self._lock = threading.Lock()

    def select_news(self, outlooks: Iterable[Outlook]) -> tuple[Alert, ...]:
        """Return those of `outlooks` (in order of time) that should be announced; only `remember_alerts`
        remembers them.
        """
        with self._lock:
            last = dict(self._last)
        found = []
        for outlook in outlooks:
            announced = last.get(outlook.device)
            if announced is not None and not can_follow_announcement(outlook, announced):
                continue
            why = why_announce(announced, outlook)
            if why is not None:
                found.append(Alert(why, outlook))
                last[outlook.device] = outlook
        return tuple(found)

    def remember_alerts(self, alerts: Iterable[Alert]) -> None:
        """Remember announcements; a known one (a replay) is ignored."""
        with self._lock:
            for alert in alerts:
                last = self._last.get(alert.outlook.device)
                if last is None or can_follow_announcement(alert.outlook, last):
                    self._last[alert.outlook.device] = alert.outlook
                    self._alerts.append(alert)

    def remember_announced(self, outlooks: Iterable[Outlook]) -> None:
        """Remember the last announcements of devices that were made before the newest alerts. An outlook before the
        remembered one of its device is ignored.
        """
        with self._lock:
            for outlook in outlooks:
                last = self._last.get(outlook.device)
                if last is None or can_follow_announcement(outlook, last):
                    self._last[outlook.device] = outlook

    def list_announced_outlooks(self) -> Mapping[DeviceId, Outlook]:
        """Return each device's outlook as it was last announced."""
        with self._lock:
            return dict(self._last)

    def list_newest_alerts(self) -> tuple[Alert, ...]:
        """Return the remembered alerts, newest first."""
        with self._lock:
            return tuple(reversed(self._alerts))
