"""The port of the ways out: mail, webhook."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from predrain.data.refusal import Refusal
from predrain.service.notifications.cause import Severity
from predrain.service.notifications.notification_log import Message


class NotTold(Refusal):
    """A message could not be delivered now; it is tried again. The sentence says what to look at."""


class ToldInPart(Refusal):
    """Some of those whom a message goes to will never get it, and the others have it: it is not tried again."""


@dataclass(slots=True)
class Deliveries:
    """What a channel was given since the start of the process."""

    sent: int = 0
    failed: int = 0
    last: datetime | None = None
    """When it took the last message."""


class NotificationChannel(Protocol):
    """One way out. One with another name is told everything anew."""

    @property
    def name(self) -> str:
        """By which the ledger knows it."""
        ...

    @property
    def least(self) -> Severity:
        """What is less severe is not told here."""
        ...

    def deliver(self, message: Message) -> None:
        """Hand `message` over, within a deadline. Raises NotTold; then it may have been handed over all the same.
        Raises ToldInPart."""
        ...
