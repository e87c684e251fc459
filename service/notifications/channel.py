"""The port of notification channels, such as mail and webhook."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from predrain.data.refusal import Refusal

if TYPE_CHECKING:  # the settings import channels, and start without the modules that make messages
    from predrain.service.notifications.cause import Severity
    from predrain.service.notifications.notification_log import Message


class NotDelivered(Refusal):
    """A message could not be delivered now; it is tried again. The sentence says what to check."""

    def __init__(self, sentence: str, retry_after: timedelta | None = None) -> None:
        """retry_after: the pause that the receiver asked for; None: it asked for none."""
        super().__init__(sentence)
        self.retry_after = retry_after


class PartlyDelivered(Refusal):
    """Some recipients will never get the message, and the others have it: it is not tried again."""


@dataclass(slots=True)
class Deliveries:
    """The deliveries of a channel since the start of the process."""

    sent: int = 0
    failed: int = 0
    last: datetime | None = None
    """The time at which the channel accepted the last message."""


class NotificationChannel(Protocol):
    """One notification channel. Under another name it counts as new, and all present causes are sent again."""

    @property
    def name(self) -> str:
        """The name under which the notification log knows the channel."""
        ...

    @property
    def min_severity(self) -> Severity:
        """The lowest severity that this channel sends."""
        ...

    def deliver(self, message: Message) -> None:
        """Deliver `message` within a deadline.

        Raises NotDelivered; the message may have been delivered nevertheless. Raises PartlyDelivered.
        """
        ...


class CheckableChannel(NotificationChannel, Protocol):
    """A channel that `predrain doctor` can check without sending a message."""

    @property
    def reached(self) -> str:
        """The result of a successful `run_preflight_check`, as the end of a sentence: `can be reached`."""
        ...

    def run_preflight_check(self) -> None:
        """Do all that precedes a message, without sending one. Raises NotDelivered."""
        ...


@runtime_checkable
class AlertKeepingChannel(Protocol):
    """A channel whose receiver keeps an open alert for each cause, until it hears that the cause is over."""

    @property
    def takes_acknowledgements(self) -> bool:
        """True if the receiver wants to hear that a person has silenced a cause."""
        ...

    @property
    def repeat_after(self) -> timedelta | None:
        """The time after which the receiver must hear again of a cause that stands; None: it remembers."""
        ...


def keeps_alerts(channel: object) -> bool:
    """Return whether the receiver of a channel keeps an alert open until it hears of the end."""
    return isinstance(channel, AlertKeepingChannel) and (
        channel.takes_acknowledgements or channel.repeat_after is not None
    )
