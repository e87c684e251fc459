"""A receiver of other people's make, such as Slack: one renderer of its format over the one sender."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from predrain.service.notifications.cause import Severity
from predrain.service.notifications.http_sender import HttpSender
from predrain.service.notifications.message_texts import PageLinks
from predrain.service.notifications.notification_log import Message


@dataclass(frozen=True, slots=True)
class MessagePlace:
    """The sender of a message: the name of the cluster, and the links to its page."""

    cluster: str
    links: PageLinks


@dataclass(frozen=True, slots=True)
class ReceiverRequest:
    """One POST: a body of JSON, and the path behind the receiver's address."""

    body: object
    path: str = ""


class MessageRenderer(Protocol):
    """The format of one kind of receiver. It keeps to the receiver's limits, so that no text is too long."""

    @property
    def takes_acknowledgements(self) -> bool:
        """True if the receiver wants to hear that a person has silenced a cause."""
        ...

    @property
    def repeat_after(self) -> timedelta | None:
        """The time after which the receiver must hear again of a cause that stands; None: it remembers."""
        ...

    def render(self, message: Message, place: MessagePlace) -> tuple[ReceiverRequest, ...]:
        """Return the requests that deliver `message`, in order. To send them twice does no harm."""
        ...


@dataclass(frozen=True, slots=True)
class ReceiverChannel:
    """The channel to one receiver. `headers` may hold its key."""

    name: str
    sender: HttpSender
    renderer: MessageRenderer
    place: MessagePlace
    min_severity: Severity = Severity.NOTICE
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def reached(self) -> str:
        """A text without the address, since a receiver's address may be a secret."""
        return "can be reached"

    @property
    def takes_acknowledgements(self) -> bool:
        """True if the receiver wants to hear that a person has silenced a cause."""
        return self.renderer.takes_acknowledgements

    @property
    def repeat_after(self) -> timedelta | None:
        """The time after which the receiver must hear again of a cause that stands; None: it remembers."""
        return self.renderer.repeat_after

    def run_preflight_check(self) -> None:
        """Connect, with the TLS handshake for https, without any request. Raises NotDelivered."""
        self.sender.run_preflight_check()

    def deliver(self, message: Message) -> None:
        """Send the requests of one message. Raises NotDelivered; then all of them are sent again."""
        for request in self.renderer.render(message, self.place):
            body = json.dumps(request.body, separators=(",", ":")).encode()
            self.sender.post(body, self.headers, request.path)
