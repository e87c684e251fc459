"""Recall past announcements and the curves of drains from the log."""

from __future__ import annotations

import structlog

from predrain.data.log.log_port import Log, Topic
from predrain.data.outlook import Outlook
from predrain.data.refusal import Refusal
from predrain.data.store.store_port import Store
from predrain.data.wire import decode_envelope
from predrain.service.fleet.drain_timeline import Timelines, decode_drain_sample
from predrain.service.storage.store_identity import MARK_KEY
from predrain.service.streams.outlook_announcements import Announcements, tell_alert

GROUP = "memory"
"""The group by which earlier releases read back; their logs still have it."""
RECALLED = 20_000
"""Records of a topic that are read back, bounded so that a start does not take ever longer."""


def recall_from_log(log: Log, announcements: Announcements, timelines: Timelines) -> None:
    """Fill both from the records of earlier processes."""
    recall_announcements(log, announcements, RECALLED)
    recall_curves(log, timelines, RECALLED)


def recall_announcements(log: Log, announcements: Announcements, limit: int = RECALLED) -> None:
    """Remember the announcements of all processes, so that none is repeated.

    A record that cannot be read is logged and skipped.
    """
    for record in log.read_newest(Topic.OUTLOOKS, limit):
        if record.key == MARK_KEY:
            continue
        try:
            announcements.remember_alerts(
                announcements.select_news([decode_envelope(record.value, Outlook).body])
            )
        except Refusal as refusal:
            structlog.get_logger().warning("an announcement cannot be read", reason=str(refusal))


def keep_events(store: Store, announcements: Announcements) -> None:
    """Store the events of announcements that were made before the store kept such events. Existing events stay as
    they are.

    Raises what the store raises.
    """
    store.add_cluster_events([tell_alert(alert) for alert in reversed(announcements.list_newest_alerts())])


def recall_curves(log: Log, timelines: Timelines, limit: int) -> None:
    """Fill in the curves of past drains. A record that cannot be read is logged and skipped."""
    for record in log.read_newest(Topic.ACTIONS, limit):
        try:
            timelines.add_samples([decode_drain_sample(record)])
        except Refusal as refusal:
            structlog.get_logger().warning("a drain's sample cannot be read", reason=str(refusal))
