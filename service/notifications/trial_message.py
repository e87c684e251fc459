"""A test message, which proves that a channel delivers."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from predrain.service.notifications.cause import AlertCause, CausePart
from predrain.service.notifications.channel import NotificationChannel, keeps_alerts
from predrain.service.notifications.notification_log import Message


def send_test_message(channel: NotificationChannel, now: datetime, why: str) -> None:
    """Deliver a test message, and its end to a receiver that would keep an alert open. why: the occasion.

    Raises NotDelivered, PartlyDelivered.
    """
    point = CausePart("test", f"{why}; nothing is wrong.")
    cause = AlertCause("test", "A test of predrain's messages", (point,), "Nothing is to be done.", "/alerts")
    message = Message(f"test-{now:%Y%m%dT%H%M%S}", now, cause, frozenset({point.name}))
    channel.deliver(message)
    if keeps_alerts(channel):
        channel.deliver(replace(message, id=f"{message.id}-over", news=frozenset(), over=True))
