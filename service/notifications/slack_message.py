"""A message for an incoming webhook of Slack, in Block Kit.

Limits: https://docs.slack.dev/reference/block-kit/blocks (50 blocks a message),
https://docs.slack.dev/reference/block-kit/blocks/header-block (150 characters),
https://docs.slack.dev/reference/block-kit/blocks/section-block (3,000 characters of a text).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from predrain.service.notifications.message_texts import cut_text, format_message_subject, list_point_lines
from predrain.service.notifications.notification_log import Message
from predrain.service.notifications.receiver_channel import MessagePlace, ReceiverRequest

HEADER_CHARACTERS = 150
TEXT_CHARACTERS = 3000
LINE_CHARACTERS = 600
"""The most that one point takes; its whole sentence is on the page."""


@dataclass(frozen=True, slots=True)
class SlackRenderer:
    """Renders one post in a channel of Slack.

    Sentences are plain text, in which no name of a disk mentions a person or is taken for a format. Only the links
    are Slack's markup; they are no buttons, for which Slack wants an app that answers.
    """

    takes_acknowledgements: bool = False
    repeat_after: timedelta | None = None

    def render(self, message: Message, place: MessagePlace) -> tuple[ReceiverRequest, ...]:
        """Return one request. Its number of blocks is bounded by the number of points that a message lists."""
        subject = format_message_subject(message, place.cluster)
        blocks: list[dict[str, object]] = [
            {"type": "header", "text": _plain_text(cut_text(subject, HEADER_CHARACTERS))}
        ]
        lines = [f"\N{BULLET} {cut_text(line, LINE_CHARACTERS)}" for line in list_point_lines(message)]
        blocks += [_section(text) for text in _fill_texts(lines)]
        if message.cause.todo:
            blocks.append(_section(cut_text(f"To do: {message.cause.todo}", TEXT_CHARACTERS)))
        links = [
            (place.links.link_to(message.cause), "Open in predrain"),
            (place.links.halt, "Halt all drains"),
        ]
        shown = [f"<{_escape(link)}|{name}>" for link, name in links if link is not None]
        if shown:
            markup = {"type": "mrkdwn", "text": " \N{MIDDLE DOT} ".join(shown), "verbatim": True}
            blocks.append({"type": "section", "text": markup})
        fallback = _escape(cut_text(subject, TEXT_CHARACTERS))
        return (ReceiverRequest({"text": fallback, "blocks": blocks}),)


def _fill_texts(lines: list[str]) -> list[str]:
    """Return the lines in as few texts as Slack's limit allows."""
    texts: list[str] = []
    for line in lines:
        if texts and len(texts[-1]) + 1 + len(line) <= TEXT_CHARACTERS:
            texts[-1] += f"\n{line}"
        else:
            texts.append(line)
    return texts


def _section(text: str) -> dict[str, object]:
    return {"type": "section", "text": _plain_text(text)}


def _plain_text(text: str) -> dict[str, object]:
    return {"type": "plain_text", "text": text, "emoji": False}


def _escape(text: str) -> str:
    """Return `text` without Slack's markup (https://docs.slack.dev/messaging/formatting-message-text)."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
