"""Which bundle followed which, and when: after a change the controller proposes nothing by itself for a while."""

from __future__ import annotations

from datetime import datetime

from data.drain import JournalEntry
from data.store.port import Store

JOURNAL = "bundle"
"""Under which name the store's journal, which is never dropped, has a line for each bundle that began to score."""


def since(store: Store, bundle: str, now: datetime) -> datetime | None:
    """When `bundle` replaced another one here; None while it is the only one there ever was.

    A change is written down, so that a restart does not end the quiet after it.
    """
    last = next(iter(store.journal(JOURNAL, limit=1)), None)
    if last is None or last.decided != bundle:
        last = JournalEntry(JOURNAL, now, seen=last.decided if last else "", decided=bundle, caller="worker")
        store.add_journal([last])
    return last.at if last.seen else None
