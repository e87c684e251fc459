"""A message as an alert of Alertmanager: POST /api/v2/alerts.

Schema: https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml (postableAlerts). A sender repeats an
alert while it stands (https://prometheus.io/docs/alerting/latest/clients/); its times are Alertmanager's own, so that
clocks may differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from predrain.service.notifications.cause import Severity
from predrain.service.notifications.message_texts import format_message_text
from predrain.service.notifications.notification_log import Message
from predrain.service.notifications.receiver_channel import MessagePlace, ReceiverRequest

PATH = "/api/v2/alerts"
SEVERITIES = {Severity.URGENT: "critical", Severity.NOTICE: "warning"}
"""The label as in the rules for Prometheus that predrain ships."""


@dataclass(frozen=True, slots=True)
class AlertmanagerRenderer:
    """Renders one alert a cause. A silenced cause is not repeated, so Alertmanager drops it after a while."""

    takes_acknowledgements: bool = False
    repeat_after: timedelta | None = timedelta(minutes=1)

    def render(self, message: Message, place: MessagePlace) -> tuple[ReceiverRequest, ...]:
        """Return one request."""
        cause, link, halt = message.cause, place.links.link_to(message.cause), place.links.halt
        labels = {
            "alertname": "PredrainCause",
            "cluster": place.cluster,
            "severity": SEVERITIES[cause.severity],
            "cause": cause.key,
            "host": cause.host,
            "model": cause.model,
        }
        alert: dict[str, object] = {
            "labels": {name: value for name, value in labels.items() if value},
            "annotations": {
                "summary": cause.title,
                "description": format_message_text(message, place.links.address),
                **({"halt_url": halt} if halt is not None else {}),
            },
        }
        if link is not None:
            alert["generatorURL"] = link
        if message.over:
            alert["endsAt"] = message.at.isoformat()
        return (ReceiverRequest([alert], PATH),)
