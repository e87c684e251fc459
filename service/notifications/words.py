"""A message in words, for mail and for whoever reads a webhook."""

from __future__ import annotations

from predrain.service.notifications.notification_log import Message

SHOWN = 20
"""Points of a message; more of them say less."""


def subject(message: Message, cluster: str) -> str:
    """One line: how severe, what, where."""
    mark = "over" if message.over else message.cause.severity.value
    return " ".join(f"[{cluster}] {mark}: {message.cause.title}".split())


def text(message: Message, address: str) -> str:
    """The whole message: what, why, how sure, what predrain does about it, what to do, where to look.

    address: of the page, `https://HOST[:PORT]`; empty when nobody said where people find it.
    """
    cause = message.cause
    lines = [f"Over: {cause.title}." if message.over else f"{cause.title}.", ""]
    first = sorted(cause.points, key=lambda point: point.name not in message.news)
    lines += [f"- {point.line}{_new(message, point.name)}" for point in first[:SHOWN]]
    if len(first) > SHOWN:
        lines.append(f"- and {len(first) - SHOWN} more")
    if cause.todo:
        lines += ["", f"To do: {cause.todo}"]
    if address:
        lines += ["", f"{address.rstrip('/')}{cause.path}"]
    if not message.over:
        lines += [
            "",
            "This is told once, again when it gets worse or grows (hourly at most), and when it is over.",
        ]
    return "\n".join(lines) + "\n"


def _new(message: Message, name: str) -> str:
    """Told apart only where some are new and some are not."""
    return " (new)" if name in message.news and len(message.news) < len(message.cause.points) else ""
