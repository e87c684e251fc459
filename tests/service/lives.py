"""Sights with the lives of their disks, for tests that make a sight by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache

from data.outcome import Outcome
from data.store.port import Store
from data.store.sqlite import MEMORY, SqliteStore
from service.fleet import Sight
from service.lifecycle.book import LifeBook


@cache
def _empty_store() -> Store:
    """Shared by all sights, since making a store takes longer than a test: nothing is ever written into it."""
    return SqliteStore(MEMORY)


def standing_sight(
    sight: Sight, now: datetime, stale_after: timedelta, outcomes: Sequence[Outcome] = ()
) -> Sight:
    """The sight as a service has it that has run for long enough to know its hosts."""
    earlier = now - timedelta(hours=1)
    book = LifeBook(_empty_store(), earlier, stale_after)
    book.hear(outcomes)
    book.survey(sight.readings, sight.outlooks, sight.drains, sight.view, earlier)
    book.age(now)
    lives = book.survey(sight.readings, sight.outlooks, sight.drains, sight.view, now)
    return replace(sight, lives=lives)
