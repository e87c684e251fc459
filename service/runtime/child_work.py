"""Work in a process of its own, which ends with the work: heavy packages and memory go with it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

from predrain.data.refusal import Refusal

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

NICE = 10
"""The niceness of the process, so that the service runs first."""
DIES_FIRST = "1000"
"""The `oom_score_adj` of the process, so that the kernel kills it and not the service if memory runs out."""


class ChildEnded(Refusal):
    """The process ended without a result."""


def run_in_child(
    what: str, work: Callable[Given, Answer], *given: Given.args, **named: Given.kwargs
) -> Answer:
    """Return the answer of `work`, a module's function, from a process of its own, which dies with this one.

    `what` names the work in the error. Raises ChildEnded, and the Refusals of `work`.
    """
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_answer, args=(sender, work, given, named), daemon=True)
    process.start()
    sender.close()
    try:
        found = receiver.recv()
    except EOFError:
        raise ChildEnded(f"{what} ended without a result; the service's log says more") from None
    finally:
        process.join()
        receiver.close()
    if isinstance(found, Refusal):
        raise found
    return cast(Answer, found)


def _send_answer(
    sender: Connection,
    work: Callable[..., object],
    given: tuple[object, ...],
    named: dict[str, object],
) -> None:
    os.nice(NICE)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(DIES_FIRST)
    try:
        sender.send(work(*given, **named))
    except Refusal as refusal:
        sender.send(refusal)
