"""The self-tests of a disk and the requests about it, as lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from predrain.data.disk_request import DiskVerb
from predrain.service.disk_requests.request_sentences import VERB_TEXTS
from predrain.service.terminal.service_connection import Json

_TESTS: Final = 6
"""The newest tests of the drive's log that are shown."""
_REQUESTS: Final = 3


def describe_self_tests(told: Json) -> Iterator[str]:
    """Yield the test that runs, and the newest ones of the drive's log with their results."""
    tests = told["self_tests"]
    if tests is None:
        yield "The drive has reported no self-tests yet."
        return
    if (running := tests["running"]) is not None:
        kind = running["kind"] or "a"
        done = "" if running["done_percent"] is None else f", {running['done_percent']} % done"
        yield f"Now: {kind} self-test runs{done} (read {_format_time(tests['read_at'])} UTC)."
    for one in tests["log"][:_TESTS]:
        age = "" if one["power_on_hours"] is None else f" at {one['power_on_hours']:,} h"
        block = "" if one["first_error_lba"] is None else f" First bad block: {one['first_error_lba']:,}."
        yield f"{one['kind']}{age}: {one['sentence']}{block}"
    if not tests["log"] and running is None:
        yield "The drive's log has no self-test."


def describe_requests(told: Json) -> Iterator[str]:
    """Yield the state of the light, the requests that are open, and the newest ended ones."""
    if told["light"] is not None or told["slot"] is not None:
        slot = f" of slot {told['slot']}" if told["slot"] else ""
        yield f"Light{slot}: {told['light'] or 'never switched'}."
    for one in (*told["open"], *told["ended"][:_REQUESTS]):
        yield describe_request_line(one)


def describe_request_line(one: Json) -> str:
    """Return a request with its time, the person who asked, and what became of it."""
    slot = f" Slot: {one['slot']}." if one["slot"] else ""
    asked = f"{_format_time(one['issued_at'])} {VERB_TEXTS[DiskVerb(one['verb'])]}, by {one['by']}"
    return f"{asked}: {one['sentence']}{slot}"


def _format_time(text: str) -> str:
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M}"
