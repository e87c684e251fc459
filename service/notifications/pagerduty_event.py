"""A message as events of PagerDuty's Events API v2: trigger, acknowledge and resolve.

Fields and limits: https://developer.pagerduty.com/docs/send-alert-event (summary 1,024 characters, dedup_key 255,
512 KB an event), severities critical, error, warning and info.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from predrain.service.notifications.alert_identity import list_ended_severities, name_alert
from predrain.service.notifications.cause import Severity
from predrain.service.notifications.message_texts import cut_text, format_message_subject, list_point_lines
from predrain.service.notifications.notification_log import Message
from predrain.service.notifications.receiver_channel import MessagePlace, ReceiverRequest

SUMMARY_CHARACTERS, KEY_CHARACTERS, LINE_CHARACTERS, TODO_CHARACTERS = 1024, 255, 1000, 4000
SEVERITIES = {Severity.URGENT: "critical", Severity.NOTICE: "warning"}


@dataclass(frozen=True, slots=True)
class PagerDutyRenderer:
    """Renders events. `key`: the integration key of the service at PagerDuty."""

    key: str = field(repr=False)
    takes_acknowledgements: bool = True
    repeat_after: timedelta | None = None

    def render(self, message: Message, place: MessagePlace) -> tuple[ReceiverRequest, ...]:
        """Return the event of the cause's alert, and those that end its alerts of other severities."""
        severity = message.cause.severity
        if message.acknowledged_by is not None:
            return (ReceiverRequest(self._event(message, place, severity, "acknowledge")),)
        ended = [self._event(message, place, one, "resolve") for one in list_ended_severities(message)]
        if not message.over:
            trigger = self._event(message, place, severity, "trigger") | self._details(message, place)
            ended.insert(0, trigger)
        return tuple(ReceiverRequest(event) for event in ended)

    def _event(
        self, message: Message, place: MessagePlace, severity: Severity, action: str
    ) -> dict[str, object]:
        return {
            "routing_key": self.key,
            "event_action": action,
            "dedup_key": name_alert(message, place.cluster, severity, KEY_CHARACTERS),
        }

    def _details(self, message: Message, place: MessagePlace) -> dict[str, object]:
        cause, link, halt = message.cause, place.links.link_to(message.cause), place.links.halt
        links = [(link, "Open in predrain"), (halt, "Halt all drains")]
        found: dict[str, object] = {
            "client": "predrain",
            "payload": {
                "summary": cut_text(format_message_subject(message, place.cluster), SUMMARY_CHARACTERS),
                "source": cut_text(cause.host or place.cluster or "predrain", KEY_CHARACTERS),
                "severity": SEVERITIES[cause.severity],
                "timestamp": message.at.isoformat(),
                "group": cut_text(place.cluster, KEY_CHARACTERS),
                "class": cause.kind.value if cause.kind else "other",
                "custom_details": {
                    "points": [cut_text(line, LINE_CHARACTERS) for line in list_point_lines(message)],
                    "to_do": cut_text(cause.todo, TODO_CHARACTERS),
                },
            },
        }
        if link is not None:
            found["client_url"] = link
            found["links"] = [{"href": href, "text": text} for href, text in links]
        return found
