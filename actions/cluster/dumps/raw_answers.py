"""The commands that read a cluster, and their raw answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from predrain.actions.cluster.channel import Argument, CommandChannel


@dataclass(frozen=True, slots=True)
class ReadCommand:
    """One command that only reads, as JSON. `name` is its name in a recording."""

    name: str
    to: str
    prefix: str
    arguments: Mapping[str, Argument]
    needed: bool = True
    """True if there is no view without its answer. The data of other commands is then shown as unknown."""
    every: timedelta = timedelta(0)
    """The age of the last answer at which the command is sent again; 0: at each poll."""
    seconds: float | None = None
    """The time limit of its answer, if that is not the channel's usual one."""


@dataclass(frozen=True, slots=True)
class RawAnswers:
    """Raw answers by the name of the read command, and when they were requested (UTC). A command that failed is
    absent.
    """

    at: datetime
    raw: Mapping[str, bytes]


def run_read_commands(
    channel: CommandChannel,
    questions: Iterable[ReadCommand],
    at: datetime,
    told: Callable[[ReadCommand], None] = lambda _: None,
) -> RawAnswers:
    """Send each command in turn. `told` is called with each before it is sent.

    Raises ClusterUnreachable if one is not answered by its deadline.
    """
    raw: dict[str, bytes] = {}
    for question in questions:
        told(question)
        reply = channel.ask(question.to, question.prefix, question.arguments, seconds=question.seconds)
        if reply.ok:
            raw[question.name] = reply.out
    return RawAnswers(at, raw)
