"""A message for a Workflows webhook of Microsoft Teams, as an Adaptive Card of version 1.4.

Schema: https://adaptivecards.io/explorer/ (AdaptiveCard, TextBlock, RichTextBlock, TextRun, Action.OpenUrl).
Envelope and size: https://learn.microsoft.com/connectors/teams/ (a message of at most about 28 KB).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta

from predrain.service.notifications.cause import Severity
from predrain.service.notifications.message_texts import cut_text, format_message_subject, list_point_lines
from predrain.service.notifications.notification_log import Message
from predrain.service.notifications.receiver_channel import MessagePlace, ReceiverRequest

CARD_BYTES = 20_000
"""Well below the 28 KB that Teams states: it counts its own markup, too."""
COLOURS = {Severity.URGENT: "Attention", Severity.NOTICE: "Warning"}
TITLE_CHARACTERS, LINE_CHARACTERS, TODO_CHARACTERS = 300, 600, 2000


@dataclass(frozen=True, slots=True)
class TeamsRenderer:
    """Renders one card. Sentences are text runs, in which Markdown means nothing."""

    takes_acknowledgements: bool = False
    repeat_after: timedelta | None = None

    def render(self, message: Message, place: MessagePlace) -> tuple[ReceiverRequest, ...]:
        """Return one request. Points that would make the card too large are left out and counted."""
        lines = [cut_text(line, LINE_CHARACTERS) for line in list_point_lines(message)]
        shown = len(lines)
        body = _build_body(message, place, lines)
        while shown and len(json.dumps(body)) > CARD_BYTES:
            shown -= 1
            left = f"and {len(lines) - shown} more lines on the page"
            body = _build_body(message, place, [*lines[:shown], left])
        return (ReceiverRequest(body),)


def _build_body(message: Message, place: MessagePlace, lines: list[str]) -> dict[str, object]:
    colour = "Good" if message.over else COLOURS[message.cause.severity]
    title = cut_text(format_message_subject(message, place.cluster), TITLE_CHARACTERS)
    rows = [_text_run(title, size="Large", weight="Bolder", color=colour)]
    rows += [_text_run(f"\N{BULLET} {line}") for line in lines]
    if message.cause.todo:
        rows.append(_text_run(cut_text(f"To do: {message.cause.todo}", TODO_CHARACTERS), weight="Bolder"))
    links = [(place.links.link_to(message.cause), "Open in predrain"), (place.links.halt, "Halt all drains")]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": rows,
        "actions": [
            {"type": "Action.OpenUrl", "title": name, "url": link} for link, name in links if link is not None
        ],
        "msteams": {"width": "Full"},
    }
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    return {"type": "message", "attachments": [attachment]}


def _text_run(text: str, **style: str) -> dict[str, object]:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **style}]}
