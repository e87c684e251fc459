"""A message as requests of Opsgenie's Alert API: create, acknowledge and close, by alias.

Fields and limits: https://docs.opsgenie.com/docs/alert-api (message 130 characters, alias 512, description 15,000,
entity 512, source 100, 20 tags of 50 characters, note 25,000).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import quote

from predrain.service.notifications.alert_identity import list_ended_severities, name_alert
from predrain.service.notifications.cause import Severity
from predrain.service.notifications.message_texts import cut_text, format_message_subject, format_message_text
from predrain.service.notifications.notification_log import Message
from predrain.service.notifications.receiver_channel import MessagePlace, ReceiverRequest

MESSAGE_CHARACTERS, ALIAS_CHARACTERS, DESCRIPTION_CHARACTERS, ENTITY_CHARACTERS = 130, 512, 15_000, 512
TAG_CHARACTERS, USER_CHARACTERS = 50, 100
PRIORITIES = {Severity.URGENT: "P1", Severity.NOTICE: "P3"}
SOURCE = "predrain"


@dataclass(frozen=True, slots=True)
class OpsgenieRenderer:
    """Renders requests. `team`: the team that the alert is for; empty: the one of the integration."""

    team: str = ""
    takes_acknowledgements: bool = True
    repeat_after: timedelta | None = None

    def render(self, message: Message, place: MessagePlace) -> tuple[ReceiverRequest, ...]:
        """Return the request of the cause's alert, and those that close its alerts of other severities."""
        if message.acknowledged_by is not None:
            body = {"source": SOURCE, "user": cut_text(message.acknowledged_by, USER_CHARACTERS)}
            return (_act_on_alert(message, place, message.cause.severity, "acknowledge", body),)
        closed = [
            _act_on_alert(message, place, one, "close", {"source": SOURCE})
            for one in list_ended_severities(message)
        ]
        return tuple(closed) if message.over else (self._create(message, place), *closed)

    def _create(self, message: Message, place: MessagePlace) -> ReceiverRequest:
        cause = message.cause
        tags = ["predrain", cause.severity.value, place.cluster, cause.kind.value if cause.kind else "other"]
        body: dict[str, object] = {
            "message": cut_text(format_message_subject(message, place.cluster), MESSAGE_CHARACTERS),
            "alias": name_alert(message, place.cluster, cause.severity, ALIAS_CHARACTERS),
            "description": cut_text(
                format_message_text(message, place.links.address), DESCRIPTION_CHARACTERS
            ),
            "tags": [cut_text(one, TAG_CHARACTERS) for one in tags if one],
            "entity": cut_text(cause.host or place.cluster, ENTITY_CHARACTERS),
            "source": SOURCE,
            "priority": PRIORITIES[cause.severity],
        }
        if self.team:
            body["responders"] = [{"type": "team", "name": self.team}]
        return ReceiverRequest(body, "/v2/alerts")


def _act_on_alert(
    message: Message, place: MessagePlace, severity: Severity, action: str, body: dict[str, str]
) -> ReceiverRequest:
    alias = quote(name_alert(message, place.cluster, severity, ALIAS_CHARACTERS), safe="")
    return ReceiverRequest(body, f"/v2/alerts/{alias}/{action}?identifierType=alias")
