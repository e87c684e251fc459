"""What a process recalls from the log: what was announced, and how drains ran."""

from __future__ import annotations

import structlog

from predrain.data.log.port import Log, Topic
from predrain.data.outlook import Outlook
from predrain.data.refusal import Refusal
from predrain.data.store.port import Store
from predrain.data.wire import decode
from predrain.service.drains.timeline import Timelines, parse
from predrain.service.outlook_announcements import Announcements, tell_alert
from predrain.service.storage.identity import MARK_KEY

GROUP = "memory"
"""The group by which earlier releases looked back: logs that they wrote still know it."""
RECALLED = 20_000
"""Records of a topic that are looked back at: a start must not take ever longer."""


def recall(log: Log, announcements: Announcements, timelines: Timelines) -> None:
    """Fill both from what earlier processes wrote."""
    recall_announcements(log, announcements, RECALLED)
    recall_curves(log, timelines, RECALLED)


def recall_announcements(log: Log, announcements: Announcements, limit: int = RECALLED) -> None:
    """What was announced by whichever process, so that nothing is announced again.

    A record that cannot be read is told and passed over.
    """
    for record in log.recent(Topic.OUTLOOKS, limit):
        if record.key == MARK_KEY:
            continue
        try:
            announcements.take(announcements.news([decode(record.value, Outlook).body]))
        except Refusal as refusal:
            structlog.get_logger().warning("an announcement cannot be read", why=str(refusal))


def keep_events(store: Store, announcements: Announcements) -> None:
    """Keep the events of what was announced before the store kept such events. Those that it has stay as they are.

    Raises what the store raises.
    """
    store.add_cluster_events([tell_alert(alert) for alert in reversed(announcements.newest())])


def recall_curves(log: Log, timelines: Timelines, limit: int) -> None:
    """How drains ran; a record that cannot be read is told and passed over."""
    for record in log.recent(Topic.ACTIONS, limit):
        try:
            timelines.take([parse(record)])
        except Refusal as refusal:
            structlog.get_logger().warning("a drain's sample cannot be read", why=str(refusal))
