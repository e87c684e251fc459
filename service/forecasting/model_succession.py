"""The sequence of deployed bundles: after a change the controller proposes nothing by itself for a while."""

from __future__ import annotations

from datetime import datetime

from predrain.data.drain import JournalEntry
from predrain.data.store.store_port import Store

JOURNAL = "bundle"
"""The name under which the store's journal, which is never dropped, has a line for each bundle that began to
score.
"""


def find_last_deployment(store: Store) -> JournalEntry | None:
    """Return the line of the last bundle that began to score: `decided` is its fingerprint, `seen` its
    predecessor's.
    """
    return next(iter(store.journal(JOURNAL, limit=1)), None)


def record_deployment(store: Store, bundle: str, now: datetime) -> datetime | None:
    """Return the time at which `bundle` replaced another one here; None if there was never another one.

    A change is recorded, so that a restart does not end the quiet period after it.
    """
    last = find_last_deployment(store)
    if last is None or last.decided != bundle:
        last = JournalEntry(JOURNAL, now, seen=last.decided if last else "", decided=bundle, caller="worker")
        store.add_journal([last])
    return last.at if last.seen else None
