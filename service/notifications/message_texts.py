"""A message in words, and its links, for mail, the readers of a webhook and all other receivers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the settings import channels, and start without the modules that make messages
    from predrain.service.notifications.cause import AlertCause
    from predrain.service.notifications.notification_log import Message

SHOWN = 20
"""The largest number of points that a message lists."""
HALT_PATH = "/drains?ask=halt"
"""The view in which the page asks whether to halt all drains. To open it changes nothing."""


@dataclass(frozen=True, slots=True)
class PageLinks:
    """The links of a message. `address`: of the page, `https://HOST[:PORT]`; empty if it is not set."""

    address: str

    def link_to(self, cause: AlertCause) -> str | None:
        """Return the link to the view that shows the cause; None if the address is not set."""
        return f"{self.address.rstrip('/')}{cause.path}" if self.address else None

    @property
    def halt(self) -> str | None:
        """The link to the halt dialog of the page; None if the address is not set."""
        return f"{self.address.rstrip('/')}{HALT_PATH}" if self.address else None


def format_message_subject(message: Message, cluster: str) -> str:
    """Return one line with severity, finding and place."""
    mark = "over" if message.over else message.cause.severity.value
    return " ".join(f"[{cluster}] {mark}: {message.cause.title}".split())


def list_point_lines(message: Message) -> list[str]:
    """Return the sentences of the points, new ones first and marked, and how many are left out."""
    first = sorted(message.cause.points, key=lambda point: point.name not in message.news)
    lines = [f"{point.line}{_mark_new_point(message, point.name)}" for point in first[:SHOWN]]
    return [*lines, f"and {len(first) - SHOWN} more"] if len(first) > SHOWN else lines


def format_message_text(message: Message, address: str) -> str:
    """Return the whole message: finding, reason, certainty, predrain's action, a person's action, and the links.

    address: of the page, `https://HOST[:PORT]`; empty if it is not set.
    """
    cause, links = message.cause, PageLinks(address)
    lines = [f"Over: {cause.title}." if message.over else f"{cause.title}.", ""]
    lines += [f"- {line}" for line in list_point_lines(message)]
    if cause.todo:
        lines += ["", f"To do: {cause.todo}"]
    if (link := links.link_to(cause)) is not None:
        lines += ["", link, format_halt_link(address)]
    if not message.over:
        lines += [
            "",
            "This message comes once, again when it gets worse or grows (hourly at most), and when it is over.",
        ]
    return "\n".join(lines) + "\n"


def format_halt_link(address: str) -> str:
    """Return the line of a text that links to the halt dialog. address: of the page, not empty."""
    return f"Halt all drains (the page asks first): {PageLinks(address).halt}"


def cut_text(text: str, limit: int) -> str:
    """Return `text` in at most `limit` characters; a text that was cut ends with an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}\N{HORIZONTAL ELLIPSIS}"


def _mark_new_point(message: Message, name: str) -> str:
    """Return the mark of a new point. It is empty if all points are new, since a mark would then say nothing."""
    return " (new)" if name in message.news and len(message.news) < len(message.cause.points) else ""
