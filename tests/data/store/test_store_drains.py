"""Drains in a store: the newest revision of each wins, and every process sees it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from predrain.data.drain import DrainState
from predrain.data.store.store_port import RevisionConflict, Store
from tests.data.store.test_store import DRAIN, HOUR, NOON


def test_a_drain_comes_back_whole(store: Store) -> None:
    store.save_drain(DRAIN)
    assert store.drain("d-1") == DRAIN
    assert store.drain("d-2") is None


def test_a_higher_revision_replaces_and_a_lower_or_different_equal_one_is_refused(store: Store) -> None:
    store.save_drain(replace(DRAIN, revision=4))
    store.save_drain(replace(DRAIN, revision=4))
    newer = replace(DRAIN, revision=6, state=DrainState.APPROVED)
    store.save_drain(newer)
    for revision in (5, 6):
        with pytest.raises(
            RevisionConflict, match=rf"d-1 .* revision 6 .* revision {revision} comes too late"
        ):
            store.save_drain(replace(DRAIN, revision=revision))
    assert store.drain("d-1") == newer


def test_one_of_many_who_save_the_same_revision_wins(store: Store) -> None:
    def save(name: int) -> bool:
        try:
            store.save_drain(replace(DRAIN, revision=1, asked_by=str(name)))
        except RevisionConflict:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(save, range(16))) == 1


def test_drains_come_newest_first(store: Store) -> None:
    drains = [replace(DRAIN, id=f"d-{i}", created_at=NOON + i * HOUR) for i in (1, 3, 2)]
    for drain in drains:
        store.save_drain(drain)
    assert [drain.id for drain in store.drains()] == ["d-3", "d-2", "d-1"]


@pytest.mark.slow
def test_of_many_drains_those_are_told_anew_that_another_process_saved_since(
    opened: Callable[[], Store],
) -> None:
    ours, theirs = opened(), opened()
    many = [replace(DRAIN, id=f"d-{i:04}", created_at=NOON + i * HOUR) for i in range(600)]
    for drain in many[:-1]:
        ours.save_drain(drain)
    assert ours.drains() == tuple(reversed(many[:-1]))
    newer = replace(many[7], revision=many[7].revision + 1, state=DrainState.APPROVED)
    for drain in (newer, many[-1]):
        theirs.save_drain(drain)
    many[7] = newer
    assert ours.drains() == theirs.drains() == tuple(reversed(many))
