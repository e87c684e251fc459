"""`predrain deadletter list|replay`: straight on the log, with the service up or down."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from predrain.data.refusal import Refusal
from predrain.service.cli.shared_options import (
    THIS_MACHINE,
    AsJson,
    StateAddress,
    escape_to_one_line,
    print_json,
)

if TYPE_CHECKING:
    from predrain.data.log.log_port import Log


class NoLog(Refusal):
    """The state directory holds no log."""


def list_dead_letters_command(*, where: StateAddress = THIS_MACHINE, as_json: AsJson = False) -> int:
    """Readings that could not be taken, each with the reason.

    Example: predrain deadletter list
    """
    from predrain.service.streams.dead_letters import list_dead_letters

    with _open_log(where) as log:
        found = list_dead_letters(log)
    if as_json:
        print_json(
            [
                {"topic": one.topic, "partition": one.partition, "offset": one.offset, "key": one.key,
                 "at": one.at.isoformat(), "reason": one.reason, "bytes": len(one.value), "whole": one.whole}
                for one in found.letters
            ]
        )  # fmt: skip
    else:
        for one in found.letters:
            place = f"{one.topic}/{one.partition} {one.offset}"
            print(
                f"{one.at:%Y-%m-%d %H:%M:%SZ}  {place}  {escape_to_one_line(one.key)}: {escape_to_one_line(one.reason)}"
            )
        print(f"{len(found.letters)} dead letters" if found.letters else "no dead letters")
    return _report_unreadable_letters(found.sealed)


def replay_dead_letters_command(*, where: StateAddress = THIS_MACHINE, as_json: AsJson = False) -> int:
    """Send them in again; those that still cannot be taken come back with their reason.

    Example: predrain deadletter replay
    """
    from predrain.service.streams.dead_letters import replay_dead_letters as send_again

    with _open_log(where) as log:
        replayed = send_again(log)
    if as_json:
        print_json({"sent": replayed.sent, "kept": replayed.kept, "sealed": replayed.sealed})
    else:
        said = [f"{replayed.sent} sent again"]
        said += [f"{count} {what}" for count, what in (
            (replayed.kept, "stay, whose record is not there whole"),
            (replayed.sealed, "stay, which this predrain cannot open")) if count]  # fmt: skip
        print(", ".join(said))
    return 3 if replayed.kept or replayed.sealed else 0


def _report_unreadable_letters(sealed: Sequence[str]) -> int:
    for sentence in sealed:
        print(sentence, file=sys.stderr)
    return 3 if sealed else 0


@contextmanager
def _open_log(where: StateAddress) -> Iterator[Log]:
    from predrain.service.storage.backends import standing_log

    settings = where.settings()
    with standing_log(settings) as log:
        if log is None:
            raise NoLog(f"{settings.service.state} holds no log; say --state or --config")
        yield log
