"""Notifications by HTTP, signed.

The signature follows Stripe's scheme: `X-Predrain-Signature: t=SECONDS,v1=HEX`, HEX the HMAC-SHA-256 of
`SECONDS.BODY` under the shared secret. A receiver checks it and that SECONDS is recent, and ignores a known `id`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from predrain.service.notifications.cause import Severity
from predrain.service.notifications.http_sender import HttpSender
from predrain.service.notifications.message_texts import PageLinks, format_message_text
from predrain.service.notifications.notification_log import Message


@dataclass(frozen=True, slots=True)
class WebhookChannel:
    """One POST per message. `allow_private_address`: addresses outside the public network are allowed too."""

    url: str = field(repr=False)
    secret: bytes = field(repr=False)
    cluster: str
    address: str
    now: Callable[[], datetime]
    min_severity: Severity = Severity.NOTICE
    allow_private_address: bool = False
    authority: str | None = None
    """PEM file of the authority of the server's certificate; None: the system's authorities."""
    name: str = "webhook"

    @property
    def reached(self) -> str:
        """A text without the address, since a receiver's address may be a secret."""
        return "can be reached"

    def run_preflight_check(self) -> None:
        """Connect, with the TLS handshake for https, without any request. Raises NotDelivered."""
        self._sender.run_preflight_check()

    def deliver(self, message: Message) -> None:
        """Post one message. Raises NotDelivered."""
        body = json.dumps(self._document(message), separators=(",", ":")).encode()
        self._sender.post(body, self._headers(message, body))

    @property
    def _sender(self) -> HttpSender:
        return HttpSender(
            "the webhook", "[webhook]", self.url, self.now, self.allow_private_address, self.authority
        )

    def _document(self, message: Message) -> dict[str, object]:
        cause, links = message.cause, PageLinks(self.address)
        return {
            "id": message.id,
            "at": message.at.isoformat(),
            "cluster": self.cluster,
            "state": "over" if message.over else "standing",
            "severity": cause.severity.value,
            "cause": cause.key,
            "title": cause.title,
            "points": [
                {
                    "name": one.name, "sentence": one.line, "severity": one.severity.value,
                    "new": one.name in message.news,
                }
                for one in cause.points
            ],
            "action": cause.todo,
            "host": cause.host,
            "model": cause.model,
            "url": links.link_to(cause),
            "halt_url": links.halt,
            "text": format_message_text(message, self.address),
        }  # fmt: skip

    def _headers(self, message: Message, body: bytes) -> dict[str, str]:
        seconds = str(int(self.now().timestamp()))
        mark = hmac.new(self.secret, seconds.encode() + b"." + body, hashlib.sha256).hexdigest()
        return {"X-Predrain-Id": message.id, "X-Predrain-Signature": f"t={seconds},v1={mark}"}
