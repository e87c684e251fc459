"""What is asked of a cluster to see it, and the answers as they came."""

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
    """Without its answer there is no view; the others' absence is shown as unknown."""
    every: timedelta = timedelta(0)
    """How old its last answer may grow before it is asked again; 0: asked at each look."""
    seconds: float | None = None
    """How long its answer may take, where that is not the channel's usual time."""


@dataclass(frozen=True, slots=True)
class RawAnswers:
    """Raw answers by the question's name, and when they were asked for (UTC). A command that failed is absent."""

    at: datetime
    raw: Mapping[str, bytes]


def asked(
    channel: CommandChannel,
    questions: Iterable[ReadCommand],
    at: datetime,
    told: Callable[[ReadCommand], None] = lambda _: None,
) -> RawAnswers:
    """Ask each question in turn. told: called with each before it is asked. Raises ClusterUnreachable when one is not
    answered by its deadline."""
    raw: dict[str, bytes] = {}
    for question in questions:
        told(question)
        reply = channel.ask(question.to, question.prefix, question.arguments, seconds=question.seconds)
        if reply.ok:
            raw[question.name] = reply.out
    return RawAnswers(at, raw)
