"""Sights with the lives of their disks, for tests that make a sight by hand."""

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


def hearing_book(sight: FleetSnapshot, now: datetime, stale_after: timedelta) -> LifeBook:
    """The book of a service that has run for long enough to know the hosts of `sight`."""
    earlier = now - timedelta(hours=1)
    book = LifeBook(_empty_store(), earlier, stale_after)
    book.assess_lives(sight.readings, sight.outlooks, sight.drains, sight.view, earlier)
    return book


def standing_sight(
    sight: FleetSnapshot,
    now: datetime,
    stale_after: timedelta,
    outcomes: Sequence[Outcome] = (),
    book: LifeBook | None = None,
) -> FleetSnapshot:
    """The sight with how its disks stand, by the book of a service that has run for a while."""
    book = book or hearing_book(sight, now, stale_after)
    book.update_outcomes(outcomes)
    book.assess_lives(sight.readings, sight.outlooks, sight.drains, sight.view, now)
    book.apply_elapsed_time(now)
    return replace(sight, lives=book.current_lives)
