"""`predrain deadletter list|replay`: straight on the log, with the service up or down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from data.refusal import Refusal
from service.cli.options import HERE, AsJson, Where, print_json
from service.state import StateDir

if TYPE_CHECKING:
    from data.log.sqlite import SqliteLog


class NoLog(Refusal):
    """The state directory holds no log."""


def listing(*, where: Where = HERE, as_json: AsJson = False) -> int:
    """Readings that could not be taken, each with the reason.

    Example: predrain deadletter list
    """
    from service.scoring.deadletters import standing

    with _log(where) as log:
        letters = standing(log)
    if as_json:
        print_json(
            [
                {"topic": one.topic, "offset": one.offset, "key": one.key, "at": one.at.isoformat(),
                 "reason": one.reason, "bytes": len(one.value), "whole": one.whole}
                for one in letters
            ]
        )  # fmt: skip
        return 0
    for one in letters:
        print(f"{one.at:%Y-%m-%d %H:%M:%SZ}  {one.topic} {one.offset}  {one.key}: {one.reason}")
    print(f"{len(letters)} dead letters" if letters else "no dead letters")
    return 0


def replay(*, where: Where = HERE, as_json: AsJson = False) -> int:
    """Send them in again; those that still cannot be taken come back with their reason.

    Example: predrain deadletter replay
    """
    from service.scoring.deadletters import replay as send_again

    with _log(where) as log:
        replayed = send_again(log)
    if as_json:
        print_json({"sent": replayed.sent, "kept": replayed.kept})
    else:
        print(
            f"{replayed.sent} sent again"
            + (f", {replayed.kept} too long to be sent" if replayed.kept else "")
        )
    return 3 if replayed.kept else 0


@contextmanager
def _log(where: Where) -> Iterator[SqliteLog]:
    from data.log.sqlite import SqliteLog

    state = StateDir(where.settings().service.state)
    if not state.log.exists():
        raise NoLog(f"{state.path} holds no log; say --state or --config")
    log = SqliteLog(state.log)
    try:
        yield log
    finally:
        log.close()
