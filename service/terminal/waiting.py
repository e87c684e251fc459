"""Waiting, for a bounded time, until the cluster has answered the process that a command asks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

WAIT_SECONDS = 60.0
"""Time for which a command waits: a mgr that takes over answers within a minute."""
REPORT_SECONDS = 10.0
"""Seconds between two lines on stderr that it still waits."""


class ClusterUnanswered(Exception):
    """The cluster has not answered yet. `refusal`: what to raise in the end; `seconds`: when to ask again."""

    def __init__(self, refusal: Exception, seconds: float) -> None:
        super().__init__(str(refusal))
        self.refusal, self.seconds = refusal, seconds


def wait_for_cluster(ask: Callable[[], T]) -> T:
    """Return the result of `ask`, which raises ClusterUnanswered before the cluster has answered.

    Raises the refusal of the last try in the end.
    """
    begun = time.monotonic()
    reported: float | None = None
    while True:
        try:
            found = ask()
        except ClusterUnanswered as unanswered:
            waited = time.monotonic() - begun
            if waited + unanswered.seconds > WAIT_SECONDS:
                raise unanswered.refusal from unanswered
            if reported is None:
                _print_wait_status(f"{unanswered} Waiting up to {WAIT_SECONDS:.0f} s for its answer.")
                reported = waited
            elif waited - reported >= REPORT_SECONDS:
                _print_wait_status(f"waited {waited:.0f} s of {WAIT_SECONDS:.0f} s for the cluster's answer")
                reported = waited
            time.sleep(unanswered.seconds)
            continue
        if reported is not None:
            _print_wait_status(f"the cluster answered after {time.monotonic() - begun:.1f} s")
        return found


def _print_wait_status(text: str) -> None:
    print(f"predrain: {text}", file=sys.stderr, flush=True)
