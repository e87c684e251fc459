"""Which bundle followed which, and when: after a change the controller proposes nothing by itself for a while."""

from __future__ import annotations

from datetime import datetime

from predrain.data.drain import JournalEntry
from predrain.data.store.port import Store

JOURNAL = "bundle"
"""Under which name the store's journal, which is never dropped, has a line for each bundle that began to score."""


def reign(store: Store) -> JournalEntry | None:
    """The line of the bundle that began to score last: `decided` is its fingerprint, `seen` the one before's."""
    return next(iter(store.journal(JOURNAL, limit=1)), None)


def since(store: Store, bundle: str, now: datetime) -> datetime | None:
    """When `bundle` replaced another one here; None while it is the only one there ever was.

    A change is written down, so that a restart does not end the quiet after it.
    """
    last = reign(store)
    if last is None or last.decided != bundle:
        last = JournalEntry(JOURNAL, now, seen=last.decided if last else "", decided=bundle, caller="worker")
        store.add_journal([last])
    return last.at if last.seen else None
