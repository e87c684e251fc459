"""When a change of outlook is worth a person's attention: when its severity changes, and when a probability doubles."""

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
"""A doubled probability is told from here on."""


class Why(StrEnum):
    """Why an outlook is announced."""

    WORSE = "worse"
    DOUBLED = "doubled"
    BETTER = "better"


@dataclass(frozen=True, slots=True)
class Alert:
    """An outlook that was announced."""

    why: Why
    outlook: Outlook


def why_announce(announced: Outlook | None, outlook: Outlook) -> Why | None:
    """Whether `outlook` is news after the last one that was `announced` for its device, and why."""
    before = GRAVITY[announced.severity] if announced else 0
    now = GRAVITY[outlook.severity]
    if now != before:
        return Why.WORSE if now > before else Why.BETTER
    p, p_before = outlook.p_fail_30d, announced.p_fail_30d if announced else None
    if now and p is not None and p_before is not None and p >= NOTABLE_P and p >= 2 * p_before:
        return Why.DOUBLED
    return None


def _follows(outlook: Outlook, announced: Outlook) -> bool:
    """Whether `outlook` may be news after the one that was announced: it is of a later reading, or of the same one and
    graver, since a reading of before that came late has changed the judgement.
    """
    if outlook.as_of != announced.as_of:
        return outlook.as_of > announced.as_of
    return GRAVITY[outlook.severity] > GRAVITY[announced.severity]


def tell_alert(alert: Alert) -> ClusterEvent:
    """The event that an announcement is."""
    return tell_outlook(ClusterEventKind(f"outlook_{alert.why.value}"), alert.outlook)


class Announcements:
    """The last announcement of each device, and the newest alerts. Thread-safe."""

    def __init__(self, kept: int = 1000) -> None:
        self._last: dict[DeviceId, Outlook] = {}
        self._alerts: deque[Alert] = deque(maxlen=kept)
        self._lock = threading.Lock()

    def news(self, outlooks: Iterable[Outlook]) -> tuple[Alert, ...]:
        """Those of `outlooks` (in order of time) that should be announced; only `take` remembers them."""
        with self._lock:
            last = dict(self._last)
        found = []
        for outlook in outlooks:
            announced = last.get(outlook.device)
            if announced is not None and not _follows(outlook, announced):
                continue
            why = why_announce(announced, outlook)
            if why is not None:
                found.append(Alert(why, outlook))
                last[outlook.device] = outlook
        return tuple(found)

    def take(self, alerts: Iterable[Alert]) -> None:
        """Remember announcements; one that is known already (a replay) is ignored."""
        with self._lock:
            for alert in alerts:
                last = self._last.get(alert.outlook.device)
                if last is None or _follows(alert.outlook, last):
                    self._last[alert.outlook.device] = alert.outlook
                    self._alerts.append(alert)

    def last(self) -> Mapping[DeviceId, Outlook]:
        """Each device's outlook as it was last announced."""
        with self._lock:
            return dict(self._last)

    def newest(self) -> tuple[Alert, ...]:
        """Newest first."""
        with self._lock:
            return tuple(reversed(self._alerts))
