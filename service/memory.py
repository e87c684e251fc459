"""What a start recalls from the log: what was announced, and how drains ran."""

from __future__ import annotations

import structlog

from data.log.port import Delivered, Log, Topic
from data.outlook import Outlook
from data.refusal import Refusal
from data.wire import decode
from service.alerts import Announcements
from service.draining.timeline import Timelines, parse

GROUP = "memory"
"""The log's group that looks back. It commits only what it gives up."""
RECALLED = 20_000
"""Records of a topic that are looked back at, at most, and at least half as many; older ones are given up."""


def recall(log: Log, announcements: Announcements, timelines: Timelines) -> None:
    """Fill both from what earlier processes wrote; a record that cannot be read is told and passed over."""
    for record in _newest(log, Topic.OUTLOOKS):
        try:
            announcements.take(announcements.news([decode(record.value, Outlook).body]))
        except Refusal as refusal:
            structlog.get_logger().warning("an announcement cannot be read", why=str(refusal))
    for record in _newest(log, Topic.ACTIONS):
        try:
            timelines.take([parse(record)])
        except Refusal as refusal:
            structlog.get_logger().warning("a drain's sample cannot be read", why=str(refusal))


def _newest(log: Log, topic: Topic) -> tuple[Delivered, ...]:
    """The newest records of a topic, oldest first. A start must not take ever longer, nor the log ever grow."""
    while len(records := log.read(topic, GROUP, RECALLED)) == RECALLED:
        log.commit(topic, GROUP, records[RECALLED // 2 - 1].offset)
    return records
