"""Snapshots with the lives of their disks, for tests that make a snapshot by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache

from predrain.data.outcome import Outcome
from predrain.data.store.sqlite_store import MEMORY, SqliteStore
from predrain.data.store.store_port import Store
from predrain.service.fleet.fleet import FleetSnapshot
from predrain.service.fleet.life_book import LifeBook


@cache
def _empty_store() -> Store:
    """Shared by all sights, since making a store takes longer than a test: nothing is ever written into it."""
    return SqliteStore(MEMORY)


def hearing_book(snapshot: FleetSnapshot, now: datetime, stale_after: timedelta) -> LifeBook:
    """The book of a service that has run for long enough to know the hosts of `snapshot`."""
    earlier = now - timedelta(hours=1)
    book = LifeBook(_empty_store(), earlier, stale_after)
    book.assess_lives(snapshot.readings, snapshot.outlooks, snapshot.drains, snapshot.view, earlier)
    return book


def build_living_snapshot(
    snapshot: FleetSnapshot,
    now: datetime,
    stale_after: timedelta,
    outcomes: Sequence[Outcome] = (),
    book: LifeBook | None = None,
) -> FleetSnapshot:
    """The snapshot with the state of each disk, by the book of a service that has run for a while."""
    book = book or hearing_book(snapshot, now, stale_after)
    book.update_outcomes(outcomes)
    book.assess_lives(snapshot.readings, snapshot.outlooks, snapshot.drains, snapshot.view, now)
    book.apply_elapsed_time(now)
    return replace(snapshot, lives=book.current_lives)
