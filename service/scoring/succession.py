"""Which bundle followed which, and when: after a change the controller proposes nothing by itself for a while."""

from __future__ import annotations

from datetime import datetime

import msgspec

from data.log.port import Log, Record, Topic

KEY = "bundle"
GROUP = "bundles"
LIMIT = 10_000


class _Loaded(msgspec.Struct, frozen=True):
    """A bundle that began to score. `first`: nothing scored here before it."""

    bundle: str
    at: datetime
    first: bool


def since(log: Log, bundle: str, now: datetime) -> datetime | None:
    """When `bundle` replaced another one here; None while it is the only one there ever was.

    A change is written down in the log's actions, so that a restart does not end the quiet after it.
    """
    last: _Loaded | None = None
    for record in log.read(Topic.ACTIONS, GROUP, LIMIT):
        if record.key == KEY:
            last = msgspec.json.decode(record.value, type=_Loaded)
    if last is None or last.bundle != bundle:
        last = _Loaded(bundle, now, first=last is None)
        log.append(Topic.ACTIONS, [Record(KEY, msgspec.json.encode(last))])
    return None if last.first else last.at
