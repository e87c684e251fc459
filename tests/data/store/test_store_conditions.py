"""Notes that are written only while other notes stand as they were read."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from predrain.data.store.store_port import NoteCondition, Store

STANDS = NoteCondition("lease", {"active": b"a"})


def test_notes_are_written_while_the_condition_holds(store: Store) -> None:
    store.write_notes("lease", {"active": b"a"})
    store.write_notes("told", {"old": b"1"})
    assert store.write_notes_if(STANDS, "told", {"new": b"2", "old": None})
    assert store.read_notes("told") == {"new": b"2"}


def test_nothing_is_written_when_a_note_of_the_condition_changed_or_is_gone(store: Store) -> None:
    assert not store.write_notes_if(STANDS, "told", {"new": b"2"})
    store.write_notes("lease", {"active": b"b"})
    assert not store.write_notes_if(STANDS, "told", {"new": b"2"})
    assert store.read_notes("told") == {}


def test_every_note_of_the_condition_counts(store: Store) -> None:
    store.write_notes("lease", {"active": b"a", "beat": b"2"})
    both = NoteCondition("lease", {"active": b"a", "beat": b"1"})
    assert not store.write_notes_if(both, "lease", {"active": b"c"})
    assert store.write_notes_if(STANDS, "lease", {"beat": b"3"})
    assert store.read_notes("lease") == {"active": b"a", "beat": b"3"}


def test_of_many_that_replace_the_same_note_one_succeeds(opened: Callable[[], Store]) -> None:
    stores = [opened() for _ in range(4)]
    stores[0].write_notes("lease", {"active": b"a"})
    with ThreadPoolExecutor(4) as pool:
        took = list(
            pool.map(
                lambda one: one[1].write_notes_if(STANDS, "lease", {"active": b"by %d" % one[0]}),
                enumerate(stores),
            )
        )
    assert sorted(took) == [False, False, False, True]
    assert stores[0].read_notes("lease") == {"active": b"by %d" % took.index(True)}
