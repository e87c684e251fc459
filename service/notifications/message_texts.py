"""A message in words, for mail and for the readers of a webhook."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the settings import channels, and start without the modules that make messages
    from predrain.service.notifications.notification_log import Message

SHOWN = 20
"""The largest number of points that a message lists."""


def format_message_subject(message: Message, cluster: str) -> str:
    """Return one line with severity, finding and place."""
    mark = "over" if message.over else message.cause.severity.value
    return " ".join(f"[{cluster}] {mark}: {message.cause.title}".split())


def format_message_text(message: Message, address: str) -> str:
    """Return the whole message: finding, reason, certainty, predrain's action, a person's action, and the link.

    address: of the page, `https://HOST[:PORT]`; empty if it is not set.
    """
    cause = message.cause
    lines = [f"Over: {cause.title}." if message.over else f"{cause.title}.", ""]
    first = sorted(cause.points, key=lambda point: point.name not in message.news)
    lines += [f"- {point.line}{_mark_new_point(message, point.name)}" for point in first[:SHOWN]]
    if len(first) > SHOWN:
        lines.append(f"- and {len(first) - SHOWN} more")
    if cause.todo:
        lines += ["", f"To do: {cause.todo}"]
    if address:
        lines += ["", f"{address.rstrip('/')}{cause.path}"]
    if not message.over:
        lines += [
            "",
            "This message comes once, again when it gets worse or grows (hourly at most), and when it is over.",
        ]
    return "\n".join(lines) + "\n"


def _mark_new_point(message: Message, name: str) -> str:
    """Return the mark of a new point. It is empty if all points are new, since a mark would then say nothing."""
    return " (new)" if name in message.news and len(message.news) < len(message.cause.points) else ""
