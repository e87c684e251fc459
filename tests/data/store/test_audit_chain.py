"""The audit is a chain: what is changed, removed or put in between shows, on every database."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete, insert, select, update

from predrain.data.drain import JournalEntry
from predrain.data.store import store_schema
from predrain.data.store.sql_store import SqlStore
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_port import AUDIT, ChainBreak, Store
from tests.data.store.test_migrations import _old_file

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LINES = 7


def lines(count: int, first: int = 0) -> list[JournalEntry]:
    return [
        JournalEntry(
            AUDIT, NOON + timedelta(days=n), f"from here, call {n}", f"act {n}", "200", caller="anna"
        )
        for n in range(first, first + count)
    ]


def forge(store: Store, statement: object) -> None:
    """Execute a statement on the database, as a person with direct access to the database can."""
    assert isinstance(store, SqlStore)
    store._database.write(lambda connection: connection.execute(statement))  # type: ignore[call-overload]


def numbers(store: Store) -> list[int]:
    assert isinstance(store, SqlStore)
    wanted = (
        select(store_schema.journal.c.number)
        .where(store_schema.journal.c.drain == AUDIT)
        .order_by(store_schema.journal.c.number)
    )
    return list(store._database.read(lambda connection: connection.execute(wanted).scalars().all()))


def test_a_chain_that_nobody_touched_holds(store: Store) -> None:
    assert (store.verify_audit().lines, store.verify_audit().broken) == (0, None)
    store.add_journal(lines(3))
    store.add_journal([JournalEntry("d-1", NOON, "", "step"), *lines(LINES - 3, 3)])
    store.add_journal(lines(LINES))
    found = store.verify_audit()
    assert (found.lines, found.broken, found.adopted) == (LINES, None, 0)
    assert store.journal(AUDIT) == tuple(lines(LINES)), "what is there already is not added again"


@pytest.mark.parametrize("place", range(LINES))
@pytest.mark.parametrize("deed", ["change", "remove", "hide", "swap"])
def test_the_first_line_that_does_not_hold_is_named(store: Store, deed: str, place: int) -> None:
    store.add_journal(lines(LINES))
    table, there = store_schema.journal, numbers(store)
    mine = table.c.number == there[place]
    if deed == "change":
        forge(store, update(table).where(mine).values(document=b"{}"))
    elif deed == "remove":
        forge(store, delete(table).where(mine))
    elif deed == "hide":
        forge(store, update(table).where(mine).values(drain="d-1"))
    else:
        other = there[(place + 1) % LINES]
        forge(store, update(table).where(mine).values(number=10_000))
        forge(store, update(table).where(table.c.number == other).values(number=there[place]))
        forge(store, update(table).where(table.c.number == 10_000).values(number=other))
    found = store.verify_audit()
    assert found.broken is not None
    if deed == "change":
        assert (found.broken, found.broken_at) == (ChainBreak.CHANGED, there[place])
    elif deed in ("remove", "hide") and place == LINES - 1:
        assert (found.broken, found.broken_at) == (ChainBreak.END, there[place - 1])
    elif deed in ("remove", "hide"):
        assert (found.broken, found.broken_at) == (ChainBreak.CHANGED, there[place + 1])


def test_a_line_that_is_put_in_without_the_chain_shows(store: Store) -> None:
    store.add_journal(lines(2))
    forge(store, insert(store_schema.journal).values(drain=AUDIT, digest=b"x", document=b"{}", number=0))
    assert store.verify_audit().broken is ChainBreak.CHANGED


def test_a_chain_whose_ends_are_gone_is_not_taken_for_a_new_one(store: Store) -> None:
    store.add_journal(lines(2))
    forge(store, delete(store_schema.chains))
    assert store.verify_audit().broken is ChainBreak.UNKNOWN


def test_retention_leaves_the_audit_chain_unbroken_and_any_other_deletion_breaks_it(store: Store) -> None:
    store.add_journal(lines(LINES))
    assert store.prune(journal=(AUDIT, NOON + timedelta(days=3))) == 3
    found = store.verify_audit()
    assert (found.lines, found.broken) == (LINES - 3, None)
    store.add_journal(lines(1, LINES))
    assert store.verify_audit().lines == LINES - 2
    forge(store, delete(store_schema.journal).where(store_schema.journal.c.number == numbers(store)[0]))
    assert store.verify_audit().broken is ChainBreak.CHANGED
    assert store.prune(journal=(AUDIT, NOON + timedelta(days=300))) > 0
    assert store.prune(journal=(AUDIT, NOON + timedelta(days=300))) == 0


def test_all_that_is_old_may_go_and_the_chain_goes_on(store: Store) -> None:
    store.add_journal(lines(LINES))
    before = store.verify_audit().head
    store.prune(journal=(AUDIT, NOON + timedelta(days=300)))
    assert (store.verify_audit().lines, store.verify_audit().head) == (0, before)
    store.add_journal(lines(2, LINES))
    assert (store.verify_audit().lines, store.verify_audit().broken) == (2, None)


def test_writers_beside_each_other_make_one_chain(opened: Callable[[], Store]) -> None:
    stores = [opened() for _ in range(3)]
    found: list[bool] = []

    def write(which: int) -> None:
        for n in range(20):
            stores[which].add_journal(lines(1, 1_000 * which + n))
            found.append(stores[which].verify_audit().broken is None)

    threads = [threading.Thread(target=write, args=(which,)) for which in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert (stores[0].verify_audit().lines, all(found), len(found)) == (60, True, 60)


def test_a_note_and_its_line_are_written_together_or_not_at_all(store: Store) -> None:
    (line,) = lines(1)
    store.write_notes("room", {"a": b"1"}, [line])
    assert (store.read_notes("room"), store.journal(AUDIT)) == ({"a": b"1"}, (line,))
    with pytest.raises(Exception, match=r".+"):
        store.write_notes("room", {"b": b"2"}, [JournalEntry(AUDIT, NOON, "", object())])  # type: ignore[arg-type]
    assert (store.read_notes("room"), store.verify_audit().lines) == ({"a": b"1"}, 1)


def test_lines_of_before_the_chain_are_chained_as_they_stand(tmp_path: Path) -> None:
    path = _old_file(tmp_path, 5)
    from contextlib import closing
    from sqlite3 import connect

    from predrain.data.wire import wire_bodies

    with closing(connect(path)) as connection, connection:
        for n, line in enumerate(lines(3)):
            connection.execute(
                "INSERT INTO journal (drain, digest, document) VALUES (?, ?, ?)",
                (AUDIT, bytes([n]), wire_bodies.JOURNAL_ENTRY.write(line)),
            )
    store = SqliteStore(path)
    try:
        store.add_journal(lines(2, 3))
        found = store.verify_audit()
        assert (found.lines, found.adopted, found.broken) == (5, 3, None)
        forge(
            store,
            update(store_schema.journal)
            .where(store_schema.journal.c.number == numbers(store)[1])
            .values(document=b"{}"),
        )
        assert (store.verify_audit().broken_at) == numbers(store)[1]
    finally:
        store.close()
